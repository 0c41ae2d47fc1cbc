//! Buses of a run share a container, and do not meet in it.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use servicebus_harness::prelude::*;
use tokio::task::JoinSet;

use crate::docker::containers_of;
use crate::{namespace_with_orders, orders};
use servicebus_test_support::built;

/// What nextest tells the processes of a run.
const RUN: &str = "NEXTEST_RUN_ID";

#[tokio::test]
async fn a_poison_message_is_dead_lettered_in_a_container() {
    let (servicebus, _) = namespace_with_orders().await;
    assert_eq!(servicebus.mode(), Mode::Container);
    let orders = servicebus.queue("orders");
    let message = Message::from("not json").message_id("o-17");
    orders.send(message).await;
    for delivery in 1..=3 {
        let received = orders.receive().await;
        assert_eq!(received.delivery_count(), delivery);
        received.abandon().await;
    }
    assert_dead_lettered!(
        orders,
        reason = "MaxDeliveryCountExceeded",
        message_id = "o-17",
        count = 1
    )
    .await;
    assert_empty!(orders).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_namespaces_share_one_container_and_are_isolated() {
    let mut tests = JoinSet::new();
    for number in 0..20 {
        tests.spawn(async move {
            let (servicebus, _) = namespace_with_orders().await;
            let orders = servicebus.queue("orders");
            orders.send(format!("message of test {number}")).await;
            let messages = orders.peek().await;
            assert_eq!(messages.len(), 1);
            assert_eq!(messages[0].body_text(), format!("message of test {number}"));
            servicebus
        });
    }
    let buses = tests.join_all().await;
    let addresses: BTreeSet<_> = buses.iter().map(|bus| bus.endpoints().amqp).collect();
    assert_eq!(addresses.len(), 20);
    let namespaces: BTreeSet<_> = buses.iter().map(ServiceBus::namespace).collect();
    assert_eq!(namespaces.len(), 20);
    let run = std::env::var(RUN).unwrap_or_else(|_| format!("{}-", std::process::id()));
    assert_eq!(containers_of(&run).len(), 1);
}

#[tokio::test]
async fn each_namespace_has_its_own_clock() {
    let [first, second] = [
        namespace_with_orders().await.0,
        namespace_with_orders().await.0,
    ];
    let message = || Message::from("soon over").time_to_live(Duration::from_secs(60));
    for servicebus in [&first, &second] {
        servicebus.queue("orders").send(message()).await;
    }
    first.clock().advance(Duration::from_secs(61)).await;
    assert_dead_lettered!(first.queue("orders"), reason = "TTLExpiredException").await;
    assert_not_dead_lettered!(second.queue("orders")).await;
    assert_message_count!(second.queue("orders"), active = 1).await;
}

#[tokio::test]
async fn a_namespace_ends_with_its_service_bus_and_others_remain() {
    let [first, second] = [
        namespace_with_orders().await.0,
        namespace_with_orders().await.0,
    ];
    first.queue("orders").send("hello").await;
    // If the namespace could not be removed, it would wait 10 s for the end of a container that remains.
    let stopped = tokio::time::timeout(Duration::from_secs(9), first.stop()).await;
    stopped.expect("the namespace is removed");
    second.queue("orders").send("hello").await;
    assert_message_count!(second.queue("orders"), active = 1).await;
}

#[tokio::test]
async fn the_configured_ports_are_used() {
    let (servicebus, _) = namespace_with_orders().await;
    let endpoints = servicebus.endpoints();
    let listeners = [endpoints.amqp, endpoints.amqps, endpoints.http];
    assert_eq!(
        listeners.map(|listener| listener.port()),
        [5672, 5671, 5300]
    );
    let host = format!("Endpoint=sb://{};", endpoints.amqp.ip());
    let connection_string = servicebus.connection_string();
    assert!(connection_string.starts_with(&host), "{connection_string}");

    let builder = ServiceBus::builder().mode(Mode::Container);
    let servicebus = builder.ports(8080, 8443).start().await;
    let endpoints = servicebus.endpoints();
    assert_eq!(endpoints.http.port(), 8080);
    assert_eq!(endpoints.https.map(|listener| listener.port()), Some(8443));
    servicebus.wait_idle().await;
}

#[tokio::test]
async fn a_seed_needs_its_own_container() {
    let builder = ServiceBus::builder()
        .mode(Mode::Container)
        .topology(orders());
    let seeded = builder.seed(7).start().await;
    seeded.queue("orders").send("hello").await;
    assert_message_count!(seeded.queue("orders"), active = 1).await;
}

#[test]
fn the_processes_of_a_run_share_one_container() {
    if built::is_child() {
        return built::run_child(print_address_and_wait());
    }
    let run = format!("of-test-{}", std::process::id());
    let mut processes = [start(&run), start(&run), start(&run)];
    let addresses: BTreeSet<_> = processes.iter_mut().map(address).collect();
    assert_eq!(addresses.len(), 3);
    assert_eq!(containers_of(&run).len(), 1);
    for process in &mut processes {
        // The end of its input is its word to end.
        drop(process.stdin.take());
        assert!(process.wait().unwrap().success());
    }
}

fn start(run: &str) -> Child {
    let mut process = built::rerun();
    process
        .env(RUN, run)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    process.spawn().unwrap()
}

/// Where the bus of a process is, once it has one.
fn address(process: &mut Child) -> String {
    let lines = BufReader::new(process.stdout.as_mut().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let address = lines.find_map(|line| Some(line.strip_prefix("a bus at ")?.to_owned()));
    address.expect("the process says where its bus is")
}

#[expect(clippy::print_stdout, reason = "the test above reads it")]
async fn print_address_and_wait() {
    let (servicebus, _) = namespace_with_orders().await;
    servicebus.queue("orders").send("hello").await;
    assert_message_count!(servicebus.queue("orders"), active = 1).await;
    println!("\na bus at {}", servicebus.endpoints().amqp);
    let waiting = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    waiting.await.unwrap().unwrap();
}
