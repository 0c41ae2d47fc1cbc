//! Every assertion seen failing, with the whole of its text.

use std::time::Duration;

use servicebus_harness::prelude::*;

use crate::harness::{
    assert_contains,
    failure_texts::{SHORT, assert_failed, assert_fails},
    namespace_with_order, namespace_with_orders,
};
use servicebus_test_support::built;

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_message_that_expired_under_its_lock() {
    let (servicebus, orders) = namespace_with_orders().await;
    let order = Message::from("not json").message_id("o-17");
    let message = order.time_to_live(Duration::from_secs(30));
    orders.send(message).await;
    orders.receive().await.abandon().await;
    let _locked = orders.receive().await;
    servicebus.clock().advance(Duration::from_secs(61)).await;

    let expectation = orders
        .expect_dead_lettered()
        .reason("MaxDeliveryCountExceeded");
    assert_fails("a_message_that_expired_under_its_lock", expectation).await;
}

#[tokio::test]
async fn a_message_that_was_abandoned() {
    let (_servicebus, orders) = namespace_with_order().await;
    orders.receive().await.abandon().await;
    orders.receive().await.abandon().await;
    let expectation = orders.expect_dead_lettered();
    assert_fails("a_message_that_is_still_waiting", expectation).await;
    let abandoned = orders.expect_abandoned().message_id("o-17").times(1);
    assert_fails("a_message_that_was_abandoned_too_often", abandoned).await;
}

#[tokio::test]
async fn a_locked_message() {
    let (_servicebus, orders) = namespace_with_order().await;
    let _locked = orders.receive().await;
    assert_fails("a_message_that_is_locked", orders.expect_empty()).await;
    let deferred = orders.expect_deferred().message_id("o-17").count(2);
    assert_fails("a_message_that_is_not_deferred", deferred).await;
    // What has happened is reported at once, although the lock keeps the namespace from becoming idle.
    let failed = orders.expect_not_delivered().message_id("o-17").await;
    assert_failed("a_delivery_that_should_not_have_happened", failed);
    // What has not happened is undecided.
    for error in [
        orders.expect_not_deferred().within(SHORT).await,
        orders.expect_lock_not_renewed().within(SHORT).await,
    ] {
        let text = error.unwrap_err().to_string();
        let beginning = "the namespace did not become idle within 0.01 s\n  orders: ";
        assert!(text.starts_with(beginning), "{text}");
    }
}

#[tokio::test]
async fn a_dead_letter() {
    let (_servicebus, orders) = namespace_with_order().await;
    let received = orders.receive().await;
    received.dead_letter("Rejected", "total is negative").await;
    let another = orders.expect_dead_lettered().reason("Refused");
    let another = another.description(contains("total")).count(2);
    assert_fails("a_dead_letter_with_another_reason", another).await;
    let none = orders.expect_not_dead_lettered();
    assert_fails("a_dead_letter_that_should_not_be", none).await;
}

#[tokio::test]
async fn a_message_that_was_never_sent() {
    let (servicebus, _) = namespace_with_orders().await;
    let expectation = servicebus.queue("orders").expect_completed().count(3);
    assert_fails("a_message_that_was_never_sent", expectation).await;
}

#[tokio::test]
async fn a_message_that_nobody_received() {
    let (_servicebus, orders) = namespace_with_order().await;
    let completed = orders.expect_completed().message_id("o-17");
    assert_fails("a_message_that_was_not_completed", completed).await;
    let forwarded = orders.expect_forwarded().to("audit");
    assert_fails("a_queue_that_forwards_nowhere", forwarded).await;
}

#[tokio::test]
async fn a_message_that_its_delivery_deleted() {
    let (_servicebus, orders) = namespace_with_order().await;
    orders.receive_and_delete().await;
    let completed = orders.expect_completed().message_id("o-17");
    assert_fails("a_message_that_its_delivery_deleted", completed).await;
    let delivered = orders.expect_delivered().to("worker-1");
    assert_fails("a_delivery_that_did_not_happen", delivered).await;
}

#[tokio::test]
async fn different_message_counts() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let messages = (0..12).map(|n| Message::from(n.to_string()).message_id(format!("o-{n}")));
    orders.send_all(messages).await;
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
async fn messages_that_expired_and_were_dropped() {
    let topology = Topology::new().queue(Queue::new("orders"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    let message = Message::from("{}").message_id("o-17");
    let message = message.time_to_live(Duration::from_secs(1));
    orders.send(message).await;
    servicebus.clock().advance(Duration::from_secs(2)).await;
    let expectation = orders.expect_dead_lettered();
    assert_fails("messages_that_expired_and_were_dropped", expectation).await;
}

#[tokio::test]
async fn an_operation_that_panics_names_the_line_of_the_test() {
    let (servicebus, _) = namespace_with_orders().await;
    let test = tokio::spawn(async move { servicebus.queue("ordres").send("hello").await });
    let payload = test.await.unwrap_err().into_panic();
    let text = payload.downcast_ref::<String>().unwrap();
    let line = line!() - 3;
    assert_eq!(
        *text,
        format!(
            "there is no queue \"ordres\"; did you mean \"orders\"? The namespace has orders\n  at {}:{line}:69",
            file!()
        ),
    );
}

#[test]
fn a_failed_assertion_panics_at_the_line_of_the_test() {
    if built::is_child() {
        return built::run_child(fail_on_purpose());
    }
    let output = built::rerun().output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains(&format!("panicked at {}:", file!())),
        "{stderr}"
    );
    assert_contains(
        &stderr,
        "orders: expected 1 message completed, found none within 0.01 s",
    );
}

async fn fail_on_purpose() {
    let (servicebus, _) = namespace_with_orders().await;
    assert_completed!(servicebus.queue("orders"), within = SHORT).await;
}

#[tokio::test]
async fn a_deferred_message() {
    let (_servicebus, orders) = namespace_with_order().await;
    let number = orders.receive().await.defer().await;
    let completed = || orders.expect_completed();
    assert_fails("a_deferred_message_that_should_be_completed", completed()).await;
    let failed = orders.expect_not_deferred().message_id("o-17").await;
    assert_failed("a_message_that_should_not_be_deferred", failed);
    let _locked = orders.receive_deferred(number).await;
    assert_fails("a_deferred_message_that_is_locked", completed()).await;
}

#[tokio::test]
async fn a_scheduled_message() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders
        .schedule(Message::from("{}").message_id("o-17"), 10 * MINUTE)
        .await;
    let failed = orders.expect_not_scheduled().due_in(10 * MINUTE).await;
    assert_failed("a_message_that_should_not_be_scheduled", failed);
    let early = orders.expect_scheduled().due_in(5 * MINUTE);
    assert_fails("a_message_that_is_scheduled_for_another_time", early).await;
    servicebus.clock().advance(10 * MINUTE).await;
    assert_fails("a_message_that_was_activated", orders.expect_scheduled()).await;
}

