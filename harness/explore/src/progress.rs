//! The next step of an exploration, from its first run to its report.
//!
//! It does not execute runs, but takes their outcomes. First come two runs without faults and those that find the operations
//! of tokens, then the planned ones, which may run in parallel. After a failure, one more run without faults follows; then
//! plans with fewer and weaker faults replace those with several, and each failure is repeated twice.

mod base;
mod findings;
mod planned;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use servicebus_control_api::{LoggedOperation, Operations};

use crate::{
    Options, Plan, Token,
    fault_point::{FaultPoint, KeyParts, fault_points},
    plan::shuffled,
    report::{Failure, Report, failure_key},
};

/// The largest number of runs that look for better explanations.
const MAX_SIMPLER: u32 = 40;

/// The settings of an exploration.
#[derive(Debug)]
pub struct Settings {
    /// The name of the test.
    pub name: String,
    /// The largest number of runs, without those that explain findings.
    pub runs: u32,
    /// How long new runs may begin.
    pub within: Duration,
    /// The largest number of faults in a run.
    pub faults: usize,
    /// Restrictions on faults.
    pub options: Options,
    /// Executes only the run of this token.
    pub token: Option<Token>,
    /// The runs of these tokens come first.
    pub always: Vec<Token>,
    /// Runs that must fail, with the reasons.
    pub expected: Vec<(Token, String)>,
    /// The number of runs with a random order of operations.
    pub shuffled: u32,
    /// Whether the exploration ends if the runs without faults differ.
    pub is_strict: bool,
    /// The largest number of operations that get faults.
    pub operations: usize,
    /// Whether events are ordered by real time, which differs from run to run.
    pub is_statistical: bool,
}

/// The next step.
#[derive(Debug)]
pub enum Next {
    /// Execute this run.
    Run(PlannedRun),
    /// Wait for a run to end.
    Wait,
    /// The exploration is complete.
    Done,
}

/// A run to execute.
#[derive(Debug, Clone)]
pub struct PlannedRun {
    /// Its faults.
    pub plan: Plan,
    purpose: Purpose,
}

/// The outcome of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The failure, if it failed.
    pub failure: Option<Failure>,
    /// The operations of clients.
    pub operations: Vec<LoggedOperation>,
    /// The names of the parties by the names of their keys.
    pub parties: BTreeMap<String, String>,
    /// The ids of the faults of its plan, in the order of the plan.
    pub fault_ids: Vec<u64>,
    /// The events of the messages whose operations had faults.
    pub timelines: Vec<String>,
    /// Whether the run could not be ended.
    pub is_hung: bool,
}

/// The report so far.
#[derive(Debug)]
pub struct ProgressReport {
    /// The printed report.
    pub text: String,
    /// The machine-readable report.
    pub json: serde_json::Value,
    /// Whether there are no more runs.
    pub is_done: bool,
    /// Whether the test has failed.
    pub is_failure: bool,
}

/// The progress of an exploration.
#[derive(Debug)]
pub struct Progress {
    settings: Settings,
    begun: Option<Instant>,
    stage: Stage,
    queue: VecDeque<PlannedRun>,
    /// The number of unfinished runs.
    open: u32,
    base: Vec<Outcome>,
    key_parts: KeyParts,
    /// Tokens whose operations are still to be found; with a reason if they must fail.
    pending_tokens: VecDeque<(Token, Option<String>)>,
    always: Vec<Plan>,
    expected: Vec<(Plan, String)>,
    /// Plans with a second fault: at operations of a kind that exists only after the first, at others that exist only then,
    /// and at the rest.
    second_faults: [Vec<Plan>; 3],
    failed: Vec<Failed>,
    passed: Vec<Plan>,
    /// The tokens of the executed planned runs.
    tried: HashSet<Token>,
    /// The number of runs that failed although none of their faults were applied.
    unreached_failures: u32,
    /// The number of faults that were not applied, random ones aside.
    unreached: u32,
    /// The number of executed planned runs, random ones aside, and of those that looked for simpler plans.
    planned: u32,
    simpler: u32,
    fault_points: Vec<FaultPoint>,
    report: Report,
    /// Problems beside the findings.
    unexpected: Vec<String>,
    /// Why the exploration stopped early.
    stopped: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Base,
    Singles,
    Pairs,
    Shuffled,
    Expected,
    LeakCheck,
    Simpler,
    Repeat,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Purpose {
    Base,
    /// Finds the next operation of a token.
    ResolveToken,
    /// The run of a token or of `always`, which no budget cuts: without it, the test would pass for lack of time.
    Always,
    Planned,
    /// A run that must fail.
    Expected(usize),
    LeakCheck,
    /// Looks for a better explanation of this finding.
    Simpler(usize),
    /// Repeats this finding.
    Repeat(usize),
}

#[derive(Debug)]
struct Failed {
    plan: Plan,
    failure: Failure,
    timelines: Vec<String>,
    is_hung: bool,
}

impl Outcome {
    /// The outcome of a run that failed before any observation.
    pub fn failed(message: String) -> Self {
        let location = None;
        Self {
            failure: Some(Failure { message, location }),
            ..Self::default()
        }
    }

