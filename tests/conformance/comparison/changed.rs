//! The comparison sees every behaviour that was changed by a setting of ours. That it sees mistakes in the code is shown
//! by `tests/conformance/mistakes/run`.
//!
//! Each changed emulator runs one case that meets the change, in a process of its own, beside an unchanged one. The cases
//! are such that fail soon: none waits for a message that does not come any more.

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde_json::Value;
use servicebus_comparison::{Comparison, Ledger, Outcome, Run, Target};

use super::{ran, suite};

/// How many changed emulators run at a time.
const AT_ONCE: usize = 5;

/// Behaviours that are changed, each by a setting, and a case that meets it.
const SETTINGS: [(&str, &str, &str); 14] = [
    (
        "expired messages stay until somebody receives",
        "conformance::expiry::an_expired_message_is_dead_lettered_without_being_received::expiry_1",
        r#"{"Emulator":{"Expiry":"on-receive"}}"#,
    ),
    (
        "what expires is dropped",
        "conformance::expiry::an_expired_message_is_dead_lettered_without_being_received::expiry_1",
        r#"{"Queue":{"DeadLetteringOnMessageExpiration":false}}"#,
    ),
    (
        "locks end with their links",
        "conformance::detach::a_kept_lock_outlives_its_closed",
        r#"{"Emulator":{"LocksOnDetach":"release"}}"#,
    ),
    (
        "failed forwards are kept apart",
        "conformance::forwarding::failed_forwards_can_use_the_dead_letter_queue",
        r#"{"Emulator":{"FailedForwards":"transfer-dead-letter"}}"#,
    ),
    (
        "messages may be larger",
        "conformance::limits::a_batch_takes",
        r#"{"Emulator":{"Tier":"premium"}}"#,
    ),
    (
        "more deliveries are allowed",
        "conformance::sessions::messages::a_dead_lettered_session_message_unblocks_later_ones",
        r#"{"Queue":{"MaxDeliveryCount":4}}"#,
    ),
    (
        "locks last longer",
        "conformance::locks::renewal_after_lock_expiry_fails",
        r#"{"Queue":{"LockDuration":"PT5M"}}"#,
    ),
    (
        "duplicates are kept",
        "conformance::duplicates::a_duplicate_is_accepted_and_dropped",
        r#"{"Queue":{"RequiresDuplicateDetection":false}}"#,
    ),
    (
        "duplicates are forgotten sooner",
        "conformance::duplicates::a_completed_message_id_stays_in_the_duplicate_window",
        r#"{"Queue":{"DuplicateDetectionHistoryTimeWindow":"PT20S"}}"#,
    ),
    (
        "numbers name partitions",
        "conformance::settle::a_completed_message",
        r#"{"Queue":{"EnablePartitioning":true}}"#,
    ),
    (
        "nothing is forwarded",
        "conformance::forwarding::a_forwarded_message_is_unchanged_with_a_new_sequence_number",
        r#"{"Queue":{"ForwardTo":""}}"#,
    ),
    (
        "queues have more room",
        "conformance::limits::a_full_queue_refuses_messages_until_space_is_free",
        r#"{"Queue":{"MaxSizeInMegabytes":1024}}"#,
    ),
    (
        "sessions are not kept apart",
        "conformance::sessions::a_session_has_one_receiver",
        r#"{"Queue":{"RequiresSession":false}}"#,
    ),
    (
        "rules select everything",
        "conformance::topics::each_message_of_a_batch_is_filtered",
        r#"{"Rule":{"FilterType":"True"}}"#,
    ),
];

/// One behaviour that is changed.
struct Change {
    behaviour: &'static str,
    /// What names the case that meets it, and no other.
    case: &'static str,
    /// What is changed, as [`Target::changed`] takes it.
    changes: Value,
}

#[test]
fn every_changed_behaviour_is_detected() {
    let changes = changes();
    let cases = changes.iter().map(|change| change.case);
    let unchanged = ran(&suite().only(cases), &Target::emulator());
    for case in &unchanged.cases {
        assert_eq!(case.outcome, Outcome::Ok, "{}", case.case);
    }
    let (next, unseen) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(change) = changes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(why) = seen(&unchanged, change) {
                        let mut unseen = unseen.lock().unwrap_or_else(PoisonError::into_inner);
                        unseen.push(why);
                    }
                }
            });
        }
    });
    let unseen = unseen.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(unseen.is_empty(), "{}", unseen.join("\n"));
}

#[test]
fn published_packages_do_not_enable_the_panics_feature() {
    for package in ["servicebus-emulator", "servicebus-harness"] {
        let mut tree = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        tree.args(["tree", "--locked", "--edges", "no-dev"]);
        tree.args(["--package", package, "--format", "{p}: {f}"]);
        let shown = tree.output().expect("cargo runs");
        let error = String::from_utf8_lossy(&shown.stderr);
        assert!(shown.status.success(), "{error}");
        let shown = String::from_utf8_lossy(&shown.stdout);
        assert!(shown.contains("servicebus-broker v"), "{shown}");
        assert!(!shown.contains("panics"), "{shown}");
    }
}

fn changes() -> Vec<Change> {
    let changes = SETTINGS.map(|(behaviour, case, changes)| Change {
        behaviour,
        case,
        changes: serde_json::from_str(changes).expect("the changes are JSON"),
    });
    changes.into()
}

/// Runs a case where a behaviour is changed, and finds it another than the same case at `unchanged`.
fn seen(unchanged: &Run, change: &Change) -> Result<(), String> {
    let &Change {
        behaviour, case, ..
    } = change;
    let changed = Target::emulator().named(behaviour).changed(&change.changes);
    let right = ran(&suite().only([case]), &changed);
    let mut left = unchanged.clone();
    left.cases.retain(|run| run.case.contains(case));
    let comparison = Comparison::new(left, right, &Ledger::default());
    let printed = comparison.to_string();
    let [met] = comparison.cases.as_slice() else {
        return Err(format!("{case} names several cases:\n{printed}"));
    };
    if met.differences().next().is_none() {
        return Err(format!("{behaviour} is not seen:\n{printed}"));
    }
    // That the emulator does not start at all would be a difference, too.
    if printed.contains("topology is invalid") {
        return Err(format!("{behaviour} is not possible:\n{printed}"));
    }
    let expected = format!("\n{}: ", met.case);
    let is_reported = printed.contains(&expected) && printed.contains("\n! ");
    is_reported
        .then_some(())
        .ok_or_else(|| format!("{behaviour} is not told by its case:\n{printed}"))
}
