//! The assertions about what happened to a queue's messages seen failing, with the whole of their texts.

use std::time::Duration;

use servicebus_harness::prelude::*;

use crate::harness::{
    failures::{SHORT, assert_text},
    namespace_with_orders,
};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_message_that_is_not_deferred() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    let _locked = orders.receive().await;
    let failed = orders.expect_deferred().message_id("o-17").count(2);
    assert_text(
        failed.within(SHORT).await,
        r#"orders: expected 2 messages deferred with message id "o-17", found none within 0.01 s

orders holds 1 message
  #1 "{}" (message-id o-17): locked

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)"#,
    );
}

#[tokio::test]
async fn a_message_that_is_deferred_and_should_be_done() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    orders.receive().await.defer().await;
    assert_text(
        orders.expect_completed().within(SHORT).await,
        r#"orders: expected 1 message completed, found none within 0.01 s

orders holds 1 message
  #1 "{}" (message-id o-17): deferred, 1 of 3 deliveries counted

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)
  +… deferred        by the test

hint: o-17 is deferred: only its number, 1, gets it"#,
    );
}

#[tokio::test]
async fn a_message_that_should_not_be_deferred() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    orders.receive().await.defer().await;
    assert_text(
        orders.expect_not_deferred().message_id("o-17").await,
        r#"orders: expected no message deferred with message id "o-17", found 1

orders holds 1 message
  #1 "{}" (message-id o-17): deferred, 1 of 3 deliveries counted

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)
  +… deferred        by the test"#,
    );
}

#[tokio::test]
async fn whether_a_message_will_be_deferred_is_open_while_somebody_holds_it() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
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
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders
        .schedule(Message::from("{}").message_id("o-17"), 10 * MINUTE)
        .await;
    let failed = orders.expect_not_scheduled().due_in(10 * MINUTE).await;
    assert_text(
        failed,
        r#"orders: expected no message scheduled due in 600 s (± 10 s), found 1

orders holds 1 message
  #1 "{}" (message-id o-17): scheduled, due in 600 s

timeline of o-17 in orders
  +… scheduled       by the test, 71 bytes, due in 600 s"#,
    );
}

#[tokio::test]
async fn a_message_that_is_scheduled_for_another_time() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders
        .schedule(Message::from("{}").message_id("o-17"), 10 * MINUTE)
        .await;
    let failed = orders.expect_scheduled().due_in(5 * MINUTE).within(SHORT);
    assert_text(
        failed.await,
        r#"orders: expected 1 message scheduled due in 300 s (± 10 s), found none within 0.01 s

orders holds 1 message
  #1 "{}" (message-id o-17): scheduled, due in 600 s — differs

timeline of o-17 in orders
  +… scheduled       by the test, 71 bytes, due in 600 s"#,
    );
}

#[tokio::test]
async fn a_message_that_was_activated() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders
        .schedule(Message::from("{}").message_id("o-17"), MINUTE)
        .await;
    servicebus.clock().advance(MINUTE).await;
    assert_text(
        orders.expect_scheduled().within(SHORT).await,
        r#"orders: expected 1 message scheduled, found none within 0.01 s

orders holds 1 message
  #2 "{}" (message-id o-17): active

timeline of o-17 in orders                                    (virtual time)
  +… scheduled       by the test, 71 bytes, due in 60 s
            clock advanced  by the test, 60 s
  +… activated       as number 2
  +… sent            71 bytes"#,
    );
}

#[tokio::test]
async fn a_queue_that_forwards_nowhere() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    let failed = orders.expect_forwarded().to("audit").within(SHORT);
    assert_text(
        failed.await,
        r#"orders: expected 1 message forwarded to "audit", found none within 0.01 s

orders holds 1 message
  #1 "{}" (message-id o-17): active

timeline of o-17 in orders
  +… sent            by the test, 26 bytes

hint: orders forwards nowhere"#,
    );
}

