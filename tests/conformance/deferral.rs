//! Deferred messages: set aside, and received by their numbers alone.
//!
//! Source: message-deferral. This SDK settles a deferred message by a request, whose answer it shows.

use std::time::Duration;

use rstest::rstest;
use servicebus_harness::azservicebus::{
    ServiceBusMessage, ServiceBusMessageState, ServiceBusReceivedMessage, ServiceBusReceiver,
};
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    abandon, assert_refused, because, bodies, bus, close, complete, complete_all, connected,
    dead_letters, defer, deleting, done, receive, receive_nothing, receive_one, receiver,
    receiver_with, send, start, topology, within,
};

#[tokio::test]
async fn a_deferred_message_is_received_only_by_its_sequence_number() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["a", "b"]).await;
    let mut receiver = receiver(&mut client, "orders").await;
    receive_and_defer(&mut receiver, 2).await;
    // They count as active, as in the service.
    let orders = servicebus.queue("orders");
    assert_message_count!(orders, active = 2, deferred = 2, locked = 0).await;
    receive_nothing(&mut receiver).await;
    let peeked = within("a peek", receiver.peek_messages(10, None)).await;
    for message in &peeked.unwrap() {
        assert_eq!(message.state(), ServiceBusMessageState::Deferred);
    }

    let messages = deferred(&mut receiver, &[2, 1]).await;
    assert_eq!(bodies(&messages), ["b", "a"]);
    assert_message_count!(orders, locked = 2).await;
    for message in &messages {
        assert_eq!(message.delivery_count(), Some(2), "observed 10");
        assert_eq!(message.state(), ServiceBusMessageState::Deferred);
        complete(&mut receiver, message).await;
    }
    assert_empty!(orders).await;
}

#[tokio::test]
async fn receive_and_delete_removes_deferred_messages() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["a"]).await;
    let mut locking = receiver(&mut client, "orders").await;
    receive_and_defer(&mut locking, 1).await;

    let mut receiver = receiver_with(&mut client, "orders", deleting()).await;
    assert_eq!(bodies(&deferred(&mut receiver, &[1]).await), ["a"]);
    assert_empty!(servicebus.queue("orders")).await;
}

#[tokio::test]
async fn a_deferred_message_stays_deferred_until_completed_or_dead_lettered() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["a"]).await;
    let mut receiver = receiver(&mut client, "orders").await;
    receive_and_defer(&mut receiver, 1).await;

    let message = one_deferred(&mut receiver, 1).await;
    abandon(&mut receiver, &message).await;
    let message = one_deferred(&mut receiver, 1).await;
    assert_eq!(message.delivery_count(), Some(3), "after an abandon");
    defer(&mut receiver, &message).await;
    let message = one_deferred(&mut receiver, 1).await;
    assert_eq!(message.delivery_count(), Some(4), "after a deferral");
    servicebus.clock().advance(Duration::from_secs(61)).await;
    assert_refused(receiver.complete_message(&message), &["410"]).await;
    receive_nothing(&mut receiver).await;
    let mut message = one_deferred(&mut receiver, 1).await;
    assert_eq!(message.delivery_count(), Some(5), "after the lock's end");
    within("the renewal", receiver.renew_message_lock(&mut message))
        .await
        .expect("the lock is held");
    complete(&mut receiver, &message).await;
    assert_empty!(servicebus.queue("orders")).await;
}

#[tokio::test]
async fn deferral_and_later_settlements_modify_properties() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut sent = ServiceBusMessage::new("a");
    let properties = sent.application_properties_mut().get_or_insert_default();
    properties.insert("step".to_owned(), 1_i32.into());
    send(&mut client, "orders", [sent]).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    let change = |step: i32| Some([("step".to_owned(), step.into())].into_iter().collect());
    let settling = receiver.defer_message(&message, change(2));
    done("the settlement", settling).await;
    for step in 2..4 {
        let message = one_deferred(&mut receiver, 1).await;
        let properties = message.application_properties().expect("it has properties");
        assert_eq!(properties.get("step"), Some(&step.into()));
        let abandoning = receiver.abandon_message(&message, change(step + 1));
        done("the settlement", abandoning).await;
    }
    let message = one_deferred(&mut receiver, 1).await;
    complete(&mut receiver, &message).await;
}

