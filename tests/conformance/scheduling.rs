//! Scheduled messages: sent ahead, waiting, active under a new number, or cancelled.
//!
//! Source: message-sequencing. An instant is a client's, and the bus's clock moves to it (D20).

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use rstest::rstest;
use servicebus_harness::azservicebus::{
    ServiceBusMessage, ServiceBusMessageState, ServiceBusSender,
};
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    assert_refused, bodies, body, bus, complete, connected, dead_letters, done, receive,
    receive_nothing, receive_one, receiver, send, sender, start, topology, within,
};

#[tokio::test]
async fn a_scheduled_message_gets_a_new_sequence_number_when_activated() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", [at("later", 300)]).await;
    let orders = servicebus.queue("orders");
    assert_message_count!(orders, active = 0, scheduled = 1).await;

    let mut receiver = receiver(&mut client, "orders").await;
    receive_nothing(&mut receiver).await;
    let peeking = within("a peek", receiver.peek_messages(10, None)).await;
    let peeked = peeking.unwrap();
    assert_eq!(peeked.len(), 1);
    assert_eq!(peeked[0].state(), ServiceBusMessageState::Scheduled);
    assert_eq!(peeked[0].sequence_number(), 1);
    servicebus.clock().advance(Duration::from_secs(240)).await;
    receive_nothing(&mut receiver).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(body(&message), "later");
    // Observed 6.
    assert_eq!(message.state(), ServiceBusMessageState::Scheduled);
    assert_eq!(message.sequence_number(), 2);
    let enqueued: SystemTime = message.enqueued_time().into();
    let age = enqueued.elapsed().unwrap_or_default();
    assert!(age < Duration::from_secs(60), "enqueued {age:?} ago");
    complete(&mut receiver, &message).await;
    assert_message_count!(orders, active = 0, scheduled = 0).await;
}

#[tokio::test]
async fn a_schedule_request_returns_a_sequence_number_per_message() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "orders").await;
    assert_eq!(schedule(&mut sender, &["a", "b"], 300).await, [1, 2]);
    assert_eq!(schedule(&mut sender, &["c"], 200).await, [3]);
    assert_message_count!(servicebus.queue("orders"), active = 0, scheduled = 3).await;

    servicebus.clock().advance(Duration::from_secs(301)).await;
    let mut receiver = receiver(&mut client, "orders").await;
    let messages = receive(&mut receiver, 3).await;
    assert_eq!(bodies(&messages), ["c", "a", "b"]);
    for (message, number) in messages.iter().zip(4..) {
        assert_eq!(message.sequence_number(), number);
        complete(&mut receiver, message).await;
    }
}

#[tokio::test]
async fn a_past_schedule_time_activates_at_once() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut late = ServiceBusMessage::new("late");
    late.set_scheduled_enqueue_time((SystemTime::now() - Duration::from_secs(60)).into());
    send(&mut client, "orders", [late]).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(message.sequence_number(), 1);
    complete(&mut receiver, &message).await;
}

#[tokio::test]
async fn a_cancelled_message_is_not_delivered() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "orders").await;
    let numbers = schedule(&mut sender, &["a", "b", "c"], 60).await;
    done("the answer", cancel(&mut sender, &numbers[..1])).await;
    done("the answer", cancel(&mut sender, &numbers[2..])).await;
    assert_message_count!(servicebus.queue("orders"), active = 0, scheduled = 1).await;

    servicebus.clock().advance(Duration::from_secs(61)).await;
    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(body(&message), "b");
    complete(&mut receiver, &message).await;
    receive_nothing(&mut receiver).await;
}

#[tokio::test]
async fn unknown_cancelled_and_active_messages_cannot_be_cancelled() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "orders").await;
    let first = schedule(&mut sender, &["first"], 60).await[0];
    expect_not_found(cancel(&mut sender, &[4711]), "4711").await;
    expect_not_found(cancel(&mut sender, &[first, 4711]), "4711").await;
    assert_message_count!(servicebus.queue("orders"), scheduled = 1).await;
    let second = schedule(&mut sender, &["second"], 60).await[0];
    done("the answer", cancel(&mut sender, &[second])).await;
    expect_not_found(cancel(&mut sender, &[second]), "2").await;

    servicebus.clock().advance(Duration::from_secs(61)).await;
    expect_not_found(cancel(&mut sender, &[first]), "1").await;
    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    expect_not_found(cancel(&mut sender, &[message.sequence_number()]), "3").await;
    complete(&mut receiver, &message).await;
}

/// Scheduled for 5:00 with ten minutes to live, a message is there until 15:00, under both settings of D1.
#[rstest]
#[tokio::test]
async fn the_time_to_live_begins_at_activation(
    #[values(Expiry::Eager, Expiry::OnReceive)] expiry: Expiry,
) {
    let (servicebus, mut client) = connected(start(topology().expiry(expiry))).await;
    let mut message = at("short", 300);
    message.set_time_to_live(Duration::from_secs(600)).unwrap();
    send(&mut client, "expiring", [message]).await;
    let expiring = servicebus.queue("expiring");
    servicebus.clock().advance(Duration::from_secs(840)).await;
    assert_message_count!(expiring, active = 1, scheduled = 0, dead_letter = 0).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let left = match expiry {
        Expiry::Eager => 0,
        Expiry::OnReceive => 1,
    };
    assert_message_count!(expiring, active = left, dead_letter = 1 - left).await;

    let mut receiver = receiver(&mut client, "expiring").await;
    receive_nothing(&mut receiver).await;
    let mut dead = dead_letters(&mut client, "expiring").await;
    let message = receive_one(&mut dead).await;
    assert_eq!(message.dead_letter_reason(), Some("TTLExpiredException"));
    complete(&mut dead, &message).await;
}

/// A message for so many seconds from now, by the clock of this process.
fn at(body: &str, seconds: u64) -> ServiceBusMessage {
    let mut message = ServiceBusMessage::new(body);
    message.set_scheduled_enqueue_time((SystemTime::now() + Duration::from_secs(seconds)).into());
    message
}

/// Schedules messages by one request; their numbers.
async fn schedule(sender: &mut ServiceBusSender, bodies: &[&str], seconds: u64) -> Vec<i64> {
    let at = SystemTime::now() + Duration::from_secs(seconds);
    let messages: Vec<_> = bodies
        .iter()
        .map(|&body| ServiceBusMessage::new(body))
        .collect();
    done("the numbers", sender.schedule_messages(messages, at.into())).await
}

fn cancel(
    sender: &mut ServiceBusSender,
    numbers: &[i64],
) -> impl Future<Output = Result<(), impl Debug + use<>>> {
    sender.cancel_scheduled_messages(numbers.to_vec())
}

async fn expect_not_found(cancelling: impl Future<Output = Result<(), impl Debug>>, missing: &str) {
    let words = format!("Messages not found. Missing sequence numbers: {missing} ");
    assert_refused(cancelling, &["404", &words]).await;
}