#[tokio::test]
async fn a_message_that_could_not_be_forwarded() {
    let servicebus = namespace_with_orders().await;
    let audit = servicebus.create_queue(Queue::new("audit")).await;
    let orders = servicebus.queue("orders");
    orders.update(|queue| queue.forward_to("audit")).await;
    audit.delete().await;
    orders.send(Message::from("{}").message_id("o-17")).await;
    servicebus.wait_idle().await;
    let failed = orders.expect_forwarded().message_id("o-17").within(SHORT);
    assert_text(
        failed.await,
        r#"orders: expected 1 message forwarded with message id "o-17", found none within 0.01 s

orders/$Transfer/$DeadLetterQueue holds 1 message
  #1 "{}" (message-id o-17): reason "MessagingEntityNotFoundException"

timeline of o-17 in orders
  +… sent                   by the test, 26 bytes
  +… transfer-dead-lettered MessagingEntityNotFoundException: The messaging entity 'audit' could not be found. To know more visit https://aka.ms/sbResourceMgrExceptions.

hint: orders forwards to audit"#,
    );
}

#[tokio::test]
async fn a_transfer_that_failed_for_another_reason() {
    let servicebus = namespace_with_orders().await;
    let audit = servicebus.create_queue(Queue::new("audit")).await;
    let orders = servicebus.queue("orders");
    orders.update(|queue| queue.forward_to("audit")).await;
    audit
        .update(|queue| queue.status(EntityStatus::Disabled))
        .await;
    orders.send(Message::from("{}").message_id("o-17")).await;
    servicebus.wait_idle().await;
    let lost = orders.transfer_dead_letters();
    let failed = lost
        .expect_dead_lettered()
        .reason("MaxTransferHopCountExceeded");
    assert_text(
        failed.within(SHORT).await,
        r#"orders/$Transfer/$DeadLetterQueue: expected 1 message dead-lettered with reason "MaxTransferHopCountExceeded", found none within 0.01 s

orders/$Transfer/$DeadLetterQueue holds 1 message
  #1 "{}" (message-id o-17): reason "MessagingEntityDisabledException" — differs

timeline of o-17 in orders
  +… sent                   by the test, 26 bytes
  +… transfer-dead-lettered MessagingEntityDisabledException: Messaging entity 'audit' is currently disabled. For more information please see https://aka.ms/ServiceBusExceptions .

hint: a message was dead-lettered with reason "MessagingEntityDisabledException" ("Messaging entity 'audit' is currently disabled. For more information please see https://aka.ms/ServiceBusExceptions ."), not with "MaxTransferHopCountExceeded""#,
    );
    assert_text(
        lost.expect_not_dead_lettered().await,
        r#"orders/$Transfer/$DeadLetterQueue: expected no message dead-lettered, found 1

orders/$Transfer/$DeadLetterQueue holds 1 message
  #1 "{}" (message-id o-17): reason "MessagingEntityDisabledException"

timeline of o-17 in orders
  +… sent                   by the test, 26 bytes
  +… transfer-dead-lettered MessagingEntityDisabledException: Messaging entity 'audit' is currently disabled. For more information please see https://aka.ms/ServiceBusExceptions ."#,
    );
    let failed = orders.expect_message_count().transfer_dead_letter(0);
    assert_text(
        failed.transfer(1).within(SHORT).await,
        r#"orders: expected transfer_dead_letter = 0, transfer = 1, found transfer_dead_letter = 1, transfer = 0 after 0.01 s

orders/$Transfer/$DeadLetterQueue holds 1 message
  #1 "{}" (message-id o-17): reason "MessagingEntityDisabledException"

timeline of o-17 in orders
  +… sent                   by the test, 26 bytes
  +… transfer-dead-lettered MessagingEntityDisabledException: Messaging entity 'audit' is currently disabled. For more information please see https://aka.ms/ServiceBusExceptions ."#,
    );
}

#[tokio::test]
async fn a_message_that_was_forwarded_and_is_looked_for() {
    let servicebus = namespace_with_orders().await;
    servicebus.create_queue(Queue::new("audit")).await;
    let orders = servicebus.queue("orders");
    orders.update(|queue| queue.forward_to("audit")).await;
    orders.send(Message::from("{}").message_id("o-17")).await;
    servicebus.wait_idle().await;
    assert_text(
        orders.expect_deferred().within(SHORT).await,
        r#"orders: expected 1 message deferred, found none within 0.01 s

orders is empty

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… forwarded       to audit

hint: orders forwards to audit: look there"#,
    );
}

