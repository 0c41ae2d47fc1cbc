//! Sending: one message, a list, a batch, and what of a message arrives at the other end.

use std::time::{Duration, SystemTime};

use servicebus_harness::azservicebus::{CreateMessageBatchOptions, ServiceBusMessage};
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    Client, bodies, body, bus, complete, connect, connected, done, receive, receive_one, receiver,
    send, sender, within,
};

#[tokio::test]
async fn single_sends_arrive_in_order() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["first", "second"]).await;

    expect_bodies(&mut client, &["first", "second"]).await;
    assert_message_count!(servicebus.queue("orders"), active = 0).await;
}

#[tokio::test]
async fn a_list_arrives_as_its_messages() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "orders").await;
    done("the list", sender.send_messages(["a", "b", "c", "d"])).await;

    expect_bodies(&mut client, &["a", "b", "c", "d"]).await;
}

#[tokio::test]
async fn a_batch_takes_messages_up_to_its_size() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "orders").await;
    let options = CreateMessageBatchOptions {
        max_size_in_bytes: Some(4096),
    };
    let mut batch = sender.create_message_batch(options).unwrap();
    let text = "x".repeat(512);
    while batch.try_add_message(text.clone()).is_ok() {}
    let added = batch.len();
    assert!(
        (5..=7).contains(&added),
        "{added} messages of 512 bytes fit into 4,096"
    );
    done("the batch", sender.send_message_batch(batch)).await;

    expect_bodies(&mut client, &vec![text.as_str(); added]).await;
}

#[tokio::test]
async fn all_message_properties_arrive_unchanged() {
    let (_servicebus, mut client) = connected(bus()).await;
    let sent = full_message();
    send(&mut client, "orders", [sent.clone()]).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(message.body().unwrap(), sent.body());
    assert_eq!(message.message_id(), sent.message_id());
    assert_eq!(message.content_type(), sent.content_type());
    assert_eq!(message.correlation_id(), sent.correlation_id());
    assert_eq!(message.subject(), sent.subject());
    assert_eq!(message.to(), sent.to());
    assert_eq!(message.reply_to(), sent.reply_to());
    assert_eq!(message.reply_to_session_id(), sent.reply_to_session_id());
    assert_eq!(message.partition_key(), sent.partition_key());
    assert_eq!(message.time_to_live(), sent.time_to_live());
    assert_eq!(
        message.application_properties(),
        sent.application_properties()
    );
    assert_eq!(message.sequence_number(), 1);
    assert_eq!(message.enqueued_sequence_number(), 0, "observed 3: none");
    assert_eq!(message.delivery_count(), Some(1));
    assert_eq!(
        message.expires_at(),
        message.enqueued_time() + Duration::from_secs(300)
    );
    let age = SystemTime::now()
        .duration_since(message.enqueued_time().into())
        .unwrap_or_default();
    assert!(age < Duration::from_secs(30), "enqueued {age:?} ago");
    complete(&mut receiver, &message).await;
}

fn full_message() -> ServiceBusMessage {
    let mut message = ServiceBusMessage::new(br#"{"total": 3}"#.to_vec());
    message.set_message_id("order-17").unwrap();
    message.set_content_type("application/json".to_owned());
    message.set_correlation_id("request-4".to_owned());
    message.set_subject("placed".to_owned());
    message.set_to("warehouse".to_owned());
    message.set_reply_to("confirmations".to_owned());
    message
        .set_reply_to_session_id("cart-7".to_owned())
        .unwrap();
    message.set_partition_key("eu".to_owned()).unwrap();
    message.set_time_to_live(Duration::from_secs(300)).unwrap();
    let properties = message.application_properties_mut().get_or_insert_default();
    properties.insert("text".to_owned(), "größer".to_owned().into());
    properties.insert("whole".to_owned(), 42_i32.into());
    properties.insert("negative".to_owned(), (-(1_i64 << 40)).into());
    properties.insert("fraction".to_owned(), 0.5_f64.into());
    properties.insert("flag".to_owned(), true.into());
    message
}

#[tokio::test]
async fn the_broker_sets_a_missing_message_id() {
    let (_servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["no id"]).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    let id = message.message_id().expect("the broker set an id (D30)");
    assert_eq!(id.len(), 32, "{id} has 32 digits");
    assert!(
        id.chars().all(|digit| digit.is_ascii_hexdigit()),
        "{id} is hexadecimal"
    );
    complete(&mut receiver, &message).await;
}

#[tokio::test]
async fn bodies_arrive_byte_for_byte() {
    let (_servicebus, mut client) = connected(bus()).await;
    let sent = [Vec::new(), vec![0, 255, 10, 13], vec![7; 200_000]];
    send(&mut client, "orders", sent.clone()).await;

    let mut receiver = receiver(&mut client, "orders").await;
    for expected in &sent {
        let message = receive_one(&mut receiver).await;
        let read = message.body().unwrap();
        assert!(
            read == expected,
            "{} bytes arrived of {}",
            read.len(),
            expected.len()
        );
        complete(&mut receiver, &message).await;
    }
}

/// The SDK keeps the state of a message through its retries: a refusal is an error of the first try,
/// and the second, which sends nothing, is a success. So by default a refusal cannot be seen.
#[tokio::test]
async fn a_client_without_retries_sees_a_refused_send() {
    let servicebus = bus().await;
    let too_large = vec![0; 400_000];
    for (mut client, sees_refusal) in [
        (connect(&servicebus).await, true),
        (servicebus.client().await, false),
    ] {
        let mut sender = sender(&mut client, "orders").await;
        let sent = within("the outcome", sender.send_message(too_large.clone())).await;
        assert_eq!(sent.is_err(), sees_refusal, "{sent:?}");
        if let Err(error) = sent {
            let error = format!("{error:?}");
            assert!(error.contains("MessageSizeExceeded"), "{error}");
        }
    }
    assert_empty!(servicebus.queue("orders")).await;
}

/// Receives and completes what is in the queue: these bodies in this order, numbered from 1.
async fn expect_bodies(client: &mut Client, expected: &[&str]) {
    let mut receiver = receiver(client, "orders").await;
    let messages = receive(&mut receiver, expected.len() as u32).await;
    assert_eq!(bodies(&messages), expected);
    for (message, number) in messages.iter().zip(1..) {
        assert_eq!(message.sequence_number(), number, "of {}", body(message));
        complete(&mut receiver, message).await;
    }
}
