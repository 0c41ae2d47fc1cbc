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
    orders
        .send(order.time_to_live(Duration::from_secs(30)))
        .await;
    orders.receive().await.abandon().await;
    let _locked = orders.receive().await;
    servicebus.clock().advance(Duration::from_secs(61)).await;

    let expectation = orders
        .expect_dead_lettered()
        .reason("MaxDeliveryCountExceeded");
    assert_fails("a_message_that_expired_under_its_lock", expectation).await;
}

#[tokio::test]
async fn a_message_that_is_still_waiting() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders
        .send(Message::from("not json").message_id("o-17"))
        .await;
    orders.receive().await.abandon().await;
    orders.receive().await.abandon().await;

    assert_fails(
        "a_message_that_is_still_waiting",
        orders.expect_dead_lettered(),
    )
    .await;
}

#[tokio::test]
async fn a_message_that_is_locked() {
    let (_servicebus, orders) = namespace_with_order().await;
    let _locked = orders.receive().await;

    assert_fails("a_message_that_is_locked", orders.expect_empty()).await;
}

#[tokio::test]
async fn a_dead_letter_with_another_reason() {
    let (_servicebus, orders) = namespace_with_order().await;
    let received = orders.receive().await;
    received.dead_letter("Rejected", "total is negative").await;

    let expectation = orders
        .expect_dead_lettered()
        .reason("Refused")
        .description(contains("total"))
        .count(2);
    assert_fails("a_dead_letter_with_another_reason", expectation).await;
}

#[tokio::test]
async fn a_dead_letter_that_should_not_be() {
    let (_servicebus, orders) = namespace_with_order().await;
    orders.receive().await.dead_letter("Rejected", "no").await;

    assert_fails(
        "a_dead_letter_that_should_not_be",
        orders.expect_not_dead_lettered(),
    )
    .await;
}

#[tokio::test]
async fn a_message_that_was_never_sent() {
    let (servicebus, _) = namespace_with_orders().await;
    let expectation = servicebus.queue("orders").expect_completed().count(3);
    assert_fails("a_message_that_was_never_sent", expectation).await;
}

#[tokio::test]
async fn a_message_that_was_not_completed() {
    let (_servicebus, orders) = namespace_with_order().await;
    let expectation = orders.expect_completed().message_id("o-17");
    assert_fails("a_message_that_was_not_completed", expectation).await;
}

#[tokio::test]
async fn a_message_that_its_delivery_deleted() {
    let (_servicebus, orders) = namespace_with_order().await;
    orders.receive_and_delete().await;
    let expectation = orders.expect_completed().message_id("o-17");
    assert_fails("a_message_that_its_delivery_deleted", expectation).await;
}

#[tokio::test]
async fn different_message_counts() {
    let (_servicebus, orders) = namespace_with_orders().await;
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
async fn messages_that_expired_and_were_dropped() {
    let topology = Topology::new().queue(Queue::new("orders"));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    let message = Message::from("{}").message_id("o-17");
    orders
        .send(message.time_to_live(Duration::from_secs(1)))
        .await;
    servicebus.clock().advance(Duration::from_secs(2)).await;
    assert_fails(
        "messages_that_expired_and_were_dropped",
        orders.expect_dead_lettered(),
    )
    .await;
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
    let test = "harness::failures::a_failed_assertion_panics_at_the_line_of_the_test";
    let output = built::rerun(test).output().unwrap();
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
async fn a_message_that_is_not_deferred() {
    let (_servicebus, orders) = namespace_with_order().await;
    let _locked = orders.receive().await;
    let expectation = orders.expect_deferred().message_id("o-17").count(2);
    assert_fails("a_message_that_is_not_deferred", expectation).await;
}

#[tokio::test]
async fn a_deferred_message_that_should_be_completed() {
    let (_servicebus, orders) = namespace_with_order().await;
    orders.receive().await.defer().await;
    assert_fails(
        "a_deferred_message_that_should_be_completed",
        orders.expect_completed(),
    )
    .await;
}

#[tokio::test]
async fn a_message_that_should_not_be_deferred() {
    let (_servicebus, orders) = namespace_with_order().await;
    orders.receive().await.defer().await;
    let failed = orders.expect_not_deferred().message_id("o-17").await;
    assert_failed("a_message_that_should_not_be_deferred", failed);
}

#[tokio::test]
async fn not_deferred_is_undecided_while_a_message_is_locked() {
    let (_servicebus, orders) = namespace_with_order().await;
    let _locked = orders.receive().await;
    let errors = [
        orders.expect_not_deferred().within(SHORT).await,
        orders.expect_lock_not_renewed().within(SHORT).await,
    ];
    for error in errors {
        let text = error.unwrap_err().to_string();
        let beginning = "the namespace did not become idle within 0.01 s\n  orders: ";
        assert!(text.starts_with(beginning), "{text}");
    }
}

#[tokio::test]
async fn a_message_that_should_not_be_scheduled() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders
        .schedule(Message::from("{}").message_id("o-17"), 10 * MINUTE)
        .await;
    let failed = orders.expect_not_scheduled().due_in(10 * MINUTE).await;
    assert_failed("a_message_that_should_not_be_scheduled", failed);
}

#[tokio::test]
async fn a_message_that_is_scheduled_for_another_time() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders
        .schedule(Message::from("{}").message_id("o-17"), 10 * MINUTE)
        .await;
    let expectation = orders.expect_scheduled().due_in(5 * MINUTE);
    assert_fails("a_message_that_is_scheduled_for_another_time", expectation).await;
}