#[tokio::test]
async fn a_message_that_could_not_be_forwarded() {
    let (servicebus, _) = namespace_with_orders().await;
    let audit = servicebus.create_queue(Queue::new("audit")).await;
    let orders = servicebus.queue("orders");
    orders.update(|queue| queue.forward_to("audit")).await;
    audit.delete().await;
    orders.send(Message::from("{}").message_id("o-17")).await;
    servicebus.wait_idle().await;
    let expectation = orders.expect_forwarded().message_id("o-17");
    assert_fails("a_message_that_could_not_be_forwarded", expectation).await;
}

#[tokio::test]
async fn a_transfer_that_failed_for_another_reason() {
    let (servicebus, _) = namespace_with_orders().await;
    let audit = servicebus.create_queue(Queue::new("audit")).await;
    let orders = servicebus.queue("orders");
    orders.update(|queue| queue.forward_to("audit")).await;
    audit
        .update(|queue| queue.status(EntityStatus::Disabled))
        .await;
    orders.send(Message::from("{}").message_id("o-17")).await;
    servicebus.wait_idle().await;
    let lost = orders.transfer_dead_letters();
    let reason = "MaxTransferHopCountExceeded";
    let expectation = lost.expect_dead_lettered().reason(reason);
    assert_fails("a_transfer_that_failed_for_another_reason", expectation).await;
    let failed = lost.expect_not_dead_lettered().await;
    assert_failed("a_transfer_that_failed_for_another_reason_2", failed);
    let expectation = orders
        .expect_message_count()
        .transfer_dead_letter(0)
        .transfer(1);
    assert_fails("a_transfer_that_failed_for_another_reason_3", expectation).await;
}

#[tokio::test]
async fn a_missing_message_that_was_forwarded() {
    let (servicebus, _) = namespace_with_orders().await;
    servicebus.create_queue(Queue::new("audit")).await;
    let orders = servicebus.queue("orders");
    orders.update(|queue| queue.forward_to("audit")).await;
    orders.send(Message::from("{}").message_id("o-17")).await;
    servicebus.wait_idle().await;
    let expectation = orders.expect_deferred();
    assert_fails("a_missing_message_that_was_forwarded", expectation).await;
}

#[tokio::test]
async fn a_message_that_has_not_expired() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let offer = Message::from("{}").message_id("o-17").time_to_live(MINUTE);
    orders.send(offer).await;
    assert_fails("a_message_that_has_not_expired", orders.expect_expired()).await;
    let expired = orders.expect_dead_lettered().reason("TTLExpiredException");
    let text = expired.within(SHORT).await.unwrap_err().to_string();
    assert!(
        text.contains("hint: o-17 has ") && text.ends_with(" s to live; advance the clock"),
        "{text}"
    );
}

#[tokio::test]
async fn a_lock_that_was_renewed_once() {
    let (_servicebus, orders) = namespace_with_order().await;
    let mut received = orders.receive().await;
    received.renew_lock().await;
    let renewed = orders.expect_lock_renewed().at_least(2);
    assert_fails("a_lock_that_was_not_renewed", renewed).await;
    // What has happened is reported at once, although the lock keeps the namespace from becoming idle.
    let failed = orders.expect_lock_not_renewed().await;
    assert_failed("a_lock_that_was_renewed", failed);
}

#[tokio::test]
async fn assertions_about_a_missing_queue() {
    let (servicebus, _) = namespace_with_orders().await;
    let unknown = servicebus.queue("ordres");
    let errors = [
        unknown.expect_deferred().await.unwrap_err(),
        unknown.expect_scheduled().await.unwrap_err(),
        unknown.expect_forwarded().await.unwrap_err(),
        unknown.expect_not_delivered().await.unwrap_err(),
        unknown.expect_not_deferred().await.unwrap_err(),
        unknown.expect_not_scheduled().await.unwrap_err(),
        unknown.expect_lock_not_renewed().await.unwrap_err(),
    ];
    for error in errors {
        let expected =
            "there is no queue \"ordres\"; did you mean \"orders\"? The namespace has orders";
        assert_eq!(error.to_string(), expected);
    }
}
