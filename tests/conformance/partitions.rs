//! Partitioned queues: numbers carry a partition in their top 16 bits, and work as any other (D18).
//!
//! Source: service-bus-partitioning.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use servicebus_harness::azservicebus::ServiceBusMessage;
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    assert_refused, bodies, body, complete, connected, defer, done, receive, receiver, send,
    sender, start, within,
};

#[tokio::test]
async fn messages_of_one_key_share_a_partition_in_the_order_sent() {
    let (_servicebus, mut client) = connected(bus()).await;
    let messages = ["a", "b", "c"].map(|b| keyed(b, "eu"));
    send(&mut client, "partitioned", messages).await;
    send(&mut client, "partitioned", vec!["none"; 20]).await;

    let mut receiver = receiver(&mut client, "partitioned").await;
    let messages = receive(&mut receiver, 23).await;
    let partitions: BTreeSet<_> = messages.iter().map(|m| m.sequence_number() >> 48).collect();
    assert!(partitions.len() > 1, "{partitions:?}");
    let (of_eu, others): (Vec<_>, Vec<_>) = messages
        .into_iter()
        .partition(|message| message.partition_key() == Some("eu"));
    assert_eq!(bodies(&of_eu), ["a", "b", "c"]);
    let partitions: BTreeSet<_> = of_eu.iter().map(|m| m.sequence_number() >> 48).collect();
    assert_eq!(partitions.len(), 1, "{partitions:?}");
    for message in of_eu.iter().chain(&others) {
        complete(&mut receiver, message).await;
    }
}

#[tokio::test]
async fn a_sequence_number_with_a_partition_cancels_receives_and_peeks() {
    let (servicebus, mut client) = connected(bus()).await;
    // Of eight keys most are not in partition 0.
    let keys: Vec<_> = (0..8).map(|key| format!("key {key}")).collect();
    let sent: Vec<_> = keys.iter().map(|key| keyed(key, key)).collect();
    send(&mut client, "partitioned", sent.clone()).await;
    let mut receiver = receiver(&mut client, "partitioned").await;
    for message in receive(&mut receiver, 8).await {
        defer(&mut receiver, &message).await;
        let number = message.sequence_number();
        let peeked = within("a peek", receiver.peek_message(Some(number))).await;
        let peeked = peeked.unwrap().expect("it is there");
        assert_eq!(peeked.sequence_number(), number);
        let deferred = within("it", receiver.receive_deferred_message(number)).await;
        let deferred = deferred.unwrap().expect("it is deferred");
        assert_eq!(body(&deferred), body(&message));
        complete(&mut receiver, &deferred).await;
    }

    let mut sender = sender(&mut client, "partitioned").await;
    let at = SystemTime::now() + Duration::from_secs(60);
    for message in sent {
        let number = within("its number", sender.schedule_message(message, at.into())).await;
        let cancelling = sender.cancel_scheduled_message(number.unwrap());
        done("the answer", cancelling).await;
    }
    let partitioned = servicebus.queue("partitioned");
    assert_message_count!(partitioned, active = 0, scheduled = 0).await;
}

#[tokio::test]
async fn a_batch_for_two_keys_is_refused() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "partitioned").await;
    let two = [keyed("a", "eu"), keyed("b", "us")];
    assert_refused(sender.send_messages(two), &["NotAllowed"]).await;
    let one = [keyed("a", "eu"), keyed("b", "eu")];
    sender.send_messages(one).await.unwrap();
    assert_message_count!(servicebus.queue("partitioned"), active = 2).await;
}

fn keyed(body: &str, key: &str) -> ServiceBusMessage {
    let mut message = ServiceBusMessage::new(body);
    message.set_partition_key(key.to_owned()).unwrap();
    message
}

async fn bus() -> ServiceBus {
    let queue = Queue::new("partitioned").enable_partitioning(true);
    start(Topology::new().queue(queue)).await
}
