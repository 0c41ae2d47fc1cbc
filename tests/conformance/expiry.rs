//! Expiry, under both settings of D1: at its instant, or once a receiver is active.
//!
//! A receiver of this SDK has no credit until it receives, so that it can peek at a queue whose
//! expired messages wait for a receiver.

use std::time::Duration;

use rstest::rstest;
use servicebus_harness::azservicebus::{ServiceBusMessage, ServiceBusReceiver};
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    abandon, bodies, body, close, complete, connected, dead_letters, done, receive,
    receive_nothing, receive_one, receiver, send, start, topology,
};

#[rstest]
#[tokio::test]
async fn an_expired_message_is_dead_lettered_without_being_received(
    #[values(Expiry::Eager, Expiry::OnReceive)] expiry: Expiry,
) {
    let (servicebus, mut client) = connected(bus(expiry)).await;
    let messages = [short_lived("old"), "young".into()];
    send(&mut client, "expiring", messages).await;
    servicebus.clock().advance(Duration::from_secs(31)).await;

    let mut receiver = receiver(&mut client, "expiring").await;
    let peeked = done("a peek", receiver.peek_messages(10, None)).await;
    let expiring = servicebus.queue("expiring");
    match expiry {
        Expiry::Eager => {
            assert_eq!(peeked.len(), 1);
            assert_message_count!(expiring, active = 1, dead_letter = 1).await;
        }
        Expiry::OnReceive => {
            assert_eq!(peeked.len(), 2);
            assert_message_count!(expiring, active = 2, dead_letter = 0).await;
        }
    }
    let message = receive_one(&mut receiver).await;
    assert_eq!(body(&message), "young");
    complete(&mut receiver, &message).await;
    let mut dead = dead_letters(&mut client, "expiring").await;
    expect_expired(&mut dead, "old", 1).await;
}

#[rstest]
#[tokio::test]
async fn an_expired_message_is_dropped_where_the_queue_does_not_dead_letter(
    #[values(Expiry::Eager, Expiry::OnReceive)] expiry: Expiry,
) {
    let (servicebus, mut client) = connected(bus(expiry)).await;
    send(&mut client, "orders", [short_lived("old")]).await;
    servicebus.clock().advance(Duration::from_secs(31)).await;

    let left = match expiry {
        Expiry::Eager => 0,
        Expiry::OnReceive => 1,
    };
    assert_message_count!(servicebus.queue("orders"), active = left, dead_letter = 0).await;
    let mut receiver = receiver(&mut client, "orders").await;
    receive_nothing(&mut receiver).await;
    assert_message_count!(servicebus.queue("orders"), active = 0, dead_letter = 0).await;
}

#[rstest]
#[tokio::test]
async fn a_locked_message_can_be_completed_after_its_expiry(
    #[values(Expiry::Eager, Expiry::OnReceive)] expiry: Expiry,
) {
    let (servicebus, mut client) = connected(bus(expiry)).await;
    send(&mut client, "expiring", [short_lived("old")]).await;

    let mut receiver = receiver(&mut client, "expiring").await;
    let message = receive_one(&mut receiver).await;
    servicebus.clock().advance(Duration::from_secs(31)).await;
    complete(&mut receiver, &message).await;
    assert_completed!(servicebus.queue("expiring"), count = 1).await;
    assert_message_count!(servicebus.queue("expiring"), active = 0, dead_letter = 0).await;
}

#[rstest]
#[tokio::test]
async fn an_expired_message_leaves_when_abandoned(
    #[values(Expiry::Eager, Expiry::OnReceive)] expiry: Expiry,
) {
    let (servicebus, mut client) = connected(bus(expiry)).await;
    send(&mut client, "expiring", [short_lived("old")]).await;

    let mut receiver = receiver(&mut client, "expiring").await;
    let message = receive_one(&mut receiver).await;
    servicebus.clock().advance(Duration::from_secs(31)).await;
    abandon(&mut receiver, &message).await;
    let mut dead = dead_letters(&mut client, "expiring").await;
    expect_expired(&mut dead, "old", 2).await;
}

#[rstest]
#[tokio::test]
async fn an_expired_message_leaves_when_its_lock_expires(
    #[values(Expiry::Eager, Expiry::OnReceive)] expiry: Expiry,
) {
    let (servicebus, mut client) = connected(bus(expiry)).await;
    send(&mut client, "expiring", [short_lived("old")]).await;

    let mut receiver = receiver(&mut client, "expiring").await;
    receive_one(&mut receiver).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let mut dead = dead_letters(&mut client, "expiring").await;
    expect_expired(&mut dead, "old", 2).await;
}

#[rstest]
#[tokio::test]
async fn the_queues_time_to_live_is_default_and_maximum(
    #[values(Expiry::Eager, Expiry::OnReceive)] expiry: Expiry,
) {
    let (servicebus, mut client) = connected(bus(expiry)).await;
    let mut long_lived = ServiceBusMessage::new("long");
    long_lived
        .set_time_to_live(Duration::from_secs(86_400))
        .unwrap();
    send(&mut client, "fleeting", ["none".into(), long_lived]).await;

    let mut receiver = receiver(&mut client, "fleeting").await;
    for message in receive(&mut receiver, 2).await {
        assert_eq!(message.time_to_live(), Some(Duration::from_secs(300)));
        abandon(&mut receiver, &message).await;
    }
    // The SDK does not wait for what becomes of a settlement; the end of the link comes after it.
    close(receiver).await;
    servicebus.clock().advance(Duration::from_secs(301)).await;
    let mut receiver = self::receiver(&mut client, "fleeting").await;
    receive_nothing(&mut receiver).await;
    let mut dead = dead_letters(&mut client, "fleeting").await;
    let messages = receive(&mut dead, 2).await;
    assert_eq!(bodies(&messages), ["none", "long"]);
    for message in &messages {
        assert_eq!(message.dead_letter_reason(), Some("TTLExpiredException"));
        complete(&mut dead, message).await;
    }
}

async fn bus(expiry: Expiry) -> ServiceBus {
    start(topology().expiry(expiry)).await
}

/// A message that expires after half a lock.
fn short_lived(body: &str) -> ServiceBusMessage {
    let mut message = ServiceBusMessage::new(body);
    message.set_time_to_live(Duration::from_secs(30)).unwrap();
    message
}

/// Receives one dead letter: expired, with the service's words.
async fn expect_expired(dead: &mut ServiceBusReceiver, expected: &str, deliveries: u32) {
    let message = receive_one(dead).await;
    assert_eq!(body(&message), expected);
    assert_eq!(message.dead_letter_reason(), Some("TTLExpiredException"));
    assert_eq!(
        message.dead_letter_error_description(),
        Some("The message expired and was dead lettered.")
    );
    assert_eq!(message.delivery_count(), Some(deliveries));
    complete(dead, &message).await;
}
