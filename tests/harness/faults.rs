//! Faults: what goes wrong as it was scripted, what the record says of it, and a script that was not played.

mod chance;
mod clients;
mod narrowed;
mod raw;
mod settling;

use servicebus_harness::{EventKind, Fault, prelude::*};

use crate::harness::{error_of, transactions::TransactionClient};
use servicebus_test_support::normalised::normalised;

async fn bus() -> ServiceBus {
    let topology = Topology::new()
        .queue(Queue::new("orders"))
        .queue(Queue::new("audit"));
    ServiceBus::builder().topology(topology).start().await
}

/// Waits until a fault has fired.
async fn hit(fault: &Fault) {
    while fault.hits().await == 0 {
        tokio::task::yield_now().await;
    }
}

/// How a test fails that does this.
pub(crate) async fn failure(test: impl Future<Output = ()> + Send + 'static) -> String {
    let failed = tokio::spawn(test).await.expect_err("the test fails");
    let failed = failed.into_panic();
    *failed.downcast::<String>().expect("it fails with a text")
}

#[tokio::test]
async fn a_discharge_with_a_lost_reply_is_applied() {
    let servicebus = bus().await;
    let faults = servicebus.faults();
    let fault = faults.on(Operation::Discharge).entity("orders").nth(2);
    let fault = fault.lose_reply().await;
    let mut transaction_client = TransactionClient::connect(&servicebus).await;
    transaction_client.send("orders", "a").await.commit().await;
    assert_eq!(fault.hits().await, 0);
    let transaction = transaction_client.send("orders", "b").await;
    transaction.commit_without_reply(hit(&fault)).await;
    assert_eq!(fault.hits().await, 1);
    let orders = servicebus.queue("orders");
    assert_message_count!(orders, active = 2).await;
    let timeline = servicebus.timeline(&orders).await;
    assert_eq!(timeline.count(&EventKind::TransactionCommitted), 2);
    assert_eq!(timeline.count(&EventKind::Fault), 1);
    let shown = timeline.to_string();
    let fault = shown.lines().find(|line| line.contains(" fault "));
    assert_eq!(
        normalised(fault.expect("the fault is on record")),
        "  +… fault                 by the transaction client, the reply to the discharge was lost"
    );
    servicebus.stop().await;
}

#[tokio::test]
async fn a_fault_that_never_fired_fails_the_test_when_the_namespace_is_dropped() {
    let failure = failure(async {
        let servicebus = bus().await;
        let orders = servicebus
            .faults()
            .on(Operation::Discharge)
            .entity("orders");
        orders.nth(2).lose_reply().await;
        let any = servicebus.faults().on(Operation::Discharge).nth(9);
        any.lose_reply().await;
        let mut transaction_client = TransactionClient::connect(&servicebus).await;
        transaction_client.send("orders", "a").await.commit().await;
        transaction_client.send("audit", "b").await.commit().await;
    });
    assert_eq!(
        without_locations(&failure.await),
        r#"a fault never fired: on(Operation::Discharge).entity("orders").nth(2).lose_reply()
  only 1 discharge came, and 1 in other entities
  scripted at tests/harness/faults.rs:…
a fault never fired: on(Operation::Discharge).nth(9).lose_reply()
  only 2 discharges came
  scripted at tests/harness/faults.rs:…
hint: let the test perform the operation of the fault, or remove the fault with `remove()`; if the test returned early with `?`, this failure hides its error: unwrap there to see it"#
    );
}

#[tokio::test]
async fn a_fault_that_never_fired_fails_the_test_when_the_namespace_is_stopped() {
    let failure = failure(async {
        let servicebus = bus().await;
        let misspelt = servicebus
            .faults()
            .on(Operation::Discharge)
            .entity("ordres");
        misspelt.lose_reply().await;
        servicebus.stop().await;
    });
    assert_eq!(
        without_locations(&failure.await),
        "a fault never fired: on(Operation::Discharge).entity(\"ordres\").nth(1).lose_reply()
  no discharge came; did you mean the entity \"orders\"?
  scripted at tests/harness/faults.rs:…
hint: let the test perform the operation of the fault, or remove the fault with `remove()`; if the test returned early with `?`, this failure hides its error: unwrap there to see it"
    );
}

