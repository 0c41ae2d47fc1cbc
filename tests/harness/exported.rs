//! What a namespace holds can be taken and declared again, by another namespace or from a file.
//!
//! Messages that a topology declares beside its entities.

use std::time::Duration;
use std::{env, fs};

use rstest::rstest;
use serde::Deserialize;
use servicebus_harness::ErrorKind;
use servicebus_harness::prelude::*;
use servicebus_test_support::built;

use crate::harness::{assert_contains, error_of, orders};

/// A namespace whose entities were made in every way.
async fn populated(builder: servicebus_harness::Builder) -> ServiceBus {
    let high = Subscription::new("high").rule(Rule::sql("high", "price > 10"));
    let topology = orders().topic(Topic::new("prices").subscription(high));
    let servicebus = builder.topology(topology).start().await;
    servicebus
        .queue("orders")
        .update(|queue| queue.max_delivery_count(7))
        .await;
    servicebus
        .create_queue(Queue::new("late").forward_to("orders"))
        .await;
    servicebus
}

#[rstest]
#[case(Mode::InProcess)]
#[case(Mode::Process)]
#[tokio::test]
async fn an_exported_topology_starts_an_equal_namespace(#[case] mode: Mode) {
    let builder = || ServiceBus::builder().mode(mode).binary(built::emulator());
    let first = populated(builder()).await;
    let topology = first.topology().await;
    // Both live at once: nothing by which the first is reached is in it.
    let second = builder().topology(topology.clone()).start().await;
    let exported = second.topology().await;
    assert_eq!(exported.json().unwrap(), topology.json().unwrap());

    second.queue("late").send("hello").await;
    assert_forwarded!(second.queue("late"), to = "orders").await;
    let orders = second.queue("orders");
    for _ in 0..7 {
        orders.receive().await.abandon().await;
    }
    assert_dead_lettered!(orders, reason = "MaxDeliveryCountExceeded").await;
    let message = |price| Message::from("{}").application_property("price", price);
    second
        .topic("prices")
        .send_all([message(3), message(12)])
        .await;
    assert_message_count!(second.subscription("prices", "high"), active = 1).await;
}

#[tokio::test]
async fn an_export_is_written_to_a_file() {
    let first = populated(ServiceBus::builder()).await;
    let text = first.topology().await.json().unwrap();
    assert!(
        !text.contains("RootManageSharedAccessKey") && !text.contains("harness-"),
        "{text}"
    );
    let file = format!("servicebus-harness-export-{}.json", std::process::id());
    let file = env::temp_dir().join(file);
    fs::write(&file, &text).unwrap();
    let second = ServiceBus::builder()
        .topology(Topology::file(&file))
        .start()
        .await;
    fs::remove_file(&file).unwrap();
    assert_eq!(second.topology().await.json().unwrap(), text);
}

#[tokio::test]
async fn an_export_cannot_be_combined_with_the_builder() {
    let servicebus = ServiceBus::start().await;
    let mixed = servicebus.topology().await.queue(Queue::new("more"));
    assert_eq!(
        error_of(ServiceBus::builder().topology(mixed).start()).await,
        "the topology of a running namespace cannot be extended by the builder: change the namespace before it is exported"
    );
}

#[derive(Debug, PartialEq, Deserialize, serde::Serialize)]
struct Order {
    total: u32,
}

