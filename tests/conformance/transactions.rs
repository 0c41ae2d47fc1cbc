//! Transactions: what is sent and settled in one happens at its commit, all of it or nothing.
//!
//! Source: service-bus-transactions; semantics §12. Through `fe2o3-amqp`, whose transactions are those of the AMQP
//! standard, because `azservicebus` has none: with its feature `transaction` it attaches to the coordinator and names
//! the partition of a transfer, and that is all ([`sdk`]). What the second client cannot do either: it does not show why
//! a send in a transaction is refused, nor what becomes of a settlement; the timeline does.

mod entities;
mod peer;
mod refusals;
mod scheduling;
mod sdk;

use std::time::Duration;

use fe2o3_amqp::transaction::TransactionRetirement;
use fe2o3_amqp::types::definitions::{Error, ErrorCondition, Fields};
use fe2o3_amqp::types::messaging::Modified;
use fe2o3_amqp::types::primitives::{Symbol, Value};
use servicebus_harness::prelude::*;
use servicebus_test_support::client::{Client, message};

use crate::conformance::client::{bus, done, start};
use peer::{body, commit, complete, post, receive, receiver_in_vain, roll_back, rolled_back};

/// A bus whose queue "orders" holds these messages, and a client.
async fn bus_with(bodies: &[&str]) -> (ServiceBus, Client) {
    let servicebus = bus().await;
    servicebus.queue("orders").send_all(bodies.to_vec()).await;
    let peer = peer::connect(&servicebus).await;
    (servicebus, peer)
}

/// Why a message is dead-lettered, as SDKs say it.
fn dead(description: &str) -> Error {
    let mut info = Fields::new();
    for (name, value) in [
        ("DeadLetterReason", "Rejected"),
        ("DeadLetterErrorDescription", description),
    ] {
        info.insert(Symbol::from(name), Value::from(value));
    }
    let condition = ErrorCondition::Custom(Symbol::from("com.microsoft:dead-letter"));
    Error::new(condition, None, info)
}

#[tokio::test]
async fn sent_messages_appear_at_commit() {
    let (servicebus, mut peer) = bus_with(&[]).await;
    let orders = servicebus.queue("orders");
    let mut sender = peer.sender("orders").await;
    let transaction = peer.declare().await;
    post(&transaction, &mut sender, message("a")).await;
    post(&transaction, &mut sender, message("b")).await;
    assert_empty!(orders).await;
    orders.send("meanwhile").await;
    assert_eq!(orders.receive_and_delete().await.body_text(), "meanwhile");

    commit(transaction).await;
    let seen = orders.peek().await;
    let seen: Vec<_> = seen
        .iter()
        .map(|m| (m.body_text(), m.sequence_number))
        .collect();
    // The numbers are given at the commit.
    assert_eq!(seen, [("a".into(), 2), ("b".into(), 3)]);
}

#[tokio::test]
async fn sent_messages_are_discarded_by_a_rollback() {
    let (servicebus, mut peer) = bus_with(&[]).await;
    let orders = servicebus.queue("orders");
    let mut sender = peer.sender("orders").await;
    let transaction = peer.declare().await;
    post(&transaction, &mut sender, message("a")).await;
    roll_back(transaction).await;
    assert_empty!(orders).await;
    let next = peer.declare().await;
    post(&next, &mut sender, message("b")).await;
    commit(next).await;
    let message = orders.receive().await;
    assert_eq!(
        (message.body_text(), message.sequence_number),
        ("b".into(), 1)
    );
}

#[tokio::test]
async fn every_settlement_can_be_transactional() {
    let (servicebus, mut peer) = bus_with(&["done", "again", "later", "bad"]).await;
    let orders = servicebus.queue("orders");
    let mut receiver = peer.receiver("orders").await;
    let transaction = peer.declare().await;
    let mut messages = Vec::new();
    for _ in 0..4 {
        messages.push(receive(&mut receiver).await);
    }
    complete(&transaction, &mut receiver, &messages[0]).await;
    let modified = |failed, elsewhere| Modified {
        delivery_failed: Some(failed),
        undeliverable_here: Some(elsewhere),
        message_annotations: None,
    };
    for (number, how) in [(1, modified(true, false)), (2, modified(true, true))] {
        let settling = transaction.modify(&mut receiver, &messages[number], how);
        done("the settlement", settling).await;
    }
    let settling = transaction.reject(&mut receiver, &messages[3], Some(dead("no total")));
    done("the settlement", settling).await;
    // A send is answered, and everything before it has arrived by then.
    let mut sender = peer.sender("orders").await;
    post(&transaction, &mut sender, message("new")).await;
    assert_message_count!(
        orders,
        active = 4,
        locked = 4,
        deferred = 0,
        dead_letter = 0
    )
    .await;

    commit(transaction).await;
    assert_message_count!(
        orders,
        active = 3,
        locked = 0,
        deferred = 1,
        dead_letter = 1
    )
    .await;
    assert_dead_lettered!(orders, reason = "Rejected", description = "no total").await;
    let again = orders.receive().await;
    assert_eq!(
        (again.body_text(), again.delivery_count()),
        ("again".into(), 2)
    );
    assert_eq!(orders.receive().await.body_text(), "new");
    let later = orders.receive_deferred(3).await;
    assert_eq!(
        (later.body_text(), later.delivery_count()),
        ("later".into(), 2)
    );
}

