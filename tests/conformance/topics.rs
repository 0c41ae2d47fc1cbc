//! Topics: what is sent to one arrives at its subscriptions, as their rules say.
//!
//! Source: service-bus-queues-topics-subscriptions, topic-filters, message-sequencing. The topics are those
//! of the other SDKs' cases, in `tests/sdks/topics.json`.

mod rules;

use std::time::{Duration, SystemTime};

use servicebus_harness::azservicebus::{ServiceBusMessage, ServiceBusReceivedMessage, SubQueue};
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    Client, abandon, assert_refused, because, bodies, body, close, complete, complete_all,
    connected, defer, done, of_sub_queue, receive, receive_nothing, receive_one, receiver, send,
    sender, start, subscriber, subscriber_with,
};

#[tokio::test]
async fn each_subscription_gets_a_copy_with_its_own_sequence_number() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut second = price("b", 8);
    second.set_message_id("p-17").unwrap();
    second.set_subject("changed".to_owned());
    send(&mut client, "prices", [price("a", 12), second]).await;

    for (subscription, number) in [("all", 2), ("cheap", 1)] {
        let mut receiver = subscriber(&mut client, "prices", subscription).await;
        let messages = receive(&mut receiver, number).await;
        let message = messages.last().expect("there are messages");
        assert_eq!(body(message), "b");
        assert_eq!(message.message_id().as_deref(), Some("p-17"));
        assert_eq!(message.subject(), Some("changed"));
        assert_eq!(property(message, "price"), "Some(Int(8))");
        assert_eq!(message.delivery_count(), Some(1));
        assert_eq!(message.sequence_number(), i64::from(number));
        assert_eq!(message.enqueued_sequence_number(), 2);
        complete_all(&mut receiver, &messages).await;
        receive_nothing(&mut receiver).await;
        close(receiver).await;
    }
    expect_nothing(&mut client, "eu").await;
}

#[tokio::test]
async fn each_message_of_a_batch_is_filtered() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut publisher = sender(&mut client, "prices").await;
    let messages = [
        price("dear", 10),
        price("cheap", 9),
        ServiceBusMessage::new("none"),
        change("eu", "eu"),
        change("EU", "EU"),
    ];
    done("a send", publisher.send_messages(messages)).await;
    done("the sender's end", publisher.dispose()).await;
    expect(&mut client, "all", &["dear", "cheap", "none", "eu", "EU"]).await;
    expect(&mut client, "cheap", &["cheap"]).await;
    expect(&mut client, "eu", &["eu"]).await;
}

