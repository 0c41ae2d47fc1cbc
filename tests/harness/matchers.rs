//! What messages are like: every assertion tells them apart by body, JSON and predicate, also when they are gone.

use std::time::Duration;

use serde_json::json;
use servicebus_harness::prelude::*;

use crate::harness::{
    assert_contains,
    failure_texts::{SHORT, assert_failed, assert_fails},
    namespace_with_orders,
};

const HOUR: Duration = Duration::from_secs(3_600);

fn order(id: &str, total: u32) -> Message {
    Message::from(json!({"id": id, "total": total, "lines": [{"sku": "a"}]})).message_id(id)
}

#[tokio::test]
async fn recorded_messages_are_selected_by_content() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send_all([order("o-1", 3), order("o-2", 30)]).await;
    orders.receive().await.complete().await;
    orders.receive().await.abandon().await;
    let mut received = orders.receive().await;
    received.renew_lock().await;
    received.complete().await;

    assert_completed!(orders, body_json = json!({"total": 3}), count = 1).await;
    assert_completed!(orders, body = contains("o-2"), count = 1).await;
    assert_completed!(
        orders,
        body = matches(|body| body.ends_with('}')),
        count = 2
    )
    .await;
    assert_completed!(
        orders,
        matching = |order| order.body.len() > 1_000,
        count = 0
    )
    .await;
    assert_not_completed!(orders, body_json = json!({"total": 4})).await;
    assert_delivered!(
        orders,
        body_json = json!({"total": 30}),
        times = 2,
        to = "the test"
    )
    .await;
    assert_delivered!(
        orders,
        body_json = json!({"total": 3}),
        message_id = "o-2",
        times = 0
    )
    .await;
    assert_not_delivered!(orders, body_json = json!({"lines": []})).await;
    assert_abandoned!(orders, body_json = json!({"id": "o-2"}), times = 1).await;
    assert_not_abandoned!(orders, body_json = json!({"id": "o-1"})).await;
    assert_lock_renewed!(
        orders,
        matching = |order| order.message_id.as_deref() == Some("o-2")
    )
    .await;
}

#[tokio::test]
async fn present_messages_are_selected_by_content() {
    let (_servicebus, orders) = namespace_with_orders().await;
    for total in [3, 30] {
        orders.send(order("o-1", total)).await;
        let received = orders.receive().await;
        received.dead_letter("Rejected", "no").await;
        orders.schedule(order("o-2", total), HOUR).await;
    }
    orders.send_all([order("o-3", 3), order("o-4", 4)]).await;
    for _ in 0..2 {
        orders.receive().await.defer().await;
    }

    let three = || json!({"total": 3});
    assert_dead_lettered!(orders, body_json = three(), reason = "Rejected", count = 1).await;
    assert_dead_lettered!(orders, body = contains("30"), count = 1).await;
    assert_dead_lettered!(
        orders,
        reason = matches(|reason| reason.len() == 8),
        matching = |order| order.dead_letter_error_description() == Some("no"),
        count = 2
    )
    .await;
    assert_not_dead_lettered!(orders, body_json = json!({"total": 4})).await;
    assert_not_dead_lettered!(orders, description = "yes").await;
    assert_scheduled!(
        orders,
        body_json = three(),
        due_in = HOUR,
        tolerance = HOUR,
        count = 1
    )
    .await;
    assert_deferred!(orders, body_json = three(), message_id = "o-3", count = 1).await;
    assert_deferred!(
        orders,
        matching = |order| order.session_id.is_some(),
        count = 0
    )
    .await;
}

