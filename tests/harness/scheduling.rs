//! Messages that wait for their time, and messages that were deferred: made, found, cancelled.

use std::time::{Duration, SystemTime};

use servicebus_harness::{MessageState, prelude::*};

use super::{assert_contains, assert_error, error_of, namespace_with_orders};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_scheduled_message_becomes_active_at_its_time() {
    let (servicebus, orders) = namespace_with_orders().await;
    let due = SystemTime::now() + 10 * MINUTE;
    let number = orders
        .schedule(Message::from("later").message_id("o-1"), due)
        .await;
    orders.schedule("in a while", 20 * MINUTE).await;

    let scheduled = orders.peek().await.remove(0);
    assert_eq!(scheduled.sequence_number, number);
    assert_eq!(scheduled.state, MessageState::Scheduled);
    let found = scheduled.scheduled_for.unwrap();
    assert!(due.duration_since(found).unwrap() < Duration::from_millis(1));
    assert_message_count!(orders, active = 0, scheduled = 2).await;

    servicebus.clock().advance(10 * MINUTE).await;
    assert_message_count!(orders, active = 1, scheduled = 1).await;
    let received = orders.receive().await;
    assert_eq!(received.body_text(), "later");
    assert!(received.sequence_number > number, "it has another number");
    received.complete().await;
}

#[tokio::test]
async fn messages_are_scheduled_together_and_cancelled_one_by_one() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let numbers = orders.schedule_all(["one", "two"], MINUTE).await;
    assert_eq!(numbers.len(), 2);
    orders.cancel_scheduled(numbers[0]).await;
    assert_message_count!(orders, scheduled = 1).await;

    let sentence = "orders holds no scheduled message 1; only 2 is scheduled";
    let refused = orders.cancel_scheduled(numbers[0]);
    assert_error(refused, ErrorKind::MessageNotFound, sentence).await;
    orders.cancel_scheduled(numbers[1]).await;
    assert_eq!(
        error_of(orders.cancel_scheduled(7)).await,
        "orders holds no scheduled message 7; none is scheduled"
    );
}

#[tokio::test]
async fn a_sent_message_can_be_scheduled() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let due = SystemTime::now() + MINUTE;
    orders.send(Message::from("later").scheduled_at(due)).await;
    assert_scheduled!(orders, at = due, count = 1).await;
    orders.schedule("at once", SystemTime::UNIX_EPOCH).await;
    assert_eq!(orders.receive_and_delete().await.body_text(), "at once");
}

#[tokio::test]
async fn a_refused_schedule_has_the_reason() {
    let (servicebus, orders) = namespace_with_orders().await;
    let big = vec![0; 300 * 1024];
    let error = orders.schedule(big, MINUTE).result().await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("cannot schedule to orders: "), "{text}");
    assert_contains(&text, "262144");

    let unknown = servicebus.queue("ordres");
    let expected =
        "there is no queue \"ordres\"; did you mean \"orders\"? The namespace has orders";
    let errors = [
        error_of(unknown.schedule("x", MINUTE)).await,
        error_of(unknown.cancel_scheduled(1)).await,
        error_of(unknown.receive_deferred(1)).await,
        error_of(unknown.delete_messages(1)).await,
    ];
    for error in errors {
        assert_eq!(error, expected);
    }
}

#[tokio::test]
async fn a_deferred_message_is_received_by_its_number_and_settled_in_every_way() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send(Message::from("hello").message_id("o-1")).await;
    let number = orders.receive().await.defer().await;
    assert!(
        orders
            .receive_within(Duration::ZERO)
            .result()
            .await
            .is_err()
    );
    assert_eq!(orders.peek().await[0].state, MessageState::Deferred);

    let received = orders.receive_deferred(number).await;
    assert_eq!(received.delivery_count(), 2);
    assert_eq!(received.defer().await, number);
    assert_message_count!(orders, active = 1, deferred = 1).await;

    let received = orders.receive_deferred(number).await;
    assert_eq!(received.delivery_count(), 3);
    received.dead_letter("Rejected", "total is missing").await;
    assert_dead_lettered!(
        orders,
        reason = "Rejected",
        description = "total is missing"
    )
    .await;
    let dead = orders.dead_letters();
    let number = dead.receive().await.defer().await;
    dead.receive_deferred(number).await.complete().await;
    assert_message_count!(orders, active = 0, dead_letter = 0).await;
}