#[tokio::test]
async fn a_rule_with_an_action_creates_its_own_copy() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut fire = ServiceBusMessage::new("fire");
    fire.set_subject("new".to_owned());
    let properties = fire.application_properties_mut().get_or_insert_default();
    properties.insert("level".to_owned(), 2_i32.into());
    properties.insert("secret".to_owned(), "s".to_owned().into());
    send(&mut client, "alarms", [fire]).await;

    let mut receiver = subscriber(&mut client, "alarms", "marked").await;
    let messages = receive(&mut receiver, 2).await;
    let is_marked = |message: &&ServiceBusReceivedMessage| property(message, "RuleName") != "None";
    let (marked, plain): (Vec<_>, Vec<_>) = messages.iter().partition(is_marked);
    assert_eq!((marked.len(), plain.len()), (1, 1));
    assert_eq!(plain[0].subject(), Some("new"));
    assert_eq!(property(plain[0], "level"), "Some(Int(2))");
    assert_eq!(property(plain[0], "secret"), r#"Some(String("s"))"#);
    assert_eq!(marked[0].subject(), Some("raised"));
    assert_eq!(property(marked[0], "RuleName"), r#"Some(String("raised"))"#);
    assert_eq!(property(marked[0], "level"), "Some(Int(3))");
    assert_eq!(property(marked[0], "seen"), "Some(Bool(true))");
    assert_eq!(property(marked[0], "secret"), "None");
    complete_all(&mut receiver, &messages).await;
    receive_nothing(&mut receiver).await;
}

#[tokio::test]
async fn subscriptions_settle_independently() {
    let (_servicebus, mut client) = connected(bus()).await;
    let prices = [price("a", 1), price("b", 2), price("c", 3)];
    send(&mut client, "prices", prices).await;
    let mut receiver = subscriber(&mut client, "prices", "all").await;
    let messages = receive(&mut receiver, 3).await;
    complete(&mut receiver, &messages[0]).await;
    defer(&mut receiver, &messages[1]).await;
    abandon(&mut receiver, &messages[2]).await;

    let again = receive_one(&mut receiver).await;
    assert_eq!(
        (body(&again).as_str(), again.delivery_count()),
        ("c", Some(2))
    );
    complete(&mut receiver, &again).await;
    receive_nothing(&mut receiver).await;
    let receiving = receiver.receive_deferred_messages(vec![messages[1].sequence_number()]);
    let deferred = done("the deferred message", receiving).await;
    assert_eq!(bodies(&deferred), ["b"]);
    complete_all(&mut receiver, &deferred).await;
    expect(&mut client, "cheap", &["a", "b", "c"]).await;
}

#[tokio::test]
async fn every_subscription_has_a_dead_letter_queue() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "jobs", ["bad", "poison"]).await;
    let mut receiver = subscriber(&mut client, "jobs", "limited").await;
    let messages = receive(&mut receiver, 2).await;
    assert_eq!(bodies(&messages), ["bad", "poison"]);
    let options = because("Rejected");
    let settling = receiver.dead_letter_message(&messages[0], options);
    done("the settlement", settling).await;
    // The SDK does not wait until a settlement is done.
    let limited = servicebus.subscription("jobs", "limited");
    assert_message_count!(limited, active = 1, dead_letter = 1).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let poison = receive_one(&mut receiver).await;
    assert_eq!(poison.delivery_count(), Some(2));
    abandon(&mut receiver, &poison).await;
    receive_nothing(&mut receiver).await;

    let options = of_sub_queue(SubQueue::DeadLetter);
    let mut dead = subscriber_with(&mut client, "jobs", "limited", options).await;
    let messages = receive(&mut dead, 2).await;
    assert_eq!(bodies(&messages), ["bad", "poison"]);
    assert_eq!(messages[0].dead_letter_reason(), Some("Rejected"));
    assert_eq!(
        messages[1].dead_letter_reason(),
        Some("MaxDeliveryCountExceeded")
    );
    complete_all(&mut dead, &messages).await;
    receive_nothing(&mut dead).await;
}

#[tokio::test]
async fn a_topic_holds_scheduled_messages_until_due_or_cancelled() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut publisher = sender(&mut client, "prices").await;
    let at = SystemTime::now() + Duration::from_secs(300);
    let messages = [price("cheap", 1), price("dear", 20), price("no", 2)];
    let scheduling = publisher.schedule_messages(messages, at.into());
    let numbers = done("the numbers", scheduling).await;
    let cancelling = publisher.cancel_scheduled_message(numbers[2]);
    done("the cancellation", cancelling).await;
    assert_refused(publisher.cancel_scheduled_message(numbers[2]), &["404"]).await;
    expect_nothing(&mut client, "all").await;

    servicebus.clock().advance(Duration::from_secs(301)).await;
    expect(&mut client, "all", &["cheap", "dear"]).await;
    expect(&mut client, "cheap", &["cheap"]).await;
}

#[tokio::test]
async fn a_filter_failure_is_dead_lettered_if_configured() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut message = ServiceBusMessage::new("0");
    let properties = message.application_properties_mut().get_or_insert_default();
    properties.insert("parts".to_owned(), 0_i32.into());
    send(&mut client, "checks", [message]).await;
    let lenient = servicebus.subscription("checks", "lenient");
    assert_message_count!(lenient, active = 0, dead_letter = 0).await;

    let options = of_sub_queue(SubQueue::DeadLetter);
    let mut dead = subscriber_with(&mut client, "checks", "strict", options).await;
    let message = receive_one(&mut dead).await;
    assert_eq!(body(&message), "0");
    assert_eq!(message.dead_letter_reason(), Some("FilterException"));
    complete(&mut dead, &message).await;
}

