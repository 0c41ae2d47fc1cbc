//! Every operation of the SDK.
//!
//! What the one SDK sends by HTTP the other receives over AMQP, and the reverse.

use std::collections::HashMap;
use std::time::Duration;

use azure_core_rest::StatusCode;
use azure_core_rest::error::{Error, ErrorKind};
use azure_core_rest::headers::Headers;
use azure_messaging_servicebus::service_bus::{SendMessageOptions, SettableBrokerProperties};
use servicebus_harness::azservicebus::ServiceBusMessage;
use servicebus_harness::prelude::*;

use super::http_client::{queue, topic};
use crate::conformance::client::{
    bus, connect, connected, done, receive_one, receiver, sender, start,
};

const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

fn status(error: &Error) -> Option<StatusCode> {
    if let ErrorKind::HttpResponse { status, .. } = error.kind() {
        return Some(*status);
    }
    None
}

#[tokio::test]
async fn a_sent_message_is_received_and_deleted() {
    let servicebus = bus().await;
    let orders = queue(&servicebus, "orders");
    orders.send_message("hello", None).await.unwrap();
    assert_eq!(orders.receive_and_delete_message().await.unwrap(), "hello");
    assert_message_count!(servicebus.queue("orders"), active = 0).await;
}

#[tokio::test]
async fn a_locked_message_has_all_that_the_sdk_reads() {
    let servicebus = bus().await;
    servicebus.clock().freeze().await;
    let orders = queue(&servicebus, "orders");
    let options = SendMessageOptions {
        content_type: Some("text/plain".to_owned()),
        broker_properties: Some(SettableBrokerProperties {
            message_id: Some("m-1".to_owned()),
            time_to_live: Some(Duration::from_millis(90_500)),
            ..Default::default()
        }),
        custom_properties: Some(HashMap::from([(
            "Priority".to_owned(),
            "\"High\"".to_owned(),
        )])),
    };
    orders.send_message("hello", Some(options)).await.unwrap();

    let locked = orders.peek_lock_message2(AT_ONCE).await.unwrap();
    assert_eq!(*locked.status(), StatusCode::Created);
    assert_eq!(locked.body(), "hello");
    let properties = locked.broker_properties().unwrap();
    assert_eq!(properties.message_id, "m-1");
    assert_eq!(properties.delivery_count, 1);
    assert_eq!(properties.sequence_number, 1);
    assert_eq!(properties.enqueued_sequence_number, Some(0));
    assert_eq!(properties.state, "Active");
    assert!((properties.time_to_live - 90.5).abs() < 0.001);
    let lock = properties.locked_until_utc - properties.enqueued_time_utc.unwrap();
    assert_eq!(lock.whole_seconds(), 60);
    let headers: Headers = locked.custom_properties().unwrap();
    let priority = headers.get_optional_str(&"priority".into());
    assert_eq!(priority, Some("\"High\""));

    locked.delete_message().await.unwrap();
    assert_message_count!(servicebus.queue("orders"), active = 0).await;
    let lost = locked.delete_message().await.unwrap_err();
    assert_eq!(status(&lost), Some(StatusCode::NotFound));
}

#[tokio::test]
async fn an_unlocked_message_is_redelivered_and_a_renewed_lock_lasts() {
    let servicebus = bus().await;
    let orders = queue(&servicebus, "orders");
    orders.send_message("hello", None).await.unwrap();
    let locked = orders.peek_lock_message2(AT_ONCE).await.unwrap();
    locked.unlock_message().await.unwrap();
    servicebus.clock().freeze().await;
    let again = orders.peek_lock_message2(AT_ONCE).await.unwrap();
    assert_eq!(again.broker_properties().unwrap().delivery_count, 2);

    servicebus.clock().advance(Duration::from_secs(50)).await;
    again.renew_message_lock().await.unwrap();
    servicebus.clock().advance(Duration::from_secs(50)).await;
    again.delete_message().await.unwrap();
    assert_message_count!(servicebus.queue("orders"), active = 0).await;
}

