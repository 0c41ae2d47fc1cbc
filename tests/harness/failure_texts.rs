//! The texts of failures that were the worst to read, whole: each is a file in `snapshots`, which a person reads when it
//! changes. `INSTA_UPDATE=always cargo test --test suites failure_texts` writes them anew.

use std::time::Duration;

use azservicebus::{ServiceBusClient, ServiceBusClientOptions, ServiceBusRetryOptions};
use servicebus_harness::{
    assertion::{AssertionFailed, Expectation, Kind},
    prelude::*,
};

use crate::harness::{
    assert_contains, error_of, namespace_with_order, namespace_with_orders, orders,
};
use servicebus_test_support::{client::Client, normalised::normalised};

/// Long enough for everything that has happened before the assertion.
pub(crate) const SHORT: Duration = Duration::from_millis(10);

/// Compares a text with its file, without what differs between runs.
#[track_caller]
fn assert_text(name: &str, text: &str) {
    insta::assert_snapshot!(name, without_offset(&normalised(text)));
}

/// `the lock ended at +60.004 s` becomes `the lock ended at +…`.
fn without_offset(text: &str) -> String {
    let Some((before, after)) = text.split_once("ended at +") else {
        return text.to_owned();
    };
    let (_, rest) = after.split_once(" s").unwrap();
    format!("{before}ended at +…{rest}")
}

/// Compares the text of an assertion that has failed with its file.
#[track_caller]
pub(crate) fn assert_failed(name: &str, result: Result<(), AssertionFailed>) {
    assert_text(name, &result.expect_err("it should fail").to_string());
}

/// Compares the text of an assertion that fails [`SHORT`]ly with its file.
pub(crate) async fn assert_fails<K: Kind>(name: &str, expectation: Expectation<K>) {
    assert_failed(name, expectation.within(SHORT).await);
}

#[tokio::test]
async fn the_selected_one_of_200_messages_is_shown_first() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let order = |number| Message::from("{}").message_id(format!("o-{number}"));
    orders.send_all((0..200).map(order)).await;
    let expectation = orders.expect_completed().message_id("o-42");
    assert_fails("one_of_200_messages", expectation).await;
    let expectation = orders.expect_completed().message_id("o-420");
    assert_fails("none_of_200_messages", expectation).await;
}

#[tokio::test]
async fn a_duplicate_is_named() {
    let topology = Topology::new().queue(Queue::new("orders").requires_duplicate_detection(true));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    let order = |body: &str| Message::from(body).message_id("o-7");
    orders.send_all([order("first"), order("second")]).await;
    orders.receive().await.complete().await;
    assert_fails("duplicate", orders.expect_completed().count(2)).await;
    // It does not explain messages that are too many.
    orders.send("third").await;
    let text = orders.expect_message_count().active(0).within(SHORT).await;
    let text = text.unwrap_err().to_string();
    assert!(!text.contains("hint: "), "{text}");
    let text = orders.expect_empty().within(SHORT).await;
    let text = text.unwrap_err().to_string();
    assert_contains(&text, "was never received");
}

#[tokio::test]
async fn a_session_out_of_order_names_the_first_two() {
    let carts = Topology::new().queue(Queue::new("carts").requires_session(true));
    let servicebus = ServiceBus::builder().topology(carts).start().await;
    let carts = servicebus.queue("carts");
    let step = |body: &str| Message::from(body).session_id("s-1").message_id(body);
    let messages = [step("add"), step("pay"), step("ship")];
    carts.send_all(messages).await;
    let expectation = carts
        .expect_session_order("s-1")
        .bodies(["pay", "add", "ship"]);
    assert_fails("session_order", expectation).await;
}

