//! Cases of two scripts: transactions, of which `transactions.py` asserts what two of Proton's connections see, and what no
//! SDK asks of the service (`tests/conformance/OBSERVED.md`), of which `observed.py` asserts what is refused and what is
//! shown. What is left in the queue is judged here.

use servicebus_harness::prelude::*;
use tokio::process::Command;

use crate::driver::{control_url, run_to_the_end};
use crate::environment::{self, Language};

/// Runs a case of a script in a namespace of its own and returns that; none where it may be left out.
async fn run(script: &str, case: &str, tier: Tier) -> Option<ServiceBus> {
    let environment = environment::ready(Language::Proton).await?;
    let topology = Topology::new().tier(tier).queue(Queue::new("orders"));
    let starting = ServiceBus::builder().topology(topology).start();
    let servicebus = starting.await;
    let mut command = Command::new(environment::python(&environment));
    command
        .arg(environment::scripts(Language::Proton).join(script))
        .arg(case)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SERVICEBUS_CONTROL_URL", control_url(&servicebus))
        .env(
            "SERVICEBUS_CONNECTION_STRING",
            servicebus.connection_string(),
        );
    run_to_the_end(command, case).await;
    Some(servicebus)
}

/// A case after which the queue is empty.
async fn run_and_leave_nothing(script: &str, case: &str, tier: Tier) {
    if let Some(servicebus) = run(script, case, tier).await {
        assert_empty!(servicebus.queue("orders")).await;
    }
}

#[tokio::test]
async fn sent_messages_are_visible_after_the_commit() {
    run_and_leave_nothing("transactions.py", "commit", Tier::Standard).await;
}

#[tokio::test]
async fn sent_messages_are_discarded_by_an_abort() {
    run_and_leave_nothing("transactions.py", "abort", Tier::Standard).await;
}

#[tokio::test]
async fn a_message_is_accepted_and_another_sent_atomically() {
    run_and_leave_nothing("transactions.py", "accept", Tier::Standard).await;
}

#[tokio::test]
async fn a_lock_that_was_lost_fails_the_commit() {
    run_and_leave_nothing("transactions.py", "lock_lost", Tier::Standard).await;
}

#[tokio::test]
async fn a_message_whose_acceptance_is_aborted_is_released() {
    let running = run("transactions.py", "accept_and_abort", Tier::Standard);
    let Some(servicebus) = running.await else {
        return;
    };
    let orders = servicebus.queue("orders");
    // Proton releases what it had accepted (spec/observed.md 41).
    assert_message_count!(orders, active = 1, locked = 0).await;
    orders.receive().await.complete().await;
    assert_empty!(orders).await;
}

#[tokio::test]
async fn a_selector_is_refused() {
    run_and_leave_nothing("observed.py", "selector", Tier::Standard).await;
}

#[tokio::test]
async fn copies_are_shown_in_premium_namespaces() {
    run_and_leave_nothing("observed.py", "copies", Tier::Premium).await;
}

#[tokio::test]
async fn copies_are_refused_elsewhere() {
    run_and_leave_nothing("observed.py", "copies_refused", Tier::Standard).await;
}

#[tokio::test]
async fn clients_of_jms_2_are_refused() {
    run_and_leave_nothing("observed.py", "jms", Tier::Standard).await;
}
