//! Repair and resubmit: orders in the dead-letter queue are mended and sent again, what cannot be mended is put aside.
//!
//! `cargo run --example repair`

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]
#![expect(clippy::large_futures, reason = "the futures of the SDK are")]

use std::error::Error;

use azservicebus::{ServiceBusClient, ServiceBusMessage, ServiceBusReceiverOptions};
use azservicebus::{core::BasicRetryPolicy, primitives::sub_queue::SubQueue};
use servicebus_harness::prelude::*;

/// The program that we mend orders with: a decimal comma was all that was wrong with most of them.
async fn repair(
    client: &mut ServiceBusClient<BasicRetryPolicy>,
    number: u64,
) -> Result<(), Box<dyn Error>> {
    let options = ServiceBusReceiverOptions {
        sub_queue: SubQueue::DeadLetter,
        ..Default::default()
    };
    let mut dead = client.create_receiver_for_queue("orders", options).await?;
    let mut orders = client.create_sender("orders", Default::default()).await?;
    for _ in 0..number {
        let order = dead.receive_message().await?;
        let total = str::from_utf8(order.body()?)?.replace(',', ".");
        if total.parse::<f64>().is_err() {
            dead.defer_message(&order, None).await?;
            continue;
        }
        let id = order.message_id().ok_or("an order has an id")?;
        let mut mended = ServiceBusMessage::new(total);
        // The old id would be dropped as a duplicate. The new one is the same each time, so that an order which is
        // sent but not completed, because this program died between the two, is sent again without harm.
        mended.set_message_id(format!("{id}-mended"))?;
        orders.send_message(mended).await?;
        dead.complete_message(&order).await?;
    }
    orders.dispose().await?;
    Ok(dead.dispose().await?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let orders = Queue::new("orders").requires_duplicate_detection(true);
    let topology = Topology::new().queue(orders);
    let servicebus = ServiceBus::builder().topology(topology).start().await?;
    let orders = servicebus.queue("orders");
    for (id, total) in [("o-1", "12,50"), ("o-2", "none"), ("o-3", "7,00")] {
        orders.send(Message::from(total).id(id)).await;
        let order = orders.receive().await;
        order
            .dead_letter("Rejected", "the total is no number")
            .await;
    }

    let mut client = servicebus.client().await;
    repair(&mut client, orders.counts().await.dead_letter).await?;

    for order in orders.peek().await {
        let id = order.message_id.as_deref().unwrap_or("no id");
        println!("{id}: {}", order.body_text());
    }
    let dead = orders.dead_letters();
    assert_deferred!(dead, message_id = "o-2", count = 1).await;
    println!("dead letters: {}", dead.counts().await);
    Ok(client.dispose().await?)
}
