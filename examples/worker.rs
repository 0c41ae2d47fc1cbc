//! A worker that connects again when its connection ends, and charges every order once.
//!
//! A completion that was lost before it had its effect brings the order again: the worker knows it by its message id.
//! One that was lost after its effect does not. `cargo run --example worker`

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]
#![expect(clippy::large_futures, reason = "the futures of the SDK are")]

use std::{collections::HashSet, error::Error, time::Duration};

use azservicebus::{ServiceBusClient, ServiceBusClientOptions};
use servicebus_harness::{Effect, prelude::*};

const MINUTE: Duration = Duration::from_secs(60);
const BEFORE_IT_CONNECTS_AGAIN: Duration = Duration::from_millis(50);

#[derive(Default)]
struct Worker {
    /// What was charged, as the database has it, where an id is written in one transaction with its charge.
    charged: HashSet<String>,
}

impl Worker {
    async fn run(mut self, connection_string: String) {
        while self.work(&connection_string).await.is_err() {
            println!("the connection was lost");
            tokio::time::sleep(BEFORE_IT_CONNECTS_AGAIN).await;
        }
    }

    /// Charges orders for as long as the connection lasts.
    async fn work(&mut self, connection_string: &str) -> Result<(), Box<dyn Error>> {
        let mut options = ServiceBusClientOptions::default();
        options.retry_options.max_retries = 0; // it is tried again here
        let connecting =
            ServiceBusClient::unsecured().new_from_connection_string(connection_string, options);
        let mut client = connecting.await?;
        let receiving = client.create_receiver_for_queue("orders", Default::default());
        let mut orders = receiving.await?;
        loop {
            let order = orders.receive_message().await?;
            let id = order.message_id().ok_or("an order has an id")?.into_owned();
            match self.charged.insert(id.clone()) {
                true => println!("{id} is charged"),
                false => println!("{id} was charged before"),
            }
            orders.complete_message(&order).await?;
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let topology = Topology::new().queue(Queue::new("orders"));
    let servicebus = ServiceBus::builder().topology(topology).start().await?;
    let orders = servicebus.queue("orders");
    let completion = |id| servicebus.faults().on(Operation::Complete).message_id(id);
    completion("o-1").drop_connection().await;
    let after = Effect::drop_connection().after();
    completion("o-2").apply(after).await;

    let order = |id| Message::from("12.50").id(id);
    orders.send_all(["o-1", "o-2", "o-3"].map(order)).await;
    let worker = Worker::default().run(servicebus.connection_string().to_owned());
    let worker = tokio::spawn(worker);

    assert_completed!(orders, message_id = "o-3", within = MINUTE).await;
    println!("a minute later");
    servicebus.clock().advance(MINUTE).await;
    assert_completed!(orders, message_id = "o-1", within = MINUTE).await;
    assert_delivered!(orders, message_id = "o-1", times = 2).await;
    assert_delivered!(orders, message_id = "o-2", times = 1).await;
    assert_empty!(orders).await;
    worker.abort();
    Ok(())
}
