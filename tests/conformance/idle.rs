//! Auto-delete on idle: a queue that nobody uses for five minutes is deleted, with what it holds.
//!
//! Source: the property AutoDeleteOnIdle of queues.

use std::time::{Duration, SystemTime};

use servicebus_harness::azservicebus::ServiceBusMessage;
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    complete, connect, receive, receiver, refusal, send, sender, start, within,
};

#[tokio::test]
async fn a_queue_without_use_is_not_there_any_more() {
    let servicebus = bus().await;
    let mut client = connect(&servicebus).await;
    send(&mut client, "idle", ["left"]).await;
    servicebus.clock().advance(Duration::from_secs(301)).await;
    let opening = client.create_sender("idle", Default::default());
    let error = refusal(within("the answer", opening).await);
    assert!(
        error.contains("NotFound") || error.contains("404"),
        "{error}"
    );
}

#[tokio::test]
async fn sends_peeks_and_scheduled_messages_keep_it() {
    let servicebus = bus().await;
    let mut client = connect(&servicebus).await;
    let mut sender = sender(&mut client, "idle").await;
    let mut receiver = receiver(&mut client, "idle").await;
    servicebus.clock().advance(Duration::from_secs(240)).await;
    sender.send_message("kept").await.unwrap();
    servicebus.clock().advance(Duration::from_secs(240)).await;
    within("a peek", receiver.peek_message(None)).await.unwrap();
    servicebus.clock().advance(Duration::from_secs(240)).await;
    let at = SystemTime::now() + Duration::from_secs(600);
    let scheduling = sender.schedule_message(ServiceBusMessage::new("later"), at.into());
    within("its number", scheduling).await.unwrap();
    servicebus.clock().advance(Duration::from_secs(601)).await;
    servicebus.clock().advance(Duration::from_secs(240)).await;
    for message in receive(&mut receiver, 2).await {
        complete(&mut receiver, &message).await;
    }
    assert_empty!(servicebus.queue("idle")).await;
}

async fn bus() -> ServiceBus {
    let queue = Queue::new("idle").auto_delete_on_idle(Duration::from_secs(300));
    start(Topology::new().queue(queue)).await
}
