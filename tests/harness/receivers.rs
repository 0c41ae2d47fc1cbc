//! Workers that a test starts in tasks of their own: waiting for them, and for what they do.

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]

use std::time::Duration;

use azservicebus::{ServiceBusClient, ServiceBusClientOptions, core::BasicRetryPolicy};
use servicebus_harness::{ErrorKind, prelude::*};
use tokio::task::JoinHandle;

use crate::harness::{assert_contains, assert_error, error_of, namespace_with_orders, orders};

/// Completes what comes to `orders`, from a connection of its own.
fn worker(connection_string: &str) -> JoinHandle<()> {
    let connection_string = connection_string.to_owned();
    tokio::spawn(async move {
        let options = ServiceBusClientOptions::default();
        let connecting =
            ServiceBusClient::unsecured().new_from_connection_string(connection_string, options);
        let mut client: ServiceBusClient<BasicRetryPolicy> = connecting.await.unwrap();
        let receiving = client.create_receiver_for_queue("orders", Default::default());
        let mut receiver = receiving.await.unwrap();
        loop {
            let message = receiver.receive_message().await.unwrap();
            receiver.complete_message(&message).await.unwrap();
        }
    })
}

#[tokio::test]
async fn a_waiting_worker_gets_every_message_before_an_advance() {
    for _ in 0..50 {
        let (servicebus, orders) = namespace_with_orders().await;
        let order = Message::from("12").time_to_live(Duration::from_secs(30));
        orders.send(order).await;
        let worker = worker(servicebus.connection_string());
        orders.wait_for_receiver().await;
        servicebus.wait_idle().await;
        servicebus.clock().advance(Duration::from_secs(61)).await;
        assert_completed!(orders, count = 1, within = Duration::ZERO).await;
        worker.abort();
    }
}

#[tokio::test]
async fn wait_for_receiver_accepts_a_jms_subscription_created_on_attach() {
    let (servicebus, _) = namespace_with_orders().await;
    let missing = servicebus.queue("order");
    let waiting = missing.wait_for_receiver_within(Duration::MAX).result();
    assert_eq!(waiting.await.unwrap_err().kind(), ErrorKind::EntityNotFound);
    let archive = servicebus.jms_subscription("invoices", "archive", "shop");
    let mut waiting = archive.wait_for_receiver_within(Duration::MAX).result();
    let looked = tokio::time::timeout(Duration::from_millis(200), &mut waiting).await;
    assert!(looked.is_err(), "{looked:?}");
    let waiting = archive.wait_for_receiver_within(Duration::ZERO).result();
    assert_eq!(waiting.await.unwrap_err().kind(), ErrorKind::EntityNotFound);
}

#[tokio::test]
async fn a_receiver_has_the_identifier_of_its_sdk_client() {
    let (servicebus, orders) = namespace_with_orders().await;
    let worker = worker(servicebus.connection_string());
    assert_attached!(orders, count = 1).await;
    orders.send("12").await;
    assert_completed!(orders).await;
    let timeline = orders.timeline().await;
    let mut completed = timeline.events().iter();
    let completed = completed.find(|event| event.kind.name() == "completed");
    let client = completed.unwrap().client.clone().unwrap();
    // What the SDK makes up where it is told nothing: the entity and a number.
    assert!(client.starts_with("orders"), "{client}");
    assert_attached!(orders, to = client).await;
    worker.abort();
    assert_attached!(orders, count = 0, "{} of 1 worker is left", 0).await;
}

#[tokio::test]
async fn the_tests_own_receives_are_not_counted() {
    let within = Duration::from_millis(20);
    let builder = ServiceBus::builder().topology(orders()).within(within);
    let servicebus = builder.start().await;
    let orders = servicebus.queue("orders");
    let (received, waited) = tokio::join!(
        orders.receive_within(10 * within).result(),
        orders.wait_for_receiver().result(),
    );
    received.unwrap_err();
    let error = waited.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(
        error.to_string(),
        "orders: no client attached a receiver within 0.02 s"
    );
}

#[tokio::test]
async fn one_setting_limits_every_wait() {
    let builder = ServiceBus::builder().topology(orders());
    let servicebus = builder.within(Duration::from_millis(20)).start().await;
    let orders = servicebus.queue("orders");
    let failed = orders.expect_completed().await.unwrap_err().to_string();
    assert_contains(&failed, "found none within 0.02 s");
    let nothing = error_of(orders.receive()).await;
    assert_contains(&nothing, "no message arrived within 0.02 s");
    orders.send("12").await;
    let _locked = orders.receive().await;
    let busy = servicebus.wait_idle().result().await.unwrap_err();
    assert_contains(&busy, "did not become idle within 0.02 s");
}

#[tokio::test]
async fn the_clock_advances_to_an_instant_and_never_back() {
    let (servicebus, _) = namespace_with_orders().await;
    let clock = servicebus.clock();
    clock.freeze().await;
    let then = clock.now().await + Duration::from_secs(3600);
    clock.advance_to(then).await;
    assert_eq!(clock.now().await, then);
    let past = then - Duration::from_secs(5);
    let sentence =
        "the clock cannot be advanced to an instant that is 5 s in the past: it only moves forward";
    assert_error(clock.advance_to(past), ErrorKind::InvalidArgument, sentence).await;
}
