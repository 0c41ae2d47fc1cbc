//! The assertions about what happened to a queue's messages seen failing, with the whole of their texts.

use std::time::Duration;

use servicebus_harness::prelude::*;

use crate::{
    bus_with_orders,
    failures::{SHORT, assert_text},
};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_message_that_is_not_deferred() {
    let servicebus = bus_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").id("o-17")).await;
    let _locked = orders.receive().await;
    let failed = orders.expect_deferred().message_id("o-17").count(2);
    assert_text(failed.within(SHORT).await, "1");
}

#[tokio::test]
async fn a_message_that_is_deferred_and_should_be_done() {
    let servicebus = bus_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").id("o-17")).await;
    orders.receive().await.defer().await;
    assert_text(orders.expect_completed().within(SHORT).await, "2");
}

#[tokio::test]
async fn a_message_that_is_scheduled_for_another_time() {
    let servicebus = bus_with_orders().await;
    let orders = servicebus.queue("orders");
    orders
        .schedule(Message::from("{}").id("o-17"), 10 * MINUTE)
        .await;
    let failed = orders.expect_scheduled().due_in(5 * MINUTE).within(SHORT);
    assert_text(failed.await, "3");
}

#[tokio::test]
async fn a_message_that_was_activated() {
    let servicebus = bus_with_orders().await;
    let orders = servicebus.queue("orders");
    orders
        .schedule(Message::from("{}").id("o-17"), 10 * MINUTE)
        .await;
    servicebus.clock().advance(10 * MINUTE).await;
    assert_text(orders.expect_scheduled().within(SHORT).await, "4");
}

#[tokio::test]
async fn a_queue_that_forwards_nowhere() {
    let servicebus = bus_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").id("o-17")).await;
    let failed = orders.expect_forwarded().to("audit").within(SHORT);
    assert_text(failed.await, "5");
}

#[tokio::test]
async fn a_message_that_could_not_be_forwarded() {
    let servicebus = bus_with_orders().await;
    let audit = servicebus.create_queue(Queue::new("audit")).await;
    let orders = servicebus.queue("orders");
    orders.update(|queue| queue.forward_to("audit")).await;
    audit.delete().await;
    orders.send(Message::from("{}").id("o-17")).await;
    servicebus.settled().await;
    let failed = orders.expect_forwarded().message_id("o-17").within(SHORT);
    assert_text(failed.await, "6");
}

#[tokio::test]
async fn a_transfer_that_failed_for_another_reason() {
    let servicebus = bus_with_orders().await;
    let audit = servicebus.create_queue(Queue::new("audit")).await;
    let orders = servicebus.queue("orders");
    orders.update(|queue| queue.forward_to("audit")).await;
    audit
        .update(|queue| queue.status(EntityStatus::Disabled))
        .await;
    orders.send(Message::from("{}").id("o-17")).await;
    servicebus.settled().await;
    let lost = orders.transfer_dead_letters();
    let failed = lost
        .expect_dead_lettered()
        .reason("MaxTransferHopCountExceeded");
    assert_text(failed.within(SHORT).await, "7");
    assert_text(lost.expect_not_dead_lettered().await, "7b");
    let failed = orders.expect_message_count().transfer_dead_letter(0);
    assert_text(failed.transfer(1).within(SHORT).await, "7c");
}

#[tokio::test]
async fn a_message_that_was_forwarded_and_is_looked_for() {
    let servicebus = bus_with_orders().await;
    servicebus.create_queue(Queue::new("audit")).await;
    let orders = servicebus.queue("orders");
    orders.update(|queue| queue.forward_to("audit")).await;
    orders.send(Message::from("{}").id("o-17")).await;
    servicebus.settled().await;
    assert_text(orders.expect_deferred().within(SHORT).await, "8");
}

#[tokio::test]
async fn a_message_that_has_not_expired() {
    let servicebus = bus_with_orders().await;
    let orders = servicebus.queue("orders");
    let offer = Message::from("{}").id("o-17").time_to_live(MINUTE);
    orders.send(offer).await;
    assert_text(orders.expect_expired().within(SHORT).await, "9");
}

#[tokio::test]
async fn a_message_that_was_abandoned_too_often() {
    let servicebus = bus_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").id("o-17")).await;
    orders.receive().await.abandon().await;
    orders.receive().await.abandon().await;
    let failed = orders.expect_abandoned().message_id("o-17").times(1);
    assert_text(failed.within(SHORT).await, "10");
}

#[tokio::test]
async fn a_lock_that_nobody_renewed() {
    let servicebus = bus_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").id("o-17")).await;
    let mut received = orders.receive().await;
    received.renew_lock().await;
    let failed = orders.expect_lock_renewed().at_least(2).within(SHORT);
    assert_text(failed.await, "11");
}

#[tokio::test]
async fn a_delivery_that_did_not_happen() {
    let servicebus = bus_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").id("o-17")).await;
    orders.receive_and_delete().await;
    let failed = orders.expect_delivered().to("worker-1").within(SHORT);
    assert_text(failed.await, "12");
}

#[tokio::test]
async fn a_delivery_that_should_not_have_happened() {
    let servicebus = bus_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").id("o-17")).await;
    let _locked = orders.receive().await;
    // What has happened is told at once, although the lock keeps the bus from rest.
    let failed = orders.expect_never_delivered().message_id("o-17").await;
    assert_text(failed, "13");
}
