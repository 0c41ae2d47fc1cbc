//! Messages that a topology declares beside its entities.

use std::time::Duration;

use serde::Deserialize;
use servicebus_harness::{ErrorKind, prelude::*};

use crate::harness::orders;

#[derive(Debug, PartialEq, Deserialize, serde::Serialize)]
struct Order {
    total: u32,
}

#[tokio::test]
async fn messages_are_there_when_the_test_begins() {
    let later = Message::json(Order { total: 3 }).scheduled_in(Duration::from_secs(600));
    let carts = Queue::new("carts").requires_session(true);
    let topology = orders()
        .queue(carts)
        .message("orders", "the first")
        .message("orders", later)
        .dead_letter("orders", "not json", "Rejected", "it is no order")
        .dead_letter("carts", Message::from("add").session_id("7"), "Old", "");
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    assert_message_count!(orders, active = 1, scheduled = 1, dead_letter = 1).await;
    assert_scheduled!(
        orders,
        due_in = Duration::from_secs(600),
        body_json = serde_json::json!({"total": 3})
    )
    .await;
    assert_dead_lettered!(orders, reason = "Rejected", body = "not json").await;
    assert_dead_lettered!(servicebus.queue("carts"), reason = "Old").await;
    servicebus.clock().advance(Duration::from_secs(601)).await;
    orders.receive().await.complete().await;
    let order = orders.receive().await;
    assert_eq!(order.body_as::<Order>().unwrap(), Order { total: 3 });
    let error = order.body_as::<Vec<u8>>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    let text = error.to_string();
    assert!(text.contains("is no alloc::vec::Vec<u8> in JSON"), "{text}");
}

#[tokio::test]
async fn dead_letters_of_a_subscription_are_in_no_other() {
    let high = Subscription::new("high").rule(Rule::sql("high", "price > 10"));
    let carts = Subscription::new("carts").requires_session(true);
    let prices = Topic::new("prices").subscription(high).subscription(carts);
    let prices = prices.subscription(Subscription::new("all"));
    let price = |price: i64| Message::from("{}").application_property("price", price);
    let topology = Topology::new()
        .topic(prices)
        .message("prices", price(5).session_id("s-1"))
        .dead_letter(
            "prices/Subscriptions/high",
            price(12).session_id("s-1"),
            "Old",
            "",
        )
        .dead_letter(
            "prices/Subscriptions/carts",
            price(1).session_id("s-2"),
            "Rejected",
            "",
        )
        .dead_letter(
            "prices/Subscriptions/high",
            price(11).session_id("s-1"),
            "Old",
            "",
        );
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let subscription = |name| servicebus.subscription("prices", name);
    assert_dead_lettered!(subscription("high"), reason = "Old", count = 2).await;
    assert_dead_lettered!(subscription("carts"), reason = "Rejected", count = 1).await;
    assert_message_count!(subscription("high"), active = 0, dead_letter = 2).await;
    assert_message_count!(subscription("carts"), active = 1, dead_letter = 1).await;
    assert_message_count!(subscription("all"), active = 1, dead_letter = 0).await;

    let unselected = Topology::new()
        .topic(Topic::new("prices").subscription(Subscription::new("none").rule(Rule::none("no"))))
        .dead_letter("prices/Subscriptions/none", "x", "Old", "");
    let builder = ServiceBus::builder().topology(unselected);
    let started = builder
        .within(Duration::from_millis(20))
        .start()
        .result()
        .await;
    let error = started.unwrap_err().to_string();
    assert!(
        error.contains("prices/Subscriptions/none: no message came"),
        "{error}"
    );
}

#[tokio::test]
async fn a_message_for_no_queue_keeps_the_namespace_from_starting() {
    let topology = orders().message("ordres", "the first");
    let error = ServiceBus::builder()
        .topology(topology)
        .start()
        .result()
        .await;
    let text = error.unwrap_err().to_string();
    assert!(
        text.starts_with("cannot put the messages of the topology into the namespace: "),
        "{text}"
    );
    assert!(
        text.contains("there is no queue \"ordres\"; did you mean \"orders\"?"),
        "{text}"
    );
}