#[tokio::test]
async fn a_message_that_was_activated() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders
        .schedule(Message::from("{}").message_id("o-17"), MINUTE)
        .await;
    servicebus.clock().advance(MINUTE).await;
    assert_fails("a_message_that_was_activated", orders.expect_scheduled()).await;
}

#[tokio::test]
async fn a_queue_that_forwards_nowhere() {
    let (_servicebus, orders) = namespace_with_order().await;
    assert_fails(
        "a_queue_that_forwards_nowhere",
        orders.expect_forwarded().to("audit"),
    )
    .await;
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
    assert_fails(
        "a_missing_message_that_was_forwarded",
        orders.expect_deferred(),
    )
    .await;
}

#[tokio::test]
async fn a_message_that_has_not_expired() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let offer = Message::from("{}").message_id("o-17").time_to_live(MINUTE);
    orders.send(offer).await;
    assert_fails("a_message_that_has_not_expired", orders.expect_expired()).await;
}

#[tokio::test]
async fn a_message_that_should_have_expired_into_the_dead_letter_queue() {
    let (_servicebus, orders) = namespace_with_orders().await;
    let offer = Message::from("{}").message_id("o-17").time_to_live(MINUTE);
    orders.send(offer).await;
    let expired = orders.expect_dead_lettered().reason("TTLExpiredException");
    let text = expired.within(SHORT).await.unwrap_err().to_string();
    assert!(
        text.contains("hint: o-17 has ") && text.ends_with(" s to live; advance the clock"),
        "{text}"
    );
}

#[tokio::test]
async fn a_message_that_was_abandoned_too_often() {
    let (_servicebus, orders) = namespace_with_order().await;
    orders.receive().await.abandon().await;
    orders.receive().await.abandon().await;
    let expectation = orders.expect_abandoned().message_id("o-17").times(1);
    assert_fails("a_message_that_was_abandoned_too_often", expectation).await;
}

#[tokio::test]
async fn a_lock_that_was_not_renewed() {
    let (_servicebus, orders) = namespace_with_order().await;
    let mut received = orders.receive().await;
    received.renew_lock().await;
    assert_fails(
        "a_lock_that_was_not_renewed",
        orders.expect_lock_renewed().at_least(2),
    )
    .await;
}

#[tokio::test]
async fn a_lock_that_was_renewed() {
    let (_servicebus, orders) = namespace_with_order().await;
    let mut received = orders.receive().await;
    received.renew_lock().await;
    // What has happened is reported at once, although the lock keeps the namespace from becoming idle.
    let failed = orders.expect_lock_not_renewed().await;
    assert_failed("a_lock_that_was_renewed", failed);
}

#[tokio::test]
async fn a_delivery_that_did_not_happen() {
    let (_servicebus, orders) = namespace_with_order().await;
    orders.receive_and_delete().await;
    assert_fails(
        "a_delivery_that_did_not_happen",
        orders.expect_delivered().to("worker-1"),
    )
    .await;
}

#[tokio::test]
async fn a_delivery_that_should_not_have_happened() {
    let (_servicebus, orders) = namespace_with_order().await;
    let _locked = orders.receive().await;
    // What has happened is reported at once, although the lock keeps the namespace from becoming idle.
    let failed = orders.expect_not_delivered().message_id("o-17").await;
    assert_failed("a_delivery_that_should_not_have_happened", failed);
}

#[tokio::test]
async fn a_deferred_message_that_is_locked() {
    let (_servicebus, orders) = namespace_with_order().await;
    let number = orders.receive().await.defer().await;
    let _locked = orders.receive_deferred(number).await;
    assert_fails(
        "a_deferred_message_that_is_locked",
        orders.expect_completed(),
    )
    .await;
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