#[tokio::test]
async fn declared_messages_exist_at_the_start() {
    let later = Message::json(Order { total: 3 }).scheduled_in(Duration::from_secs(600));
    let carts = Queue::new("carts").requires_session(true);
    let topology = orders()
        .queue(carts)
        .message("orders", "the first")
        .message("orders", later)
        .dead_letter("orders", "not json", "Rejected", "it is not an order")
        .dead_letter("carts", Message::from("add").session_id("7"), "Old", "");
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    assert_message_count!(orders, active = 1, scheduled = 1, dead_letter = 1).await;
    assert_scheduled!(
        orders,
        due_in = Duration::from_secs(600),
        body_json = serde_json::json!({"total": 3})
    )
    .await;
    assert_dead_lettered!(orders, reason = "Rejected", body = "not json").await;
    assert_dead_lettered!(servicebus.queue("carts"), reason = "Old").await;
    servicebus.clock().advance(Duration::from_secs(601)).await;
    orders.receive().await.complete().await;
    let order = orders.receive().await;
    assert_eq!(order.body_as::<Order>().unwrap(), Order { total: 3 });
    let error = order.body_as::<Vec<u8>>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed);
    let text = error.to_string();
    assert_contains(&text, "is not a JSON alloc::vec::Vec<u8>");
}

#[tokio::test]
async fn declared_dead_letters_are_in_one_subscription() {
    let high = Subscription::new("high").rule(Rule::sql("high", "price > 10"));
    let carts = Subscription::new("carts").requires_session(true);
    let prices = Topic::new("prices").subscription(high).subscription(carts);
    let prices = prices.subscription(Subscription::new("all"));
    let price = |price: i64| Message::from("{}").application_property("price", price);
    let topology = Topology::new()
        .topic(prices)
        .message("prices", price(5).session_id("s-1"))
        .dead_letter(
            "prices/Subscriptions/high",
            price(12).session_id("s-1"),
            "Old",
            "",
        )
        .dead_letter(
            "prices/Subscriptions/carts",
            price(1).session_id("s-2"),
            "Rejected",
            "",
        )
        .dead_letter(
            "prices/Subscriptions/high",
            price(11).session_id("s-1"),
            "Old",
            "",
        );
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let subscription = |name| servicebus.subscription("prices", name);
    assert_dead_lettered!(subscription("high"), reason = "Old", count = 2).await;
    assert_dead_lettered!(subscription("carts"), reason = "Rejected", count = 1).await;
    assert_message_count!(subscription("high"), active = 0, dead_letter = 2).await;
    assert_message_count!(subscription("carts"), active = 1, dead_letter = 1).await;
    assert_message_count!(subscription("all"), active = 1, dead_letter = 0).await;

    let unselected = Topology::new()
        .topic(Topic::new("prices").subscription(Subscription::new("none").rule(Rule::none("no"))))
        .dead_letter("prices/Subscriptions/none", "x", "Old", "");
    let builder = ServiceBus::builder().topology(unselected);
    let started = builder
        .within(Duration::from_millis(20))
        .start()
        .result()
        .await;
    let error = started.unwrap_err().to_string();
    assert_contains(&error, "prices/Subscriptions/none: no message arrived");
}

#[tokio::test]
async fn a_message_in_a_subscription_fails_the_start() {
    let prices = Topic::new("prices").subscription(Subscription::new("eu"));
    for subscription in ["eu", "none"] {
        let path = format!("prices/Subscriptions/{subscription}");
        let topology = Topology::new().topic(prices.clone()).message(path, "x");
        let error = error_of(ServiceBus::builder().topology(topology).start()).await;
        let begins = format!(
            "a message cannot be declared in the subscription \"{subscription}\"; declare it for its topic \"prices\""
        );
        assert!(error.starts_with(&begins), "{error}");
    }
}

#[tokio::test]
async fn a_message_for_an_unknown_entity_fails_the_start() {
    for (topology, why) in [
        (
            orders().message("ordres", "the first"),
            "there is no queue \"ordres\"; did you mean \"orders\"?",
        ),
        (
            orders().dead_letter("prices/Subscriptions/eu", "x", "Old", ""),
            "there is no topic \"prices\"",
        ),
    ] {
        let started = ServiceBus::builder().topology(topology).start();
        let text = error_of(started).await;
        let begins = format!("cannot send the messages of the topology: {why}");
        assert!(text.starts_with(&begins), "{text}");
    }
}