    /// Takes the operations of the run. The run fails if it performed more than the log keeps, because operations cannot be
    /// identified without those before them.
    pub fn take_log(&mut self, log: Operations) {
        let kept = log.operations.len() as u64;
        self.operations = log.operations;
        if log.dropped > 0 {
            let performed = log.dropped + kept;
            let message = format!(
                "the run performs {performed} operations, more than the limit of {kept}: send fewer messages, or wait for less"
            );
            self.failure = Self::failed(message).failure;
        }
    }
}

impl Progress {
    /// Begins with two runs without faults.
    pub fn new(settings: Settings) -> Self {
        let base = || PlannedRun {
            plan: Plan::default(),
            purpose: Purpose::Base,
        };
        Self {
            report: Report {
                name: settings.name.clone(),
                is_statistical: settings.is_statistical,
                ..Report::default()
            },
            settings,
            begun: None,
            stage: Stage::Base,
            queue: VecDeque::from([base(), base()]),
            open: 0,
            base: Vec::new(),
            key_parts: KeyParts::default(),
            pending_tokens: VecDeque::new(),
            always: Vec::new(),
            expected: Vec::new(),
            second_faults: Default::default(),
            failed: Vec::new(),
            passed: Vec::new(),
            tried: HashSet::new(),
            unreached_failures: 0,
            unreached: 0,
            planned: 0,
            simpler: 0,
            fault_points: Vec::new(),
            unexpected: Vec::new(),
            stopped: None,
        }
    }

    /// Returns the next step.
    pub fn next(&mut self, now: Instant) -> Next {
        let begun = *self.begun.get_or_insert(now);
        while self.stage != Stage::Done {
            let is_alone =
                |run: &PlannedRun| !matches!(run.purpose, Purpose::Always | Purpose::Planned);
            if self.open > 0 && self.queue.front().is_none_or(is_alone) {
                return Next::Wait;
            }
            match self.queue.pop_front() {
                None => self.begin_next_stage(),
                Some(run) if self.is_within_budget(&run, now < begun + self.settings.within) => {
                    self.open += 1;
                    self.report.runs += 1;
                    return Next::Run(run);
                }
                Some(PlannedRun { purpose, plan }) => match purpose {
                    Purpose::Repeat(index) => self.report.findings[index].is_cut = true,
                    Purpose::Simpler(_) => {}
                    Purpose::Base
                    | Purpose::ResolveToken
                    | Purpose::Always
                    | Purpose::Planned
                    | Purpose::Expected(_)
                    | Purpose::LeakCheck => {
                        self.report.cut += 1;
                        self.report.coverage.add(&plan, false);
                    }
                },
            }
            self.report.took = now.saturating_duration_since(begun);
        }
        Next::Done
    }

    /// Returns a run that was not executed to the queue.
    pub fn requeue(&mut self, run: PlannedRun) {
        self.open -= 1;
        self.report.runs -= 1;
        self.queue.push_front(run);
    }

    /// Takes the outcome of a run.
    pub fn record_outcome(&mut self, run: PlannedRun, outcome: Outcome) {
        self.open -= 1;
        let PlannedRun { plan, purpose } = run;
        match purpose {
            Purpose::Base => {
                self.base.push(outcome);
                if self.queue.is_empty() {
                    self.evaluate_base();
                }
            }
            Purpose::ResolveToken => {
                let known = fault_points(&outcome.operations, &outcome.parties, self.key_parts);
                self.resolve_tokens(plan, known);
            }
            Purpose::Always | Purpose::Planned => self.record_planned(plan, outcome),
            Purpose::Expected(index) if outcome.failure.is_none() => {
                let (token, reason) = (plan.token(), &self.expected[index].1);
                self.unexpected.push(format!(
                    "the run with {token} passes, and was expected to fail ({reason}): take `expect_failure` out"
                ));
            }
            Purpose::LeakCheck => {
                if let Some(failure) = outcome.failure {
                    return self.stop(format!(
                        "state leaks between runs: without faults the test passed before the other runs and fails after them; create anew in each run what a run changes, and keep nothing in statics, files or databases\n{}",
                        failure.message
                    ));
                }
                self.count_base(&outcome);
                if self.report.base_alike < self.report.base_runs {
                    let warning = "a run without faults after the others performs other operations than before them; keep nothing from one run to the next in statics, files or databases";
                    self.report.warnings.push(warning.to_owned());
                }
            }
            Purpose::Simpler(index) => self.record_simpler(index, plan, outcome),
            Purpose::Repeat(index) => {
                let is_reached = self.applied(&plan, &outcome) == plan;
                let finding = &mut self.report.findings[index];
                let key = failure_key(&finding.failure);
                let failure = outcome.failure.filter(|_| is_reached);
                finding.again.0 += u32::from(failure.is_some_and(|it| failure_key(&it) == key));
                finding.again.1 += 1;
            }
            Purpose::Expected(_) => {}
        }
    }

