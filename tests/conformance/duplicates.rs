//! Duplicate detection: a message whose id was seen within the window is accepted, and dropped.
//!
//! Source: duplicate-detection. The queue `unique` remembers ids for five minutes.

use std::time::{Duration, SystemTime};

use servicebus_harness::azservicebus::ServiceBusMessage;
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    Client, bodies, bus, close, complete_all, connected, done, receive, receive_nothing, receiver,
    send, sender,
};

#[tokio::test]
async fn a_duplicate_is_accepted_and_dropped() {
    let (_servicebus, mut client) = connected(bus()).await;
    let messages = [("first", "a"), ("second", "a"), ("third", "A")];
    send(&mut client, "unique", messages.map(identified)).await;
    expect_bodies(&mut client, &["first", "third"]).await;
}

#[tokio::test]
async fn a_completed_message_id_stays_in_the_duplicate_window() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "unique", [identified(("first", "a"))]).await;
    expect_bodies(&mut client, &["first"]).await;
    servicebus.clock().advance(Duration::from_secs(240)).await;
    send(&mut client, "unique", [identified(("again", "a"))]).await;
    expect_bodies(&mut client, &[]).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    send(&mut client, "unique", [identified(("anew", "a"))]).await;
    expect_bodies(&mut client, &["anew"]).await;
}

#[tokio::test]
async fn the_duplicate_window_of_a_scheduled_message_begins_at_acceptance() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "unique").await;
    let at = SystemTime::now() + Duration::from_secs(60);
    let first = identified(("scheduled", "a"));
    done("its number", sender.schedule_message(first, at.into())).await;
    let after = identified(("plain", "a"));
    sender.send_message(after).await.unwrap();
    let before = identified(("plain", "b"));
    sender.send_message(before).await.unwrap();
    let second = identified(("scheduled", "b"));
    done("its number", sender.schedule_message(second, at.into())).await;
    assert_message_count!(servicebus.queue("unique"), active = 1, scheduled = 1).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    expect_bodies(&mut client, &["plain", "scheduled"]).await;
}

#[tokio::test]
async fn each_message_of_a_batch_is_checked_for_duplicates() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "unique").await;
    sender
        .send_message(identified(("first", "a")))
        .await
        .unwrap();
    let batch = [("again", "a"), ("second", "b"), ("twice", "b")];
    sender.send_messages(batch.map(identified)).await.unwrap();
    expect_bodies(&mut client, &["first", "second"]).await;
}

fn identified((body, id): (&str, &str)) -> ServiceBusMessage {
    let mut message = ServiceBusMessage::new(body);
    message.set_message_id(id).unwrap();
    message
}

/// Receives and completes what is in the queue.
async fn expect_bodies(client: &mut Client, expected: &[&str]) {
    let mut receiver = receiver(client, "unique").await;
    if !expected.is_empty() {
        let messages = receive(&mut receiver, expected.len() as u32).await;
        assert_eq!(bodies(&messages), expected);
        complete_all(&mut receiver, &messages).await;
    }
    receive_nothing(&mut receiver).await;
    close(receiver).await;
}
