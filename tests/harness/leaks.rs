//! A test that asked for it fails when it leaves messages behind.

use std::{panic, thread, time::Duration};

use servicebus_harness::prelude::*;

use crate::harness::orders;
use servicebus_test_support::normalised::normalised;

/// Runs a test that asked for the check, and returns what it failed with, if it did.
fn failure_of<F: Future<Output = ()>>(
    test: impl FnOnce(ServiceBus) -> F + Send + 'static,
) -> Option<String> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let bus = ServiceBus::builder().topology(orders()).leak_check(true);
            test(bus.start().await).await;
        });
    };
    let payload = thread::spawn(run).join().err()?;
    match payload.downcast::<String>() {
        Ok(text) => {
            let (failure, line) = { text.rsplit_once("\n\nthe namespace was started at ") }
                .unwrap_or((&text, "tests/harness/leaks.rs:"));
            assert!(line.starts_with("tests/harness/leaks.rs:"), "{line}");
            Some(normalised(failure))
        }
        Err(payload) => panic::resume_unwind(payload),
    }
}

#[test]
fn a_test_that_leaves_nothing_passes() {
    let failure = failure_of(|servicebus| async move {
        let orders = servicebus.queue("orders");
        orders.send_all(["1", "2"]).await;
        orders.receive().await.complete().await;
        orders.receive().await.dead_letter("Rejected", "no").await;
        orders.schedule("3", Duration::from_secs(60)).await;
    });
    assert_eq!(failure, None);
}

#[test]
fn a_test_that_leaves_messages_fails_with_all_of_them() {
    let failure = failure_of(|servicebus| async move {
        let orders = servicebus.queue("orders");
        orders.send(Message::from("{}").message_id("o-17")).await;
        orders.receive().await.defer().await;
        let other = servicebus.create_queue(Queue::new("other")).await;
        other.send(Message::from("{}").message_id("o-18")).await;
    });
    assert_eq!(
        failure.as_deref(),
        Some(
            r#"orders: expected no messages when the test ended, found 1 active (1 deferred)

orders holds 1 message
  #1 "{}" (message-id o-17): deferred, 1 of 3 deliveries counted

timeline of o-17 in orders
  +… sent            by the test, 26 bytes
  +… delivered       to the test (lock 60 s, delivery 1 of 3)
  +… deferred        by the test

hint: o-17 is deferred: receive it by its sequence number, 1

other: expected no messages when the test ended, found 1 active

other holds 1 message
  #1 "{}" (message-id o-18): active

timeline of o-18 in other
  +… sent            by the test, 26 bytes

hint: o-18 was never received: no client is attached to other"#
        )
    );
}

#[test]
fn a_stop_checks_for_leaks() {
    let failure = failure_of(|servicebus| async move {
        servicebus.queue("orders").send("hello").await;
        servicebus.stop().await;
    });
    assert!(failure.is_some_and(|text| text.starts_with("orders: expected no messages when")));
}

#[test]
fn a_failing_test_is_not_checked_for_leaks() {
    let failure = failure_of(|servicebus| async move {
        servicebus.queue("orders").send("hello").await;
        panic::resume_unwind(Box::new("its own reason".to_owned()));
    });
    assert_eq!(failure.as_deref(), Some("its own reason"));
}
