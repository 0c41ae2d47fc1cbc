//! What real clients see of faults: the harness's own clients, an AMQP client, the Rust SDK.

#![expect(
    clippy::large_futures,
    reason = "the futures of the SDK are, which does not matter here"
)]

use std::time::{Duration, Instant};

use azservicebus::{
    ServiceBusClient, ServiceBusClientOptions, ServiceBusReceiverOptions, ServiceBusRetryOptions,
    ServiceBusSenderOptions,
};
use servicebus_harness::prelude::*;

use super::{bus, hit, raw::Client};
use crate::harness::{error_of, within};

#[tokio::test]
async fn a_rejected_send_has_the_reason() {
    let servicebus = bus().await;
    let sends = servicebus.faults().on(Operation::Send).entity("orders");
    sends.nth(2).reject("amqp:resource-limit-exceeded").await;
    let orders = servicebus.queue("orders");
    orders.send("1").await;
    let error = error_of(orders.send("2")).await;
    assert!(error.contains("amqp:resource-limit-exceeded"), "{error}");
    assert_message_count!(orders, active = 1).await;
}

#[tokio::test]
async fn the_sdk_gets_a_message_again_after_a_lost_lock() {
    let servicebus = bus().await;
    let orders = servicebus.queue("orders");
    orders.send("hello").await;
    let completions = servicebus.faults().on(Operation::Complete);
    completions.entity("orders").lose_lock().await;
    let mut client = servicebus.client().await;
    let options = ServiceBusReceiverOptions::default();
    let receiver = client.create_receiver_for_queue("orders", options).await;
    let mut receiver = receiver.unwrap();
    let message = within(receiver.receive_message()).await.unwrap();
    // It tries again what was refused, and takes that for done.
    let _ = within(receiver.complete_message(&message)).await;
    let again = within(receiver.receive_message()).await.unwrap();
    assert_eq!(again.delivery_count(), Some(2));
    within(receiver.complete_message(&again)).await.unwrap();
    assert_completed!(orders, count = 1).await;
    client.dispose().await.unwrap();
}

#[tokio::test]
async fn send_outcomes_are_reordered() {
    let servicebus = bus().await;
    let sends = servicebus.faults().on(Operation::Send).entity("orders");
    sends.apply(Effect::reorder_outcome_behind(2)).await;
    let mut client = Client::connect(&servicebus, "worker").await;
    let mut sender = client.sender("orders").await;
    let mut first = Box::pin(sender.post("1").await);
    let second = sender.post("2").await;
    tokio::select! {
        biased;
        outcome = &mut first => panic!("the first came first: {outcome:?}"),
        outcome = within(second) => drop(outcome.expect("it is stored")),
    }
    let third = sender.post("3").await;
    within(third).await.expect("it is stored");
    within(first).await.expect("it is stored");
    assert_message_count!(servicebus.queue("orders"), active = 3).await;
}

#[tokio::test]
async fn delayed_outcomes_keep_sends_unsettled() {
    let servicebus = bus().await;
    let orders = servicebus.queue("orders");
    let sends = servicebus.faults().on(Operation::Send).entity("orders");
    sends.apply(Effect::reorder_outcome_behind(2)).await;
    let mut client = Client::connect(&servicebus, "worker").await;
    let mut sender = client.sender("orders").await;
    let first = sender.post("1").await;
    // Each of these waits beside the first, and not for each other.
    sender.send_text("2").await.unwrap();
    sender.send_text("3").await.unwrap();
    within(first).await.expect("it is stored");

    assert_unsettled_sends!(orders, count = 2).await;
    assert_unsettled_sends!(orders, at_most = 2).await;
    assert_unsettled_sends!(orders, at_least = 2, at_most = 10).await;
    let failed = orders.expect_unsettled_sends().at_most(1).await;
    let text = failed.unwrap_err().to_string();
    let expected = "orders: expected at most 1 send unsettled at once, found 2\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(
        text.ends_with("\nhint: the senders were worker; all of them count together"),
        "{text}"
    );
}

#[tokio::test]
async fn unsettled_sends_of_all_clients_are_counted_together() {
    let servicebus = bus().await;
    let orders = servicebus.queue("orders");
    let sends = servicebus.faults().on(Operation::Send).entity("orders");
    let wait = Duration::from_secs(30);
    sends.times(3).delay(wait).await;
    let mut client = Client::connect(&servicebus, "worker").await;
    let mut sender = client.sender("orders").await;
    let posted = [sender.post("1").await, sender.post("2").await];
    let own = orders.send("3");
    let release = async {
        let three = orders.expect_unsettled_sends().at_least(3);
        three.within(wait).await.expect("three wait for the clock");
        servicebus.clock().advance(wait).await;
    };
    tokio::join!(within(own), within(release));
    for sent in posted {
        within(sent).await.expect("it is stored");
    }

    assert_unsettled_sends!(orders, count = 3).await;
    let failed = orders.expect_unsettled_sends().at_most(2).await;
    let text = failed.unwrap_err().to_string();
    let expected = "orders: expected at most 2 sends unsettled at once, found 3\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(
        text.ends_with("\nhint: the senders were the test, worker; all of them count together"),
        "{text}"
    );
}