#[tokio::test]
async fn a_receive_from_an_empty_queue_is_204() {
    let servicebus = bus().await;
    let orders = queue(&servicebus, "orders");
    let nothing = orders.peek_lock_message2(AT_ONCE).await.unwrap();
    assert_eq!(*nothing.status(), StatusCode::NoContent);
    assert!(nothing.broker_properties().is_none());
    assert_eq!(orders.peek_lock_message(AT_ONCE).await.unwrap(), "");
}

#[tokio::test]
async fn a_receive_waits_for_a_later_message() {
    let servicebus = bus().await;
    let orders = queue(&servicebus, "orders");
    let waiting = tokio::spawn({
        let orders = orders.clone();
        async move { orders.receive_and_delete_message().await }
    });
    orders.send_message("hello", None).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), "hello");
}

#[tokio::test]
async fn a_topic_is_sent_to_and_its_subscription_received_from() {
    let subscribed = Topic::new("news").subscription(Subscription::new("all"));
    let servicebus = start(Topology::new().topic(subscribed)).await;
    let news = topic(&servicebus, "news");
    let (sender, receiver) = (news.topic_sender(), news.subscription_receiver("all"));
    sender.send_message("one", None).await.unwrap();
    sender.send_message("two", None).await.unwrap();
    let locked = receiver.peek_lock_message2(AT_ONCE).await.unwrap();
    assert_eq!(locked.body(), "one");
    locked.delete_message().await.unwrap();
    assert_eq!(receiver.receive_and_delete_message().await.unwrap(), "two");
}

#[tokio::test]
async fn a_missing_entity_is_410() {
    let servicebus = bus().await;
    let unknown = queue(&servicebus, "nobody");
    let refused = unknown.send_message("hello", None).await.unwrap_err();
    assert_eq!(status(&refused), Some(StatusCode::Gone));
    let refused = unknown.receive_and_delete_message().await.unwrap_err();
    assert_eq!(status(&refused), Some(StatusCode::Gone));
}

#[tokio::test]
async fn from_http_to_amqp() {
    let servicebus = bus().await;
    let text = |text: &str| Some(text.to_owned());
    let options = SendMessageOptions {
        content_type: text("text/plain"),
        broker_properties: Some(SettableBrokerProperties {
            correlation_id: text("c"),
            session_id: text("s"),
            message_id: text("m"),
            label: text("l"),
            reply_to: text("r"),
            time_to_live: Some(Duration::from_secs(90)),
            to: text("t"),
            reply_to_session_id: text("rs"),
            partition_key: text("s"),
            ..Default::default()
        }),
        custom_properties: Some(HashMap::from([("number".to_owned(), "42".to_owned())])),
    };
    let orders = queue(&servicebus, "orders");
    orders.send_message("hello", Some(options)).await.unwrap();

    let mut client = connect(&servicebus).await;
    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(message.body().unwrap(), b"hello");
    assert_eq!(message.message_id().as_deref(), Some("m"));
    assert_eq!(message.correlation_id().as_deref(), Some("c"));
    assert_eq!(message.session_id(), Some("s"));
    assert_eq!(message.subject(), Some("l"));
    assert_eq!(message.reply_to(), Some("r"));
    assert_eq!(message.to(), Some("t"));
    assert_eq!(message.reply_to_session_id(), Some("rs"));
    assert_eq!(message.partition_key(), Some("s"));
    assert_eq!(message.content_type(), Some("text/plain"));
    assert_eq!(message.time_to_live(), Some(Duration::from_secs(90)));
}

#[tokio::test]
async fn from_amqp_to_http() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "orders").await;
    let mut message = ServiceBusMessage::new(&b"hello"[..]);
    message.set_message_id("m").unwrap();
    message.set_time_to_live(Duration::from_secs(90)).unwrap();
    done("a send", sender.send_message(message)).await;

    let orders = queue(&servicebus, "orders");
    let locked = orders
        .peek_lock_message2(Some(Duration::ZERO))
        .await
        .unwrap();
    assert_eq!(locked.body(), "hello");
    let properties = locked.broker_properties().unwrap();
    assert_eq!(properties.message_id, "m");
    assert!((properties.time_to_live - 90.0).abs() < 0.001);
    locked.delete_message().await.unwrap();
}
