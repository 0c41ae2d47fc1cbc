//! One top-level entity in a transaction, or several by way of the first.

use fe2o3_amqp::types::definitions::Fields;
use fe2o3_amqp::types::primitives::{Symbol, Value};
use servicebus_harness::prelude::*;

use super::bus_with;
use super::peer::{Peer, commit, complete, letter, post, post_in_vain, receive, refusals};
use crate::conformance::client::start;

#[tokio::test]
async fn a_second_top_level_entity_is_refused_on_other_sessions_than_the_coordinators() {
    let (servicebus, mut peer) = bus_with(&[]).await;
    let (orders, limited) = (servicebus.queue("orders"), servicebus.queue("limited"));
    let mut first = peer.sender("orders").await;
    let mut second = peer.sender("limited").await;
    peer.begin().await;
    let transaction = peer.declare().await;
    post(&transaction, &mut first, letter("a")).await;
    post_in_vain(&transaction, &mut second, letter("b")).await;
    let refused = refusals(&servicebus, &limited).await;
    let why = "amqp:not-allowed: Local transactions cannot span multiple top-level entities such as queue or topic.";
    assert!(refused[0].starts_with(why), "{refused:?}");
    post(&transaction, &mut first, letter("c")).await;
    commit(transaction).await;
    assert_message_count!(orders, active = 2).await;
    assert_empty!(limited).await;
}

#[tokio::test]
async fn a_link_by_way_of_another_entity_takes_part_wherever_it_is() {
    let (servicebus, mut peer) = bus_with(&["a"]).await;
    let (orders, limited) = (servicebus.queue("orders"), servicebus.queue("limited"));
    let mut receiver = peer.receiver("orders").await;
    let mut properties = Fields::new();
    let name = Symbol::from("com.microsoft:transfer-destination-address");
    properties.insert(name, Value::from("limited"));
    let mut sender = peer.sender_with("orders", properties).await;
    peer.begin().await;
    let transaction = peer.declare().await;
    let order = receive(&mut receiver).await;
    complete(&transaction, &mut receiver, &order).await;
    post(&transaction, &mut sender, letter("b")).await;
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
    let mut peer = Peer::connect(&servicebus).await;
    let mut sender = peer.sender("news").await;
    let mut receiver = peer.receiver("news/Subscriptions/one").await;
    peer.begin().await;
    let transaction = peer.declare().await;
    let old = receive(&mut receiver).await;
    complete(&transaction, &mut receiver, &old).await;
    post(&transaction, &mut sender, letter("b")).await;
    let (one, two) = (news.subscription("one"), news.subscription("two"));
    assert_message_count!(one, active = 1, locked = 1).await;
    assert_message_count!(two, active = 1).await;
    commit(transaction).await;
    assert_eq!(one.receive().await.body_text(), "b");
    assert_message_count!(one, active = 1).await;
    assert_message_count!(two, active = 2).await;
}
