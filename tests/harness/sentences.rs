//! Assertions about what happened to a queue's messages come true, in their positive and their exact form.

use std::time::{Duration, SystemTime};

use servicebus_harness::prelude::*;

use crate::harness::namespace_with_orders;

const MINUTE: Duration = Duration::from_secs(60);
/// Long enough for everything that has happened before the assertion.
const SHORT: Duration = Duration::from_millis(10);

#[tokio::test]
async fn delivery_assertions() {
    let (_servicebus, orders) = namespace_with_orders().await;
    assert_not_delivered!(orders).await;
    orders.send(Message::from("{}").message_id("o-1")).await;
    assert_not_delivered!(orders).await;
    orders.receive().await.abandon().await;
    orders.receive_and_delete().await;

    assert_delivered!(orders).await;
    assert_delivered!(orders, times = 2).await;
    assert_delivered!(orders, message_id = "o-1", to = "the test", at_least = 2).await;
    assert_delivered!(orders, message_id = "o-2", times = 0).await;
    assert_not_delivered!(orders, message_id = "o-2").await;
    assert_not_delivered!(orders, to = contains("worker"), within = MINUTE).await;

    assert_abandoned!(orders).await;
    assert_abandoned!(orders, times = 1).await;
    assert_abandoned!(orders, message_id = "o-1", at_least = 1).await;
    assert_abandoned!(orders, message_id = "o-2", times = 0, within = SHORT).await;
}

#[tokio::test]
async fn deliveries_of_other_entities_do_not_count() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send(Message::from("{}").message_id("o-1")).await;
    orders.receive().await.dead_letter("Rejected", "").await;
    let dead = orders.dead_letters();
    dead.receive().await.complete().await;

    assert_delivered!(dead, message_id = "o-1", times = 1).await;
    assert_delivered!(orders, message_id = "o-1", times = 1).await;
    assert_completed!(dead, message_id = "o-1", count = 1).await;
    assert_completed!(orders, message_id = "o-1", count = 0).await;
}

#[tokio::test]
async fn lock_assertions() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send(Message::from("{}").message_id("o-1")).await;
    assert_lock_not_renewed!(orders).await;
    let mut received = orders.receive().await;
    assert_lock_renewed!(orders, times = 0).await;
    received.renew_lock().await;
    received.renew_lock().await;
    assert_lock_renewed!(orders).await;
    assert_lock_renewed!(orders, at_least = 1).await;
    assert_lock_renewed!(orders, message_id = "o-1", times = 2).await;
    received.complete().await;
    assert_lock_not_renewed!(orders, message_id = "o-2").await;
}

#[tokio::test]
async fn deferred_and_scheduled_assertions() {
    let (servicebus, orders) = namespace_with_orders().await;
    assert_deferred!(orders, count = 0).await;
    assert_scheduled!(orders, count = 0).await;
    assert_not_deferred!(orders).await;
    assert_not_scheduled!(orders).await;
    let due = SystemTime::now() + 10 * MINUTE;
    let number = orders
        .schedule(Message::from("{}").message_id("o-1"), due)
        .await;
    orders.send(Message::from("{}").message_id("o-2")).await;
    orders.receive().await.defer().await;

    assert_deferred!(orders).await;
    assert_deferred!(orders, message_id = "o-2", count = 1).await;
    assert_scheduled!(orders).await;
    assert_scheduled!(orders, at = due, message_id = "o-1", count = 1).await;
    let tolerance = MINUTE / 2;
    assert_scheduled!(orders, due_in = 10 * MINUTE, tolerance = tolerance).await;
    assert_scheduled!(orders, due_in = 9 * MINUTE, tolerance = 2 * MINUTE).await;
    assert_scheduled!(orders, due_in = 9 * MINUTE, count = 0).await;
    assert_not_scheduled!(orders, due_in = 9 * MINUTE).await;
    assert_not_scheduled!(orders, message_id = "o-2", within = MINUTE).await;
    assert_not_deferred!(orders, message_id = "o-1", within = MINUTE).await;
    servicebus.clock().advance(9 * MINUTE).await;
    assert_scheduled!(orders, due_in = MINUTE, tolerance = tolerance).await;
    assert_message_count!(
        orders,
        active = 1,
        deferred = 1,
        scheduled = 1,
        transfer = 0
    )
    .await;
    orders.cancel_scheduled(number).await;
    assert_scheduled!(orders, count = 0).await;
    assert_not_scheduled!(orders).await;
}

#[tokio::test]
async fn expiry_assertions() {
    let topology = Topology::new()
        .queue(Queue::new("kept").dead_lettering_on_message_expiration(true))
        .queue(Queue::new("dropped"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    for name in ["kept", "dropped"] {
        let queue = servicebus.queue(name);
        let offer = Message::from("{}").message_id("o-1").time_to_live(MINUTE);
        queue.send(offer).await;
        assert_expired!(queue, count = 0).await;
        servicebus.clock().advance(MINUTE).await;
        assert_expired!(queue).await;
        assert_expired!(queue, message_id = "o-1", count = 1).await;
        assert_not_delivered!(queue).await;
    }
}

#[tokio::test]
async fn forwarding_assertions() {
    let topology = (1..6).fold(Topology::new(), |topology, number| {
        let next = format!("q{}", number + 1);
        topology.queue(Queue::new(format!("q{number}")).forward_to(next))
    });
    let topology = topology.queue(Queue::new("q6"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let (first, last) = (servicebus.queue("q1"), servicebus.queue("q5"));
    first.send(Message::from("{}").message_id("o-1")).await;

    assert_forwarded!(first).await;
    assert_forwarded!(first, to = "q2", message_id = "o-1", count = 1).await;
    assert_forwarded!(first, to = "q3", count = 0).await;
    let lost = last.transfer_dead_letters();
    assert_dead_lettered!(
        lost,
        reason = "MaxTransferHopCountExceeded",
        message_id = "o-1",
        count = 1
    )
    .await;
    assert_not_dead_lettered!(last).await;
    assert_not_dead_lettered!(lost, reason = "Rejected").await;
    assert_message_count!(last, active = 0, transfer_dead_letter = 1).await;
    assert_forwarded!(last, count = 0).await;
    lost.receive().await.complete().await;
    assert_empty!(lost).await;
}

#[tokio::test]
async fn forwarding_assertions_for_dead_letters() {
    let orders = Queue::new("orders").forward_dead_lettered_messages_to("dead");
    let topology = Topology::new().queue(orders).queue(Queue::new("dead"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    orders.send("{}").await;
    orders.receive().await.dead_letter("Rejected", "").await;
    assert_forwarded!(orders.dead_letters(), to = "dead").await;
    assert_forwarded!(orders, count = 0).await;
}