#[tokio::test]
async fn a_subscription_forwards_like_a_queue() {
    let (_servicebus, mut client) = connected(bus()).await;
    send(&mut client, "calls", ["call"]).await;
    let mut orders = receiver(&mut client, "orders").await;
    let message = receive_one(&mut orders).await;
    assert_eq!(body(&message), "call");
    complete(&mut orders, &message).await;
    let mut complaints = subscriber(&mut client, "calls", "complaints").await;
    let message = receive_one(&mut complaints).await;
    abandon(&mut complaints, &message).await;
    let mut failures = receiver(&mut client, "failures").await;
    let message = receive_one(&mut failures).await;
    assert_eq!(
        message.dead_letter_source(),
        Some("calls/Subscriptions/complaints")
    );
    complete(&mut failures, &message).await;
    let opening = client.create_receiver_for_subscription("calls", "to-orders", Default::default());
    assert_refused(opening, &["NotAllowed"]).await;
}

#[tokio::test]
async fn a_topic_drops_duplicates_for_all_its_subscriptions() {
    let (_servicebus, mut client) = connected(bus()).await;
    let of_one_id = |text: &str| {
        let mut message = ServiceBusMessage::new(text);
        message.set_message_id("c-1").unwrap();
        message
    };
    let messages = [of_one_id("first"), of_one_id("again")];
    send(&mut client, "calls", messages).await;
    let mut receiver = subscriber(&mut client, "calls", "complaints").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(body(&message), "first");
    complete(&mut receiver, &message).await;
    receive_nothing(&mut receiver).await;
}

#[tokio::test]
async fn a_topic_is_sent_to_and_a_subscription_received_from() {
    let (_servicebus, mut client) = connected(bus()).await;
    let opening = client.create_sender("prices/Subscriptions/all", Default::default());
    assert_refused(opening, &["NotAllowed"]).await;
    let opening = client.create_receiver_for_queue("prices", Default::default());
    assert_refused(opening, &["NotAllowed"]).await;
}

#[tokio::test]
async fn a_missing_topic_or_subscription_is_not_found() {
    let (_servicebus, mut client) = connected(bus()).await;
    let opening = client.create_sender("missing", Default::default());
    assert_refused(opening, &["could not be found"]).await;
    for (topic, subscription) in [("missing", "all"), ("prices", "missing"), ("orders", "all")] {
        let opening =
            client.create_receiver_for_subscription(topic, subscription, Default::default());
        assert_refused(opening, &["could not be found"]).await;
    }
}

/// `prices` has the subscriptions `all`, `cheap` (price < 10) and `eu` (subject and region are equal); `alarms`
/// has `marked`, which has two rules without an action and one with; `jobs` has `limited`, of two deliveries; `calls`
/// finds duplicates and has `to-orders` and `complaints`, which forward; the rules of `checks` can fail.
async fn bus() -> ServiceBus {
    start(Topology::file("tests/sdks/topics.json")).await
}

/// Receives and completes exactly this from a subscription of `prices`.
async fn expect(client: &mut Client, subscription: &str, expected: &[&str]) {
    let mut receiver = subscriber(client, "prices", subscription).await;
    let count = u32::try_from(expected.len()).expect("they are few");
    let messages = receive(&mut receiver, count).await;
    assert_eq!(bodies(&messages), expected);
    complete_all(&mut receiver, &messages).await;
    receive_nothing(&mut receiver).await;
    close(receiver).await;
}

/// Asserts that nothing comes from a subscription of `prices`.
async fn expect_nothing(client: &mut Client, subscription: &str) {
    let mut receiver = subscriber(client, "prices", subscription).await;
    receive_nothing(&mut receiver).await;
    close(receiver).await;
}

/// An application property with its type, as it is shown.
fn property(message: &ServiceBusReceivedMessage, name: &str) -> String {
    let properties = message.application_properties();
    format!(
        "{:?}",
        properties.and_then(|properties| properties.get(name))
    )
}

fn price(text: &str, price: i32) -> ServiceBusMessage {
    let mut message = ServiceBusMessage::new(text);
    let properties = message.application_properties_mut().get_or_insert_default();
    properties.insert("price".to_owned(), price.into());
    message
}

/// A change of a price somewhere, which is not cheap.
fn change(text: &str, region: &str) -> ServiceBusMessage {
    let mut message = price(text, 20);
    message.set_subject("changed".to_owned());
    let properties = message.application_properties_mut().get_or_insert_default();
    properties.insert("region".to_owned(), region.to_owned().into());
    message
}
