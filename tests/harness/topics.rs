//! Topics are sent to, subscriptions are received from, and both explain what they did with a message.

use std::time::Duration;

use servicebus_harness::assertion::{Delivered, MessageCount, NotCompleted, NotDeadLettered};
use servicebus_harness::{EntityKind, EventKind, RuleOutcome, prelude::*};

use servicebus_test_support::normalised::normalised;

use crate::harness::{
    error_of,
    failure_texts::{assert_failed, assert_fails},
};

const MINUTE: Duration = Duration::from_secs(60);

/// A topic with a subscription for high prices and one for all.
async fn namespace_with_prices() -> ServiceBus {
    let high = Subscription::new("high")
        .max_delivery_count(2)
        .dead_lettering_on_message_expiration(true)
        .rule(Rule::sql("high", "price > 10"));
    let prices = Topic::new("prices")
        .subscription(high)
        .subscription(Subscription::new("all"));
    let topology = Topology::new().queue(Queue::new("orders")).topic(prices);
    ServiceBus::builder().topology(topology).start().await
}

fn price(price: i64) -> Message {
    let message = Message::from("{}").message_id(format!("p-{price}"));
    message.application_property("price", price)
}

#[tokio::test]
async fn a_topic_is_sent_to_and_its_subscriptions_are_received_from() {
    let servicebus = namespace_with_prices().await;
    servicebus
        .topic("prices")
        .send_all([price(3), price(12)])
        .await;
    let high = servicebus.subscription("prices", "high");
    let all = servicebus.topic("prices").subscription("all");
    assert_message_count!(high, active = 1).await;
    assert_message_count!(all, active = 2).await;
    assert_eq!(high.peek().await[0].message_id.as_deref(), Some("p-12"));

    high.receive().await.complete().await;
    assert_completed!(high, message_id = "p-12", count = 1).await;
    assert_delivered!(high, message_id = "p-12", times = 1).await;
    assert_not_delivered!(high, message_id = "p-3").await;
    assert_not_delivered!(all).await;
    assert_empty!(high).await;
    assert_eq!(
        all.purge().await.to_string(),
        "removed 2 messages, left no messages"
    );
}

#[tokio::test]
async fn clients_display_their_paths() {
    let servicebus = namespace_with_prices().await;
    let prices = servicebus.topic("prices");
    let high = servicebus.subscription("prices", "high");
    assert_eq!((prices.path(), prices.name()), ("prices", "prices"));
    assert_eq!((high.topic_name(), high.name()), ("prices", "high"));
    assert_eq!(high.kind(), EntityKind::Subscription);
    assert_eq!(high.path(), "prices/Subscriptions/high");
    let below = [
        (
            high.dead_letters(),
            "prices/Subscriptions/high/$DeadLetterQueue",
        ),
        (
            high.transfer_dead_letters(),
            "prices/Subscriptions/high/$Transfer/$DeadLetterQueue",
        ),
        (
            prices.transfer_dead_letters(),
            "prices/$Transfer/$DeadLetterQueue",
        ),
    ];
    for (client, path) in below {
        assert_eq!(client.path(), path);
        assert_empty!(client).await;
    }
}

#[tokio::test]
async fn dead_letters_of_a_subscription_are_its_own() {
    let servicebus = namespace_with_prices().await;
    let prices = servicebus.topic("prices");
    let high = servicebus.subscription("prices", "high");
    prices.send(price(12)).await;
    high.receive().await.abandon().await;
    high.receive().await.abandon().await;
    assert_dead_lettered!(high, reason = "MaxDeliveryCountExceeded", count = 1).await;
    assert_not_dead_lettered!(servicebus.subscription("prices", "all")).await;

    prices.send(price(20).time_to_live(MINUTE)).await;
    servicebus.clock().advance(2 * MINUTE).await;
    assert_expired!(high, message_id = "p-20").await;
    assert_dead_lettered!(high, reason = "TTLExpiredException", message_id = "p-20").await;
    assert_eq!(high.dead_letters().purge().await.removed, 2);
}

#[tokio::test]
async fn a_topic_holds_scheduled_messages() {
    let servicebus = namespace_with_prices().await;
    let prices = servicebus.topic("prices");
    let high = servicebus.subscription("prices", "high");
    let number = prices.schedule(price(12), 10 * MINUTE).await;
    prices.schedule(price(20), 10 * MINUTE).await;
    assert_message_count!(prices, scheduled = 2).await;
    assert_scheduled!(prices, due_in = 10 * MINUTE, count = 2).await;
    prices.cancel_scheduled(number).await;
    assert_eq!(
        error_of(prices.cancel_scheduled(number)).await,
        "prices holds no scheduled message 1; only 2 is scheduled"
    );
    assert_eq!(prices.counts().await.scheduled, 1);
    assert_empty!(high).await;

    servicebus.clock().advance(10 * MINUTE).await;
    assert_message_count!(prices, scheduled = 0).await;
    assert_eq!(
        high.receive_and_delete().await.message_id.as_deref(),
        Some("p-20")
    );
}

