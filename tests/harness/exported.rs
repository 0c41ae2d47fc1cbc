//! What a namespace holds can be taken and declared again, by another namespace or from a file.

use std::{env, fs};

use rstest::rstest;
use servicebus_harness::prelude::*;

use crate::harness::orders;
use servicebus_test_support::built;

/// A namespace whose entities were made in every way.
async fn grown(builder: servicebus_harness::Builder) -> ServiceBus {
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
async fn another_namespace_is_the_same(#[case] mode: Mode) {
    let builder = || ServiceBus::builder().mode(mode).binary(built::emulator());
    let first = grown(builder()).await;
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
async fn an_export_is_kept_in_a_file() {
    let first = grown(ServiceBus::builder()).await;
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
async fn an_export_is_not_mixed_with_the_builder() {
    let servicebus = ServiceBus::start().await;
    let mixed = servicebus.topology().await.queue(Queue::new("more"));
    let error = ServiceBus::builder()
        .topology(mixed)
        .start()
        .result()
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the topology of a running namespace cannot be extended by the builder: change the namespace before it is exported"
    );
}
