//! Limits: a message too large, a queue that is full, a batch of which nothing is taken.
//!
//! Source: service-bus-quotas. The queue `tiny` holds a mebibyte, five messages of 200,000 bytes. The
//! client tries once, or a second try that sends nothing would hide what is refused.

use servicebus_harness::azservicebus::{ServiceBusMessage, ServiceBusSender};
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    assert_refused, bus, complete, connected, done, receive_one, receiver, sender, start, tiny,
};

#[tokio::test]
async fn a_too_large_message_is_refused_and_the_link_stays_open() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "orders").await;
    expect_refused(&mut sender, 300_000, "MessageSizeExceeded").await;
    sender.send_message("small").await.unwrap();
    assert_message_count!(servicebus.queue("orders"), active = 1).await;
}

#[tokio::test]
async fn a_full_queue_refuses_messages_until_space_is_free() {
    let (servicebus, mut client) = connected(start(Topology::new().queue(tiny()))).await;
    let mut sender = sender(&mut client, "tiny").await;
    for _ in 0..5 {
        sender.send_message(vec![0; 200_000]).await.unwrap();
    }
    expect_refused(&mut sender, 200_000, "ResourceLimitExceeded").await;
    sender.send_message("small enough").await.unwrap();
    let mut receiver = receiver(&mut client, "tiny").await;
    let message = receive_one(&mut receiver).await;
    complete(&mut receiver, &message).await;
    // The SDK does not wait for what becomes of a settlement.
    assert_completed!(servicebus.queue("tiny"), count = 1).await;
    sender.send_message(vec![0; 200_000]).await.unwrap();
    assert_message_count!(servicebus.queue("tiny"), active = 6).await;
}

#[tokio::test]
async fn a_batch_that_does_not_fit_is_refused_as_a_whole() {
    let (servicebus, mut client) = connected(start(Topology::new().queue(tiny()))).await;
    let mut sender = sender(&mut client, "tiny").await;
    for size in [200_000, 200_000, 200_000, 200_000, 100_000] {
        sender.send_message(vec![0; size]).await.unwrap();
    }
    let two = [vec![0; 100_000], vec![0; 100_000]];
    assert_refused(sender.send_messages(two), &["ResourceLimitExceeded"]).await;
    assert_message_count!(servicebus.queue("tiny"), active = 5).await;
    sender.send_messages([vec![0; 100_000]]).await.unwrap();
    assert_message_count!(servicebus.queue("tiny"), active = 6).await;
}

#[tokio::test]
async fn a_batch_takes_messages_up_to_the_links_limit() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "orders").await;
    let mut batch = sender.create_message_batch(Default::default()).unwrap();
    assert_eq!(batch.max_size_in_bytes(), 262_144);
    while batch
        .try_add_message(ServiceBusMessage::new(vec![0; 50_000]))
        .is_ok()
    {}
    assert_eq!(batch.len(), 5);
    done("the outcome", sender.send_message_batch(batch)).await;
    assert_message_count!(servicebus.queue("orders"), active = 5).await;
}

#[tokio::test]
async fn a_batch_over_the_links_limit_is_refused_as_a_whole() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "orders").await;
    let six = vec![vec![0; 50_000]; 6];
    assert_refused(sender.send_messages(six), &["MessageSizeExceeded"]).await;
    assert_empty!(servicebus.queue("orders")).await;
    sender.send_message("small").await.unwrap();
}

#[tokio::test]
async fn a_premium_queue_may_allow_messages_of_many_mebibytes() {
    let large = Queue::new("large").max_message_size_in_kilobytes(10 * 1024);
    let topology = Topology::new().tier(Tier::Premium).queue(large);
    let (_servicebus, mut client) = connected(start(topology)).await;
    let sent: Vec<u8> = (0..5_000_000_u32)
        .map(|index| (index * 7 % 251) as u8)
        .collect();
    let mut sender = sender(&mut client, "large").await;
    done("the outcome", sender.send_message(sent.clone())).await;
    let mut receiver = receiver(&mut client, "large").await;
    let message = receive_one(&mut receiver).await;
    assert!(message.body().unwrap() == sent, "the body is what was sent");
    complete(&mut receiver, &message).await;
}

/// The SDK has no kind for it; the condition is in the error.
async fn expect_refused(sender: &mut ServiceBusSender, bytes: usize, condition: &str) {
    assert_refused(sender.send_message(vec![0; bytes]), &[condition]).await;
}
