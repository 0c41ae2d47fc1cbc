//! Settling: complete, abandon up to the delivery limit, dead-letter.
//!
//! The dead-letter queue: received from like any other, until it is empty.

use servicebus_harness::azservicebus::receiver::DeadLetterOptions;
use servicebus_harness::azservicebus::{ServiceBusMessage, ServiceBusReceiverOptions, SubQueue};
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    Client, abandon, because, bodies, body, bus, close, complete, complete_all, connected,
    dead_letters, deleting, done, receive, receive_nothing, receive_one, receiver, receiver_with,
    send,
};

#[tokio::test]
async fn a_completed_message_is_gone() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["done"]).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    complete(&mut receiver, &message).await;
    assert_completed!(servicebus.queue("orders"), count = 1).await;
    assert_empty!(servicebus.queue("orders")).await;
}

#[tokio::test]
async fn an_abandoned_message_is_redelivered_with_modified_properties() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut first = ServiceBusMessage::new("first");
    let properties = first.application_properties_mut().get_or_insert_default();
    properties.insert("kept".to_owned(), "k".to_owned().into());
    properties.insert("changed".to_owned(), 1_i32.into());
    let messages = [first, ServiceBusMessage::new("second")];
    send(&mut client, "orders", messages).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    let changes = [
        ("changed".to_owned(), 2_i32.into()),
        ("added".to_owned(), true.into()),
    ];
    receiver
        .abandon_message(&message, Some(changes.into_iter().collect()))
        .await
        .unwrap();
    let again = receive(&mut receiver, 2).await;
    assert_eq!(bodies(&again), ["first", "second"]);
    assert_eq!(again[0].sequence_number(), message.sequence_number());
    assert_eq!(again[0].delivery_count(), Some(2));
    assert_eq!(again[1].delivery_count(), Some(1));
    assert_ne!(again[0].lock_token(), message.lock_token());
    let properties = again[0]
        .application_properties()
        .expect("it has properties");
    assert_eq!(properties.get("kept"), Some(&"k".to_owned().into()));
    assert_eq!(properties.get("changed"), Some(&2_i32.into()));
    assert_eq!(properties.get("added"), Some(&true.into()));
    complete_all(&mut receiver, &again).await;
}

#[tokio::test]
async fn the_maximum_delivery_count_dead_letters_a_message() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "limited", ["poison"]).await;

    let mut receiver = receiver(&mut client, "limited").await;
    for delivery in 1..=3 {
        let message = receive_one(&mut receiver).await;
        assert_eq!(message.delivery_count(), Some(delivery));
        abandon(&mut receiver, &message).await;
    }

    let mut dead = dead_letters(&mut client, "limited").await;
    let message = receive_one(&mut dead).await;
    assert_eq!(body(&message), "poison");
    assert_eq!(
        message.dead_letter_reason(),
        Some("MaxDeliveryCountExceeded")
    );
    assert_eq!(
        message.dead_letter_error_description(),
        Some("Message could not be consumed after 3 delivery attempts.")
    );
    // The SDK shows one more than the wire, which keeps 3.
    assert_eq!(message.delivery_count(), Some(4));
    complete(&mut dead, &message).await;
    assert_message_count!(servicebus.queue("limited"), active = 0, dead_letter = 0).await;
}

#[tokio::test]
async fn a_dead_letter_has_its_reason_and_modified_properties() {
    let (_servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["bad"]).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    let options = DeadLetterOptions {
        dead_letter_reason: Some("Rejected".to_owned()),
        dead_letter_error_description: Some("no total".to_owned()),
        properties_to_modify: Some(
            [("seen-by".to_owned(), "audit".into())]
                .into_iter()
                .collect(),
        ),
    };
    receiver
        .dead_letter_message(&message, options)
        .await
        .unwrap();

    let mut dead = dead_letters(&mut client, "orders").await;
    let message = receive_one(&mut dead).await;
    assert_eq!(body(&message), "bad");
    assert_eq!(message.dead_letter_reason(), Some("Rejected"));
    assert_eq!(message.dead_letter_error_description(), Some("no total"));
    assert_eq!(message.dead_letter_source(), None);
    assert_eq!(message.delivery_count(), Some(1));
    let properties = message.application_properties().expect("it has properties");
    assert_eq!(properties.get("seen-by"), Some(&"audit".to_owned().into()));
    complete(&mut dead, &message).await;
}

#[tokio::test]
async fn a_message_dead_lettered_without_a_reason_has_none() {
    let (_servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["bad"]).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    // The SDK sends a rejection without an error then.
    receiver
        .dead_letter_message(&message, DeadLetterOptions::default())
        .await
        .unwrap();

    let mut dead = dead_letters(&mut client, "orders").await;
    let message = receive_one(&mut dead).await;
    assert_eq!(message.dead_letter_reason(), None);
    assert_eq!(message.dead_letter_error_description(), None);
    complete(&mut dead, &message).await;
}

#[tokio::test]
async fn dead_letters_are_received_with_reasons_and_completed() {
    let (servicebus, mut client) = connected(bus()).await;
    fill(&mut client, 5).await;

    let mut dead = dead_letters(&mut client, "orders").await;
    let peeked = done("a peek", dead.peek_messages(10, None)).await;
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
async fn receive_and_delete_removes_dead_letters() {
    let (servicebus, mut client) = connected(bus()).await;
    fill(&mut client, 3).await;

    let options = ServiceBusReceiverOptions {
        sub_queue: SubQueue::DeadLetter,
        ..deleting()
    };
    let mut dead = receiver_with(&mut client, "orders", options).await;
    assert_eq!(bodies(&receive(&mut dead, 3).await), ["0", "1", "2"]);
    assert_message_count!(servicebus.queue("orders"), active = 0, dead_letter = 0).await;
}

/// Dead-letters `count` messages, each with a reason of its own.
async fn fill(client: &mut Client, count: u32) {
    let messages = (0..count).map(|number| number.to_string());
    send(client, "orders", messages).await;
    let mut receiver = receiver(client, "orders").await;
    for message in receive(&mut receiver, count).await {
        let options = because(&format!("R{}", body(&message)));
        receiver
            .dead_letter_message(&message, options)
            .await
            .unwrap();
    }
    close(receiver).await;
}