    /// Stops the exploration early.
    pub fn stop(&mut self, why: String) {
        self.stopped = Some(why);
        self.queue.clear();
        self.stage = Stage::Done;
    }

    /// Returns the report so far.
    pub fn report(&self, now: Instant) -> ProgressReport {
        let is_done = self.stage == Stage::Done;
        let mut report = self.report.clone();
        if let Some(stopped) = &self.stopped {
            let name = &report.name;
            return ProgressReport {
                text: format!("{name}: {stopped}"),
                json: serde_json::json!({ "name": name, "runs": report.runs, "stopped": stopped }),
                is_done,
                is_failure: true,
            };
        }
        if !is_done && let Some(begun) = self.begun {
            report.took = now.saturating_duration_since(begun);
        }
        if !matches!(self.stage, Stage::Simpler | Stage::Repeat | Stage::Done) {
            report.findings = self.group_failures();
        }
        let mut lines = self.unexpected.clone();
        let is_failure = !lines.is_empty() || !report.findings.is_empty();
        if lines.is_empty() || !report.findings.is_empty() {
            lines.push(report.text());
        }
        ProgressReport {
            text: lines.join("\n"),
            json: report.to_json(),
            is_done,
            is_failure,
        }
    }

    /// Returns whether the budget allows a run. Runs that explain findings exceed the number of runs, but not the time.
    fn is_within_budget(&mut self, run: &PlannedRun, is_in_time: bool) -> bool {
        match run.purpose {
            Purpose::Base | Purpose::ResolveToken | Purpose::Always | Purpose::LeakCheck => true,
            Purpose::Planned => is_in_time && self.report.runs < self.settings.runs,
            Purpose::Expected(_) | Purpose::Repeat(_) => is_in_time,
            Purpose::Simpler(_) => {
                self.simpler += 1;
                is_in_time && self.simpler <= MAX_SIMPLER
            }
        }
    }

    /// Queues the runs of the next stage.
    fn begin_next_stage(&mut self) {
        let planned = |plan| (plan, Purpose::Planned);
        let (stage, runs): (_, Vec<(Plan, Purpose)>) = match self.stage {
            Stage::Base => (Stage::Singles, self.singles()),
            Stage::Singles => {
                let second_faults = std::mem::take(&mut self.second_faults)
                    .into_iter()
                    .flatten();
                (Stage::Pairs, second_faults.map(planned).collect())
            }
            Stage::Pairs if self.settings.token.is_none() => {
                let Settings {
                    options,
                    shuffled: runs,
                    ..
                } = &self.settings;
                let orders = shuffled(&self.fault_points, options, *runs, &self.tried);
                (Stage::Shuffled, orders.into_iter().map(planned).collect())
            }
            Stage::Pairs | Stage::Shuffled => (Stage::Expected, self.expect_failures()),
            // In real time every run is expensive, and leaks matter only after failures.
            Stage::Expected
                if !self.failed.is_empty()
                    || self.unreached_failures > 0
                    || self.planned > 0 && !self.settings.is_statistical =>
            {
                (
                    Stage::LeakCheck,
                    vec![(Plan::default(), Purpose::LeakCheck)],
                )
            }
            Stage::LeakCheck => {
                self.report.findings = self.group_failures();
                (Stage::Simpler, self.simpler_plans())
            }
            Stage::Simpler => (Stage::Repeat, self.repetitions()),
            Stage::Expected | Stage::Repeat | Stage::Done => {
                self.finish();
                (Stage::Done, Vec::new())
            }
        };
        self.stage = stage;
        let runs = runs.into_iter();
        let runs = runs.map(|(plan, purpose)| PlannedRun { plan, purpose });
        self.queue = runs.collect();
    }
}

#[cfg(test)]
mod tests;