#[tokio::test]
async fn an_unfired_fault_counts_operations_on_other_entities() {
    let failure = failure(async {
        let servicebus = bus().await;
        let orders = servicebus
            .faults()
            .on(Operation::Discharge)
            .entity("orders");
        orders.lose_reply().await;
        let mut transaction_client = TransactionClient::connect(&servicebus).await;
        transaction_client.send("audit", "a").await.commit().await;
    });
    let failure = failure.await;
    let near = failure.lines().nth(1);
    assert_eq!(near, Some("  1 discharge came, in other entities"));
}

#[tokio::test]
async fn an_unfired_fault_distinguishes_near_matches() {
    let failure = failure(async {
        let servicebus = bus().await;
        let faults = servicebus.faults();
        let sends = faults.on(Operation::Send).entity("orders");
        sends
            .message_id("o-1")
            .application_property("color", "red")
            .reject("com.microsoft:timeout")
            .await;
        let words = Effect::detach("amqp:link:detach-forced")
            .after()
            .description("gone");
        faults
            .on(Operation::Deliver)
            .every(2)
            .times(3)
            .apply(words)
            .await;
        servicebus.queue("audit").send("a").await;
        servicebus.queue("orders").send_all(["b", "c"]).await;
        servicebus.queue("orders").receive_and_delete().await;
    });
    assert_eq!(
        without_locations(&failure.await),
        r#"a fault never fired: on(Operation::Send).entity("orders").message_id("o-1").application_property("color", "red").nth(1).reject("com.microsoft:timeout")
  2 sends came, without what was asked for, and 1 in other entities
  scripted at tests/harness/faults.rs:…
a fault never fired: on(Operation::Deliver).every(2).times(3).apply(Effect::detach("amqp:link:detach-forced").after().description("gone"))
  only 1 delivery came
  scripted at tests/harness/faults.rs:…
hint: let the test perform the operation of the fault, or remove the fault with `remove()`; if the test returned early with `?`, this failure hides its error: unwrap there to see it"#
    );
}

#[tokio::test]
async fn a_failing_test_keeps_its_own_failure() {
    let failure = failure(async {
        let servicebus = bus().await;
        let discharges = servicebus.faults().on(Operation::Discharge);
        discharges.lose_reply().await;
        panic!("{}", "the test's own words");
    });
    assert_eq!(failure.await, "the test's own words");
}

#[tokio::test]
async fn a_fault_that_was_removed_need_not_fire() {
    let servicebus = bus().await;
    let fault = servicebus.faults().on(Operation::Discharge).lose_reply();
    let fault = fault.await;
    fault.remove().await;
    assert_eq!(fault.hits().result().await.unwrap_err().status(), Some(404));
    let mut transaction_client = TransactionClient::connect(&servicebus).await;
    transaction_client.send("orders", "a").await.commit().await;
}

#[tokio::test]
async fn an_impossible_fault_is_refused_with_the_possible_ones() {
    let servicebus = bus().await;
    let zeroth = servicebus.faults().on(Operation::Discharge).nth(0);
    let refused = error_of(zeroth.apply(Effect::lose_reply())).await;
    let written = "cannot set the fault on(Operation::Discharge).nth(0).lose_reply(): ";
    assert!(refused.starts_with(written), "{refused}");
    assert!(refused.contains("a whole number from 1"), "{refused}");
    let senseless = servicebus.faults().on(Operation::Connect);
    let refused = error_of(senseless.apply(Effect::lose_lock())).await;
    assert_eq!(
        refused,
        "cannot set the fault on(Operation::Connect).nth(1).lose_lock(): Effect::lose_lock() is not possible at Operation::Connect; possible: close, drop_connection, delay, stop_reading, crash, failover, latency"
    );
}

/// A failure without the lines of this file.
fn without_locations(failure: &str) -> String {
    let lines = failure
        .lines()
        .map(|line| match line.split_once("faults.rs:") {
            Some((before, _)) => format!("{before}faults.rs:…"),
            None => line.to_owned(),
        });
    Vec::from_iter(lines).join("\n")
}
