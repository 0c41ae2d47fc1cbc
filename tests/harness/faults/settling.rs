//! What the test itself does, and fails as it was scripted: settlements, and exchanges whose connection ends.

use std::time::{Duration, Instant};

use servicebus_harness::{Error, EventKind, prelude::*};

use super::bus;
use crate::harness::{assert_error, error_of};

async fn bus_with_order() -> (ServiceBus, QueueClient) {
    let servicebus = bus().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("hello").message_id("o-1")).await;
    (servicebus, orders)
}

/// Completes that order, with an effect on the completion.
async fn completed(effect: Effect) -> (ServiceBus, QueueClient, Result<(), Error>) {
    let (servicebus, orders) = bus_with_order().await;
    let received = orders.receive().await;
    let completions = servicebus.faults().on(Operation::Complete);
    completions.apply(effect).await;
    let completed = received.complete().result().await;
    (servicebus, orders, completed)
}

#[tokio::test]
async fn a_refused_completion_keeps_its_lock() {
    let (_servicebus, _, completed) = completed(Effect::reject("amqp:internal-error")).await;
    let error = completed.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let condition = error.condition().expect("it was refused");
    assert_eq!(condition.condition, "amqp:internal-error");
    assert_eq!(
        error.to_string(),
        "cannot settle #1 \"hello\" (message-id o-1) of orders: amqp:internal-error: the completion was rejected"
    );
}

#[tokio::test]
async fn a_completion_on_a_detached_link_fails() {
    let (_servicebus, _, completed) = completed(Effect::detach("amqp:link:detach-forced")).await;
    let error = completed.unwrap_err().to_string();
    assert!(
        error.ends_with("the link was detached before the completion"),
        "{error}"
    );
}

#[tokio::test]
async fn a_completion_on_a_dropped_connection_fails() {
    let (_servicebus, _, completed) = completed(Effect::drop_connection()).await;
    let error = completed.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
}

#[tokio::test]
async fn a_delayed_completion_is_awaited() {
    let delay = Effect::delay_real(Duration::from_millis(200));
    let (_servicebus, orders, completed) = completed(delay).await;
    completed.unwrap();
    assert_completed!(orders, message_id = "o-1", count = 1).await;
}

#[tokio::test]
async fn a_completion_with_a_redelivery_succeeds() {
    let (_servicebus, orders, completed) = completed(Effect::redeliver()).await;
    completed.unwrap();
    assert_eq!(orders.receive().await.message_id.as_deref(), Some("o-1"));
}

#[tokio::test]
async fn a_fault_on_a_completion_does_not_affect_the_next() {
    let (servicebus, orders) = bus_with_order().await;
    orders.send("other").await;
    let (first, second) = (orders.receive().await, orders.receive().await);
    let completions = servicebus.faults().on(Operation::Complete);
    completions.reject("amqp:internal-error").await;
    first.complete().result().await.unwrap_err();
    second.complete().await;
}

#[tokio::test]
async fn an_exchange_ends_with_its_connection() {
    let (servicebus, orders) = bus_with_order().await;
    let started = Instant::now();
    let faults = servicebus.faults();
    faults.on(Operation::Send).drop_connection().await;
    let sentence = "cannot send to orders: the connection ended before there was an answer";
    assert_error(orders.send("a"), ErrorKind::Unreachable, sentence).await;
    faults.on(Operation::Management).drop_connection().await;
    assert_eq!(
        error_of(orders.peek()).await,
        "cannot peek orders: the connection ended before there was an answer"
    );
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(orders.peek().await.len(), 1);
}

#[tokio::test]
async fn a_scripted_renewal_failure_does_not_affect_the_settlement() {
    let (servicebus, orders) = bus_with_order().await;
    let mut received = orders.receive().await;
    let renewals = servicebus.faults().on(Operation::RenewLock);
    renewals.reject("amqp:internal-error").await;
    received.renew_lock().result().await.unwrap_err();
    received.complete().await;
    assert_empty!(orders).await;
}

#[tokio::test]
async fn an_exchange_whose_reply_is_lost_ends_at_once() {
    let (servicebus, orders) = bus_with_order().await;
    let started = Instant::now();
    let faults = servicebus.faults();
    faults.on(Operation::Send).lose_reply().await;
    let sentence = "cannot send to orders: no answer: the reply to the send was lost";
    assert_error(orders.send("a"), ErrorKind::Timeout, sentence).await;
    assert_message_count!(orders, active = 2).await;
    faults.on(Operation::Management).lose_reply().await;
    assert_eq!(
        error_of(orders.peek()).await,
        "cannot peek orders: no answer: the reply to the management request was lost"
    );
    faults.on(Operation::Attach).lose_reply().await;
    assert_eq!(
        error_of(orders.receive()).await,
        "cannot receive from orders: no answer: the reply to the attach was lost"
    );
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn the_record_names_the_message_of_a_fault() {
    let (servicebus, orders) = bus_with_order().await;
    let received = orders.receive().await;
    let faults = servicebus.faults();
    for operation in [Operation::Complete, Operation::Send] {
        faults.on(operation).reject("amqp:internal-error").await;
    }
    received.complete().result().await.unwrap_err();
    let other = Message::from("other").message_id("o-2");
    orders.send(other).result().await.unwrap_err();
    let timeline = orders.timeline().await;
    let events = timeline.events().iter();
    let events = events.filter(|event| event.kind == EventKind::Fault);
    let messages = events.map(|event| {
        let operation = event.fault.as_ref().map(|fault| fault.operation);
        (
            operation,
            event.message_id.as_deref(),
            event.sequence_number,
        )
    });
    assert_eq!(
        Vec::from_iter(messages),
        [
            (Some(Operation::Complete), Some("o-1"), Some(1)),
            (Some(Operation::Send), Some("o-2"), None),
        ]
    );
}

#[tokio::test]
async fn a_failure_names_the_fault_that_blocked_a_message() {
    let servicebus = bus().await;
    let orders = servicebus.queue("orders");
    let sends = servicebus.faults().on(Operation::Send);
    sends.reject("amqp:internal-error").await;
    orders.send("a").result().await.unwrap_err();
    let counted = orders
        .expect_message_count()
        .active(1)
        .within(Duration::ZERO);
    let failure = counted.await.unwrap_err().to_string();
    let hint = "hint: a fault blocked a message of the test: the send was rejected with amqp:internal-error";
    assert!(failure.ends_with(hint), "{failure}");
}
