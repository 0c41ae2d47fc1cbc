//! What no SDK asks of the service, and Proton does (`tests/conformance/OBSERVED.md`): the script asserts what is refused
//! and what is shown.

use servicebus_harness::prelude::*;
use tokio::process::Command;

use crate::driver::run_to_the_end;
use crate::environment::{self, Language};

/// Runs a case of the script in a namespace of a tier; nothing where it may be left out.
async fn run(case: &str, tier: Tier) {
    let Some(environment) = environment::ready(Language::Proton).await else {
        return;
    };
    let topology = Topology::new().tier(tier).queue(Queue::new("orders"));
    let starting = ServiceBus::builder().topology(topology).start();
    let servicebus = starting.await;
    let mut command = Command::new(environment::python(&environment));
    command
        .arg(environment::scripts(Language::Proton).join("observed.py"))
        .arg(case)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env(
            "SERVICEBUS_CONNECTION_STRING",
            servicebus.connection_string(),
        );
    run_to_the_end(command, case).await;
    assert_empty!(servicebus.queue("orders")).await;
}

#[tokio::test]
async fn a_selector_is_refused() {
    run("selector", Tier::Standard).await;
}

#[tokio::test]
async fn copies_are_shown_in_premium_namespaces() {
    run("copies", Tier::Premium).await;
}

#[tokio::test]
async fn copies_are_refused_elsewhere() {
    run("copies_refused", Tier::Standard).await;
}

#[tokio::test]
async fn clients_of_jms_2_are_refused() {
    run("jms", Tier::Standard).await;
}
