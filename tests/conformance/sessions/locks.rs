//! Locks of sessions: renewed in time, or lost with all that was received.
//!
//! Source: message-sessions, and D17 for a changed queue. As with messages, this SDK does not wait for the outcome
//! of a settlement: a lost session shows in what comes again, in a receive and in a request.

use std::time::{Duration, SystemTime};

use servicebus_harness::prelude::*;

use super::receiver::{accept, accept_next, close, complete, receive, receive_one};
use super::{bus, cart};
use crate::conformance::client::{assert_refused, body, connect, connected, done, send, within};

#[tokio::test]
async fn a_renewed_session_lock_lasts() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "carts", [cart("1", "slow")]).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    let message = receive_one(&mut receiver).await;
    for _ in 0..2 {
        servicebus.clock().advance(Duration::from_secs(40)).await;
        within("the renewal", receiver.renew_session_lock())
            .await
            .expect("the session is still held");
        let locked_until: SystemTime = receiver.session_locked_until().into();
        let remaining = locked_until.duration_since(SystemTime::now()).unwrap();
        assert!(
            (30..=61).contains(&remaining.as_secs()),
            "a renewed lock has {remaining:?} left by the client's clock"
        );
    }
    servicebus.clock().advance(Duration::from_secs(40)).await;
    complete(&mut receiver, &message).await;
    assert_completed!(servicebus.queue("carts"), count = 1).await;
}

/// It is the session that is locked, and its messages with it.
#[tokio::test]
async fn a_message_lock_in_a_session_cannot_be_renewed() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "carts", [cart("1", "a")]).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    let mut message = receive_one(&mut receiver).await;
    assert_refused(receiver.renew_message_lock(&mut message), &["400"]).await;
    complete(&mut receiver, &message).await;
    assert_completed!(servicebus.queue("carts"), count = 1).await;
}

#[tokio::test]
async fn messages_of_a_lost_session_are_redelivered_and_counted() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "carts", [cart("1", "a"), cart("1", "b")]).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    receive(&mut receiver, 2).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let carts = servicebus.queue("carts");
    assert_message_count!(carts, active = 2, locked = 0).await;
    assert_refused(receiver.receive_message(), &["session-lock-lost"]).await;

    let mut again = accept(&mut client, "carts", "1").await;
    for expected in ["a", "b"] {
        let message = receive_one(&mut again).await;
        assert_eq!(body(&message), expected);
        assert_eq!(message.delivery_count(), Some(2));
        complete(&mut again, &message).await;
    }
    assert_empty!(carts).await;
}

#[tokio::test]
async fn requests_after_a_lost_session_lock_are_refused() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    assert_refused(receiver.renew_session_lock(), &["410"]).await;
    let setting = receiver.set_session_state(b"late".to_vec());
    assert_refused(setting, &["410"]).await;
    assert_refused(receiver.session_state(), &["410"]).await;
}

#[tokio::test]
async fn a_waiting_receiver_gets_a_session_whose_lock_expires() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "carts", [cart("1", "stuck")]).await;
    let mut stuck = accept(&mut client, "carts", "1").await;
    receive_one(&mut stuck).await;
    let mut waiting_client = connect(&servicebus).await;
    let waiting = tokio::spawn(async move {
        let mut receiver = accept_next(&mut waiting_client, "carts").await;
        let message = receive_one(&mut receiver).await;
        complete(&mut receiver, &message).await;
        close(receiver).await;
        message
    });
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let message = done("the message", waiting).await;
    assert_eq!(body(&message), "stuck");
    assert_eq!(message.delivery_count(), Some(2));
    assert_completed!(servicebus.queue("carts"), count = 1).await;
}

#[tokio::test]
async fn a_changed_queue_loses_the_locks_of_its_sessions() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "carts", [cart("1", "held")]).await;
    let mut holder = accept(&mut client, "carts", "1").await;
    receive_one(&mut holder).await;
    let carts = servicebus.queue("carts");
    carts.update(|queue| queue.max_delivery_count(5)).await;
    assert_refused(holder.renew_session_lock(), &["410"]).await;

    let mut receiver = accept_next(&mut client, "carts").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(message.delivery_count(), Some(2));
    complete(&mut receiver, &message).await;
}
