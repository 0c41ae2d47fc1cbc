//! Buses that share an emulator do not meet in it, and the last one takes it along.
//!
//! Each test shares with nobody but itself: a seed of its own makes its emulator another one than those of the tests that
//! run beside it.

use std::{collections::HashSet, time::Duration};

use rstest::rstest;
use servicebus_harness::{Builder, EventKind, StartError, prelude::*};
use tokio::task::JoinSet;

use crate::{built, orders, waiting::until_gone};

fn sharing(seed: u64) -> Builder {
    ServiceBus::builder().topology(orders()).seed(seed).shared()
}

async fn start(builder: Builder) -> ServiceBus {
    let started = builder.start().await;
    started.unwrap_or_else(|error| panic!("{error}"))
}

#[rstest]
#[case(Mode::InProcess, 1)]
#[case(Mode::Process, 2)]
#[tokio::test]
async fn two_share_an_emulator_and_nothing_else(#[case] mode: Mode, #[case] seed: u64) {
    let builder = || sharing(seed).mode(mode).binary(built::emulator());
    let (one, two) = (start(builder()).await, start(builder()).await);
    assert_eq!(one.endpoints(), two.endpoints());
    assert_ne!(one.namespace(), two.namespace());
    assert_ne!(one.connection_string(), two.connection_string());

    let (mine, theirs) = (one.queue("orders"), two.queue("orders"));
    mine.send(Message::from("mine").time_to_live(Duration::from_secs(60)))
        .await;
    assert_empty!(theirs).await;
    two.clock().advance(Duration::from_secs(3600)).await;
    two.faults()
        .on(Operation::Discharge)
        .lose_reply()
        .await
        .remove()
        .await;
    two.reset().await;
    let received = mine.receive().await;
    assert_eq!(received.body_text(), "mine");
    received.complete().await;
    let timeline = one.timeline(&mine).await;
    assert_eq!(timeline.count(&EventKind::ClockAdvanced), 0);
    assert_eq!(two.timeline(&theirs).await.count(&EventKind::Sent), 0);
}

#[tokio::test]
async fn an_sdk_finds_the_namespace_of_its_connection_string() {
    let (one, two) = (start(sharing(3)).await, start(sharing(3)).await);
    let mut client = two.client().await;
    let mut sender = client
        .create_sender("orders", Default::default())
        .await
        .unwrap();
    Box::pin(sender.send_message("from the SDK")).await.unwrap();
    assert_message_count!(two.queue("orders"), active = 1).await;
    assert_empty!(one.queue("orders")).await;
    sender.dispose().await.unwrap();
    client.dispose().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_at_once_share_one_emulator() {
    let mut tests = JoinSet::new();
    for number in 0..50 {
        tests.spawn(async move {
            let servicebus = start(sharing(4)).await;
            let orders = servicebus.queue("orders");
            orders.send(format!("message of test {number}")).await;
            let messages = orders.peek().await;
            assert_eq!(messages.len(), 1);
            assert_eq!(messages[0].body_text(), format!("message of test {number}"));
            servicebus
        });
    }
    let buses = tests.join_all().await;
    let addresses: HashSet<_> = buses.iter().map(|bus| bus.endpoints().amqp).collect();
    assert_eq!(addresses.len(), 1);
    let namespaces: HashSet<_> = buses.iter().map(|bus| bus.namespace().to_owned()).collect();
    assert_eq!(namespaces.len(), 50);
}

#[rstest]
#[case::dropped(false, 5)]
#[case::stopped(true, 6)]
#[tokio::test]
async fn a_namespace_ends_with_its_bus_and_the_emulator_with_the_last(
    #[case] stop: bool,
    #[case] seed: u64,
) {
    let end = |bus: ServiceBus| async move {
        match stop {
            true => bus.stop().await,
            false => drop(bus),
        }
    };
    let (one, two) = (start(sharing(seed)).await, start(sharing(seed)).await);
    let (gone, address) = (one.queue("orders"), one.endpoints().amqp);
    gone.send("hello").await;
    end(one).await;
    let refused = gone.try_send("anybody there?").await;
    assert!(refused.is_err(), "the namespace is still there");
    two.queue("orders").send("still here").await;
    assert_message_count!(two.queue("orders"), active = 1).await;
    end(two).await;
    until_gone(address);
}

#[tokio::test]
async fn other_wishes_are_for_another_emulator() {
    let (one, other) = (start(sharing(7)).await, start(sharing(8)).await);
    assert_ne!(one.endpoints(), other.endpoints());
    let alone = start(ServiceBus::builder().topology(orders()).seed(7)).await;
    assert_ne!(one.endpoints(), alone.endpoints());
}

#[tokio::test]
async fn without_a_topology_there_is_the_usual_queue() {
    let servicebus = start(ServiceBus::builder().seed(9).shared()).await;
    servicebus.queue("queue.1").send("hello").await;
    assert_message_count!(servicebus.queue("queue.1"), active = 1).await;
}

#[tokio::test]
async fn a_file_with_several_namespaces_cannot_be_one_of_them() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/harness/fixtures/two_namespaces.json"
    );
    let builder = ServiceBus::builder().topology(Topology::file(file));
    let error = builder.seed(10).shared().start().await.unwrap_err();
    assert!(matches!(error, StartError::Namespace(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("UserConfig.Namespaces"), "{text}");
    assert!(text.ends_with("allowed: one namespace"), "{text}");
}
