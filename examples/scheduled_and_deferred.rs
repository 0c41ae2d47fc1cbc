//! Scheduled and deferred messages: a reminder becomes active later, an order waits for its payment.
//!
//! `cargo run --example scheduled_and_deferred`

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

use std::time::Duration;

use servicebus_harness::prelude::*;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::main]
async fn main() {
    let servicebus = ServiceBus::start().await;
    let queue = servicebus.queue("queue.1");

    let reminder = queue.schedule("pay, please", 24 * HOUR).await;
    queue.schedule("good morning", 12 * HOUR).await;
    println!("at first: {}", queue.counts().await);

    // The order arrived before its payment, so it is deferred.
    queue
        .send(Message::from("an order").message_id("o-17"))
        .await;
    let order = queue.receive().await.defer().await;
    assert_deferred!(queue, message_id = "o-17").await;

    queue.cancel_scheduled(reminder).await;
    println!("after the payment: {}", queue.counts().await);

    let received = queue.receive_deferred(order).await;
    println!("out of turn: {}", received.body_text());
    received.complete().await;

    servicebus.clock().advance(12 * HOUR).await;
    let received = queue.receive().await;
    println!("in its time: {}", received.body_text());
    received.complete().await;
    assert_empty!(queue).await;
}
