//! Messages of sessions in transactions.

use std::time::Duration;

use fe2o3_amqp::types::messaging::{Data, Message, Properties};
use fe2o3_amqp::types::transaction::TransactionError;
use servicebus_harness::prelude::*;

use super::peer::{Peer, body, commit, commit_in_vain, complete, letter, post, receive};
use crate::conformance::client::start;

/// A bus with a queue "carts" that requires sessions, and a client.
async fn bus_with_carts() -> (ServiceBus, Peer) {
    let carts = Queue::new("carts").requires_session(true);
    let servicebus = start(Topology::new().queue(carts)).await;
    let peer = Peer::connect(&servicebus).await;
    (servicebus, peer)
}

fn of_session(session: &str, body: &str) -> Message<Data> {
    Message {
        properties: Some(Properties::builder().group_id(session.to_owned()).build()),
        ..letter(body)
    }
}

#[tokio::test]
async fn a_session_is_worked_through_in_transactions_and_in_order() {
    let (servicebus, mut peer) = bus_with_carts().await;
    let carts = servicebus.queue("carts");
    for body in ["1", "2"] {
        carts
            .send(servicebus_harness::Message::new(body).session_id("c-1"))
            .await;
    }
    let mut receiver = peer.session_receiver("carts", "c-1").await;
    let mut sender = peer.sender("carts").await;
    for answers in ["1", "2"] {
        let transaction = peer.declare().await;
        let message = receive(&mut receiver).await;
        assert_eq!(body(&message), answers);
        complete(&transaction, &mut receiver, &message).await;
        post(&transaction, &mut sender, of_session("c-1", "after")).await;
        commit(transaction).await;
    }
    assert_completed!(carts, count = 2).await;
    assert_message_count!(carts, active = 2, locked = 0).await;
    let after = receive(&mut receiver).await;
    assert_eq!(body(&after), "after");
}

#[tokio::test]
async fn a_session_lost_before_the_discharge_fails_it() {
    let (servicebus, mut peer) = bus_with_carts().await;
    let carts = servicebus.queue("carts");
    carts
        .send(servicebus_harness::Message::new("1").session_id("c-1"))
        .await;
    let mut receiver = peer.session_receiver("carts", "c-1").await;
    let mut sender = peer.sender("carts").await;
    let mut transaction = peer.declare().await;
    let message = receive(&mut receiver).await;
    complete(&transaction, &mut receiver, &message).await;
    post(&transaction, &mut sender, of_session("c-2", "new")).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let (condition, words) = commit_in_vain(&mut transaction).await;
    assert_eq!(condition, TransactionError::Rollback, "{words}");
    assert_message_count!(carts, active = 1, locked = 0).await;
}
