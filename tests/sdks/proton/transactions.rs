//! Transactions through Proton: the script asserts what two of its connections see, and what is left is judged here.

use servicebus_harness::prelude::*;
use tokio::process::Command;

use crate::driver::run_to_the_end;
use crate::environment::{self, Language};

/// Runs a case of the script on a bus of its own and returns that; none where it may be left out.
async fn run(case: &str) -> Option<ServiceBus> {
    let environment = environment::ready(Language::Proton).await?;
    let topology = Topology::new().queue(Queue::new("orders"));
    let starting = ServiceBus::builder().topology(topology).start();
    let servicebus = starting.await;
    let (control, namespace) = (servicebus.control_url(), servicebus.namespace());
    let mut command = Command::new(environment::python(&environment));
    command
        .arg(environment::scripts(Language::Proton).join("transactions.py"))
        .arg(case)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env(
            "SERVICEBUS_CONTROL_URL",
            format!("{control}/namespaces/{namespace}"),
        )
        .env(
            "SERVICEBUS_CONNECTION_STRING",
            servicebus.connection_string(),
        );
    run_to_the_end(command, case).await;
    Some(servicebus)
}

#[tokio::test]
async fn what_is_sent_is_seen_by_others_when_it_is_committed() {
    let Some(servicebus) = run("commit").await else {
        return;
    };
    assert_empty!(servicebus.queue("orders")).await;
}

#[tokio::test]
async fn what_is_sent_is_never_seen_when_it_is_aborted() {
    let Some(servicebus) = run("abort").await else {
        return;
    };
    assert_empty!(servicebus.queue("orders")).await;
}

#[tokio::test]
async fn a_message_is_accepted_and_another_sent_at_once() {
    let Some(servicebus) = run("accept").await else {
        return;
    };
    assert_empty!(servicebus.queue("orders")).await;
}

#[tokio::test]
async fn a_message_whose_acceptance_is_aborted_is_released() {
    let Some(servicebus) = run("accept_and_abort").await else {
        return;
    };
    let orders = servicebus.queue("orders");
    // Proton releases what it had accepted (spec/observed.md 41).
    assert_message_count!(orders, active = 1, locked = 0).await;
    orders.receive().await.complete().await;
    assert_empty!(orders).await;
}

#[tokio::test]
async fn a_lock_that_was_lost_fails_the_commit() {
    let Some(servicebus) = run("lock_lost").await else {
        return;
    };
    assert_empty!(servicebus.queue("orders")).await;
}
