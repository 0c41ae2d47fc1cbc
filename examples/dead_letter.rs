//! A message that cannot be processed: received and abandoned until the queue dead-letters it.
//!
//! The loop of the Service Bus documentation. `cargo run --example dead_letter`

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]
#![expect(
    clippy::large_futures,
    reason = "the futures of the SDK are, which does not matter here"
)]

use azservicebus::{
    ServiceBusMessage, ServiceBusReceiverOptions, ServiceBusSenderOptions,
    primitives::sub_queue::SubQueue,
};
use servicebus_harness::prelude::*;

/// The default maximum delivery count of a queue.
const MAX_DELIVERY_COUNT: u32 = 10;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let topology = Topology::new().queue(Queue::new("orders"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let mut client = servicebus.client().await;

    let options = ServiceBusSenderOptions::default();
    let mut sender = client.create_sender("orders", options).await?;
    sender
        .send_message(ServiceBusMessage::new("not json"))
        .await?;

    let options = ServiceBusReceiverOptions::default();
    let mut receiver = client.create_receiver_for_queue("orders", options).await?;
    for _ in 0..MAX_DELIVERY_COUNT {
        let message = receiver.receive_message().await?;
        println!("delivery {}", message.delivery_count().unwrap_or_default());
        receiver.abandon_message(&message, None).await?;
    }
    assert_empty!(servicebus.queue("orders")).await;
    println!("no message is left");

    let options = ServiceBusReceiverOptions {
        sub_queue: SubQueue::DeadLetter,
        ..Default::default()
    };
    let mut dead_letters = client.create_receiver_for_queue("orders", options).await?;
    let message = dead_letters.receive_message().await?;
    println!(
        "dead-lettered: {}, {}",
        message.dead_letter_reason().unwrap_or("no reason"),
        message
            .dead_letter_error_description()
            .unwrap_or("no description")
    );
    dead_letters.complete_message(&message).await?;
    assert_empty!(servicebus.queue("orders").dead_letters()).await;

    client.dispose().await?;
    Ok(())
}
