//! Assertions come true, as sentences and as values.

use std::time::Duration;

use servicebus_harness::prelude::*;

use crate::harness::{namespace_with_orders, waiting::until_gone};

#[tokio::test]
async fn dead_letter_assertions() {
    let (servicebus, orders) = namespace_with_orders().await;
    assert_not_dead_lettered!(orders).await;

    for (id, words) in [("o-1", "total is negative"), ("o-2", "total is missing")] {
        orders.send(Message::from("{}").message_id(id)).await;
        orders.receive().await.dead_letter("Rejected", words).await;
    }

    assert_dead_lettered!(orders).await;
    assert_dead_lettered!(&orders, reason = "Rejected").await;
    assert_dead_lettered!(servicebus.queue("orders"), count = 2).await;
    assert_dead_lettered!(
        orders,
        reason = "Rejected",
        description = contains("total is"),
        count = 2,
        within = Duration::from_secs(30),
    )
    .await;
    assert_dead_lettered!(
        orders,
        description = "total is missing",
        message_id = "o-2",
        count = 1
    )
    .await;
    assert_not_dead_lettered!(orders, reason = "TTLExpiredException").await;
    assert_not_dead_lettered!(orders, message_id = "o-3").await;
    assert_message_count!(orders, active = 0, dead_letter = 2, scheduled = 0).await;
    assert_empty!(orders).await;
}

#[tokio::test]
async fn completion_assertions() {
    let (_servicebus, orders) = namespace_with_orders().await;
    assert_completed!(orders, count = 0).await;
    for id in ["o-1", "o-2"] {
        orders.send(Message::from("{}").message_id(id)).await;
        orders.receive().await.complete().await;
    }
    assert_completed!(orders).await;
    assert_completed!(orders, count = 2).await;
    assert_completed!(orders, message_id = "o-2", count = 1).await;
    assert_completed!(orders, message_id = "o-3", count = 0).await;
}

#[tokio::test]
async fn an_assertion_waits_for_later_events() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let worker = {
        let orders = orders.clone();
        async move {
            let received = orders.receive().await;
            received.dead_letter("Rejected", "too late").await;
        }
    };
    let test = async {
        orders.send("hello").await;
        assert_dead_lettered!(orders, reason = "Rejected").await;
    };
    tokio::join!(worker, test);
}

#[tokio::test]
async fn a_negative_assertion_waits_until_idle() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send("hello").await;
    let received = orders.receive().await;
    let within = Duration::from_millis(50);
    let busy = orders.expect_not_dead_lettered().within(within).await;
    let text = busy.unwrap_err().to_string();
    assert!(
        text.starts_with("the namespace did not become idle within 0.05 s\n  ")
            && text.contains("\n  orders: "),
        "{text}"
    );
    received.complete().await;
    assert_not_dead_lettered!(orders).await;
}

#[tokio::test]
async fn expectations_are_values() {
    let (servicebus, _) = namespace_with_orders().await;
    let address = servicebus.endpoints().http;
    let expectation = servicebus.queue("orders").expect_message_count().active(1);
    drop(servicebus);
    until_gone(address);
    // The namespace is gone, and with it every answer.
    let error = expectation.within(Duration::ZERO).await.unwrap_err();
    let text = "the namespace has ended, because its `ServiceBus` was stopped or dropped";
    assert!(error.to_string().contains(text), "{error}");
}

#[tokio::test]
async fn expiry_in_virtual_time() {
    let queue = Queue::new("orders").default_time_to_live(Duration::from_secs(60));
    let topology = Topology::new().queue(queue.dead_lettering_on_message_expiration(true));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    // Real time has no part in it, however long the machine takes.
    servicebus.clock().freeze().await;
    orders.send("hello").await;
    servicebus.clock().advance(Duration::from_secs(59)).await;
    assert_not_dead_lettered!(orders).await;
    servicebus.clock().advance(Duration::from_secs(2)).await;
    assert_dead_lettered!(
        orders,
        reason = "TTLExpiredException",
        description = "The message expired and was dead lettered."
    )
    .await;
}

#[tokio::test]
async fn expiry_on_receive_waits_for_a_receiver() {
    let queue = Queue::new("orders").dead_lettering_on_message_expiration(true);
    let topology = Topology::new().queue(queue).expiry(Expiry::OnReceive);
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    let message = Message::from("hello").time_to_live(Duration::from_secs(1));
    orders.send(message).await;
    servicebus.clock().advance(Duration::from_secs(2)).await;
    assert_message_count!(orders, active = 1, dead_letter = 0).await;
    assert!(
        orders
            .receive_within(Duration::ZERO)
            .result()
            .await
            .is_err()
    );
    assert_dead_lettered!(orders, reason = "TTLExpiredException").await;
}
