//! Faults of one party, one message or one delivery, and what goes wrong for a whole client.

use std::time::Duration;

use servicebus_harness::prelude::*;
use servicebus_test_support::client::part;
use tokio::time::timeout;

use super::{bus, hit, raw::Client};
use crate::harness::error_of;

#[tokio::test]
async fn a_fault_applies_to_one_delivery() {
    let servicebus = bus().await;
    let orders = servicebus.queue("orders");
    orders.send_all(["a", "b"]).await;
    let first = orders.receive().await;
    let completions = servicebus.faults().on(Operation::Complete).entity("orders");
    let fault = completions
        .party(part(servicebus.connection_string(), "SharedAccessKeyName"))
        .sequence_number(first.message().sequence_number + 1)
        .delivery(1)
        .reject("com.microsoft:timeout")
        .await;
    first.complete().await;
    assert_eq!(fault.hits().await, 0);
    let second = orders.receive().await;
    let refused = second.complete().result().await;
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(fault.hits().await, 1);
}

#[tokio::test]
async fn an_unknown_party_is_refused_with_the_known_ones() {
    let servicebus = bus().await;
    let sends = servicebus.faults().on(Operation::Send).party("missing");
    let error = error_of(sends.lose_reply()).await;
    assert!(error.contains("the name of a key"), "{error}");
}

#[tokio::test]
async fn a_crash_before_or_after_a_send() {
    for (effect, stored) in [(Effect::crash(), 0), (Effect::crash().after(), 1)] {
        let servicebus = bus().await;
        let sends = servicebus.faults().on(Operation::Send).entity("orders");
        let fault = sends.apply(effect).await;
        let mut client = Client::connect(&servicebus, "worker").await;
        let mut sender = client.sender("orders").await;
        let _unanswered = sender.post("1").await;
        hit(&fault).await;
        assert_message_count!(servicebus.queue("orders"), active = stored).await;
    }
}

#[tokio::test]
async fn a_postponed_operation_waits_and_others_continue() {
    let servicebus = bus().await;
    let sends = servicebus.faults().on(Operation::Send).client("worker");
    let fault = sends.postpone().await;
    let mut client = Client::connect(&servicebus, "worker").await;
    let mut sender = client.sender("orders").await;
    let sent = sender.post("1").await;
    hit(&fault).await;
    let orders = servicebus.queue("orders");
    orders.send("2").await;
    assert!(timeout(Duration::ZERO, sent).await.is_err(), "it waits");
    assert_message_count!(orders, active = 1).await;
}

#[tokio::test]
async fn a_failover_loses_the_lock_of_a_message() {
    let servicebus = bus().await;
    let orders = servicebus.queue("orders");
    orders.send("a").await;
    let deliveries = servicebus.faults().on(Operation::Deliver).entity("orders");
    let fault = deliveries.apply(Effect::failover().after()).await;
    let _lost = orders.receive().result().await;
    assert_eq!(fault.hits().await, 1);
    assert_eq!(orders.receive().await.delivery_count(), 2);
}
