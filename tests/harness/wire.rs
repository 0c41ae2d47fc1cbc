//! The recorder of a comparison: what no client shows is compared, because it was said on the wire.
//!
//! The cases are of this executable, each in a process of its own; every side says by a variable what is different
//! there.

use std::env;

use azservicebus::{ServiceBusReceiverOptions, ServiceBusSenderOptions};
use serde_json::json;
use servicebus_comparison::{Comparison, Ledger, Outcome, Run, Suite, Target};
use servicebus_harness::prelude::*;

use crate::harness::within;

/// What the namespace of a case says when it refuses something.
const WORDS: &str = "SERVICEBUS_TESTS_WORDS";

/// A case of a client that keeps what it sees to itself.
#[tokio::test]
async fn a_silent_client() {
    let servicebus = ServiceBus::builder()
        .topology(Topology::new().queue(Queue::new("orders")))
        .start()
        .await;
    let mut client = servicebus.client().await;
    let opening = client.create_sender("orders", ServiceBusSenderOptions::default());
    let mut sender = within(opening).await.expect("the sender opens");
    within(sender.send_message("a message"))
        .await
        .expect("it is taken");

    let options = ServiceBusReceiverOptions::default();
    let opening = client.create_receiver_for_queue("orders", options);
    let mut receiver = within(opening).await.expect("the receiver opens");
    let peeked = within(receiver.peek_message(None)).await;
    assert!(peeked.expect("the namespace answers").is_some());
    let message = within(receiver.receive_message()).await;
    let message = message.expect("a message comes");
    assert_eq!(message.body().expect("it is data"), b"a message");
    within(receiver.complete_message(&message))
        .await
        .expect("it can be completed");
    within(receiver.dispose()).await.expect("it closes");
    within(sender.dispose()).await.expect("it closes");
}

/// A case of a client that is refused and does not care why.
#[tokio::test]
async fn a_refused_client() {
    let servicebus = ServiceBus::builder()
        .topology(Topology::new().queue(Queue::new("orders")))
        .start()
        .await;
    if servicebus.mode() != Mode::Namespace {
        let words = env::var(WORDS).unwrap_or_else(|_| "not today".to_owned());
        let faults = servicebus.faults();
        let refused = Effect::detach("amqp:resource-limit-exceeded").description(&words);
        faults
            .on(Operation::Attach)
            .entity("orders")
            .apply(refused)
            .await;
        let unanswered = Effect::answer(410).description(&words);
        let peek = faults.on(Operation::Management).entity("orders");
        peek.apply(unanswered).await;
    }
    let mut client = servicebus.client().await;
    let opening = client.create_sender("orders", ServiceBusSenderOptions::default());
    assert!(within(opening).await.is_err());
    let options = ServiceBusReceiverOptions::default();
    let opening = client.create_receiver_for_queue("orders", options);
    let mut receiver = within(opening).await.expect("the receiver opens");
    let peeked = within(receiver.peek_message(None)).await;
    assert!(peeked.ok().flatten().is_none());
    within(receiver.dispose()).await.expect("it closes");
}

#[tokio::test]
async fn two_runs_are_equal() {
    let comparison = compared("a_silent_client", &Target::emulator(), &Target::emulator());
    assert!(comparison.is_as_known(), "{comparison}");
    let rendered = comparison.to_string();
    for expected in [
        "  on the wire: connection\n    SASL mechanisms array [",
        "  on the wire: receiver of amqp://<host>/orders\n    attached: ",
        "    delivered with a tag of 16 bytes, format 0: header (",
        "  on the wire: sender to amqp://<host>/orders\n    sent; accepted ",
        "    request com.microsoft:peek-message; {statusCode: int",
    ] {
        assert!(
            rendered.contains(expected),
            "{expected} is not in {rendered}"
        );
    }
}

#[tokio::test]
async fn differences_on_the_wire_are_detected() {
    let words = Target::emulator().variable(WORDS, "not tomorrow");
    let refused = compared("a_refused_client", &Target::emulator(), &words);
    let seen = differences(&refused);
    let refusals = seen
        .iter()
        .filter(|(_, left, right)| left.contains("not today") && right.contains("not tomorrow"));
    let refusals = Vec::from_iter(refusals.map(|(what, ..)| what.as_str()));
    assert_eq!(
        refusals,
        [
            "on the wire: sender to amqp://<host>/orders",
            "on the wire: sender to orders/$management",
        ],
        "{refused}"
    );

    let partitioned = json!({"Queue": {"EnablePartitioning": true}});
    let roomy = json!({"Emulator": {"Tier": "premium"}});
    for (changes, expected) in [
        (partitioned, "x-opt-sequence-number: long 281474976710657"),
        (roomy, "max-message-size"),
    ] {
        let changed = Target::emulator().changed(&changes);
        let comparison = compared("a_silent_client", &Target::emulator(), &changed);
        let seen = differences(&comparison);
        assert!(
            seen.iter()
                .any(|(_, left, right)| { left.contains(expected) || right.contains(expected) }),
            "{comparison}"
        );
        let on_wire = |(what, ..): &(String, String, String)| what.starts_with("on the wire: ");
        assert!(seen.iter().all(on_wire), "{comparison}");
    }
}

fn compared(case: &str, left: &Target, right: &Target) -> Comparison {
    Comparison::new(ran(case, left), ran(case, right), &Ledger::default())
}

fn ran(case: &str, target: &Target) -> Run {
    let executable = env::current_exe().expect("a test has an executable");
    let suite = Suite::new(executable).only([format!("wire::{case}")]);
    let run = suite.run(target).unwrap_or_else(|error| panic!("{error}"));
    for case in &run.cases {
        assert_eq!(case.outcome, Outcome::Ok, "{}", case.case);
    }
    run
}

/// What differs, by what it is and what both sides say.
fn differences(comparison: &Comparison) -> Vec<(String, String, String)> {
    let side = |side: &Option<String>| side.clone().unwrap_or_default();
    let found = comparison.new_differences().map(|(_, difference)| {
        let (left, right) = (side(&difference.left), side(&difference.right));
        (difference.what.clone(), left, right)
    });
    found.collect()
}
