//! Time belongs to the test.

use std::time::{Duration, SystemTime};

use servicebus_harness::prelude::*;

use super::namespace_with_orders;
use servicebus_test_support::normalised::normalised;

#[tokio::test]
async fn advancing_the_clock_expires_and_activates() {
    let (servicebus, orders) = namespace_with_orders().await;
    let message = Message::from("hello").time_to_live(Duration::from_secs(30));
    orders.send(message).await;

    let before = servicebus.clock().now().await;
    servicebus.clock().advance(Duration::from_secs(31)).await;
    let passed = servicebus.clock().now().await.duration_since(before);
    assert!(passed.unwrap() >= Duration::from_secs(31));

    assert_dead_lettered!(orders, reason = "TTLExpiredException").await;
    assert_empty!(orders).await;
}

#[tokio::test]
async fn a_frozen_clock_does_not_advance() {
    let (servicebus, _) = namespace_with_orders().await;
    let clock = servicebus.clock();
    clock.freeze().await;
    let frozen = clock.now().await;
    assert_eq!(clock.now().await, frozen);
    clock.advance(Duration::from_millis(1500)).await;
    assert_eq!(clock.now().await, frozen + Duration::from_millis(1500));
    clock.resume().await;
    let started = SystemTime::now();
    while clock.now().await == frozen + Duration::from_millis(1500) {
        let waited = started.elapsed().unwrap_or_default();
        assert!(waited < Duration::from_secs(60), "the clock does not run");
    }
}

#[tokio::test]
async fn a_clock_belongs_to_its_namespace() {
    let ((first, _), (second, _)) = tokio::join!(namespace_with_orders(), namespace_with_orders());
    let day = Duration::from_secs(86_400);
    first.clock().advance(day).await;
    let ahead = first
        .clock()
        .now()
        .await
        .duration_since(second.clock().now().await);
    assert!(ahead.unwrap() > day - Duration::from_secs(600));
}

#[tokio::test]
async fn a_namespace_is_idle_when_no_receiver_holds_a_lock() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send("hello").await;
    servicebus.wait_idle().await;

    let received = orders.receive().await;
    let within = Duration::from_millis(50);
    let error = servicebus
        .wait_idle_within(within)
        .result()
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
    let text = error.to_string();
    assert!(
        text.starts_with("the namespace did not become idle within 0.05 s\n  ")
            && text.contains("\n  orders: 1 locked by the test"),
        "{text}"
    );
    received.complete().await;
    servicebus.wait_idle().await;
}

#[tokio::test]
async fn a_reset_removes_messages_and_keeps_queues() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send_all(["one", "two"]).await;
    orders.receive().await.dead_letter("Rejected", "").await;
    servicebus.reset().await;
    assert_message_count!(orders, active = 0, dead_letter = 0).await;
    orders.send("three").await;
    assert_eq!(orders.receive_and_delete().await.body_text(), "three");
}

#[tokio::test]
async fn the_timeline_lists_the_events_of_a_message() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send(Message::from("hello").message_id("o-17")).await;
    let received = orders.receive().await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    drop(received);
    orders.receive().await.complete().await;

    let timeline = servicebus.timeline(&orders).await.of_message("o-17");
    assert_eq!(
        normalised(&timeline.titled("o-17").to_string()),
        "\
timeline of o-17 in orders                                    (virtual time)
  +… sent            by the test, 29 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)
            clock advanced  by the test, 61 s
  +… lock expired    delivery 1 counted
  +… delivered       to the test (lock 60 s, delivery 2 of 3)
  +… completed       by the test"
    );
}

#[tokio::test]
async fn the_timeline_as_json() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send(Message::from("hello").message_id("o-17")).await;
    orders.receive().await.complete().await;

    let timeline = servicebus.timeline(&orders).await;
    let json = timeline.to_json();
    assert_eq!(json["entity"], "orders");
    assert_eq!(json["dropped"], 0);
    assert_eq!(json["counters"]["completed"], 1);
    let events = json["events"].as_array().unwrap();
    let kinds = Vec::from_iter(events.iter().map(|event| event["kind"].as_str()));
    let expected = ["sent", "delivered", "completed"].map(Some);
    assert_eq!(kinds, expected);
    let delivered = &events[1];
    assert_eq!(delivered["message_id"], "o-17");
    assert_eq!(delivered["client"], "the test");
    assert_eq!(delivered["delivery_count"], 1);
    assert!(delivered["at"].as_str() < delivered["locked_until"].as_str());
    assert_eq!(delivered["reason"], serde_json::Value::Null);
}
