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