#[tokio::test]
async fn messages_are_selected_by_body_in_every_state() {
    let topology = Topology::new()
        .queue(Queue::new("inbox").forward_to("orders"))
        .queue(Queue::new("orders").dead_lettering_on_message_expiration(true))
        .topic(Topic::new("prices").subscription(Subscription::new("all")));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let (inbox, orders) = (servicebus.queue("inbox"), servicebus.queue("orders"));
    inbox.send(order("o-1", 3).time_to_live(HOUR)).await;
    assert_forwarded!(inbox, to = "orders", body_json = json!({"total": 3})).await;
    assert_not_forwarded!(inbox, body_json = json!({"total": 4})).await;
    assert_not_forwarded!(inbox, to = "audit").await;
    assert_not_expired!(orders).await;
    servicebus.clock().advance(2 * HOUR).await;
    assert_expired!(orders, body_json = json!({"total": 3}), count = 1).await;
    assert_not_expired!(orders, body = "{}").await;

    let all = servicebus.subscription("prices", "all");
    servicebus.topic("prices").send(order("p-1", 7)).await;
    all.receive_and_delete().await;
    assert_delivered!(all, body_json = json!({"total": 7}), times = 1).await;

    orders.schedule(order("o-2", 8), HOUR).await;
    servicebus.clock().advance(HOUR).await;
    orders.receive().await.complete().await;
    assert_completed!(orders, body_json = json!({"total": 8}), count = 1).await;
}

#[tokio::test]
async fn other_bodies_are_listed_with_their_differences() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send(order("o-17", 3)).await;
    orders.receive().await.complete().await;
    let expectation = orders.expect_completed().body_json(json!({"total": 4}));
    assert_fails(
        "other_bodies_are_listed_with_their_differences",
        expectation,
    )
    .await;
}

#[tokio::test]
async fn a_message_that_was_completed_and_should_not_have_been() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let message = Message::from("poison").message_id("o-17");
    orders.send(message).await;
    orders.receive().await.complete().await;
    let failed = orders.expect_not_completed().body(contains("poison")).await;
    assert_failed(
        "a_message_that_was_completed_and_should_not_have_been",
        failed,
    );
}

#[tokio::test]
async fn negative_assertions_fail() {
    let topology = Topology::new()
        .queue(Queue::new("inbox").forward_to("orders"))
        .queue(Queue::new("orders"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let (inbox, orders) = (servicebus.queue("inbox"), servicebus.queue("orders"));
    inbox.send(Message::from("{}").time_to_live(HOUR)).await;
    orders.receive().await.abandon().await;
    servicebus.clock().advance(2 * HOUR).await;

    let first_lines = [
        (
            inbox.expect_not_forwarded().to("orders").await,
            "inbox: expected no message forwarded to \"orders\", found 1\n",
        ),
        (
            orders.expect_not_abandoned().await,
            "orders: expected no delivery abandoned, found 1\n",
        ),
        (
            orders
                .expect_not_expired()
                .matching(|order| order.body == "{}")
                .await,
            "orders: expected no message expired with a match of the test's predicate, found 1\n",
        ),
        (
            orders.expect_not_delivered().to("the test").await,
            "orders: expected no delivery to \"the test\", found 1\n",
        ),
    ];
    for (result, expected) in first_lines {
        let text = result.unwrap_err().to_string();
        assert!(text.starts_with(expected), "{text}");
        assert_contains(&text, "timeline of ");
    }
}

#[tokio::test]
async fn each_present_message_is_listed_with_its_difference() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send(order("o-17", 3)).await;
    orders.receive().await.defer().await;
    let failed = orders.expect_deferred().message_id("o-18").body("{}");
    let text = failed.within(SHORT).await.unwrap_err().to_string();
    assert_contains(
        &text,
        "(message-id o-17): deferred, 1 of 3 deliveries counted, message id differs, body differs at character 2: expected ",
    );
    let number = orders
        .expect_deferred()
        .matching(|order| order.body.is_empty());
    let text = number.within(SHORT).await.unwrap_err().to_string();
    assert_contains(
        &text,
        "(message-id o-17): deferred, 1 of 3 deliveries counted, the test's predicate does not match\n",
    );

    let message = Message::from("no JSON").message_id("o-18");
    orders.send(message).await;
    orders.receive().await.dead_letter("Rejected", "no").await;
    let failed = orders.expect_dead_lettered().body_json(json!({}));
    let text = failed.within(SHORT).await.unwrap_err().to_string();
    assert_contains(
        &text,
        "(message-id o-18): reason \"Rejected\", body is not JSON\n",
    );
}
