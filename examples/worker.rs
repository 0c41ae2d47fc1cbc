//! A worker that charges every order once, though it may see one twice.
//!
//! A completion that fails before its effect brings the order again, and the worker knows it by its message id. One that
//! fails after its effect does not. `cargo run --example worker`

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]
#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::{
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};

use azservicebus::{ServiceBusClient, core::BasicRetryPolicy};
use servicebus_harness::prelude::*;
use tokio::time::timeout;

const MINUTE: Duration = Duration::from_secs(60);

/// What is charged. In production a table, where an id is written in one transaction with its charge.
pub(crate) type Charged = Mutex<Vec<String>>;

/// Charges orders. When the connection is lost, the SDK connects again; where it waits for an answer that was lost with the
/// connection, it waits without end, so that has an end here.
pub(crate) async fn work(
    mut client: ServiceBusClient<BasicRetryPolicy>,
    charged: &Charged,
) -> Result<(), Box<dyn Error>> {
    let receiving = client.create_receiver_for_queue("orders", Default::default());
    let mut orders = timeout(MINUTE, receiving).await??;
    loop {
        let order = orders.receive_message().await?;
        let id = order.message_id().ok_or("an order has an id")?.into_owned();
        {
            let mut charged = charged.lock().unwrap();
            if !charged.contains(&id) {
                charged.push(id);
            }
        }
        orders.complete_message(&order).await?;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let topology = Topology::new().queue(Queue::new("orders"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    let completion = |id| servicebus.faults().on(Operation::Complete).message_id(id);
    completion("o-1").drop_connection().await;
    let after = Effect::drop_connection().after();
    completion("o-2").apply(after).await;

    let order = |id| Message::from("12.50").message_id(id);
    orders.send_all(["o-1", "o-2", "o-3"].map(order)).await;
    let client = servicebus.client().await;
    let charged = Arc::new(Charged::default());
    let till = Arc::clone(&charged);
    let worker = tokio::spawn(async move { work(client, &till).await.unwrap() });

    assert_completed!(orders, message_id = "o-3", within = MINUTE).await;
    println!("a minute later, when the lock of o-1 ends");
    servicebus.clock().advance(MINUTE).await;
    assert_completed!(orders, message_id = "o-1", within = MINUTE).await;
    assert_delivered!(orders, message_id = "o-1", times = 2).await;
    assert_delivered!(orders, message_id = "o-2", times = 1).await;
    assert_empty!(orders).await;
    worker.abort();
    println!("charged once each: {}", charged.lock().unwrap().join(", "));
    Ok(())
}
