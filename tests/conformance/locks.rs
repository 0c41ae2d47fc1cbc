//! Locks: renewed in time, or lost.
//!
//! This SDK sends a settlement and does not wait for its outcome, so that completing after the
//! lock's end looks like a success to it. A lost lock shows in two ways: the message comes back, and
//! a renewal, which is a request with an answer, fails.

use std::time::{Duration, SystemTime};

use servicebus_harness::EventKind;
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    LOCK_LOST, assert_refused, body, bus, complete, connect, connected, dead_letters, done,
    receive_one, receiver, send, within,
};

#[tokio::test]
async fn a_renewed_lock_lasts() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["slow"]).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let mut message = receive_one(&mut receiver).await;
    for _ in 0..2 {
        servicebus.clock().advance(Duration::from_secs(40)).await;
        within("the renewal", receiver.renew_message_lock(&mut message))
            .await
            .expect("the lock is still held");
        let locked_until: SystemTime = message.locked_until().expect("it is locked").into();
        let remaining = locked_until.duration_since(SystemTime::now()).unwrap();
        assert!(
            (30..=61).contains(&remaining.as_secs()),
            "a renewed lock has {remaining:?} left by the client's clock"
        );
    }
    servicebus.clock().advance(Duration::from_secs(40)).await;
    complete(&mut receiver, &message).await;
    assert_completed!(servicebus.queue("orders"), count = 1).await;
    let timeline = servicebus.timeline(&servicebus.queue("orders")).await;
    assert_eq!(timeline.count(&EventKind::LockRenewed), 2, "{timeline}");
}

#[tokio::test]
async fn settlement_after_lock_expiry_changes_nothing() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["late"]).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    complete(&mut receiver, &message).await;

    let again = receive_one(&mut receiver).await;
    assert_eq!(body(&again), "late");
    assert_eq!(again.delivery_count(), Some(2));
    assert_ne!(again.lock_token(), message.lock_token());
    complete(&mut receiver, &again).await;
    assert_completed!(servicebus.queue("orders"), count = 1).await;
}

/// Observed 16: time stands still, and each renewal lasts longer than the one before.
#[tokio::test]
async fn a_renewed_lock_always_ends_later_than_before() {
    let servicebus = bus().await;
    servicebus.clock().freeze().await;
    let mut client = connect(&servicebus).await;
    send(&mut client, "orders", ["soon"]).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let mut message = receive_one(&mut receiver).await;
    for _ in 0..3 {
        let before = message.locked_until();
        done("the renewal", receiver.renew_message_lock(&mut message)).await;
        assert!(message.locked_until() > before, "{before:?}");
    }
}

#[tokio::test]
async fn renewal_after_lock_expiry_fails() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["late"]).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let mut message = receive_one(&mut receiver).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let refused = receiver.renew_message_lock(&mut message);
    assert_refused(refused, &["410", LOCK_LOST]).await;

    let again = receive_one(&mut receiver).await;
    assert_eq!(again.delivery_count(), Some(2));
    complete(&mut receiver, &again).await;
}

#[tokio::test]
async fn expired_locks_count_as_deliveries() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "limited", ["forgotten"]).await;

    let mut receiver = receiver(&mut client, "limited").await;
    for delivery in 1..=3 {
        let message = receive_one(&mut receiver).await;
        assert_eq!(message.delivery_count(), Some(delivery));
        servicebus.clock().advance(Duration::from_secs(61)).await;
    }

    let mut dead = dead_letters(&mut client, "limited").await;
    let message = receive_one(&mut dead).await;
    assert_eq!(
        message.dead_letter_reason(),
        Some("MaxDeliveryCountExceeded")
    );
    assert_eq!(message.delivery_count(), Some(4));
    complete(&mut dead, &message).await;
}

/// As the documentation of locks says; a changed status is excepted (D17, D27).
#[tokio::test]
async fn a_changed_queue_loses_its_locks() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["held"]).await;
    let mut receiver = receiver(&mut client, "orders").await;
    let mut message = receive_one(&mut receiver).await;
    let orders = servicebus.queue("orders");
    orders.update(|queue| queue.max_delivery_count(5)).await;
    assert_refused(receiver.renew_message_lock(&mut message), &[LOCK_LOST]).await;

    let again = receive_one(&mut receiver).await;
    assert_eq!(again.delivery_count(), Some(2));
    complete(&mut receiver, &again).await;
}
