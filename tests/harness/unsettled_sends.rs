//! How many sends were under way at once.

use std::time::Duration;

use servicebus_harness::prelude::*;

use crate::harness::{
    failure_texts::{SHORT, assert_failed, assert_fails},
    namespace_with_order, namespace_with_orders,
};

#[tokio::test]
async fn sequential_sends_are_never_unsettled_together() {
    let (servicebus, orders) = namespace_with_orders().await;
    assert_unsettled_sends!(orders, count = 0).await;
    orders.send_all(["1", "2", "3"]).await;
    assert_unsettled_sends!(orders).await;
    assert_unsettled_sends!(orders, count = 1).await;
    assert_unsettled_sends!(orders, at_most = 10).await;
    assert_unsettled_sends!(orders, at_least = 1, at_most = 1).await;
    servicebus.reset().await;
    assert_unsettled_sends!(orders, count = 0).await;
}

#[tokio::test]
async fn a_topic_counts_unsettled_sends() {
    let prices = Topic::new("prices").subscription(Subscription::new("all"));
    let topology = Topology::new().topic(prices);
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let prices = servicebus.topic("prices");
    prices.send("7").await;
    assert_unsettled_sends!(prices, count = 1).await;
    assert_unsettled_sends!(prices.subscription("all"), count = 0).await;
}

#[tokio::test]
async fn an_assertion_waits_for_the_expected_unsettled_sends() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let sender = orders.clone();
    let sending = async move { sender.send("late").await };
    let expecting = async { assert_unsettled_sends!(orders, at_least = 1).await };
    tokio::join!(expecting, sending);
}

#[tokio::test]
async fn more_unsettled_sends_than_allowed() {
    let (_servicebus, orders) = namespace_with_order().await;
    // Reported at once, with any deadline.
    let failed = orders.expect_unsettled_sends().at_most(0);
    let failed = failed.within(Duration::from_secs(60)).await;
    assert_failed("more_unsettled_sends_than_allowed", failed);
}

#[tokio::test]
async fn fewer_unsettled_sends_than_expected() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let message = Message::from("{}").message_id("o-17");
    orders.schedule(message, Duration::from_secs(60)).await;
    let expectation = orders.expect_unsettled_sends();
    assert_fails("fewer_unsettled_sends_than_expected", expectation).await;
    let failed = orders.expect_unsettled_sends().at_least(2).at_most(3);
    let text = failed.within(SHORT).await.unwrap_err().to_string();
    let expected = "orders: expected 2 to 3 sends unsettled at once, found none within 0.01 s\n";
    assert!(text.starts_with(expected), "{text}");
}
