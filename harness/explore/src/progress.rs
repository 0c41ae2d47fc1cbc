//! What an exploration does next, from its first run to its report.
//!
//! It makes no run: it is told what came of each. First come two runs without a fault and those that find the operations of
//! tokens, then those that are planned, which may be made at the same time. Where any failed, one more follows without a fault;
//! then fewer and weaker faults are tried in the place of several, and each failure comes twice again.

mod base;
mod findings;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use servicebus_control_api::LoggedOperation;

use crate::{
    Options, Plan, Token,
    plan::{pairs, plan, shuffled},
    report::{Failure, Report},
    site::{Features, Site, sites},
};

/// Most runs that look for what explains failures better.
const MAX_SIMPLER: u32 = 40;

/// What an exploration was asked for.
#[derive(Debug)]
pub struct Settings {
    /// The name of the test.
    pub name: String,
    /// Most runs; those that explain what was found are beyond it.
    pub runs: u32,
    /// After how long no run begins any more.
    pub within: Duration,
    /// How many faults a run has at most.
    pub faults: usize,
    /// Which faults are tried.
    pub options: Options,
    /// The run of this token is made alone.
    pub token: Option<Token>,
    /// The runs of these tokens are made first.
    pub always: Vec<Token>,
    /// The runs of these tokens fail, and why that is right.
    pub expected: Vec<(Token, String)>,
    /// How many runs change the order of operations by chance.
    pub shuffled: u32,
    /// Whether runs without a fault that differ end it.
    pub is_strict: bool,
    /// Most operations at which something goes wrong.
    pub operations: usize,
    /// Whether events come in the order of real time, which differs from run to run.
    pub is_statistical: bool,
}

/// What is to be done.
#[derive(Debug)]
pub enum Next {
    /// This run is to be made.
    Run(Coming),
    /// Nothing, before a run that was begun has ended.
    Wait,
    /// Nothing more.
    Done,
}

/// A run that is to be made.
#[derive(Debug, Clone)]
pub struct Coming {
    /// Its faults.
    pub plan: Plan,
    purpose: Purpose,
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// What clients did.
    pub operations: Vec<LoggedOperation>,
    /// The names of the parties by those of their keys.
    pub parties: BTreeMap<String, String>,
    /// Whether all faults were applied.
    pub is_reached: bool,
    /// What happened to the messages whose operations had faults.
    pub timelines: Vec<String>,
    /// Whether it could not be ended.
    pub is_stuck: bool,
}

/// What an exploration has found so far.
#[derive(Debug)]
pub struct Told {
    /// For people.
    pub text: String,
    /// For programs.
    pub json: serde_json::Value,
    /// Whether there are no more runs.
    pub is_done: bool,
    /// Whether something is wrong with the test.
    pub is_failure: bool,
}

/// An exploration as far as it has come.
#[derive(Debug)]
pub struct Progress {
    settings: Settings,
    begun: Option<Instant>,
    stage: Stage,
    coming: VecDeque<Coming>,
    /// Runs that were begun and have not ended.
    open: u32,
    base: Vec<Outcome>,
    features: Features,
    /// Tokens whose operations are not found yet; with a reason where they are expected to fail.
    sought: VecDeque<(Token, Option<String>)>,
    always: Vec<Plan>,
    expected: Vec<(Plan, String)>,
    /// Second faults: at operations of a kind that there is only after the first, at others that exist only then, and at the rest.
    seconds: [Vec<Plan>; 3],
    failed: Vec<Failed>,
    passed: Vec<Plan>,
    /// Runs that were planned and made, those by chance aside, and those that looked for simpler ones.
    planned: u32,
    simpler: u32,
    sites: Vec<Site>,
    report: Report,
    /// What is wrong beside the findings.
    unexpected: Vec<String>,
    /// Why nothing more can be found.
    stopped: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Base,
    Singles,
    Pairs,
    Shuffled,
    Expected,
    After,
    Simpler,
    Again,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Purpose {
    Base,
    /// Finds the next operation of a token.
    Prefix,
    Planned,
    /// Makes this run, which is expected to fail.
    Expected(usize),
    After,
    /// Looks for what explains this finding better.
    Simpler(usize),
    /// Repeats this finding.
    Again(usize),
}

#[derive(Debug)]
struct Failed {
    plan: Plan,
    failure: Failure,
    timelines: Vec<String>,
    is_stuck: bool,
}

impl Outcome {
    /// A run that failed before anything was seen of it.
    pub fn failed(message: String) -> Self {
        let location = None;
        Self {
            failure: Some(Failure { message, location }),
            ..Self::default()
        }
    }
}

impl Progress {
    /// Begins with two runs without a fault.
    pub fn new(settings: Settings) -> Self {
        let base = || Coming {
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
            coming: VecDeque::from([base(), base()]),
            open: 0,
            base: Vec::new(),
            features: Features::default(),
            sought: VecDeque::new(),
            always: Vec::new(),
            expected: Vec::new(),
            seconds: Default::default(),
            failed: Vec::new(),
            passed: Vec::new(),
            planned: 0,
            simpler: 0,
            sites: Vec::new(),
            unexpected: Vec::new(),
            stopped: None,
        }
    }

