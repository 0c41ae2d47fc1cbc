//! What the one SDK sends by HTTP the other receives over AMQP, and the reverse.

use std::collections::HashMap;
use std::time::Duration;

use azure_messaging_servicebus::service_bus::{SendMessageOptions, SettableBrokerProperties};
use servicebus_harness::azservicebus::ServiceBusMessage;

use super::http_client::queue;
use crate::conformance::client::{bus, connect, receive_one, receiver, within};

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
    let servicebus = bus().await;
    let mut client = connect(&servicebus).await;
    let mut sender = client
        .create_sender("orders", Default::default())
        .await
        .unwrap();
    let mut message = ServiceBusMessage::new(&b"hello"[..]);
    message.set_message_id("m").unwrap();
    message.set_time_to_live(Duration::from_secs(90)).unwrap();
    within("a send", sender.send_message(message))
        .await
        .unwrap();

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
