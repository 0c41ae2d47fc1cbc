//! Queues that are made, changed and removed while a namespace runs.

use std::time::Duration;

use servicebus_harness::{EventKind, prelude::*};

use crate::harness::{error_of, namespace_with_orders};

#[tokio::test]
async fn a_queue_is_made_and_used_and_deleted() {
    let servicebus = namespace_with_orders().await;
    let billing = servicebus
        .create_queue(Queue::new("eu/billing").max_delivery_count(1))
        .await;
    billing.send("hello").await;
    billing.receive().await.abandon().await;
    assert_dead_lettered!(billing, reason = "MaxDeliveryCountExceeded").await;

    billing.delete().await;
    let error = billing.send("hello").result().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no queue \"eu/billing\"; the namespace has orders"
    );
    let again = servicebus.create_queue(Queue::new("eu/billing")).await;
    assert_empty!(again).await;
}

#[tokio::test]
async fn what_is_wrong_with_a_queue_is_told() {
    let servicebus = namespace_with_orders().await;
    let error = servicebus.create_queue(Queue::new("Orders")).result().await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::EntityAlreadyExists, "{error:?}");
    assert_eq!(
        error.to_string(),
        "there is a queue \"Orders\" already; update it, or delete it first"
    );
    let wrong = Queue::new("billing").lock_duration(Duration::from_secs(1));
    let error = servicebus
        .create_queue(wrong.forward_to("nowhere"))
        .result();
    assert_eq!(
        error.await.unwrap_err().to_string(),
        "cannot create the queue \"billing\": the properties are not allowed (status 400)\n  LockDuration: \"PT1S\" is not allowed; allowed: 5 s (PT5S) to 5 min (PT5M)"
    );

    let orders = servicebus.queue("orders");
    let error = orders
        .update(|queue| queue.max_delivery_count(0))
        .result()
        .await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "cannot update the queue \"orders\": the properties are not allowed (status 400)\n  MaxDeliveryCount: 0 is not allowed; allowed: 1 to 2147483647"
    );
    let error = orders
        .update(|queue| queue.requires_duplicate_detection(true))
        .result();
    assert_eq!(
        error.await.unwrap_err().to_string(),
        "cannot update the queue \"orders\": the properties are not allowed (status 400)\n  RequiresDuplicateDetection: true is not allowed; allowed: false, as it was created"
    );

    let unknown = servicebus.queue("ordres");
    let expected =
        "there is no queue \"ordres\"; did you mean \"orders\"? The namespace has orders";
    let error = unknown.update(|queue| queue.max_delivery_count(1)).result();
    assert_eq!(error.await.unwrap_err().to_string(), expected);
    let error = unknown.delete().result().await.unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn an_update_changes_what_it_says_and_nothing_else() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders
        .update(|queue| queue.status(EntityStatus::SendDisabled))
        .await;
    let error = error_of(orders.send("hello")).await;
    assert!(error.contains("com.microsoft:entity-disabled"), "{error}");
    orders
        .update(|queue| queue.status(EntityStatus::Active))
        .await;

    orders.send("hello").await;
    for _ in 0..3 {
        orders.receive().await.abandon().await;
    }
    // The limit of three deliveries still holds.
    assert_dead_lettered!(orders, reason = "MaxDeliveryCountExceeded").await;
}

#[tokio::test]
async fn a_queue_begins_and_ends_to_forward() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    let audit = servicebus.create_queue(Queue::new("audit")).await;
    orders.update(|queue| queue.forward_to("audit")).await;
    orders.send("one").await;
    assert_forwarded!(orders, to = "audit", count = 1).await;
    assert_eq!(audit.receive_and_delete().await.body_text(), "one");

    orders.update(|queue| queue.forward_to("")).await;
    orders.send("two").await;
    assert_message_count!(orders, active = 1, transfer = 0).await;
    assert_empty!(audit).await;
}

#[tokio::test]
async fn the_record_knows_every_kind_of_event_of_a_queue() {
    let topology = Topology::new()
        .queue(Queue::new("orders").requires_duplicate_detection(true))
        .queue(Queue::new("audit"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    let minute = Duration::from_secs(60);
    let number = orders.schedule("taken back", minute).await;
    orders.cancel_scheduled(number).await;
    orders.schedule("later", minute).await;
    servicebus.clock().advance(minute).await;
    orders.receive().await.defer().await;
    orders.send(Message::from("twice").message_id("o-1")).await;
    orders.send(Message::from("twice").message_id("o-1")).await;
    orders.delete_messages(1).await;
    orders.update(|queue| queue.forward_to("audit")).await;
    orders.send("on").await;
    servicebus.queue("audit").delete().await;
    orders.send("nowhere").await;
    servicebus.wait_idle().await;

    let timeline = servicebus.timeline(&orders).await;
    assert_eq!(timeline.count(&EventKind::Scheduled), 2);
    let kinds = [
        EventKind::Cancelled,
        EventKind::Activated,
        EventKind::Deferred,
        EventKind::DuplicateDropped,
        EventKind::Deleted,
        EventKind::Forwarded,
        EventKind::TransferDeadLettered,
    ];
    for kind in kinds {
        assert_eq!(timeline.count(&kind), 1, "{kind:?}:\n{timeline}");
        assert!(timeline.events().iter().any(|event| event.kind == kind));
    }
}
