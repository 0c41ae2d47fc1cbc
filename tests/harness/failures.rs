//! Every assertion seen failing, with the whole of its text.

use std::time::Duration;

use servicebus_harness::{assertion::AssertionFailed, prelude::*};

use crate::harness::namespace_with_orders;
use servicebus_test_support::{child, normalised::normalised};

/// Long enough for everything that has happened before the assertion.
pub(crate) const SHORT: Duration = Duration::from_millis(10);

/// Compares a failure with the text it is to have, without what differs between runs.
#[track_caller]
pub(crate) fn assert_text(result: Result<(), AssertionFailed>, expected: &str) {
    let text = result.expect_err("the assertion should fail").to_string();
    pretty_equal(&normalised(&text), expected);
}

#[track_caller]
fn pretty_equal(found: &str, expected: &str) {
    assert!(
        found == expected,
        "found:\n{found}\n\nexpected:\n{expected}\n"
    );
}

#[tokio::test]
async fn a_message_that_expired_under_its_lock() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    let order = Message::from("not json").message_id("o-17");
    orders
        .send(order.time_to_live(Duration::from_secs(30)))
        .await;
    orders.receive().await.abandon().await;
    let _locked = orders.receive().await;
    servicebus.clock().advance(Duration::from_secs(61)).await;

    let expectation = orders.expect_dead_lettered();
    let failed = expectation
        .reason("MaxDeliveryCountExceeded")
        .within(SHORT)
        .await;
    assert_text(
        failed,
        r#"orders: expected 1 message dead-lettered with reason "MaxDeliveryCountExceeded", found none within 0.01 s

orders/$DeadLetterQueue holds 1 message
  #1 "not json" (message-id o-17): reason "TTLExpiredException" — differs

timeline of o-17 in orders                                    (virtual time)
  +… sent            by the test, 38 bytes, time to live 30 s
  +… delivered       to the test (lock 60 s, delivery 1 of 3)
  +… abandoned       by the test
  +… delivered       to the test (lock 60 s, delivery 2 of 3)
            clock advanced  by the test, 61 s
  +… lock expired    delivery 2 counted
  +… dead-lettered   TTLExpiredException: The message expired and was dead lettered.

hint: the message expired under its lock, before its third delivery; raise its time to live or advance less"#,
    );
}

#[tokio::test]
async fn a_message_that_is_still_waiting() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders
        .send(Message::from("not json").message_id("o-17"))
        .await;
    orders.receive().await.abandon().await;
    orders.receive().await.abandon().await;

    let failed = orders.expect_dead_lettered().within(SHORT).await;
    assert_text(
        failed,
        r#"orders: expected 1 message dead-lettered, found none within 0.01 s

orders/$DeadLetterQueue is empty

orders holds 1 message
  #1 "not json" (message-id o-17): active, 2 of 3 deliveries counted

timeline of o-17 in orders
  +… sent            by the test, 32 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)
  +… abandoned       by the test
  +… delivered       to the test (lock 60 s, delivery 2 of 3)
  +… abandoned       by the test

hint: o-17 is still active after 2 of 3 deliveries, 2 of them counted; it waits to be received again"#,
    );
}

#[tokio::test]
async fn a_message_that_somebody_holds() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    let _locked = orders.receive().await;

    let failed = orders.expect_empty().within(SHORT).await;
    assert_text(
        failed,
        r#"orders: expected to be empty, found 1 message after 0.01 s

orders holds 1 message
  #1 "{}" (message-id o-17): locked

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)

hint: o-17 is still active after 1 of 3 deliveries, 0 of them counted; it is locked now: settle it, or advance the clock past its lock"#,
    );
}

#[tokio::test]
async fn a_dead_letter_with_another_reason() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    let received = orders.receive().await;
    received.dead_letter("Rejected", "total is negative").await;

    let expectation = orders.expect_dead_lettered().reason("Refused");
    let expectation = expectation.description(contains("total")).count(2);
    assert_text(
        expectation.within(SHORT).await,
        r#"orders: expected 2 messages dead-lettered with reason "Refused" and description containing "total", found none within 0.01 s

orders/$DeadLetterQueue holds 1 message
  #1 "{}" (message-id o-17): reason "Rejected" — differs, description "total is negative"

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)
  +… dead-lettered   by the test, Rejected: total is negative

