//! Namespaces that share an emulator are isolated, and the last one ends it.
//!
//! They share one where the system has one loopback address: each test runs in processes whose environment names it.

use std::{collections::HashSet, time::Duration};

use servicebus_harness::{EventKind, prelude::*};

use crate::harness::{
    isolation::fifty_namespaces, only_address::in_both_modes, orders, waiting::until_gone,
};
use servicebus_test_support::built;

async fn start() -> ServiceBus {
    let builder = ServiceBus::builder().topology(orders());
    builder.start().await
}

/// Runs the test's part in a process of each mode, whose namespaces share an emulator.
fn sharing(part: impl Future<Output = ()>) {
    match built::is_child() {
        true => built::run_child(part),
        false => drop(in_both_modes()),
    }
}

#[test]
fn two_namespaces_share_only_the_emulator() {
    sharing(async {
        let (one, two) = (start().await, start().await);
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
    });
}

#[test]
fn an_sdk_finds_the_namespace_of_its_connection_string() {
    sharing(async {
        let (one, two) = (start().await, start().await);
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
    });
}

#[test]
fn fifty_concurrent_namespaces_share_one_emulator() {
    sharing(async {
        let all = fifty_namespaces().await;
        let addresses: HashSet<_> = all.iter().map(|it| it.endpoints().amqp).collect();
        assert_eq!(addresses.len(), 1);
        let namespaces: HashSet<_> = all.iter().map(|it| it.namespace().to_owned()).collect();
        assert_eq!(namespaces.len(), 50);
    });
}

#[test]
fn a_namespace_ends_with_its_service_bus_and_the_emulator_with_the_last() {
    sharing(async {
        for stop in [false, true] {
            let end = |servicebus: ServiceBus| async move {
                match stop {
                    true => servicebus.stop().await,
                    false => drop(servicebus),
                }
            };
            let (one, two) = (start().await, start().await);
            let (gone, address) = (one.queue("orders"), one.endpoints().amqp);
            gone.send("hello").await;
            end(one).await;
            let refused = gone.send("hello").result().await;
            assert!(refused.is_err(), "the namespace is still there");
            two.queue("orders").send("still here").await;
            assert_message_count!(two.queue("orders"), active = 1).await;
            end(two).await;
            until_gone(address);
        }
    });
}

#[test]
fn without_a_topology_the_default_queue_exists() {
    sharing(async {
        let _first = start().await;
        let servicebus = ServiceBus::start().await;
        servicebus.queue("queue.1").send("hello").await;
        assert_message_count!(servicebus.queue("queue.1"), active = 1).await;
    });
}

#[test]
fn a_key_has_exactly_its_claims() {
    sharing(async {
        let (one, two) = (ServiceBus::start().await, ServiceBus::start().await);
        for servicebus in [&one, &two] {
            crate::harness::client::each_key_has_its_claims(servicebus).await;
        }
    });
}

#[test]
fn an_export_starts_another_namespace() {
    sharing(async {
        let first = start().await;
        let topology = first.topology().await;
        let builder = ServiceBus::builder().topology(topology.clone());
        let second = builder.start().await;
        let exported = second.topology().await;
        assert_eq!(exported.json().unwrap(), topology.json().unwrap());
    });
}
