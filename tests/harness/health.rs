//! A mistake inside the emulator fails the test that met it, and harms nothing but the entity in which it happened.
//!
//! The broker panics, where it is built for tests, when a message `panic-in-` and the name of an entity becomes active
//! there.

use std::time::Duration;

use servicebus_harness::prelude::*;

use crate::harness::{assert_contains, transactions::TransactionClient};
use servicebus_test_support::normalised::normalised;

async fn bus() -> ServiceBus {
    let topology = Topology::new()
        .queue(Queue::new("front").forward_to("back"))
        .queue(Queue::new("back"))
        .queue(Queue::new("other"))
        .topic(
            Topic::new("news")
                .subscription(Subscription::new("one"))
                .subscription(Subscription::new("two")),
        );
    ServiceBus::builder().topology(topology).start().await
}

/// How a test fails that does this with a namespace.
async fn failure<F: Future<Output = ()> + Send>(
    test: impl FnOnce(ServiceBus) -> F + Send + 'static,
) -> String {
    let test = async move { test(bus().await).await };
    let failed = tokio::spawn(test).await.expect_err("the test fails");
    let failed = failed.into_panic().downcast::<String>();
    let failed = failed.expect("it fails with a text");
    let (failure, line) = { failed.rsplit_once("\n\nthe namespace was started at ") }
        .expect("it names where the namespace was started");
    assert!(line.starts_with("tests/harness/health.rs:"), "{line}");
    normalised(failure)
}

fn broken(entity: &str) -> String {
    format!(
        "the emulator had an internal failure, which is a bug in it:\n  {entity} is broken: panicked: a test wanted this"
    )
}

fn panic_in(entity: &str) -> Message {
    Message::from("x").message_id(format!("panic-in-{entity}"))
}

#[tokio::test]
async fn a_failed_queue_refuses_operations_and_others_continue() {
    let failure = failure(|servicebus| async move {
        let (back, other) = (servicebus.queue("back"), servicebus.queue("other"));
        back.send("lost").await;
        let sent = back.send(panic_in("back")).result().await;
        let sent = sent.expect_err("the broker panicked").to_string();
        assert_contains(&sent, "amqp:internal-error");
        let refused = back.send("next").result().await.expect_err("it is broken");
        let refused = refused.to_string();
        assert_contains(&refused, "amqp:internal-error");
        assert_contains(&refused, "panicked: a test wanted this");
        other.send("fine").await;
        other.receive().await.complete().await;
        servicebus.stop().await;
    })
    .await;
    assert_eq!(failure, broken("back"));
}

#[tokio::test]
async fn a_failed_forwarding_target_leaves_its_source_unchanged() {
    let failure = failure(|servicebus| async move {
        let front = servicebus.queue("front");
        front.send(panic_in("back")).await;
        front.send("next").await;
        servicebus.wait_idle().await;
        let dead = front.transfer_dead_letters();
        assert_message_count!(dead, active = 2).await;
    })
    .await;
    assert_eq!(failure, broken("back"));
}

#[tokio::test]
async fn a_failed_subscription_does_not_affect_others() {
    let failure = failure(|servicebus| async move {
        let news = servicebus.topic("news");
        news.send(panic_in("news/Subscriptions/one")).await;
        news.send("next").await;
        let two = news.subscription("two");
        assert_message_count!(two, active = 2).await;
    })
    .await;
    assert_eq!(failure, broken("news/Subscriptions/one"));
}

#[tokio::test]
async fn a_failed_commit_is_answered_and_applies_nothing() {
    let failure = failure(|servicebus| async move {
        let mut transaction_client = TransactionClient::connect(&servicebus).await;
        let transaction = transaction_client.send("front", "first").await;
        let transaction = transaction.send("front", "panic-in-front").await;
        let refused = transaction.commit_closed().await;
        assert_contains(&refused, "panicked: a test wanted this");
        let refused = servicebus.queue("front").send("next").result().await;
        let refused = refused.expect_err("it is broken").to_string();
        assert_contains(&refused, "panicked: a test wanted this");
        servicebus.wait_idle().await;
        let (back, other) = (servicebus.queue("back"), servicebus.queue("other"));
        assert_empty!(back).await;
        let mut transaction_client = TransactionClient::connect(&servicebus).await;
        transaction_client
            .send("other", "fine")
            .await
            .commit()
            .await;
        other.receive().await.complete().await;
    })
    .await;
    assert_eq!(failure, broken("front"));
}

#[tokio::test]
async fn time_advances_after_an_entity_fails() {
    let failure = failure(|servicebus| async move {
        let (back, other) = (servicebus.queue("back"), servicebus.queue("other"));
        let minute = Duration::from_secs(60);
        back.schedule(panic_in("back"), minute).await;
        other.schedule("fine", minute).await;
        servicebus.clock().advance(2 * minute).await;
        other.receive().await.complete().await;
        other.schedule("again", minute).await;
        servicebus.clock().advance(2 * minute).await;
        other.receive().await.complete().await;
    })
    .await;
    assert_eq!(failure, broken("back"));
}
