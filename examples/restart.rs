//! A worker that survives a crash of its broker: the emulator is killed and restarts with the messages that it had accepted.
//!
//! The worker reconnects until it succeeds, and detects redelivered orders by their ids. `cargo run --example restart`

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]
#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::{error::Error, sync::Mutex, time::Duration};

use azservicebus::{ServiceBusClient, ServiceBusClientOptions};
use servicebus_harness::prelude::*;
use tokio::time::{sleep, timeout};

/// The SDK may wait forever for an answer that was lost with its connection.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The charged orders. In production a table, which stores an id in one transaction with its charge.
static CHARGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Charges orders until the connection is lost.
async fn work(bus: &str) -> Result<(), Box<dyn Error>> {
    let client = ServiceBusClient::unsecured();
    let connecting = client.new_from_connection_string(bus, ServiceBusClientOptions::default());
    let mut client = connecting.await?;
    let orders = client.create_receiver_for_queue("orders", Default::default());
    let mut orders = orders.await?;
    while let Ok(order) = timeout(TIMEOUT, orders.receive_message()).await {
        let order = order?;
        let id = order.message_id().ok_or("an order has an id")?.into_owned();
        if !CHARGED.lock().unwrap().contains(&id) {
            CHARGED.lock().unwrap().push(id);
        }
        timeout(TIMEOUT, orders.complete_message(&order)).await??;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let topology = Topology::new().queue(Queue::new("orders"));
    let servicebus = ServiceBus::builder().topology(topology).durable();
    let servicebus = servicebus.start().await;
    let orders = servicebus.queue("orders");
    let order = |id| Message::from("12.50").message_id(id);
    orders.send_all(["o-1", "o-2"].map(order)).await;
    servicebus.crash().await;
    let bus = servicebus.connection_string().to_owned();
    tokio::spawn(async move {
        loop {
            let _ = work(&bus).await;
            sleep(Duration::from_millis(100)).await;
        }
    });
    assert_completed!(orders, message_id = "o-2").await;
    servicebus.crash().await;
    orders.send(order("o-3")).await;
    assert_completed!(orders, message_id = "o-3").await;
    println!("charged once each: {}", CHARGED.lock().unwrap().join(", "));
    Ok(())
}