#[tokio::test]
async fn a_misspelled_entity_name_of_a_client_is_quoted() {
    let (servicebus, _) = namespace_with_orders().await;
    let error = servicebus.queue("ordrs").receive().result().await;
    assert_text("misspelt_queue", &error.unwrap_err().to_string());
    let orders = servicebus.queue("orders");
    assert_fails("misspelt_queue_of_a_client", orders.expect_completed()).await;
    let other = servicebus.queue("invoices");
    error_of(other.receive()).await;
    let text = orders.expect_completed().within(SHORT).await;
    let text = text.unwrap_err().to_string();
    assert!(!text.contains("invoices"), "{text}");
    assert_fails("misspelt_queue_of_a_receiver", orders.expect_attached()).await;
}

/// A client with a key of the namespace that has only these rights.
async fn client_with(servicebus: &ServiceBus, claims: Claims) -> Client {
    let string = servicebus.connection_string_with(claims);
    let client = Client::connect(servicebus.endpoints().amqp, &string, "worker-1").await;
    client.unwrap()
}

/// Compares the text of an assertion that fails with its file, without the address of the namespace.
#[track_caller]
fn assert_fails_anywhere(name: &str, servicebus: &ServiceBus, result: Result<(), AssertionFailed>) {
    let text = result.expect_err("it should fail").to_string();
    let host = servicebus.endpoints().amqp.ip().to_string();
    assert_text(name, &text.replace(&host, "localhost"));
}

#[tokio::test]
async fn a_missing_right_of_a_client_is_quoted() {
    let (servicebus, orders) = namespace_with_orders().await;
    let mut listener = client_with(&servicebus, Claims::LISTEN).await;
    let refused = listener.try_sender("orders", Default::default()).await;
    refused.expect_err("the key may not send");
    let failed = orders.expect_completed().within(SHORT).await;
    assert_fails_anywhere("a_sender_without_the_right", &servicebus, failed);

    orders.send(Message::from("{}").message_id("o-17")).await;
    let mut sender = client_with(&servicebus, Claims::SEND).await;
    let refused = sender.try_receiver("orders").await;
    refused.expect_err("the key may not listen");
    let failed = orders.expect_completed().within(SHORT).await;
    assert_fails_anywhere("a_receiver_without_the_right", &servicebus, failed);
    let failed = orders.expect_attached().within(SHORT).await;
    let text = failed.unwrap_err().to_string();
    assert_contains(&text, "hint: worker-1 could not attach a receiver: ");

    // It has attached since, so that the refusal explains nothing.
    let mut listener = client_with(&servicebus, Claims::LISTEN).await;
    let mut receiver = listener.receiver("orders").await;
    receiver.set_credit(10).await.unwrap();
    orders.wait_for_receiver().await;
    let another = orders.expect_attached().to("worker-2").within(SHORT);
    let text = another.await.unwrap_err().to_string();
    assert!(!text.contains("could not attach"), "{text}");
}

#[tokio::test]
#[expect(
    clippy::large_futures,
    reason = "the futures of the SDK are, which does not matter here"
)]
async fn a_wrong_key_of_a_client_is_reported() {
    let (servicebus, orders) = namespace_with_orders().await;
    let string = servicebus.connection_string();
    let key = string
        .split(';')
        .find(|part| part.starts_with("SharedAccessKey="));
    let wrong = string.replace(key.unwrap(), "SharedAccessKey=d3Jvbmc=");
    let client = ServiceBusClient::unsecured();
    let mut client = client
        .new_from_connection_string(wrong, without_retries())
        .await
        .unwrap();
    let refused = client.create_sender("orders", Default::default()).await;
    assert!(refused.is_err(), "the key is wrong");
    let failed = orders.expect_completed().within(SHORT).await.unwrap_err();
    let text = failed.to_string();
    let (_, hint) = text.split_once("hint: a token of ").expect(&text);
    let reason = "/orders': the signature does not match";
    assert!(
        hint.contains(" was refused: Unauthorized access to '") && hint.contains(reason),
        "{hint}"
    );
}