#[tokio::test]
async fn a_lock_is_lost_before_its_message_is_completed() {
    let servicebus = bus().await;
    let orders = servicebus.queue("orders");
    orders.send("1").await;
    let completions = servicebus.faults().on(Operation::Complete);
    completions.lose_lock().await;
    let received = orders.receive().await;
    let error = received.complete().result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MessageLockLost, "{error:?}");
    assert_eq!(orders.receive().await.delivery_count(), 2);
}

#[tokio::test]
async fn a_message_is_delivered_twice() {
    let servicebus = bus().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("1").message_id("o-1")).await;
    let deliveries = servicebus.faults().on(Operation::Deliver);
    deliveries.message_id("o-1").redeliver().await;
    orders.receive().await.complete().await;
    orders.receive().await.complete().await;
    assert_empty!(orders).await;
    assert_completed!(orders, count = 1).await;
}

#[tokio::test]
async fn a_delayed_send_waits_for_the_clock() {
    let servicebus = bus().await;
    let orders = servicebus.queue("orders");
    let sends = servicebus.faults().on(Operation::Send);
    let delayed = sends.delay(Duration::from_secs(30)).await;
    let fired = async {
        hit(&delayed).await;
        assert_message_count!(orders, active = 0).await;
        servicebus.clock().advance(Duration::from_secs(30)).await;
    };
    tokio::join!(within(orders.send("1")), within(fired));
    assert_message_count!(orders, active = 1).await;
}

#[tokio::test]
async fn store_and_network_latency_are_applied() {
    let servicebus = bus().await;
    let faults = servicebus.faults();
    let [trip, storing] = [200, 300].map(Duration::from_millis);
    faults.latency(trip).await;
    faults.store_latency(storing).await;
    let mut client = Client::connect(&servicebus, "worker").await;
    let mut sender = client.sender("orders").await;
    let begun = Instant::now();
    sender.send_text("1").await.unwrap();
    assert!(begun.elapsed() >= trip + storing, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_service_update_loses_all_locks() {
    let servicebus = bus().await;
    let orders = servicebus.queue("orders");
    orders.send("1").await;
    let held = orders.receive().await;
    servicebus.faults().service_update().await;
    held.complete()
        .result()
        .await
        .expect_err("its lock is lost");
    assert_eq!(orders.receive().await.delivery_count(), 2);
}

#[tokio::test]
async fn a_fault_refuses_the_connection_of_a_named_client() {
    let servicebus = bus().await;
    let connects = servicebus.faults().on(Operation::Connect);
    let fault = connects
        .client("worker")
        .close("amqp:connection:forced")
        .await;
    Client::connect(&servicebus, "clerk").await;
    assert_eq!(fault.hits().await, 0);
    let refused = Client::try_connect(&servicebus, "worker").await;
    let refused = refused.expect_err("it is closed when it has opened");
    assert!(refused.contains("ConnectionForced"), "{refused}");
    assert_eq!(fault.hits().await, 1);
    Client::connect(&servicebus, "worker").await;
}

#[tokio::test]
async fn sdk_clients_are_identified_by_their_names() {
    let servicebus = bus().await;
    let orders = servicebus.queue("orders");
    let faults = servicebus.faults();
    let sends = faults.on(Operation::Send).client("sender-1").every(1);
    let sends = sends.reject("amqp:resource-limit-exceeded").await;
    let deliveries = faults.on(Operation::Deliver).client("worker-1").every(1);
    let deliveries = deliveries.lose_lock().await;
    let options = ServiceBusClientOptions {
        // Tried again, what was rejected is taken for sent (harness/CONNECTING.md).
        retry_options: ServiceBusRetryOptions {
            max_retries: 0,
            ..Default::default()
        },
        ..Default::default()
    };
    let string = servicebus.connection_string();
    let client = ServiceBusClient::unsecured().new_from_connection_string(string, options);
    let mut client = client.await.unwrap();
    let sender = |identifier: &str| ServiceBusSenderOptions {
        identifier: Some(identifier.to_owned()),
    };
    let mut first = client
        .create_sender("orders", sender("sender-1"))
        .await
        .unwrap();
    let mut second = client
        .create_sender("orders", sender("sender-2"))
        .await
        .unwrap();
    within(first.send_message("of the first"))
        .await
        .unwrap_err();
    within(second.send_message("of the second")).await.unwrap();
    assert_eq!(sends.hits().await, 1);
    assert_message_count!(orders, active = 1).await;

    for (identifier, hits) in [("worker-2", 0), ("worker-1", 1)] {
        let options = ServiceBusReceiverOptions {
            identifier: Some(identifier.to_owned()),
            ..Default::default()
        };
        let receiver = client.create_receiver_for_queue("orders", options).await;
        let mut receiver = receiver.unwrap();
        let message = within(receiver.receive_message()).await.unwrap();
        assert_eq!(deliveries.hits().await, hits);
        if hits == 0 {
            within(receiver.abandon_message(&message, None))
                .await
                .unwrap();
        }
        assert_delivered!(orders, to = identifier, times = 1).await;
        within(receiver.dispose()).await.unwrap();
    }
    client.dispose().await.unwrap();
}
