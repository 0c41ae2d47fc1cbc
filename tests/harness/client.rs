//! The Rust SDK against a namespace of the harness.

#![expect(
    clippy::large_futures,
    reason = "the futures of the SDK are, which does not matter here"
)]

use std::time::Duration;

use azservicebus::{ServiceBusMessage, ServiceBusReceiverOptions, ServiceBusSenderOptions};
use servicebus_harness::prelude::*;

use super::namespace_with_orders;

#[tokio::test]
async fn a_ready_client_sends_and_receives() {
    let servicebus = namespace_with_orders().await;
    let mut client = servicebus.client().await;
    let mut sender = client
        .create_sender("orders", ServiceBusSenderOptions::default())
        .await
        .unwrap();
    sender
        .send_message(ServiceBusMessage::new("hello"))
        .await
        .unwrap();

    let options = ServiceBusReceiverOptions::default();
    let receiver = client.create_receiver_for_queue("orders", options).await;
    let mut receiver = receiver.unwrap();
    let message = receiver.receive_message().await.unwrap();
    assert_eq!(message.body().unwrap(), b"hello");
    receiver.complete_message(&message).await.unwrap();

    assert_completed!(servicebus.queue("orders"), count = 1).await;
    client.dispose().await.unwrap();
}

#[tokio::test]
async fn a_worker_that_rejects_is_seen_by_the_harness() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders
        .send(Message::json(serde_json::json!({ "total": -1 })).message_id("o-17"))
        .await;

    let mut client = servicebus.client().await;
    let options = ServiceBusReceiverOptions::default();
    let receiver = client.create_receiver_for_queue("orders", options).await;
    let mut receiver = receiver.unwrap();
    let wait = Some(Duration::from_secs(30));
    let message = receiver.receive_message_with_max_wait_time(wait).await;
    let message = message.unwrap().unwrap();
    let options = azservicebus::receiver::DeadLetterOptions {
        dead_letter_reason: Some("Rejected".to_owned()),
        dead_letter_error_description: Some("total is negative".to_owned()),
        ..Default::default()
    };
    receiver
        .dead_letter_message(&message, options)
        .await
        .unwrap();

    assert_dead_lettered!(
        orders,
        reason = "Rejected",
        description = contains("negative"),
        message_id = "o-17"
    )
    .await;
}
