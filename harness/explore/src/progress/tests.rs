//! Tests of an exploration with simulated durations of runs.

use serde_json::json;

use super::*;
use crate::Effect;

const WITHIN: Duration = Duration::from_secs(5);

fn settings() -> Settings {
    Settings {
        name: "orders".to_owned(),
        runs: 10,
        within: WITHIN,
        faults: 1,
        options: Options {
            effects: vec![Effect::LoseLock],
            ..Options::default()
        },
        token: None,
        always: Vec::new(),
        expected: Vec::new(),
        shuffled: 0,
        is_strict: false,
        operations: 10,
        is_statistical: false,
    }
}

/// The outcome of a worker that completes a message; fails if the completion has a fault.
fn outcome(plan: &Plan) -> Outcome {
    let completion = json!({
        "number": 1, "at": "2026-01-01T00:00:00Z", "offset": 1.0, "operation": "complete", "party": "key-1",
        "entity": "orders", "message_id": "o-1", "messages": 1, "locked": true, "repeatable": true,
    });
    let failure = (!plan.faults.is_empty()).then(|| Failure {
        message: "charged twice".to_owned(),
        location: None,
    });
    Outcome {
        failure,
        operations: vec![serde_json::from_value(completion).unwrap()],
        parties: BTreeMap::from([("key-1".to_owned(), "worker".to_owned())]),
        is_reached: true,
        ..Outcome::default()
    }
}

/// Returns the report of an exploration whose first failing run takes this long.
fn report(failing_run: Duration) -> serde_json::Value {
    let mut progress = Progress::new(settings());
    let mut now = Instant::now();
    while let Next::Run(run) = progress.next(now) {
        let outcome = outcome(&run.plan);
        if outcome.failure.is_some() {
            now += failing_run;
        }
        progress.record_outcome(run, outcome);
    }
    let report = progress.report(now);
    let is_cut = report
        .text
        .contains("not repeated: the time limit was reached");
    assert_eq!(is_cut, failing_run >= WITHIN, "{}", report.text);
    report.json
}

#[test]
fn a_failure_that_was_not_repeated_in_time_is_reported_as_such() {
    let finding = &report(WITHIN)["findings"][0];
    assert_eq!(
        (&finding["again"], &finding["repetitions"]),
        (&json!(0), &json!(0))
    );
    let finding = &report(Duration::ZERO)["findings"][0];
    assert_eq!(
        (&finding["again"], &finding["repetitions"]),
        (&json!(2), &json!(2))
    );
}