#[tokio::test]
async fn a_receiver_without_a_session_is_quoted() {
    let carts = Topology::new().queue(Queue::new("carts").requires_session(true));
    let servicebus = ServiceBus::builder().topology(carts).start().await;
    let carts = servicebus.queue("carts");
    let message = Message::from("add").session_id("s-1").message_id("c-1");
    carts.send(message).await;
    let mut worker = client_with(&servicebus, Claims::ALL).await;
    let refused = worker.try_receiver("carts").await;
    refused.expect_err("the queue requires sessions");
    assert_fails("a_receiver_without_a_session", carts.expect_completed()).await;
}

#[tokio::test]
async fn a_late_settlement_names_the_end_of_the_lock() {
    let (servicebus, orders) = namespace_with_order().await;
    let locked = orders.receive().await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let error = locked.complete().result().await.unwrap_err();
    assert_text("lost_lock", &without_line(&format!("{error:?}")));
    assert_fails("completed_too_late", orders.expect_completed()).await;
}

/// Without the line of the test, which moves.
fn without_line(text: &str) -> String {
    let this = format!("  at {}:", file!());
    assert_eq!(text.matches(&this).count(), 1, "{text}");
    let lines = text.lines().filter(|line| !line.starts_with(&this));
    Vec::from_iter(lines).join("\n")
}

#[tokio::test]
async fn the_difference_of_bodies_is_located() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let order = Message::from("{\"customer\":\"c-1\",\"total\":12}").message_id("o-17");
    orders.send(order).await;
    orders.receive().await.complete().await;
    let expectation = orders
        .expect_completed()
        .body("{\"customer\":\"c-1\",\"total\":13}");
    assert_fails("another_body", expectation).await;
}

#[tokio::test]
async fn receivers_are_mentioned_only_where_they_matter() {
    let (_servicebus, orders) = namespace_with_order().await;
    assert_fails("a_count", orders.expect_message_count().active(2)).await;
    let due = Duration::from_secs(600);
    assert_fails("not_scheduled", orders.expect_scheduled().due_in(due)).await;
}

#[tokio::test]
async fn a_missing_receiver_is_named() {
    let (_servicebus, orders) = namespace_with_order().await;
    assert_fails("no_receiver", orders.expect_dead_lettered()).await;
}

fn without_retries() -> ServiceBusClientOptions {
    ServiceBusClientOptions {
        retry_options: ServiceBusRetryOptions {
            max_retries: 0,
            ..Default::default()
        },
        ..Default::default()
    }
}

#[tokio::test]
#[expect(
    clippy::large_futures,
    reason = "the futures of the SDK are, which does not matter here"
)]
async fn an_untrusted_ca_is_reported() {
    let (servicebus, _) = namespace_with_orders().await;
    // With native-tls it trusts what the system trusts, to which the authority of the emulator does not belong.
    let string = servicebus.tls_connection_string();
    let client = ServiceBusClient::new_from_connection_string(string, without_retries()).await;
    assert!(client.is_err(), "it does not trust the emulator");
    let orders = servicebus.queue("orders");
    let failed = orders.expect_completed().within(SHORT).await.unwrap_err();
    // Without what differs between machines: the client's port and where the authority is kept.
    let text = failed.to_string();
    let (before, rest) = text.split_once(" at 127.0.0.1:").unwrap();
    let (_, rest) = rest.split_once(' ').unwrap();
    let file = servicebus.ca_certificate_file().unwrap().display();
    let rest = rest.replace(&file.to_string(), "ca.pem");
    assert_text("distrust", &format!("{before} at 127.0.0.1 {rest}"));
}

#[tokio::test]
async fn unwrapped_errors_are_readable() {
    let mode = Mode::Process;
    let builder = ServiceBus::builder().topology(orders()).mode(mode);
    let error = builder.binary("/nowhere/emulator").start().result().await;
    assert_text(
        "no_binary",
        &without_line(&format!("{:?}", error.unwrap_err())),
    );
}

#[tokio::test]
#[should_panic(expected = "after the retry of o-17\norders: expected 1 message completed")]
async fn the_tests_own_message_precedes_the_failure() {
    let (_servicebus, orders) = namespace_with_orders().await;
    assert_completed!(orders, within = SHORT, "after the retry of {}", "o-17").await;
}
