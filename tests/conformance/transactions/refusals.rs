//! What a transaction refuses, and what becomes of it then.

use std::time::Duration;

use fe2o3_amqp::transaction::TransactionBase;
use fe2o3_amqp::types::primitives::Binary;
use fe2o3_amqp::types::transaction::TransactionError;
use servicebus_harness::prelude::*;
use servicebus_test_support::client::message;

use super::bus_with;
use super::peer::{
    self, Named, commit, commit_in_vain, complete, post, post_in_vain, receive, refusals,
    rolled_back,
};

const UNKNOWN: &str = "amqp:transaction:unknown-id: Transaction hasn't been declared yet, or has already been discharged";

#[tokio::test]
async fn a_lock_lost_before_the_discharge_rolls_back() {
    let (servicebus, mut peer) = bus_with(&["a", "b"]).await;
    let orders = servicebus.queue("orders");
    let mut receiver = peer.receiver("orders").await;
    let mut sender = peer.sender("orders").await;
    let mut transaction = peer.declare().await;
    let lost = receive(&mut receiver).await;
    complete(&transaction, &mut receiver, &lost).await;
    // Its answer shows that the settlement has arrived.
    post(&transaction, &mut sender, message("c")).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let held = receive(&mut receiver).await;
    complete(&transaction, &mut receiver, &held).await;
    let (condition, words) = commit_in_vain(&mut transaction).await;
    assert_eq!(condition, TransactionError::Rollback);
    let why = "the lock of message 1 of 'orders' was lost before the discharge";
    assert!(words.contains(why), "{words}");
    assert_eq!(orders.counts().await.active, 2);
    assert_completed!(orders, count = 0).await;
    let (condition, _) = commit_in_vain(&mut transaction).await;
    assert_eq!(condition, TransactionError::UnknownId);
}

#[tokio::test]
async fn a_settlement_without_a_lock_is_refused_in_a_transaction() {
    let (servicebus, mut peer) = bus_with(&["a"]).await;
    let orders = servicebus.queue("orders");
    let mut receiver = peer.receiver("orders").await;
    let mut sender = peer.sender("orders").await;
    let transaction = peer.declare().await;
    let lost = receive(&mut receiver).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    complete(&transaction, &mut receiver, &lost).await;
    post(&transaction, &mut sender, message("b")).await;
    commit(transaction).await;
    assert_message_count!(orders, active = 2, locked = 0).await;
    let refused = refusals(&servicebus, &orders).await;
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(
        refused[0].starts_with("com.microsoft:message-lock-lost"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn unknown_discharged_and_foreign_ids_are_refused() {
    let (servicebus, mut peer) = bus_with(&["a", "b", "c"]).await;
    let orders = servicebus.queue("orders");
    let mut stranger = peer::connect(&servicebus).await;
    let foreign = stranger.declare().await;
    let over = peer.declare().await;
    let discharged = over.txn_id().clone();
    commit(over).await;
    let mut receiver = peer.receiver("orders").await;
    let mut sender = peer.sender("orders").await;
    let ids = [
        Binary::from(&b"unheard of"[..]),
        discharged,
        foreign.txn_id().clone(),
    ];
    for id in ids.map(Named) {
        let locked = receive(&mut receiver).await;
        complete(&id, &mut receiver, &locked).await;
        post_in_vain(&id, &mut sender, message("d")).await;
    }
    let refused = refusals(&servicebus, &orders).await;
    assert_eq!(refused.len(), 6, "{refused:?}");
    assert!(
        refused.iter().all(|refusal| refusal.starts_with(UNKNOWN)),
        "{refused:?}"
    );
    assert_message_count!(orders, active = 3, locked = 3).await;
}

#[tokio::test]
async fn a_transaction_takes_at_most_100_messages() {
    let (servicebus, mut peer) = bus_with(&[]).await;
    let orders = servicebus.queue("orders");
    let mut sender = peer.sender("orders").await;
    let transaction = peer.declare().await;
    for number in 1..=100 {
        post(&transaction, &mut sender, message(&number.to_string())).await;
    }
    post_in_vain(&transaction, &mut sender, message("101")).await;
    let refused = refusals(&servicebus, &orders).await;
    let why =
        "amqp:resource-limit-exceeded: Can't send more than 100 messages in a single transaction";
    assert!(refused[0].starts_with(why), "{refused:?}");
    commit(transaction).await;
    assert_message_count!(orders, active = 100).await;
}

#[tokio::test]
async fn a_transaction_ends_two_minutes_after_its_first_operation() {
    let (servicebus, mut peer) = bus_with(&[]).await;
    let orders = servicebus.queue("orders");
    let mut sender = peer.sender("orders").await;
    let (first, mut late) = (peer.declare().await, peer.declare().await);
    servicebus.clock().advance(Duration::from_secs(3600)).await;
    post(&late, &mut sender, message("late")).await;
    servicebus.clock().advance(Duration::from_secs(60)).await;
    post(&first, &mut sender, message("in time")).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let (condition, words) = commit_in_vain(&mut late).await;
    assert_eq!(condition, TransactionError::Timeout, "{words}");
    commit(first).await;
    assert_eq!(orders.receive().await.body_text(), "in time");
    assert_message_count!(orders, active = 1).await;
}

#[tokio::test]
async fn a_closed_coordinator_rolls_back_open_transactions() {
    let (servicebus, mut peer) = bus_with(&[]).await;
    let orders = servicebus.queue("orders");
    let mut sender = peer.sender("orders").await;
    let forgotten = peer.declare().await;
    post(&forgotten, &mut sender, message("a")).await;
    drop(forgotten);
    rolled_back(&orders).await;
    assert_empty!(orders).await;
}