    /// What is to be done next.
    pub fn next(&mut self, now: Instant) -> Next {
        let begun = *self.begun.get_or_insert(now);
        while self.stage != Stage::Done {
            let is_alone = |coming: &Coming| coming.purpose != Purpose::Planned;
            if self.open > 0 && self.coming.front().is_none_or(is_alone) {
                return Next::Wait;
            }
            match self.coming.pop_front() {
                None => self.begin_next_stage(),
                Some(coming) if self.is_affordable(&coming, now < begun + self.settings.within) => {
                    self.open += 1;
                    self.report.runs += 1;
                    return Next::Run(coming);
                }
                Some(Coming { purpose, plan }) => match purpose {
                    Purpose::Again(index) => self.report.findings[index].is_cut = true,
                    Purpose::Simpler(_) => {}
                    Purpose::Base
                    | Purpose::Prefix
                    | Purpose::Planned
                    | Purpose::Expected(_)
                    | Purpose::After => {
                        self.report.cut += 1;
                        self.report.coverage.add(&plan, false);
                    }
                },
            }
            self.report.took = now.saturating_duration_since(begun);
        }
        Next::Done
    }

    /// A run that was not made after all comes again.
    pub fn put_back(&mut self, coming: Coming) {
        self.open -= 1;
        self.report.runs -= 1;
        self.coming.push_front(coming);
    }

    /// Takes what came of a run.
    pub fn take(&mut self, coming: Coming, outcome: Outcome) {
        self.open -= 1;
        let Coming { plan, purpose } = coming;
        match purpose {
            Purpose::Base => {
                self.base.push(outcome);
                if self.coming.is_empty() {
                    self.judge_base();
                }
            }
            Purpose::Prefix => {
                let known = sites(&outcome.operations, &outcome.parties, self.features);
                self.seek(plan, known);
            }
            Purpose::Planned => self.take_planned(plan, outcome),
            Purpose::Expected(index) if outcome.failure.is_none() => {
                let (token, reason) = (plan.token(), &self.expected[index].1);
                self.unexpected.push(format!(
                    "the run with {token} passes, and was expected to fail ({reason}): take `expect_failure` out"
                ));
            }
            Purpose::After => {
                if let Some(failure) = outcome.failure {
                    return self.stop(format!(
                        "state leaks between runs: without a fault the test passed before the others and fails after them; make anew in each run what a run changes, and keep nothing in statics, files or databases\n{}",
                        failure.message
                    ));
                }
                self.count_base(&outcome);
                if self.report.base_alike < self.report.base_runs {
                    let warning = "a run without a fault after the others does not do the same as before them; keep nothing from one run to the next in statics, files or databases";
                    self.report.warnings.push(warning.to_owned());
                }
            }
            Purpose::Simpler(index) => self.take_simpler(index, plan, outcome),
            Purpose::Again(index) => {
                let again = &mut self.report.findings[index].again;
                again.0 += u32::from(outcome.failure.is_some());
                again.1 += 1;
            }
            Purpose::Expected(_) => {}
        }
    }

    /// Ends it: nothing more can be found.
    pub fn stop(&mut self, why: String) {
        self.stopped = Some(why);
        self.coming.clear();
        self.stage = Stage::Done;
    }

    /// What was found so far.
    pub fn told(&self, now: Instant) -> Told {
        let is_done = self.stage == Stage::Done;
        let mut report = self.report.clone();
        if let Some(stopped) = &self.stopped {
            let name = &report.name;
            return Told {
                text: format!("{name}: {stopped}"),
                json: serde_json::json!({ "name": name, "runs": report.runs, "stopped": stopped }),
                is_done,
                is_failure: true,
            };
        }
        if !is_done && let Some(begun) = self.begun {
            report.took = now.saturating_duration_since(begun);
        }
        if !matches!(self.stage, Stage::Simpler | Stage::Again | Stage::Done) {
            report.findings = self.clusters();
        }
        let mut lines = self.unexpected.clone();
        let is_failure = !lines.is_empty() || !report.findings.is_empty();
        if lines.is_empty() || !report.findings.is_empty() {
            lines.push(report.text());
        }
        Told {
            text: lines.join("\n"),
            json: report.to_json(),
            is_done,
            is_failure,
        }
    }

