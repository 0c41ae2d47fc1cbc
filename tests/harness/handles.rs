//! Clients act as another party would: they send what a test says, and look without touching.

use std::time::Duration;

use servicebus_harness::{MessageState, PropertyValue, prelude::*};

use crate::harness::{assert_error, error_of, namespace_with_orders};

#[tokio::test]
async fn anything_that_turns_into_a_message_can_be_sent() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send("a string").await;
    orders.send(String::from("another")).await;
    orders.send(b"bytes").await;
    orders.send(vec![0xff, 0x00]).await;
    orders.send(serde_json::json!({ "total": 12 })).await;
    orders.send_all(["one", "two"]).await;

    let messages = orders.peek().await;
    let bodies: Vec<_> = messages.iter().map(|message| &message.body[..]).collect();
    let expected: [&[u8]; 7] = [
        b"a string",
        b"another",
        b"bytes",
        &[0xff, 0x00],
        br#"{"total":12}"#,
        b"one",
        b"two",
    ];
    assert_eq!(bodies, expected);
    assert_eq!(
        messages[4].content_type.as_deref(),
        Some("application/json")
    );
    assert_eq!(messages[4].body_json().unwrap()["total"], 12);
}

#[tokio::test]
async fn all_properties_of_a_sent_message_arrive() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let message = Message::from("hello")
        .message_id("o-17")
        .subject("order")
        .correlation_id("c-1")
        .session_id("s-1")
        .reply_to("answers")
        .time_to_live(Duration::from_secs(30))
        .application_property("priority", 3)
        .application_property("rate", 0.5)
        .application_property("urgent", true)
        .application_property("customer", "Ada");
    orders.send(message).await;

    let peeked = orders.peek().await.remove(0);
    assert_eq!(peeked.sequence_number, 1);
    assert_eq!(peeked.message_id.as_deref(), Some("o-17"));
    assert_eq!(peeked.subject.as_deref(), Some("order"));
    assert_eq!(peeked.correlation_id.as_deref(), Some("c-1"));
    assert_eq!(peeked.session_id.as_deref(), Some("s-1"));
    assert_eq!(peeked.reply_to.as_deref(), Some("answers"));
    assert_eq!(peeked.time_to_live, Some(Duration::from_secs(30)));
    assert_eq!(peeked.state, MessageState::Active);
    assert_eq!(peeked.delivery_count, 0);
    let properties = &peeked.application_properties;
    assert_eq!(properties["priority"], PropertyValue::Integer(3));
    assert_eq!(properties["rate"], PropertyValue::Float(0.5));
    assert_eq!(properties["urgent"], PropertyValue::Bool(true));
    assert_eq!(properties["customer"], "Ada");
    assert!(peeked.enqueued_at.is_some());
}

#[tokio::test]
async fn peek_returns_every_message_and_locks_none() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send_all((0..250).map(|n| n.to_string())).await;
    let _locked = orders.receive().await;

    for _ in 0..2 {
        let messages = orders.peek().await;
        let numbers: Vec<_> = messages
            .iter()
            .map(|message| message.sequence_number)
            .collect();
        assert_eq!(numbers, Vec::from_iter(1..=250));
    }
    let counts = orders.counts().await;
    assert_eq!(
        (counts.active, counts.locked, counts.ready()),
        (250, 1, 249)
    );
}

#[tokio::test]
async fn clients_display_their_paths() {
    let (_servicebus, orders) = namespace_with_orders().await;
    assert_eq!(orders.path(), "orders");
    assert_eq!(orders.dead_letters().path(), "orders/$DeadLetterQueue");
    assert_eq!(
        orders.transfer_dead_letters().to_string(),
        "orders/$Transfer/$DeadLetterQueue"
    );
}

#[tokio::test]
async fn the_address_of_a_dead_letter_queue_is_that_of_a_client() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send("hello").await;
    orders.receive().await.dead_letter("Rejected", "").await;
    let dead = servicebus.queue("orders/$deadletterqueue");
    assert_eq!(dead.path(), orders.dead_letters().path());
    assert_message_count!(dead, active = 1).await;
    dead.receive().await.complete().await;
    assert_empty!(dead).await;
}

#[tokio::test]
async fn an_unknown_queue_error_lists_the_known_ones() {
    let topology = Topology::new()
        .queue(Queue::new("billing"))
        .queue(Queue::new("orders"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let unknown = servicebus.queue("ordres");
    let expected =
        "there is no queue \"ordres\"; did you mean \"orders\"? The namespace has orders, billing";

    assert_error(unknown.send("hello"), ErrorKind::EntityNotFound, expected).await;
    let errors = [
        error_of(unknown.peek()).await,
        error_of(unknown.counts()).await,
        error_of(unknown.timeline()).await,
        error_of(unknown.purge()).await,
        error_of(unknown.receive_within(Duration::ZERO)).await,
        unknown.expect_empty().await.unwrap_err().to_string(),
        unknown.expect_completed().await.unwrap_err().to_string(),
    ];
    for error in errors {
        assert_eq!(error, expected);
    }
}

#[tokio::test]
async fn a_refused_message_fails_with_the_reason() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let text = error_of(orders.send(vec![0; 300 * 1024])).await;
    assert!(text.starts_with("cannot send to orders: "), "{text}");
    assert!(text.contains("size exceeds"), "{text}");
    assert_empty!(orders).await;
}

#[tokio::test]
async fn an_error_has_the_tracking_id_only_in_its_condition() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let refused = orders.accept_session("s-1").result().await.err().unwrap();
    let condition = refused.condition().unwrap();
    let tracked = &condition.description;
    assert!(tracked.contains("TrackingId:"), "{tracked}");
    assert!(!refused.to_string().contains("TrackingId"), "{refused}");
}
