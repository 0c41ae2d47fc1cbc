//! Repair and resubmit: dead letters are corrected and sent again; those that cannot be corrected are deferred for a person.
//!
//! `cargo run --example repair`

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]
#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::error::Error;

use azservicebus::{ServiceBusClient, ServiceBusMessage, ServiceBusReceiverOptions};
use azservicebus::{core::BasicRetryPolicy, primitives::sub_queue::SubQueue};
use servicebus_harness::prelude::*;

/// Sends the next dead-lettered order again. Most of them only have a decimal comma.
async fn repair(client: &mut ServiceBusClient<BasicRetryPolicy>) -> Result<(), Box<dyn Error>> {
    let options = ServiceBusReceiverOptions {
        sub_queue: SubQueue::DeadLetter,
        ..Default::default()
    };
    let mut dead = client.create_receiver_for_queue("orders", options).await?;
    let order = dead.receive_message().await?;
    let total = str::from_utf8(order.body()?)?.replace(',', ".");
    if total.parse::<f64>().is_err() {
        dead.defer_message(&order, None).await?;
        return Ok(dead.dispose().await?);
    }
    // The old id would be dropped as a duplicate. The new one is the same each time, so an order that was sent but not
    // completed, because this program crashed between the two, can be sent again without harm.
    let id = order.message_id().ok_or("an order has an id")?;
    let mut mended = ServiceBusMessage::new(total);
    mended.set_message_id(format!("{id}-mended"))?;
    let mut orders = client.create_sender("orders", Default::default()).await?;
    orders.send_message(mended).await?;
    orders.dispose().await?;
    dead.complete_message(&order).await?;
    Ok(dead.dispose().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let topology = Topology::new().queue(Queue::new("orders").requires_duplicate_detection(true));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    for (id, total) in [("o-1", "12,50"), ("o-2", "none")] {
        orders.send(Message::from(total).message_id(id)).await;
        let order = orders.receive().await;
        order.dead_letter("Rejected", "no number").await;
    }

    let mut client = servicebus.client().await;
    repair(&mut client).await?;
    repair(&mut client).await?;

    println!("orders: {}", orders.counts().await);
    assert_message_count!(orders, active = 1, dead_letter = 1).await;
    assert_eq!(orders.peek().await[0].body_text(), "12.50");
    assert_deferred!(orders.dead_letters(), message_id = "o-2").await;
    Ok(client.dispose().await?)
}
