//! A message with a time to live of an hour expires at once in virtual time.
//!
//! `cargo run --example time_to_live`

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Duration;

use servicebus_harness::prelude::*;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = Queue::new("offers").dead_lettering_on_message_expiration(true);
    let servicebus = ServiceBus::builder()
        .topology(Topology::new().queue(queue))
        .start()
        .await;
    let offers = servicebus.queue("offers");

    offers
        .send(Message::from("half price").time_to_live(60 * MINUTE))
        .await;

    servicebus.clock().advance(59 * MINUTE).await;
    println!("after 59 minutes: {}", offers.counts().await);

    servicebus.clock().advance(2 * MINUTE).await;
    println!("after 61 minutes: {}", offers.counts().await);

    assert_dead_lettered!(offers, reason = "TTLExpiredException").await;
    let dead = offers.dead_letters().receive().await;
    println!("reason: {}", dead.dead_letter_reason().unwrap_or("none"));
    dead.complete().await;
    Ok(())
}