#[tokio::test]
async fn the_record_has_publications_and_matched_rules() {
    let servicebus = namespace_with_prices().await;
    let prices = servicebus.topic("prices");
    prices.send_all([price(3), price(12)]).await;
    let published = servicebus.timeline(&prices).await;
    assert_eq!(published.count(&EventKind::Published), 2, "{published}");

    let high = servicebus.subscription("prices", "high");
    let matched = servicebus.timeline(&high).await;
    assert_eq!(matched.count(&EventKind::Matched), 1, "{matched}");
    let of_message = matched.of_message("p-12");
    let event = &of_message.events()[0];
    assert_eq!(event.kind, EventKind::Matched, "{matched}");
    assert_eq!(event.detail.as_deref(), Some("high"));
    let shown = of_message.titled("p-12").to_string();
    assert_eq!(
        normalised(&shown),
        "timeline of p-12 in prices/Subscriptions/high
  +… matched         by rule high
  +… sent            41 bytes"
    );
}

#[tokio::test]
async fn rules_explain_their_results_for_a_message() {
    let servicebus = namespace_with_prices().await;
    let high = servicebus.subscription("prices", "high");
    let explained = servicebus.explain(price(3), &high).await;
    assert!(!explained.is_matched());
    assert_eq!(
        explained.to_string(),
        "prices/Subscriptions/high does not get the message
  rule high: not matched: price > 10 is false, price = 3 (a whole number)"
    );
    let explained = servicebus.explain("no price", &high).await;
    assert_eq!(
        explained.rule("HIGH").unwrap().to_string(),
        "rule high: not matched: price > 10 is unknown, price does not exist"
    );
    let explained = servicebus.explain(price(12), &high).await;
    assert!(explained.is_matched());
    assert_eq!(explained.rules[0].outcome, RuleOutcome::Matched);
    assert_empty!(high).await;
    let nowhere = servicebus.subscription("prices", "low");
    assert_eq!(
        error_of(servicebus.explain(price(3), &nowhere)).await,
        "the topic \"prices\" has no subscription \"low\"; it has all, high"
    );
}

#[tokio::test]
async fn unknown_entities_fail_with_the_known_ones() {
    let servicebus = namespace_with_prices().await;
    let unknown = servicebus.topic("prises");
    let error = unknown.send("hello").result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::EntityNotFound, "{error:?}");
    let expected =
        "there is no topic \"prises\"; did you mean \"prices\"? The namespace has prices";
    assert_eq!(error.to_string(), expected);
    assert_eq!(error_of(unknown.schedule("hello", MINUTE)).await, expected);
    let below = unknown.subscription("high");
    assert_eq!(error_of(below.peek()).await, expected);

    let unknown = servicebus.subscription("prices", "hihg");
    let expected = "the topic \"prices\" has no subscription \"hihg\"; did you mean \"high\"? It has high, all";
    let errors = [
        error_of(unknown.peek()).await,
        error_of(unknown.counts()).await,
        error_of(unknown.timeline()).await,
        error_of(unknown.receive_within(Duration::ZERO)).await,
        error_of(unknown.delete()).await,
        unknown.expect_empty().await.unwrap_err().to_string(),
        unknown.expect_delivered().await.unwrap_err().to_string(),
    ];
    for error in errors {
        assert_eq!(error, expected);
    }
    let queue = servicebus.queue("prices").expect_empty().await;
    assert_failed("a_topic_that_is_asked_as_a_queue", queue);
}

#[tokio::test]
async fn receiver_assertions_are_refused_for_topics() {
    let servicebus = namespace_with_prices().await;
    let prices = servicebus.topic("prices");
    let refused = [
        NotCompleted::of(&prices).await,
        NotDeadLettered::of(&prices).await,
        Delivered::of(&prices).await,
    ];
    for refused in refused {
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.starts_with("prices is a topic, from which"),
            "{refused}"
        );
    }
    assert_message_count!(prices, scheduled = 0).await;
    let counted = MessageCount::of(&prices).scheduled(0).active(0).await;
    assert_eq!(
        counted.unwrap_err().to_string(),
        "prices is a topic, whose messages are kept by its subscriptions, except scheduled ones and those that could not be forwarded; assert it of one of them: it has all, high"
    );
}

#[tokio::test]
async fn topics_and_subscriptions_are_created_updated_and_deleted() {
    let servicebus = namespace_with_prices().await;
    let news = Topic::new("news").subscription(Subscription::new("eu"));
    let news = servicebus.create_topic(news).await;
    let us = Subscription::new("us").max_delivery_count(1);
    let us = servicebus.create_subscription("news", us).await;
    news.send(Message::from("hello").message_id("n-1")).await;
    us.receive().await.abandon().await;
    assert_dead_lettered!(us, reason = "MaxDeliveryCountExceeded").await;
    assert_message_count!(news.subscription("eu"), active = 1).await;

    us.update(|it| it.forward_to("orders")).await;
    news.send(Message::from("on").message_id("n-2")).await;
    assert_forwarded!(us, to = "orders", count = 1).await;
    us.delete().await;
    let error = error_of(us.peek()).await;
    let expected = "the topic \"news\" has no subscription \"us\": it was deleted at +";
    assert!(error.starts_with(expected), "{error}");

    news.update(|topic| topic.status(EntityStatus::SendDisabled))
        .await;
    let error = error_of(news.send("hello")).await;
    assert!(error.contains("com.microsoft:entity-disabled"), "{error}");
    news.delete().await;
    let error = news.subscription("eu").counts().result().await.unwrap_err();
    let expected = "there is no topic \"news\": it was deleted at +";
    assert!(error.to_string().starts_with(expected), "{error}");
}