#[tokio::test]
async fn a_deferred_message_is_dead_lettered_by_its_receiver_or_its_last_delivery() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "limited", ["bad", "poison"]).await;
    let mut receiver = receiver(&mut client, "limited").await;
    receive_and_defer(&mut receiver, 2).await;
    let bad = one_deferred(&mut receiver, 1).await;
    let options = because("Rejected");
    receiver.dead_letter_message(&bad, options).await.unwrap();
    // To defer it was the first delivery (observed 10).
    for _ in 0..2 {
        let poison = one_deferred(&mut receiver, 2).await;
        abandon(&mut receiver, &poison).await;
    }

    let mut dead = dead_letters(&mut client, "limited").await;
    let messages = receive(&mut dead, 2).await;
    assert_eq!(bodies(&messages), ["bad", "poison"]);
    assert_eq!(messages[0].dead_letter_reason(), Some("Rejected"));
    assert_eq!(
        messages[1].dead_letter_reason(),
        Some("MaxDeliveryCountExceeded")
    );
    complete_all(&mut dead, &messages).await;
    assert_message_count!(servicebus.queue("limited"), active = 0, dead_letter = 0).await;
}

#[tokio::test]
async fn unknown_active_and_locked_messages_are_not_found() {
    let (_servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["deferred", "active"]).await;
    let mut receiver = receiver(&mut client, "orders").await;
    receive_and_defer(&mut receiver, 1).await;
    expect_not_found(&mut receiver, &[4711]).await;
    expect_not_found(&mut receiver, &[2]).await;
    expect_not_found(&mut receiver, &[1, 4711]).await;
    let message = one_deferred(&mut receiver, 1).await;
    expect_not_found(&mut receiver, &[1]).await;
    complete(&mut receiver, &message).await;
    expect_not_found(&mut receiver, &[1]).await;
}

/// Then it is not found, and leaves (D9), under both settings of D1.
#[rstest]
#[tokio::test]
async fn a_deferred_message_expires_when_requested(
    #[values(Expiry::Eager, Expiry::OnReceive)] expiry: Expiry,
) {
    let (servicebus, mut client) = connected(start(topology().expiry(expiry))).await;
    for (queue, dead_letter) in [("expiring", 1), ("orders", 0)] {
        let mut message = ServiceBusMessage::new("old");
        message.set_time_to_live(Duration::from_secs(30)).unwrap();
        send(&mut client, queue, [message]).await;
        let mut receiver = receiver(&mut client, queue).await;
        receive_and_defer(&mut receiver, 1).await;
        servicebus.clock().advance(Duration::from_secs(31)).await;
        receive_nothing(&mut receiver).await;
        assert_message_count!(servicebus.queue(queue), deferred = 1, dead_letter = 0).await;
        expect_not_found(&mut receiver, &[1]).await;
        let left = servicebus.queue(queue);
        assert_message_count!(left, active = 0, dead_letter = dead_letter).await;
        close(receiver).await;
    }
}

/// Receives and defers so many messages.
async fn receive_and_defer(receiver: &mut ServiceBusReceiver, count: u32) {
    for message in receive(receiver, count).await {
        defer(receiver, &message).await;
    }
}

async fn deferred(
    receiver: &mut ServiceBusReceiver,
    numbers: &[i64],
) -> Vec<ServiceBusReceivedMessage> {
    let receiving = receiver.receive_deferred_messages(numbers.to_vec());
    done("deferred messages", receiving).await
}

async fn one_deferred(receiver: &mut ServiceBusReceiver, number: i64) -> ServiceBusReceivedMessage {
    let mut messages = deferred(receiver, &[number]).await;
    assert_eq!(messages.len(), 1, "{:?}", bodies(&messages));
    messages.remove(0)
}

/// The SDK has no kind for it; the status and the service's words are in the error.
async fn expect_not_found(receiver: &mut ServiceBusReceiver, numbers: &[i64]) {
    let receiving = receiver.receive_deferred_messages(numbers.to_vec());
    let words = "Failed to lock one or more specified messages.";
    assert_refused(receiving, &["404", words]).await;
}
