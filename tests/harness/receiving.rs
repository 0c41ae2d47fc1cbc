//! Receiving as a competing receiver: with a lock, without one, and without losing a message.

use std::time::Duration;

use servicebus_harness::prelude::*;

use super::{assert_error, error_of, namespace_with_orders};

#[tokio::test]
async fn a_received_message_is_settled_in_every_way() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send(Message::from("hello").message_id("o-1")).await;

    let received = orders.receive().await;
    assert_eq!(received.delivery_count(), 1);
    assert!(received.locked_until.is_some());
    assert_message_count!(orders, active = 1, locked = 1).await;
    received.abandon().await;

    let received = orders.receive().await;
    assert_eq!(received.delivery_count(), 2);
    received.release().await;

    let received = orders.receive().await;
    assert_eq!(received.delivery_count(), 2, "a release does not count");
    received.dead_letter("Rejected", "total is negative").await;
    assert_dead_lettered!(
        orders,
        reason = "Rejected",
        description = "total is negative"
    )
    .await;

    let dead = orders.dead_letters().receive().await;
    assert_eq!(dead.message().dead_letter_reason(), Some("Rejected"));
    assert_eq!(
        dead.dead_letter_error_description(),
        Some("total is negative")
    );
    dead.complete().await;
    assert_empty!(orders.dead_letters()).await;
}

#[tokio::test]
async fn receivers_compete() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send_all(["one", "two"]).await;
    let (first, second) = tokio::join!(orders.receive(), orders.receive());
    assert_ne!(first.sequence_number, second.sequence_number);
}

#[tokio::test]
async fn a_receive_waits_for_its_message() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let (received, ()) = tokio::join!(orders.receive_and_delete(), orders.send("late"));
    assert_eq!(received.body_text(), "late");
    assert_empty!(orders).await;
}

#[tokio::test]
async fn an_empty_receive_lists_the_other_messages() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let sentence = "orders: no message arrived within 0 s; it holds no messages";
    let refused = orders.receive_within(Duration::ZERO);
    assert_error(refused, ErrorKind::Timeout, sentence).await;

    orders.send("hello").await;
    let _locked = orders.receive().await;
    assert_eq!(
        error_of(orders.receive_and_delete_within(Duration::from_millis(20))).await,
        "orders: no message arrived within 0.02 s; it holds 1 active (1 locked)"
    );
}

#[tokio::test]
async fn a_receive_without_waiting_returns_ready_messages() {
    let (_servicebus, orders) = namespace_with_orders().await;
    for _ in 0..50 {
        orders.send("hello").await;
        let received = orders
            .receive_within(Duration::ZERO)
            .result()
            .await
            .unwrap();
        received.complete().await;
    }
    assert_completed!(orders, count = 50).await;
}

#[tokio::test]
async fn a_message_that_is_dropped_stays_locked() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send("hello").await;
    drop(orders.receive().await);
    assert_message_count!(orders, locked = 1).await;

    servicebus.clock().advance(Duration::from_secs(61)).await;
    assert_eq!(orders.receive().await.delivery_count(), 2);
}

#[tokio::test]
async fn settlement_after_lock_expiry_is_an_error() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send(Message::from("hello").message_id("o-1")).await;
    let received = orders.receive().await;
    servicebus.clock().advance(Duration::from_secs(61)).await;

    let sentence =
        "the lock on #1 \"hello\" (message-id o-1) of orders was lost before it was settled";
    assert_error(received.complete(), ErrorKind::MessageLockLost, sentence).await;
    assert_message_count!(orders, active = 1, locked = 0).await;
}

#[tokio::test]
async fn a_purge_deletes_ready_messages_and_counts_the_rest() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send_all((0..230).map(|n| n.to_string())).await;
    let locked = orders.receive().await;
    orders.receive().await.dead_letter("Rejected", "").await;

    let purged = orders.purge().await;
    assert_eq!(
        purged.to_string(),
        "removed 228 messages, left 1 active (1 locked), 1 dead-lettered"
    );
    locked.complete().await;
    assert_eq!(orders.dead_letters().purge().await.removed, 1);
    assert_message_count!(orders, active = 0, dead_letter = 0).await;
}