#[tokio::test]
async fn a_rollback_leaves_a_message_locked_to_the_end_of_its_lock() {
    let (servicebus, mut peer) = bus_with(&["a"]).await;
    let orders = servicebus.queue("orders");
    let mut receiver = peer.receiver("orders").await;
    let transaction = peer.declare().await;
    let locked = receive(&mut receiver).await;
    complete(&transaction, &mut receiver, &locked).await;
    roll_back(transaction).await;
    assert_message_count!(orders, active = 1, locked = 1).await;

    servicebus.clock().advance(Duration::from_secs(61)).await;
    let again = orders.receive().await;
    assert_eq!((again.body_text(), again.delivery_count()), ("a".into(), 2));
    again.complete().await;
    assert_empty!(orders).await;
}

/// As .NET and Java do it, whose live tests complete on the same link after a rollback.
#[tokio::test]
async fn after_a_rollback_a_message_is_settled_in_another_transaction() {
    let (servicebus, mut peer) = bus_with(&["a"]).await;
    let orders = servicebus.queue("orders");
    let mut receiver = peer.receiver("orders").await;
    let transaction = peer.declare().await;
    let locked = receive(&mut receiver).await;
    complete(&transaction, &mut receiver, &locked).await;
    roll_back(transaction).await;
    let next = peer.declare().await;
    complete(&next, &mut receiver, &locked).await;
    commit(next).await;
    assert_message_count!(orders, active = 0, locked = 0).await;
}

#[tokio::test]
async fn a_settlement_in_another_partition_gives_the_message_back() {
    let partitioned = Queue::new("partitioned").enable_partitioning(true);
    let servicebus = start(Topology::new().queue(partitioned)).await;
    let queue = servicebus.queue("partitioned");
    for key in ["one", "two"] {
        queue.send(Message::new(key).partition_key(key)).await;
    }
    let mut peer = peer::connect(&servicebus).await;
    let mut receiver = peer.receiver("partitioned").await;
    let messages = [receive(&mut receiver).await, receive(&mut receiver).await];
    let transaction = peer.declare().await;
    for message in &messages {
        complete(&transaction, &mut receiver, message).await;
    }
    commit(transaction).await;
    assert_message_count!(queue, active = 1, locked = 0).await;
    let back = queue.receive().await;
    assert_eq!(back.delivery_count(), 2);
    assert_eq!(back.body_text(), body(&messages[1]));
}

#[tokio::test]
async fn a_send_via_destination_cannot_be_received_from() {
    let (servicebus, mut peer) = bus_with(&[]).await;
    let transaction = peer.declare().await;
    let mut first = peer.sender("limited").await;
    post(&transaction, &mut first, message("a")).await;
    let mut second = peer.sender("orders").await;
    post(&transaction, &mut second, message("b")).await;
    commit(transaction).await;
    // This client closes its coordinator with the transaction; .NET keeps one.
    let _next = peer.declare().await;
    let refusal = receiver_in_vain(&mut peer, "orders").await;
    assert!(refusal.contains("NotAllowed"), "{refusal}");
    for (queue, body) in [("limited", "a"), ("orders", "b")] {
        let message = servicebus.queue(queue).receive().await;
        assert_eq!(message.body_text(), body);
    }
}

#[tokio::test]
async fn a_message_is_replaced_by_another_or_stays() {
    for is_to_succeed in [false, true] {
        let (servicebus, mut peer) = bus_with(&["a"]).await;
        let (orders, limited) = (servicebus.queue("orders"), servicebus.queue("limited"));
        let mut receiver = peer.receiver("orders").await;
        let mut sender = peer.sender("limited").await;
        let transaction = peer.declare().await;
        let order = receive(&mut receiver).await;
        let answer = format!("{}, done", body(&order));
        complete(&transaction, &mut receiver, &order).await;
        post(&transaction, &mut sender, message(&answer)).await;
        assert_message_count!(orders, active = 1, locked = 1).await;
        assert_empty!(limited).await;
        if is_to_succeed {
            commit(transaction).await;
            assert_empty!(orders).await;
            assert_eq!(limited.receive().await.body_text(), "a, done");
        } else {
            roll_back(transaction).await;
            assert_message_count!(orders, active = 1, locked = 1).await;
            assert_empty!(limited).await;
        }
    }
}

#[tokio::test]
async fn a_lost_connection_rolls_back_its_transaction() {
    let (servicebus, mut peer) = bus_with(&["a"]).await;
    let orders = servicebus.queue("orders");
    let mut receiver = peer.receiver("orders").await;
    let mut sender = peer.sender("orders").await;
    let mut transaction = peer.declare().await;
    // The connection goes without a word about the transaction.
    transaction.set_rollback_on_drop_trials(0);
    let locked = receive(&mut receiver).await;
    complete(&transaction, &mut receiver, &locked).await;
    post(&transaction, &mut sender, message("b")).await;
    drop((peer, receiver, sender, transaction));
    rolled_back(&orders).await;

    assert_message_count!(orders, active = 1, locked = 1).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let again = orders.receive().await;
    assert_eq!((again.body_text(), again.delivery_count()), ("a".into(), 2));
    again.complete().await;
    assert_empty!(orders).await;
}
