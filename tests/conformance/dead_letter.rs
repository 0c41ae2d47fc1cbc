//! The dead-letter queue: received from like any other, until it is empty.

use servicebus_harness::azservicebus::receiver::DeadLetterOptions;
use servicebus_harness::azservicebus::{
    ServiceBusReceiveMode, ServiceBusReceiverOptions, SubQueue,
};
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    Client, bodies, body, bus, close, complete, connect, dead_letters, receive, receive_nothing,
    receiver, receiver_with, send, within,
};

#[tokio::test]
async fn every_dead_letter_can_be_read_with_its_reason_and_is_then_gone() {
    let servicebus = bus().await;
    let mut client = connect(&servicebus).await;
    fill(&mut client, 5).await;

    let mut dead = dead_letters(&mut client, "orders").await;
    let peeked = within("a peek", dead.peek_messages(10, None))
        .await
        .unwrap();
    assert_eq!(peeked.len(), 5);
    let messages = receive(&mut dead, 5).await;
    assert_eq!(bodies(&messages), ["0", "1", "2", "3", "4"]);
    for message in &messages {
        assert_eq!(
            message.dead_letter_reason(),
            Some(format!("R{}", body(message)).as_str())
        );
        complete(&mut dead, message).await;
    }
    receive_nothing(&mut dead).await;
    assert_message_count!(servicebus.queue("orders"), active = 0, dead_letter = 0).await;
}

#[tokio::test]
async fn receive_and_delete_empties_a_dead_letter_queue_too() {
    let servicebus = bus().await;
    let mut client = connect(&servicebus).await;
    fill(&mut client, 3).await;

    let options = ServiceBusReceiverOptions {
        receive_mode: ServiceBusReceiveMode::ReceiveAndDelete,
        sub_queue: SubQueue::DeadLetter,
        ..ServiceBusReceiverOptions::default()
    };
    let mut dead = receiver_with(&mut client, "orders", options).await;
    assert_eq!(bodies(&receive(&mut dead, 3).await), ["0", "1", "2"]);
    assert_message_count!(servicebus.queue("orders"), active = 0, dead_letter = 0).await;
}

/// Dead-letters `count` messages, each with a reason of its own.
async fn fill(client: &mut Client, count: u32) {
    send(
        client,
        "orders",
        (0..count).map(|number| number.to_string()),
    )
    .await;
    let mut receiver = receiver(client, "orders").await;
    for message in receive(&mut receiver, count).await {
        let options = DeadLetterOptions {
            dead_letter_reason: Some(format!("R{}", body(&message))),
            ..DeadLetterOptions::default()
        };
        receiver
            .dead_letter_message(&message, options)
            .await
            .unwrap();
    }
    close(receiver).await;
}