    /// Whether the budget has a run; those that explain what was found are beyond it, but not beyond its time.
    fn is_affordable(&mut self, coming: &Coming, is_in_time: bool) -> bool {
        match coming.purpose {
            Purpose::Base | Purpose::After => true,
            Purpose::Planned => is_in_time && self.report.runs < self.settings.runs,
            Purpose::Prefix | Purpose::Expected(_) | Purpose::Again(_) => is_in_time,
            Purpose::Simpler(_) => {
                self.simpler += 1;
                is_in_time && self.simpler <= MAX_SIMPLER
            }
        }
    }

    /// Fills what is coming.
    fn begin_next_stage(&mut self) {
        let planned = |plan| (plan, Purpose::Planned);
        let (stage, coming): (_, Vec<(Plan, Purpose)>) = match self.stage {
            Stage::Base => (
                Stage::Singles,
                self.singles().into_iter().map(planned).collect(),
            ),
            Stage::Singles => {
                let seconds = std::mem::take(&mut self.seconds).into_iter().flatten();
                (Stage::Pairs, seconds.map(planned).collect())
            }
            Stage::Pairs if self.settings.token.is_none() => {
                let Settings {
                    options,
                    shuffled: runs,
                    ..
                } = &self.settings;
                let orders = shuffled(&self.sites, options, *runs);
                (Stage::Shuffled, orders.into_iter().map(planned).collect())
            }
            Stage::Pairs | Stage::Shuffled => (Stage::Expected, self.expect_failures()),
            // In real time each run costs, and leaks matter only to failures.
            Stage::Expected
                if !self.failed.is_empty() || self.planned > 0 && !self.settings.is_statistical =>
            {
                (Stage::After, vec![(Plan::default(), Purpose::After)])
            }
            Stage::After => {
                self.report.findings = self.clusters();
                (Stage::Simpler, self.simpler_plans())
            }
            Stage::Simpler => (Stage::Again, self.repetitions()),
            Stage::Expected | Stage::Again | Stage::Done => {
                self.finish();
                (Stage::Done, Vec::new())
            }
        };
        self.stage = stage;
        let coming = coming.into_iter();
        let coming = coming.map(|(plan, purpose)| Coming { plan, purpose });
        self.coming = coming.collect();
    }

    fn singles(&mut self) -> Vec<Plan> {
        let mut singles = std::mem::take(&mut self.always);
        if self.settings.token.is_none() && self.settings.runs > 0 {
            singles.extend(plan(&self.sites, &self.settings.options));
        }
        singles
    }

    fn take_planned(&mut self, plan: Plan, outcome: Outcome) {
        self.report.coverage.add(&plan, true);
        self.planned += u32::from(self.stage != Stage::Shuffled);
        if let Some(failure) = outcome.failure {
            return self.failed.push(Failed {
                plan,
                failure,
                timelines: outcome.timelines,
                is_stuck: outcome.is_stuck,
            });
        }
        if self.stage != Stage::Singles {
            return;
        }
        if !outcome.is_reached {
            self.report.not_reached += 1;
            return;
        }
        if plan.faults.len() < self.settings.faults && self.settings.token.is_none() {
            let then = sites(&outcome.operations, &outcome.parties, self.features);
            for second in pairs(&plan, &self.sites, &then, &self.settings.options) {
                self.keep_second(second);
            }
        }
        self.passed.push(plan);
    }

    /// No more are kept than can be run; what is beyond that is cut already, those that come last first.
    fn keep_second(&mut self, plan: Plan) {
        let Some((site, _)) = plan.faults.last() else {
            return;
        };
        let is_known = self.sites.iter().any(|known| known.key == site.key);
        let class = usize::from(!site.is_of_new_kind(&self.sites)) + usize::from(is_known);
        let kept: usize = self.seconds.iter().map(Vec::len).sum();
        if kept >= self.settings.runs as usize {
            self.report.cut += 1;
            let mut later = self.seconds[class + 1..].iter_mut().rev();
            if later.find_map(Vec::pop).is_none() {
                return;
            }
        }
        self.seconds[class].push(plan);
    }
}

#[cfg(test)]
mod tests;