#[tokio::test]
async fn a_message_that_has_not_expired() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    let offer = Message::from("{}").message_id("o-17").time_to_live(MINUTE);
    orders.send(offer).await;
    assert_text(
        orders.expect_expired().within(SHORT).await,
        r#"orders: expected 1 message expired, found none within 0.01 s

orders holds 1 message
  #1 "{}" (message-id o-17): active

timeline of o-17 in orders
  +… sent            by the test, 32 bytes, time to live 60 s

hint: o-17 has 60 s to live; advance the clock"#,
    );
}

#[tokio::test]
async fn a_message_that_was_abandoned_too_often() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    orders.receive().await.abandon().await;
    orders.receive().await.abandon().await;
    let failed = orders.expect_abandoned().message_id("o-17").times(1);
    assert_text(
        failed.within(SHORT).await,
        r#"orders: expected 1 delivery abandoned with message id "o-17", found 2 within 0.01 s

orders holds 1 message
  #1 "{}" (message-id o-17): active, 2 of 3 deliveries counted

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)
  +… abandoned       by the test
  +… delivered       to the test (lock 60 s, delivery 2 of 3)
  +… abandoned       by the test

hint: o-17 is still active after 2 of 3 deliveries, 2 of them counted; it waits to be received again"#,
    );
}

#[tokio::test]
async fn a_lock_that_nobody_renewed() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    let mut received = orders.receive().await;
    received.renew_lock().await;
    let failed = orders.expect_lock_renewed().at_least(2).within(SHORT);
    assert_text(
        failed.await,
        r#"orders: expected at least 2 locks renewed, found 1 within 0.01 s

orders holds 1 message
  #1 "{}" (message-id o-17): locked

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)
  +… lock renewed    by the test (lock 60 s)"#,
    );
}

#[tokio::test]
async fn a_lock_that_somebody_renewed() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    let mut received = orders.receive().await;
    received.renew_lock().await;
    // What has happened is reported at once, although the lock keeps the namespace from becoming idle.
    assert_text(
        orders.expect_lock_not_renewed().await,
        r#"orders: expected no lock renewed, found 1

orders holds 1 message
  #1 "{}" (message-id o-17): locked

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)
  +… lock renewed    by the test (lock 60 s)"#,
    );
}

#[tokio::test]
async fn a_delivery_that_did_not_happen() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    orders.receive_and_delete().await;
    let failed = orders.expect_delivered().to("worker-1").within(SHORT);
    assert_text(
        failed.await,
        r#"orders: expected 1 delivery to "worker-1", found none within 0.01 s

orders is empty

timeline of o-17 in orders
  +… sent                 by the test, 26 bytes
  +… received and deleted by the test"#,
    );
}

#[tokio::test]
async fn a_delivery_that_should_not_have_happened() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    let _locked = orders.receive().await;
    // What has happened is reported at once, although the lock keeps the namespace from becoming idle.
    let failed = orders.expect_not_delivered().message_id("o-17").await;
    assert_text(
        failed,
        r#"orders: expected no delivery with message id "o-17", found 1

orders holds 1 message
  #1 "{}" (message-id o-17): locked

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)"#,
    );
}

#[tokio::test]
async fn a_deferred_message_that_somebody_holds() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-17")).await;
    let number = orders.receive().await.defer().await;
    let _locked = orders.receive_deferred(number).await;
    let failed = orders.expect_completed().within(SHORT).await;
    assert_text(
        failed,
        r#"orders: expected 1 message completed, found none within 0.01 s

orders holds 1 message
  #1 "{}" (message-id o-17): deferred, locked, 1 of 3 deliveries counted

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)
  +… deferred        by the test
  +… delivered       to the test (lock 60 s, delivery 2 of 3)

hint: o-17 is still active after 2 of 3 deliveries, 1 of them counted; it is locked now: settle it, or advance the clock past its lock"#,
    );
}

#[tokio::test]
async fn assertions_about_a_queue_that_is_not_there() {
    let servicebus = namespace_with_orders().await;
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
