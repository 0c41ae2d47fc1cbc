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
    let has_fault = !plan.faults.is_empty();
    let mut outcome = outcome_of(if has_fault { &[1] } else { &[] }, "o-1");
    outcome.failure = has_fault.then(|| failure("charged twice"));
    outcome
}

/// The outcome of a worker that completes this message, where these faults are applied.
fn outcome_of(applied: &[u64], message_id: &str) -> Outcome {
    let applied = applied
        .iter()
        .map(|fault| json!({ "fault": fault, "effect": "lose-lock", "detail": "" }));
    let completion = json!({
        "number": 1, "at": "2026-01-01T00:00:00Z", "offset": 1.0, "operation": "complete", "party": "key-1",
        "entity": "orders", "message_id": message_id, "messages": 1, "locked": true, "repeatable": true,
        "faults": Vec::from_iter(applied),
    });
    Outcome {
        operations: vec![serde_json::from_value(completion).unwrap()],
        parties: BTreeMap::from([("key-1".to_owned(), "worker".to_owned())]),
        fault_ids: vec![1],
        ..Outcome::default()
    }
}

fn failure(message: &str) -> Failure {
    Failure {
        message: message.to_owned(),
        location: None,
    }
}

/// Explores with these outcomes of the first runs with a fault; the others fail.
fn explored(settings: Settings, with_fault: Vec<Outcome>) -> ProgressReport {
    let mut progress = Progress::new(settings);
    let now = Instant::now();
    let mut with_fault = with_fault.into_iter();
    while let Next::Run(run) = progress.next(now) {
        let outcome = match run.plan.faults.is_empty() {
            true => outcome(&run.plan),
            false => with_fault.next().unwrap_or_else(|| outcome(&run.plan)),
        };
        progress.record_outcome(run, outcome);
    }
    progress.report(now)
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
fn an_exploration_is_inconclusive_if_it_has_no_time_for_faults() {
    let mut progress = Progress::new(settings());
    let mut now = Instant::now();
    while let Next::Run(run) = progress.next(now) {
        now += WITHIN;
        let outcome = outcome(&run.plan);
        progress.record_outcome(run, outcome);
    }
    let report = progress.report(now);
    let untried = "its 5 s ended before any fault at these operations was tried: complete;";
    assert!(
        report.is_failure && report.text.contains(untried),
        "{}",
        report.text
    );
}

#[test]
fn an_exploration_without_faults_is_inconclusive_unless_none_are_wanted() {
    for (runs, is_failure) in [(10, true), (0, false)] {
        let mut settings = settings();
        settings.runs = runs;
        settings.options.except = vec!["worker".to_owned()];
        let report = explored(settings, Vec::new());
        assert_eq!(report.is_failure, is_failure, "{}", report.text);
        assert_eq!(
            report.text.contains("leave no fault to apply"),
            is_failure,
            "{}",
            report.text
        );
    }
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

#[test]
fn a_failure_without_its_fault_is_told_as_such() {
    let mut unreached = outcome_of(&[], "o-1");
    unreached.failure = Some(failure("no database"));
    let report = explored(settings(), vec![unreached]);
    let told = "orders: the run with x1:worker.complete@orders/o-1#1=lose-lock fails although its fault was not applied, and without \
                faults the test passes";
    assert!(report.text.starts_with(told), "{}", report.text);
    assert!(report.text.contains("no database"), "{}", report.text);
    assert!(report.is_failure);
    assert_eq!(report.json["findings"], json!([]));
}

#[test]
fn a_fault_at_another_operation_is_not_reached() {
    let report = explored(settings(), vec![outcome_of(&[1], "o-2")]);
    assert_eq!(report.json["notReached"], 1);
    assert!(
        report.text.contains("inconclusive: 1 of 1"),
        "{}",
        report.text
    );
}

#[test]
fn a_repetition_that_fails_otherwise_or_without_its_fault_is_no_repetition() {
    let fails = |applied, message| Outcome {
        failure: Some(failure(message)),
        ..outcome_of(applied, "o-1")
    };
    let outcomes = vec![
        fails(&[1], "charged twice"),
        fails(&[1], "no database"),
        fails(&[], "charged twice"),
    ];
    let report = explored(settings(), outcomes);
    let finding = &report.json["findings"][0];
    assert_eq!(
        (&finding["again"], &finding["repetitions"]),
        (&json!(0), &json!(2))
    );
}

#[test]
fn no_budget_cuts_the_run_of_a_token() {
    let token = || "x1:worker.complete@orders/o-1#1=lose-lock".parse().unwrap();
    let none = || Settings {
        runs: 0,
        within: Duration::ZERO,
        ..settings()
    };
    let always = Settings {
        always: vec![token()],
        ..none()
    };
    let only = Settings {
        token: Some(token()),
        ..none()
    };
    for settings in [always, only] {
        let report = explored(settings, Vec::new());
        assert!(report.text.contains("charged twice"), "{}", report.text);
    }
}

#[test]
fn a_run_with_more_operations_than_the_log_keeps_fails() {
    let mut outcome = outcome_of(&[], "o-1");
    let log = Operations {
        recording: true,
        dropped: 3,
        operations: outcome.operations.clone(),
        next: None,
    };
    outcome.take_log(log);
    assert_eq!(
        outcome.failure.unwrap().message,
        "the run performs 4 operations, more than the limit of 1: send fewer messages, or wait for less"
    );
}
