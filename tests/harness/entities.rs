//! Queues that are made, changed and removed while a namespace runs.
//!
//! Topologies that are missing or wrong say so, with the same text however they were written.

use std::time::Duration;

use servicebus_harness::prelude::*;
use servicebus_harness::{Error, EventKind};

use crate::harness::{error_of, namespace_with_orders};

#[tokio::test]
async fn a_queue_is_created_used_and_deleted() {
    let (servicebus, _) = namespace_with_orders().await;
    let billing = servicebus
        .create_queue(Queue::new("eu/billing").max_delivery_count(1))
        .await;
    billing.send("hello").await;
    billing.receive().await.abandon().await;
    assert_dead_lettered!(billing, reason = "MaxDeliveryCountExceeded").await;

    billing.delete().await;
    let deleted = "there is no queue \"eu/billing\": it was deleted at +";
    for error in [
        error_of(billing.send("hello")).await,
        error_of(billing.counts()).await,
        error_of(billing.update(|queue| queue.max_delivery_count(2))).await,
        billing.expect_empty().await.unwrap_err().to_string(),
    ] {
        let offset = error
            .strip_prefix(deleted)
            .and_then(|rest| rest.strip_suffix(" s"));
        let offset = offset.and_then(|offset| offset.parse::<f64>().ok());
        assert!(offset.is_some(), "{error}");
    }
    let again = servicebus.create_queue(Queue::new("eu/billing")).await;
    assert_empty!(again).await;
}

#[tokio::test]
async fn invalid_queues_are_refused_with_the_reason() {
    let (servicebus, _) = namespace_with_orders().await;
    let error = servicebus.create_queue(Queue::new("Orders")).result().await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::EntityAlreadyExists, "{error:?}");
    assert_eq!(
        error.to_string(),
        "there is a queue \"Orders\" already; update it, or delete it first"
    );
    let wrong = Queue::new("billing").lock_duration(Duration::from_secs(1));
    assert_eq!(
        error_of(servicebus.create_queue(wrong.forward_to("nowhere"))).await,
        "cannot create the queue \"billing\": the properties are not allowed (status 400)\n  LockDuration: \"PT1S\" is not allowed; allowed: 5 s (PT5S) to 5 min (PT5M)"
    );

    let orders = servicebus.queue("orders");
    assert_eq!(
        error_of(orders.update(|queue| queue.max_delivery_count(0))).await,
        "cannot update the queue \"orders\": the properties are not allowed (status 400)\n  MaxDeliveryCount: 0 is not allowed; allowed: 1 to 2147483647"
    );
    assert_eq!(
        error_of(orders.update(|queue| queue.requires_duplicate_detection(true))).await,
        "cannot update the queue \"orders\": the properties are not allowed (status 400)\n  RequiresDuplicateDetection: true is not allowed; allowed: false, as it was created"
    );

    let unknown = servicebus.queue("ordres");
    let expected =
        "there is no queue \"ordres\"; did you mean \"orders\"? The namespace has orders";
    assert_eq!(
        error_of(unknown.update(|queue| queue.max_delivery_count(1))).await,
        expected
    );
    assert_eq!(error_of(unknown.delete()).await, expected);
}

#[tokio::test]
async fn an_update_changes_only_its_properties() {
    let (_servicebus, orders) = namespace_with_orders().await;
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
async fn forwarding_of_a_queue_is_set_and_removed() {
    let (servicebus, orders) = namespace_with_orders().await;
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
async fn the_record_has_every_kind_of_event_of_a_queue() {
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

async fn refusal(topology: Topology) -> Error {
    let started = ServiceBus::builder()
        .topology(topology)
        .start()
        .result()
        .await;
    started.expect_err("this topology should not start")
}

#[tokio::test]
async fn a_missing_file_names_the_paths_that_were_tried() {
    let error = refusal(Topology::file("tests/harness/fixtures/nowhere.json")).await;
    let current = std::env::current_dir().unwrap();
    let fixtures = current.join("tests/harness/fixtures");
    assert_eq!(
        error.to_string(),
        format!(
            "no topology file at {0}/nowhere.json; {0} has invalid.json, orders.json, two_namespaces.json",
            fixtures.display()
        )
    );
    let error = refusal(Topology::file("no/where/orders.json")).await;
    assert_eq!(
        error.to_string(),
        format!(
            "no topology file at {}/no/where/orders.json; the harness searches for a relative path in the package under test, then in the current directory",
            current.display()
        )
    );
}

#[tokio::test]
async fn an_invalid_file_lists_every_problem_with_its_place() {
    let error = refusal(Topology::file("tests/harness/fixtures/invalid.json")).await;
    assert_eq!(error.kind(), ErrorKind::Topology);
    let current = std::env::current_dir().unwrap();
    let fixtures = format!("{}/tests/harness/fixtures", current.display());
    assert_eq!(
        error.to_string().replace(&fixtures, "…"),
        "the topology is invalid:
…/invalid.json:7:67: UserConfig.Namespaces[0].Queues[0].Properties.MaxDeliveryCount: 0 is not allowed; allowed: 1 to 2147483647
…/invalid.json:7:86: UserConfig.Namespaces[0].Queues[0].Properties.LockDuration: \"PT1S\" is not allowed; allowed: 5 s (PT5S) to 5 min (PT5M)"
    );
}

#[tokio::test]
async fn the_builder_has_the_errors_of_a_file() {
    let queue = Queue::new("orders")
        .max_delivery_count(0)
        .lock_duration(Duration::from_secs(1));
    let built = refusal(Topology::new().queue(queue)).await.to_string();
    let read = refusal(Topology::file("tests/harness/fixtures/invalid.json")).await;

    let mut built: Vec<&str> = built.lines().map(without_place).collect();
    let read = read.to_string();
    let mut read: Vec<&str> = read.lines().map(without_place).collect();
    built.sort_unstable();
    read.sort_unstable();
    assert_eq!(built, read);
}

/// Leaves the path within the document and what is wrong there.
fn without_place(line: &str) -> &str {
    line.split_once(": ")
        .map_or(line, |(_place, problem)| problem)
}

#[tokio::test]
async fn settings_of_the_namespace_take_effect() {
    let topology = Topology::new()
        .queue(Queue::new("orders"))
        .locks_on_detach(LocksOnDetach::Release);
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    orders.send("hello").await;
    drop(orders.receive().await);
    // Under `keep`, the message would stay locked for a minute.
    assert_eq!(orders.receive().await.delivery_count(), 1);
}

/// A test runs on what a template deploys.
#[tokio::test]
async fn a_template_is_a_topology() {
    let nested = Topology::arm("fixtures/arm/nested.json");
    let text = refusal(nested.clone()).await.to_string();
    let expected = "the parameter serviceBusNamespaceName has no default and needs a value";
    assert!(
        text.contains(expected) && text.contains("nested.json"),
        "{text}"
    );

    let deployed = nested.parameter("serviceBusNamespaceName", "market");
    let servicebus = ServiceBus::builder().topology(deployed).start().await;
    assert_eq!(servicebus.namespace(), "market");
    let gold = |subject| {
        Message::from("a price")
            .subject(subject)
            .application_property("tier", "gold")
    };
    let prices = servicebus.topic("prices");
    prices.send(gold("us")).await;
    prices.send(gold("eu").message_id("p-1")).await;
    let eu = servicebus.subscription("prices", "sub-eu");
    let received = eu.receive().await;
    assert_eq!(received.message_id.as_deref(), Some("p-1"));
    received.complete().await;
    assert_empty!(eu).await;
}