#[tokio::test]
async fn invalid_topics_and_subscriptions_are_refused_with_the_reason() {
    let servicebus = namespace_with_prices().await;
    let create = |subscription| {
        servicebus
            .create_subscription("prices", subscription)
            .result()
    };
    let error = create(Subscription::new("low").rule(Rule::none("none"))).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
    assert_eq!(
        error.to_string(),
        "the subscription \"prices/Subscriptions/low\" cannot be created with rules while the namespace runs: declare it in the topology, or replace its rule $Default with an SDK"
    );
    let error = create(Subscription::new("High")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is a subscription \"prices/Subscriptions/High\" already; update it, or delete it first"
    );
    let error = create(Subscription::new("low").max_delivery_count(0)).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "cannot create the subscription \"prices/Subscriptions/low\": the properties are not allowed (status 400)\n  MaxDeliveryCount: 0 is not allowed; allowed: 1 to 2147483647"
    );
    assert_eq!(
        error_of(servicebus.create_subscription("prises", Subscription::new("low"))).await,
        "there is no topic \"prises\"; did you mean \"prices\"? The namespace has prices"
    );
    assert_eq!(
        error_of(servicebus.create_topic(Topic::new("orders"))).await,
        "there is a queue \"orders\" already; update it, or delete it first"
    );
    let high = servicebus.subscription("prices", "high");
    assert_eq!(
        error_of(high.update(|it| it.rule(Rule::all("all")))).await,
        "an update of the subscription \"prices/Subscriptions/high\" cannot set its rules"
    );
}

#[tokio::test]
async fn a_subscription_without_messages() {
    let servicebus = namespace_with_prices().await;
    servicebus.topic("prices").send(price(3)).await;
    let high = servicebus.subscription("prices", "high");
    let expectation = high.expect_delivered().message_id("p-3");
    assert_fails("a_subscription_without_messages", expectation).await;
}

#[tokio::test]
async fn a_dead_letter_of_a_subscription_with_another_reason() {
    let servicebus = namespace_with_prices().await;
    servicebus.topic("prices").send(price(12)).await;
    let high = servicebus.subscription("prices", "high");
    high.receive()
        .await
        .dead_letter("Rejected", "too high")
        .await;
    let expectation = high.expect_dead_lettered().reason("Refused");
    assert_fails(
        "a_dead_letter_of_a_subscription_with_another_reason",
        expectation,
    )
    .await;
}

#[tokio::test]
async fn a_subscription_that_should_be_empty() {
    let servicebus = namespace_with_prices().await;
    servicebus.topic("prices").send(price(12)).await;
    let expectation = servicebus.subscription("prices", "all").expect_empty();
    assert_fails("a_subscription_that_should_be_empty", expectation).await;
}

#[tokio::test]
async fn a_durable_jms_subscription_is_found_by_its_jms_names() {
    let prices = Topic::new("prices")
        .subscription(Subscription::new("all$desk$D"))
        .subscription(Subscription::new("shared$$D"));
    let topology = Topology::new().topic(prices);
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    servicebus.topic("prices").send(price(3)).await;
    let all = servicebus.jms_subscription("prices", "all", "desk");
    assert_eq!(all.path(), "prices/Subscriptions/all$desk$D");
    assert_message_count!(all, active = 1).await;
    let shared = servicebus.jms_subscription("prices", "shared", "");
    assert_message_count!(shared, active = 1).await;
}

#[tokio::test]
async fn a_send_to_the_wrong_kind_of_entity_names_the_kind() {
    let servicebus = namespace_with_prices().await;
    let topic = servicebus.topic("Orders");
    let queue = servicebus.queue("prices");
    let wrong_topic = "there is no topic \"Orders\"; it is a queue";
    let wrong_queue = "there is no queue \"prices\"; it is a topic";
    assert_eq!(error_of(topic.send("a")).await, wrong_topic);
    assert_eq!(error_of(queue.send("a")).await, wrong_queue);
    assert_eq!(error_of(topic.schedule("a", MINUTE)).await, wrong_topic);
    assert_message_count!(servicebus.queue("orders"), active = 0, scheduled = 0).await;
    servicebus.create_queue(Queue::new("made")).await;
    servicebus.queue("made").send("a").await;
    let error = error_of(servicebus.topic("made").send("a")).await;
    assert_eq!(error, "there is no topic \"made\"; it is a queue");
}
