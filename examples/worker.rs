//! A worker that charges every order once, though it may see one twice.
//!
//! A completion that fails before its effect brings the order again, and the worker knows it by its message id. One that
//! fails after its effect does not. `cargo run --example worker`

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]
#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::{collections::HashSet, error::Error, time::Duration};

use azservicebus::{ServiceBusClient, core::BasicRetryPolicy};
use servicebus_harness::prelude::*;

const MINUTE: Duration = Duration::from_secs(60);

/// Charges orders. When the connection is lost, the SDK connects again.
async fn work(mut client: ServiceBusClient<BasicRetryPolicy>) -> Result<(), Box<dyn Error>> {
    let receiving = client.create_receiver_for_queue("orders", Default::default());
    let mut orders = receiving.await?;
    // In production a table, where an id is written in one transaction with its charge.
    let mut charged = HashSet::new();
    loop {
        let order = orders.receive_message().await?;
        let id = order.message_id().ok_or("an order has an id")?.into_owned();
        match charged.insert(id.clone()) {
            true => println!("{id} is charged"),
            false => println!("{id} was charged before"),
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
    let worker = tokio::spawn(async { work(client).await.unwrap() });

    assert_completed!(orders, message_id = "o-3", within = MINUTE).await;
    println!("a minute later, when the lock of o-1 ends");
    servicebus.clock().advance(MINUTE).await;
    assert_completed!(orders, message_id = "o-1", within = MINUTE).await;
    assert_delivered!(orders, message_id = "o-1", times = 2).await;
    assert_delivered!(orders, message_id = "o-2", times = 1).await;
    assert_empty!(orders).await;
    worker.abort();
    Ok(())
}