hint: a message was dead-lettered with reason "Rejected" ("total is negative"), not with "Refused""#,
    );
}

#[tokio::test]
async fn a_dead_letter_that_should_not_be() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    orders.receive().await.dead_letter("Rejected", "no").await;

    let failed = orders.expect_not_dead_lettered().within(SHORT).await;
    assert_text(
        failed,
        r#"orders: expected no message dead-lettered, found 1

orders/$DeadLetterQueue holds 1 message
  #1 "{}" (message-id o-17): reason "Rejected"

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)
  +… dead-lettered   by the test, Rejected: no"#,
    );
}

#[tokio::test]
async fn nothing_was_ever_sent() {
    let servicebus = namespace_with_orders().await;
    let failed = servicebus.queue("orders").expect_completed();
    assert_text(
        failed.count(3).within(SHORT).await,
        "orders: expected 3 messages completed, found none within 0.01 s

orders is empty

hint: nothing was ever sent to orders",
    );
}

#[tokio::test]
async fn a_message_that_was_not_completed() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    let failed = orders.expect_completed().message_id("o-17").within(SHORT);
    assert_text(
        failed.await,
        r#"orders: expected 1 message completed with message id "o-17", found none within 0.01 s

orders holds 1 message
  #1 "{}" (message-id o-17): active

timeline of o-17 in orders
  +… sent            by the test, 26 bytes

hint: o-17 was never received: no client is attached to orders"#,
    );
}

#[tokio::test]
async fn numbers_that_differ() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders
        .send_all((0..12).map(|n| Message::from(n.to_string()).message_id(format!("o-{n}"))))
        .await;
    let failed = orders.expect_message_count().active(2).dead_letter(1);
    let text = failed.within(SHORT).await.unwrap_err().to_string();
    let parts: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(
        parts[0],
        "orders: expected active = 2, dead_letter = 1, found active = 12, dead_letter = 0 after 0.01 s"
    );
    assert_eq!(parts[1], "orders/$DeadLetterQueue is empty");
    assert!(
        parts[2].starts_with("orders holds 12 messages\n  #1 \"0\" (message-id o-0): active\n")
    );
    assert!(parts[2].ends_with("\n  … and 2 more"), "{text}");
    assert_eq!(parts[6], "the timelines of 9 other messages are not shown");
}

#[tokio::test]
async fn messages_that_expired_into_nothing() {
    let topology = Topology::new().queue(Queue::new("orders"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    let message = Message::from("{}").message_id("o-17");
    orders
        .send(message.time_to_live(Duration::from_secs(1)))
        .await;
    servicebus.clock().advance(Duration::from_secs(2)).await;
    let failed = orders.expect_dead_lettered().within(SHORT).await;
    assert_text(
        failed,
        "orders: expected 1 message dead-lettered, found none within 0.01 s

orders/$DeadLetterQueue is empty

timeline of o-17 in orders                                    (virtual time)
  +… sent            by the test, 32 bytes, time to live 1 s
            clock advanced  by the test, 2 s
  +… expired

hint: a message expired and was dropped: orders does not dead-letter on expiration",
    );
}

#[tokio::test]
async fn an_operation_that_panics_names_the_line_of_the_test() {
    let servicebus = namespace_with_orders().await;
    let test = tokio::spawn(async move { servicebus.queue("ordres").send("hello").await });
    let payload = test.await.unwrap_err().into_panic();
    let text = payload.downcast_ref::<String>().unwrap();
    let line = line!() - 3;
    pretty_equal(
        text,
        &format!(
            "there is no queue \"ordres\"; did you mean \"orders\"? The namespace has orders\n  at {}:{line}:69",
            file!()
        ),
    );
}

#[test]
fn a_failed_sentence_panics_at_the_line_of_the_test() {
    if child::is_child() {
        return child::play(fail_on_purpose());
    }
    let test = "harness::failures::a_failed_sentence_panics_at_the_line_of_the_test";
    let output = child::again(test).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        complaints.contains(&format!("panicked at {}:", file!())),
        "{complaints}"
    );
    assert!(
        complaints.contains("orders: expected 1 message completed, found none within 0.01 s"),
        "{complaints}"
    );
}

async fn fail_on_purpose() {
    let servicebus = namespace_with_orders().await;
    assert_completed!(servicebus.queue("orders"), within = SHORT).await;
}
