//! The comparison of two targets, set against emulators: it finds none between two that are the same, and sees every
//! behaviour that was changed.
//!
//! The cases are those of this executable, each in a process of its own. `examples/compare.rs` runs the whole
//! suite; here it is a part that has every kind of operation.

#[path = "../harness/built.rs"]
mod built;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use serde_json::Value;
use servicebus_harness::comparison::{Comparison, Ledger, Outcome, Run, Suite, Target};
use servicebus_harness::prelude::*;

/// Cases of every kind of operation, most of which a namespace can decide.
const PART: [&str; 8] = [
    "dead_letter::",
    "forwarding::a_message_goes_on",
    "forwarding::what_cannot_go_on",
    "not_found::",
    "peek::",
    "sessions::a_session_has",
    "settle::",
    "topics::rules::an_action",
];
/// How many changed emulators run at a time.
const AT_ONCE: usize = 5;
/// What is no case, because it runs cases.
const RUNNERS: [&str; 2] = ["comparison::", "doors::"];

/// Behaviours that are changed, each by a setting, and a case that meets it.
const CHANGES: [(&str, &str, &str); 14] = [
    (
        "expired messages stay until somebody receives",
        "expiry::eager::an_expired_message_is_dead_lettered",
        r#"{"Emulator":{"Expiry":"on-receive"}}"#,
    ),
    (
        "what expires is dropped",
        "expiry::eager::an_expired_message_is_dead_lettered",
        r#"{"Queue":{"DeadLetteringOnMessageExpiration":false}}"#,
    ),
    (
        "locks end with their links",
        "detach::a_kept_lock_outlives_its_closed",
        r#"{"Emulator":{"LocksOnDetach":"release"}}"#,
    ),
    (
        "failed forwards are ordinary dead letters",
        "forwarding::a_message_without_a_target",
        r#"{"Emulator":{"FailedForwards":"dead-letter"}}"#,
    ),
    (
        "messages may be larger",
        "limits::a_batch_takes",
        r#"{"Emulator":{"Tier":"premium"}}"#,
    ),
    (
        "one delivery more is allowed",
        "settle::the_last_delivery",
        r#"{"Queue":{"MaxDeliveryCount":4}}"#,
    ),
    (
        "locks last longer",
        "locks::renewing_after",
        r#"{"Queue":{"LockDuration":"PT5M"}}"#,
    ),
    (
        "duplicates are kept",
        "duplicates::the_second_of_two",
        r#"{"Queue":{"RequiresDuplicateDetection":false}}"#,
    ),
    (
        "duplicates are forgotten sooner",
        "duplicates::an_id_is_remembered",
        r#"{"Queue":{"DuplicateDetectionHistoryTimeWindow":"PT20S"}}"#,
    ),
    (
        "numbers name partitions",
        "settle::a_completed_message",
        r#"{"Queue":{"EnablePartitioning":true}}"#,
    ),
    (
        "nothing is forwarded",
        "forwarding::a_message_goes_on",
        r#"{"Queue":{"ForwardTo":""}}"#,
    ),
    (
        "queues have more room",
        "limits::a_full_queue",
        r#"{"Queue":{"MaxSizeInMegabytes":1024}}"#,
    ),
    (
        "sessions are not kept apart",
        "sessions::a_session_has_one_receiver",
        r#"{"Queue":{"RequiresSession":false}}"#,
    ),
    (
        "rules select everything",
        "topics::a_batch_is_judged",
        r#"{"Rule":{"FilterType":"True"}}"#,
    ),
];

#[tokio::test]
async fn a_library_and_a_process_behave_alike() {
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
async fn the_suite_runs_in_a_namespace_known_by_its_connection_string_alone() {
    let elsewhere = ServiceBus::builder()
        .mode(Mode::Process)
        .binary(built::emulator())
        .topology(Topology::new())
        .start()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let authority = Authority::new(&elsewhere.ca_certificate_pem().await);
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
    let told = "could not check";
    let setting = "forwarding::what_cannot_go_on_may_be_dead_lettered_like_anything_else at namespace: the topology has settings";
    assert!(
        printed.contains(told) && printed.contains(setting),
        "{printed}"
    );
    let left = elsewhere.queue("orders").try_counts().await;
    assert!(left.is_err(), "the cases left their queue: {left:?}");
}

#[tokio::test]
async fn every_changed_behaviour_is_seen() {
    let cases = CHANGES.map(|(_, case, _)| case);
    let left = ran(&suite().only(cases), &Target::emulator());
    for case in &left.cases {
        assert_eq!(case.outcome, Outcome::Ok, "{}", case.case);
    }
    // Some cases wait for what does not come any more, so they wait side by side.
    for some in CHANGES.chunks(AT_ONCE) {
        thread::scope(|scope| {
            for &change in some {
                let left = &left;
                scope.spawn(move || assert_seen(left, change));
            }
        });
    }
}

/// Runs a case where a behaviour is changed, and asserts that it is another than the same case at `left`.
fn assert_seen(left: &Run, (behaviour, case, changes): (&str, &str, &str)) {
    let changes: Value = serde_json::from_str(changes).expect("the changes are JSON");
    let changed = Target::emulator().named(behaviour).changed(&changes);
    let right = ran(&suite().only([case]), &changed);
    let mut met = left.clone();
    met.cases.retain(|run| run.case.contains(case));
    let comparison = Comparison::new(met, right, &Ledger::default());
    assert!(
        !comparison.is_as_known(),
        "{behaviour} is not seen:\n{comparison}"
    );
    let printed = comparison.to_string();
    assert!(
        !printed.contains("topology is invalid"),
        "{behaviour} is not possible:\n{printed}"
    );
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

/// A file with the certificate to trust, removed when it has served.
struct Authority(PathBuf);

impl Authority {
    fn new(pem: &str) -> Self {
        let name = format!("servicebus-comparison-{}.pem", std::process::id());
        let path = env::temp_dir().join(name);
        fs::write(&path, pem).expect("a temporary file can be written");
        Self(path)
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
