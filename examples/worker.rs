//! A worker that charges every order once, though an order may be delivered twice. If a completion fails before its effect,
//! the order is redelivered and the worker detects it by its message id. If it fails after its effect, the order is not
//! redelivered. `cargo run --example worker`

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]
#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::{error::Error, sync::Mutex, time::Duration};

use azservicebus::{ServiceBusClient, core::BasicRetryPolicy};
use servicebus_harness::prelude::*;
use tokio::time::timeout;

const MINUTE: Duration = Duration::from_secs(60);

/// The charged orders. In production a table, which stores an id in one transaction with its charge.
pub(crate) type Charged = Mutex<Vec<String>>;
type Client = ServiceBusClient<BasicRetryPolicy>;

/// Charges orders. The SDK reconnects after a lost connection, but waits forever for an answer that was lost with it.
pub(crate) async fn work(mut client: Client, charged: &Charged) -> Result<(), Box<dyn Error>> {
    let receiving = client.create_receiver_for_queue("orders", Default::default());
    let mut orders = timeout(MINUTE, receiving).await??;
    loop {
        let order = orders.receive_message().await?;
        let id = order.message_id().ok_or("an order has an id")?.into_owned();
        let is_new = !charged.lock().unwrap().contains(&id);
        if is_new {
            charged.lock().unwrap().push(id);
        }
        orders.complete_message(&order).await?;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    static CHARGED: Charged = Mutex::new(Vec::new());
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
    let worker = tokio::spawn(async { work(client, &CHARGED).await.unwrap() });

    assert_completed!(orders, message_id = "o-3", within = MINUTE).await;
    println!("a minute later, when the lock of o-1 ends");
    servicebus.clock().advance(MINUTE).await;
    assert_completed!(orders, message_id = "o-1", within = MINUTE).await;
    assert_delivered!(orders, message_id = "o-1", times = 2).await;
    assert_delivered!(orders, message_id = "o-2", times = 1).await;
    assert_empty!(orders).await;
    worker.abort();
    println!("charged once each: {}", CHARGED.lock().unwrap().join(", "));
    Ok(())
}
