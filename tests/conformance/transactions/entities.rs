//! One top-level entity in a transaction, or several by way of the first.
//!
//! Messages of sessions in transactions.

use std::time::Duration;

use fe2o3_amqp::types::definitions::Fields;
use fe2o3_amqp::types::messaging::{Data, Message, Properties};
use fe2o3_amqp::types::primitives::{Symbol, Value};
use fe2o3_amqp::types::transaction::TransactionError;
use servicebus_harness::prelude::*;
use servicebus_test_support::client::{Client, message};

use super::bus_with;
use super::peer::{
    self, body, commit, commit_in_vain, complete, post, post_in_vain, receive, refusals,
};
use crate::conformance::client::start;

#[tokio::test]
async fn a_second_top_level_entity_is_refused_on_other_sessions() {
    let (servicebus, mut peer) = bus_with(&[]).await;
    let (orders, limited) = (servicebus.queue("orders"), servicebus.queue("limited"));
    let mut first = peer.sender("orders").await;
    let mut second = peer.sender("limited").await;
    peer.begin().await.unwrap();
    let transaction = peer.declare().await;
    post(&transaction, &mut first, message("a")).await;
    post_in_vain(&transaction, &mut second, message("b")).await;
    let refused = refusals(&servicebus, &limited).await;
    let why = "amqp:not-allowed: Local transactions cannot span multiple top-level entities such as queue or topic.";
    assert!(refused[0].starts_with(why), "{refused:?}");
    post(&transaction, &mut first, message("c")).await;
    commit(transaction).await;
    assert_message_count!(orders, active = 2).await;
    assert_empty!(limited).await;
}

#[tokio::test]
async fn a_send_via_link_is_transactional_on_any_session() {
    let (servicebus, mut peer) = bus_with(&["a"]).await;
    let (orders, limited) = (servicebus.queue("orders"), servicebus.queue("limited"));
    let mut receiver = peer.receiver("orders").await;
    let mut properties = Fields::new();
    let name = Symbol::from("com.microsoft:transfer-destination-address");
    properties.insert(name, Value::from("limited"));
    let mut sender = peer.sender_with("orders", properties).await;
    peer.begin().await.unwrap();
    let transaction = peer.declare().await;
    let order = receive(&mut receiver).await;
    complete(&transaction, &mut receiver, &order).await;
    post(&transaction, &mut sender, message("b")).await;
    assert_empty!(limited).await;
    commit(transaction).await;
    assert_empty!(orders).await;
    assert_eq!(limited.receive().await.body_text(), "b");
}

#[tokio::test]
async fn a_topic_and_its_subscriptions_are_one_entity() {
    let topic = Topic::new("news")
        .subscription(Subscription::new("one"))
        .subscription(Subscription::new("two"));
    let servicebus = start(Topology::new().topic(topic)).await;
    let news = servicebus.topic("news");
    news.send("a").await;
    let mut peer = peer::connect(&servicebus).await;
    let mut sender = peer.sender("news").await;
    let mut receiver = peer.receiver("news/Subscriptions/one").await;
    peer.begin().await.unwrap();
    let transaction = peer.declare().await;
    let old = receive(&mut receiver).await;
    complete(&transaction, &mut receiver, &old).await;
    post(&transaction, &mut sender, message("b")).await;
    let (one, two) = (news.subscription("one"), news.subscription("two"));
    assert_message_count!(one, active = 1, locked = 1).await;
    assert_message_count!(two, active = 1).await;
    commit(transaction).await;
    assert_eq!(one.receive().await.body_text(), "b");
    assert_message_count!(one, active = 1).await;
    assert_message_count!(two, active = 2).await;
}

/// A bus with a queue "carts" that requires sessions, and a client.
async fn bus_with_carts() -> (ServiceBus, Client) {
    let carts = Queue::new("carts").requires_session(true);
    let servicebus = start(Topology::new().queue(carts)).await;
    let peer = peer::connect(&servicebus).await;
    (servicebus, peer)
}

fn of_session(session: &str, body: &str) -> Message<Data> {
    Message {
        properties: Some(Properties::builder().group_id(session.to_owned()).build()),
        ..message(body)
    }
}

#[tokio::test]
async fn a_session_is_processed_in_transactions_and_in_order() {
    let (servicebus, mut peer) = bus_with_carts().await;
    let carts = servicebus.queue("carts");
    for body in ["1", "2"] {
        let message = servicebus_harness::Message::new(body).session_id("c-1");
        carts.send(message).await;
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
    let message = servicebus_harness::Message::new("1").session_id("c-1");
    carts.send(message).await;
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
