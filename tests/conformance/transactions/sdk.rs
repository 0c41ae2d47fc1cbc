//! `azservicebus` with its feature `transaction`.
//!
//! Every client of these tests has it: it attaches to the coordinator first thing on its connection, before it shows a
//! token, and fails to connect where that is refused. It declares nothing, because nothing of it is public.

use servicebus_harness::azservicebus::ServiceBusMessage;
use servicebus_harness::{EventKind, prelude::*};

use crate::conformance::client::{bus, complete, connected, receive_one, receiver, send};

#[tokio::test]
async fn a_client_with_the_feature_sends_and_receives_without_transactions() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["a"]).await;
    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    complete(&mut receiver, &message).await;
    let orders = servicebus.queue("orders");
    assert_completed!(orders, count = 1).await;
    let timeline = servicebus.timeline(&orders).await;
    for kind in [EventKind::SendEnlisted, EventKind::SettlementEnlisted] {
        assert_eq!(timeline.count(&kind), 0, "{timeline}");
    }
}

#[tokio::test]
async fn the_partition_of_a_transfer_is_kept_with_a_message() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut message = ServiceBusMessage::new("a");
    let key = Some("p-1".to_owned());
    message
        .set_transaction_partition_key(key)
        .expect("it is short enough");
    send(&mut client, "orders", [message]).await;
    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(message.transaction_partition_key(), Some("p-1"));
}
