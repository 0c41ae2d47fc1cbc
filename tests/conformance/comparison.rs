//! The comparison of two targets, set against emulators: it finds no difference between two that are the same. That it
//! sees what was changed is proven in `changed`.
//!
//! The cases are those of this executable, each in a process of its own. `examples/compare.rs` runs the whole
//! suite; here it is a part that has every kind of operation.

mod changed;

use std::env;
use std::path::Path;

use servicebus_comparison::{Comparison, Ledger, Run, Suite, Target};
use servicebus_harness::prelude::*;
use servicebus_test_support::{built, temporary::TemporaryFile};

/// Cases of every kind of operation, most of which a namespace can decide.
const PART: [&str; 8] = [
    "conformance::forwarding::a_forwarded_message_is_unchanged_with_a_new_sequence_number",
    "conformance::forwarding::failed_forwards_can_use_the_dead_letter_queue",
    "conformance::peek::",
    "conformance::sessions::a_session_has",
    "conformance::settle::",
    "conformance::status::a_receiver_of_a_missing",
    "conformance::status::a_sender_to_a_missing",
    "conformance::topics::rules::an_action_modifies_its_copy_and_sets_the_rule_name",
];
/// What is not a case, because it runs cases.
const RUNNERS: [&str; 3] = [
    "conformance::comparison::",
    "conformance::transports::",
    "harness::",
];

#[tokio::test]
async fn in_process_and_process_modes_behave_alike() {
    let suite = suite().only(PART);
    let right = Target::process().variable("SERVICEBUS_EMULATOR_BIN", built::emulator());
    let comparison = compared(&suite, &Target::emulator(), &right);
    assert!(comparison.is_as_known(), "{comparison}");
    assert!(comparison.vanished.is_empty(), "{comparison}");
    let mut unchecked = comparison
        .cases
        .iter()
        .filter(|case| !case.unchecked.is_empty());
    assert!(unchecked.next().is_none(), "{comparison}");
}

#[tokio::test]
async fn the_suite_runs_in_an_existing_namespace() {
    let elsewhere = ServiceBus::builder()
        .mode(Mode::Process)
        .binary(built::emulator())
        .topology(Topology::new())
        .start()
        .await;
    let authority = TemporaryFile::new(&elsewhere.ca_certificate_pem().await);
    let namespace =
        Target::namespace(elsewhere.tls_admin_connection_string()).trusting(&authority.0);
    let comparison = compared(&suite().only(PART), &Target::emulator(), &namespace);

    assert!(comparison.is_as_known(), "{comparison}");
    let printed = comparison.to_string();
    let (checked, unchecked): (Vec<_>, Vec<_>) = comparison
        .cases
        .iter()
        .partition(|case| case.unchecked.is_empty());
    assert!(checked.len() > unchecked.len(), "{printed}");
    // A setting that only an emulator has cannot be made there; that is told by the name of the case.
    let reason = "could not check";
    let setting = "conformance::forwarding::failed_forwards_can_use_the_dead_letter_queue at namespace: the topology has settings";
    assert!(
        printed.contains(reason) && printed.contains(setting),
        "{printed}"
    );
    let left = elsewhere.queue("orders").counts().result().await;
    assert!(left.is_err(), "the cases left their queue: {left:?}");
}

fn suite() -> Suite {
    let executable = env::current_exe().expect("a test has an executable");
    Suite::new(executable).except(RUNNERS)
}

fn compared(suite: &Suite, left: &Target, right: &Target) -> Comparison {
    let ledger = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/ledger.json");
    let ledger = Ledger::read(&ledger).unwrap_or_else(|error| panic!("{error}"));
    Comparison::new(ran(suite, left), ran(suite, right), &ledger)
}

fn ran(suite: &Suite, target: &Target) -> Run {
    suite.run(target).unwrap_or_else(|error| panic!("{error}"))
}
