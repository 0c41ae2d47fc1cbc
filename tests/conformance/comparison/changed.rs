//! The comparison sees every behaviour that was changed: by a setting of ours, and by the switches of the broker that
//! only tests have.
//!
//! Each changed emulator runs one case that meets the change, in a process of its own, beside an unchanged one. The cases
//! are such that fail soon: none waits for a message that does not come any more.

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};
use servicebus_emulator::broker::Deviation;
use servicebus_harness::comparison::{Comparison, Ledger, Outcome, Run, Target};

use super::{ran, suite};

/// How many changed emulators run at a time.
const AT_ONCE: usize = 5;

/// Behaviours that are changed, each by a setting, and a case that meets it.
const SETTINGS: [(&str, &str, &str); 14] = [
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
        "failed forwards are kept apart",
        "forwarding::what_cannot_go_on_may_be",
        r#"{"Emulator":{"FailedForwards":"transfer-dead-letter"}}"#,
    ),
    (
        "messages may be larger",
        "limits::a_batch_takes",
        r#"{"Emulator":{"Tier":"premium"}}"#,
    ),
    (
        "more deliveries are allowed",
        "sessions::messages::a_message_at_its_last",
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

/// Rules of the broker that a switch breaks, all that there are, and a case that meets each.
const DEVIATIONS: [(&str, &str); 23] = [
    ("abandon-does-not-count", "settle::an_abandoned_message"),
    ("lock-expiry-does-not-count", "locks::settling_after"),
    (
        "delivery-count-starts-at-one",
        "receive::a_received_message",
    ),
    ("lock-token-stays", "settle::an_abandoned_message"),
    ("lost-lock-renews", "locks::renewing_after"),
    ("lost-lock-is-not-found", "locks::renewing_after"),
    ("deferred-comes-back", "topics::a_subscription_settles"),
    ("peek-hides-locked", "peek::locked_and_waiting"),
    (
        "dead-letter-has-no-reason",
        "settle::a_dead_lettered_message",
    ),
    ("dead-letter-has-no-source", "forwarding::a_forwarded_dead"),
    (
        "time-to-live-has-no-ceiling",
        "expiry::eager::the_queues_time",
    ),
    (
        "duplicate-window-is-fixed",
        "duplicates::an_id_is_remembered",
    ),
    ("scheduled-is-active-at-once", "topics::a_topic_keeps"),
    (
        "activation-keeps-enqueue-time",
        "scheduling::a_message_sent",
    ),
    ("cancel-always-succeeds", "scheduling::what_is_unknown"),
    (
        "session-order-is-reversed",
        "sessions::messages::an_abandoned",
    ),
    ("session-release-counts", "sessions::a_closed_receiver"),
    (
        "session-state-ends-with-lock",
        "sessions::state::a_state_outlives",
    ),
    ("action-is-not-applied", "topics::rules::an_action"),
    ("fifth-forward-is-allowed", "forwarding::four_forwards"),
    ("forwarding-forgets-origin", "forwarding::a_message_goes_on"),
    ("link-has-no-limit", "limits::a_batch_takes"),
    ("rollback-commits", "transactions::what_was_sent"),
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
fn every_changed_behaviour_is_seen() {
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
fn every_switch_of_the_broker_is_tried() {
    let tried = DEVIATIONS.map(|(name, _)| name);
    assert_eq!(tried, Deviation::NAMED.map(|(name, _)| name));
}

#[test]
fn what_is_shipped_has_no_switches() {
    for package in ["servicebus-emulator", "servicebus-harness"] {
        let mut tree = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        tree.args(["tree", "--locked", "--edges", "no-dev"]);
        tree.args(["--package", package, "--format", "{p}: {f}"]);
        let shown = tree.output().expect("cargo runs");
        let error = String::from_utf8_lossy(&shown.stderr);
        assert!(shown.status.success(), "{error}");
        let shown = String::from_utf8_lossy(&shown.stdout);
        assert!(shown.contains("servicebus-broker v"), "{shown}");
        assert!(!shown.contains("deviations"), "{shown}");
    }
}

fn changes() -> Vec<Change> {
    let settings = SETTINGS.map(|(behaviour, case, changes)| Change {
        behaviour,
        case,
        changes: serde_json::from_str(changes).expect("the changes are JSON"),
    });
    let deviations = DEVIATIONS.map(|(behaviour, case)| Change {
        behaviour,
        case,
        changes: json!({"Emulator": {"Deviations": [behaviour]}}),
    });
    settings.into_iter().chain(deviations).collect()
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
    let told = format!("\n{}: ", met.case);
    let is_told = printed.contains(&told) && printed.contains("\n! ");
    is_told
        .then_some(())
        .ok_or_else(|| format!("{behaviour} is not told by its case:\n{printed}"))
}