#[tokio::test]
async fn a_missing_deferred_message_is_explained() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send(Message::from("one").message_id("o-1")).await;
    orders.send("two").await;
    let first = orders.receive().await.defer().await;
    let second = orders.receive().await.defer().await;
    let sentence = "orders holds no deferred message 7 that can be received; 1, 2 are deferred";
    let refused = orders.receive_deferred(7);
    assert_error(refused, ErrorKind::MessageNotFound, sentence).await;

    let held = orders.receive_deferred(first).await;
    assert_eq!(
        error_of(orders.receive_deferred(first)).await,
        "orders holds no deferred message 1 that can be received; it is locked"
    );
    assert_eq!(
        error_of(held.release()).await,
        "cannot settle #1 \"one\" (message-id o-1) of orders: a message that was received by its sequence number cannot be released"
    );

    let late = orders.receive_deferred(second).await;
    servicebus.clock().advance(MINUTE).await;
    let error = late.complete().result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MessageLockLost, "{error:?}");
    let body = orders.receive_deferred_and_delete(second).await;
    assert_eq!(body.body_text(), "two");
}

#[tokio::test]
async fn a_renewed_lock_can_be_lost() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send(Message::from("hello").message_id("o-1")).await;
    let mut received = orders.receive().await;
    let until = received.locked_until.unwrap();
    for _ in 0..3 {
        servicebus.clock().advance(MINUTE / 2).await;
        assert!(received.renew_lock().await >= until);
    }
    assert_lock_renewed!(orders, times = 3).await;
    servicebus.clock().advance(MINUTE).await;
    assert_eq!(
        error_of(received.renew_lock()).await,
        "the lock on #1 \"hello\" (message-id o-1) of orders was lost before it was renewed"
    );
    let error = received.complete().result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MessageLockLost, "{error:?}");
}

#[tokio::test]
async fn a_batch_delete_removes_ready_messages_and_counts_the_rest() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send_all(["locked", "deferred", "1", "2", "3"]).await;
    orders.schedule("later", MINUTE).await;
    let _locked = orders.receive().await;
    orders.receive().await.defer().await;

    let deleted = orders.delete_messages(2).await;
    assert_eq!(
        deleted.to_string(),
        "removed 2 messages, left 3 active (1 locked, 1 deferred), 1 scheduled"
    );
    let before = SystemTime::now() - MINUTE;
    let deleted = orders
        .delete_messages_before(2, before)
        .result()
        .await
        .unwrap();
    assert_eq!(deleted.removed, 0);
    let purged = orders.purge().await;
    assert_eq!(
        purged.to_string(),
        "removed 1 message, left 2 active (1 locked, 1 deferred), 1 scheduled"
    );
    let text = error_of(orders.delete_messages(501)).await;
    let expected =
        "cannot delete 501 messages of orders: status 400: com.microsoft:argument-out-of-range: ";
    assert!(text.starts_with(expected), "{text}");
    assert_contains(
        &text,
        "Invalid Message Count : requested 501. Message count should be between 1 and 500.",
    );
}

#[tokio::test]
async fn every_duration_may_be_the_maximum() {
    let (servicebus, orders) = namespace_with_orders().await;
    servicebus.wait_idle_within(Duration::MAX).await;
    assert_not_completed!(orders, within = Duration::MAX).await;
    orders.schedule("one", Duration::MAX).await;
    let message = Message::from("two").scheduled_in(Duration::MAX);
    orders.send(message).await;
    assert_scheduled!(orders, due_in = Duration::MAX, count = 2).await;
}
