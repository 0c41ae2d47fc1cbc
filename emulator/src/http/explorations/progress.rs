//! What an exploration does next, from its first run to its report.
//!
//! It makes no run: it is told what came of each. First come two runs without a fault, then those that are planned, then,
//! where any failed, one more without a fault, and each failure twice again.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use servicebus_control_api::LoggedOperation;
use servicebus_explore::{
    Coverage, Features, Finding, Options, Plan, Report, Site, Token, cluster_key, pairs, plan,
    sites, unstable_features, weaker,
};

/// Most operations at which something goes wrong.
const MAX_SITES: usize = 1000;
/// Most failures whose runs are made again, and how often.
const MAX_REPEATED: usize = 10;
const AGAIN: usize = 2;

/// What an exploration was asked for.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) runs: u32,
    pub(crate) within: Duration,
    pub(crate) faults: usize,
    pub(crate) options: Options,
    pub(crate) token: Option<Token>,
}

/// An exploration as far as it has come.
#[derive(Debug)]
pub(crate) struct Progress {
    settings: Settings,
    begun: Option<Instant>,
    ended: Option<Instant>,
    runs: u32,
    stage: Stage,
    coming: VecDeque<Coming>,
    seconds: Vec<Plan>,
    base: Vec<Outcome>,
    sites: Vec<Site>,
    features: Features,
    failed: Vec<Failed>,
    passed: Vec<Plan>,
    findings: Vec<Finding>,
    coverage: Coverage,
    not_reached: u32,
    cut: u32,
    warnings: Vec<String>,
    /// Why nothing more can be found.
    stopped: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Base,
    Singles,
    Pairs,
    After,
    Again,
}

/// A run that is to be made.
#[derive(Debug, Clone)]
pub(crate) struct Coming {
    pub(crate) plan: Plan,
    purpose: Purpose,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Purpose {
    Base,
    /// Finds the next operation of a token.
    Prefix,
    Planned,
    After,
    /// Repeats this finding.
    Again(usize),
}

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) failure: Option<servicebus_explore::Failure>,
    pub(crate) operations: Vec<LoggedOperation>,
    /// The names of the parties by those of their keys.
    pub(crate) parties: BTreeMap<String, String>,
    /// Whether all faults were applied.
    pub(crate) is_reached: bool,
    pub(crate) timelines: Vec<String>,
}

#[derive(Debug)]
struct Failed {
    plan: Plan,
    failure: servicebus_explore::Failure,
    timelines: Vec<String>,
}

impl Progress {
    pub(crate) fn new(settings: Settings) -> Self {
        let base = Coming {
            plan: Plan { faults: Vec::new() },
            purpose: Purpose::Base,
        };
        Self {
            settings,
            begun: None,
            ended: None,
            runs: 0,
            stage: Stage::Base,
            coming: VecDeque::from([base.clone(), base]),
            seconds: Vec::new(),
            base: Vec::new(),
            sites: Vec::new(),
            features: Features::default(),
            failed: Vec::new(),
            passed: Vec::new(),
            findings: Vec::new(),
            coverage: Coverage::default(),
            not_reached: 0,
            cut: 0,
            warnings: Vec::new(),
            stopped: None,
        }
    }

    /// The next run; none where there is no more.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Coming> {
        let end = *self.begun.get_or_insert(now) + self.settings.within;
        while self.ended.is_none() {
            match self.coming.pop_front() {
                Some(coming) if self.is_affordable(&coming, now < end) => {
                    self.runs += 1;
                    return Some(coming);
                }
                Some(coming) => {
                    self.cut += u32::from(coming.purpose == Purpose::Planned);
                    self.coverage.add(&coming.plan, false);
                }
                None if !self.begin_next_stage() => self.ended = Some(now),
                None => {}
            }
        }
        None
    }

    /// A run that was not made after all comes again.
    pub(crate) fn put_back(&mut self, coming: Coming) {
        self.runs -= 1;
        self.coming.push_front(coming);
    }

    /// Takes what came of a run.
    pub(crate) fn take(&mut self, coming: Coming, outcome: Outcome) {
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
                self.follow_token(plan, &known);
            }
            Purpose::Planned => self.take_planned(plan, outcome),
            Purpose::After => {
                if let Some(failure) = outcome.failure {
                    self.stop(format!(
                        "state leaks between runs: without a fault the test passed before the others and fails after them; make anew in each run what a run changes, and keep nothing in globals, files or databases\n{}",
                        failure.message
                    ));
                }
            }
            Purpose::Again(index) => {
                if let Some(finding) = self.findings.get_mut(index) {
                    finding.again.0 += u32::from(outcome.failure.is_some());
                    finding.again.1 += 1;
                }
            }
        }
    }

    /// The report for people and that for programs, and whether there are no more runs.
    pub(crate) fn report(&self, now: Instant) -> (String, serde_json::Value, bool) {
        let name = self.settings.name.clone();
        let is_done = self.ended.is_some() || self.stopped.is_some();
        if let Some(stopped) = &self.stopped {
            let json = serde_json::json!({ "name": name, "runs": self.runs, "stopped": stopped });
            return (format!("{name}: {stopped}"), json, is_done);
        }
        let findings = match self.stage {
            Stage::Again => self.findings.clone(),
            Stage::Base | Stage::Singles | Stage::Pairs | Stage::After => self.clusters(),
        };
        let begun = self.begun.unwrap_or(now);
        let report = Report {
            name,
            findings,
            runs: self.runs,
            took: self.ended.unwrap_or(now).saturating_duration_since(begun),
            coverage: self.coverage.clone(),
            not_reached: self.not_reached,
            cut: self.cut,
            operations: self.sites.len(),
            warnings: self.warnings.clone(),
            is_statistical: true,
        };
        (report.text(), report.to_json(), is_done)
    }

    /// Whether the budget has a run; those that explain what was found are beyond it, but not beyond its time.
    fn is_affordable(&self, coming: &Coming, is_in_time: bool) -> bool {
        match coming.purpose {
            Purpose::Base | Purpose::Prefix | Purpose::After => true,
            Purpose::Planned => is_in_time && self.runs < self.settings.runs,
            Purpose::Again(_) => is_in_time,
        }
    }

    /// Fills what is coming; says whether there is another stage.
    fn begin_next_stage(&mut self) -> bool {
        let none = || Plan { faults: Vec::new() };
        let (stage, coming): (_, Vec<(Plan, Purpose)>) = match self.stage {
            _ if self.stopped.is_some() => return false,
            Stage::Base | Stage::Again => return false,
            Stage::Singles if !self.seconds.is_empty() => {
                let seconds = std::mem::take(&mut self.seconds).into_iter();
                let planned = seconds.map(|plan| (plan, Purpose::Planned));
                (Stage::Pairs, planned.collect())
            }
            Stage::Singles | Stage::Pairs if self.failed.is_empty() => return false,
            Stage::Singles | Stage::Pairs => (Stage::After, vec![(none(), Purpose::After)]),
            Stage::After => {
                self.findings = self.clusters();
                let repeated = self.findings.iter().take(MAX_REPEATED).enumerate();
                let again = repeated.flat_map(|(index, finding)| {
                    std::iter::repeat_n((finding.plan.clone(), Purpose::Again(index)), AGAIN)
                });
                (Stage::Again, again.collect())
            }
        };
        self.stage = stage;
        let coming = coming
            .into_iter()
            .map(|(plan, purpose)| Coming { plan, purpose });
        self.coming = coming.collect();
        true
    }

    /// Both runs without a fault were made: finds what faults can be applied to, and plans it.
    fn judge_base(&mut self) {
        let base = std::mem::take(&mut self.base);
        let [first, second] = base.as_slice() else {
            return;
        };
        let failures = [first, second].map(|outcome| outcome.failure.as_ref());
        match failures {
            [Some(failure), Some(_)] => {
                let message = &failure.message;
                return self.stop(format!(
                    "the test fails without any fault; make it pass first\n{message}"
                ));
            }
            [Some(failure), None] | [None, Some(failure)] => {
                return self.stop(format!(
                    "the base run is itself flaky: without any fault one of two runs fails; make what it depends on the same in each run\n{}",
                    failure.message
                ));
            }
            [None, None] => {}
        }
        let mut parties = first.parties.clone();
        parties.extend(second.parties.clone());
        self.features = unstable_features(&first.operations, &second.operations, &parties);
        self.sites = sites(&first.operations, &parties, self.features);
        if self.sites.is_empty() {
            return self.stop(
                "there is no operation to apply a fault to: let the code under test connect with the connection string of a party, which each run tells".to_owned(),
            );
        }
        if self.features != Features::default() {
            let warning = "two runs without a fault do not do the same; operations are told apart by less than the ids of their messages";
            self.warnings.push(warning.to_owned());
        }
        if let Some(more @ 1..) = self.sites.len().checked_sub(MAX_SITES) {
            self.sites.truncate(MAX_SITES);
            let warning =
                format!("{more} operations are left without faults: only the first {MAX_SITES}");
            self.warnings.push(warning);
        }
        self.stage = Stage::Singles;
        if self.settings.token.is_some() {
            let known = self.sites.clone();
            return self.follow_token(Plan { faults: Vec::new() }, &known);
        }
        let planned = plan(&self.sites, &self.settings.options);
        self.coming = planned.into_iter().map(planned_run).collect();
    }

    /// Finds the next operation of the token in a run with those before it.
    fn follow_token(&mut self, mut plan: Plan, known: &[Site]) {
        let Some(token) = &self.settings.token else {
            return;
        };
        let Some((key, effect)) = token.0.get(plan.faults.len()) else {
            return;
        };
        let Some(site) = known.iter().find(|site| site.key == *key) else {
            return self.stop(format!(
                "the token {token} names the operation `{key}`, which this test does not do: the token is of another test, or the code has changed since; explore again without it"
            ));
        };
        plan.faults.push((site.clone(), *effect));
        let purpose = match plan.faults.len() < token.0.len() {
            true => Purpose::Prefix,
            false => Purpose::Planned,
        };
        self.coming.push_back(Coming { plan, purpose });
    }

    fn take_planned(&mut self, plan: Plan, outcome: Outcome) {
        self.coverage.add(&plan, true);
        if let Some(failure) = outcome.failure {
            let timelines = outcome.timelines;
            self.failed.push(Failed {
                plan,
                failure,
                timelines,
            });
            return;
        }
        if !outcome.is_reached {
            self.not_reached += 1;
            return;
        }
        if plan.faults.len() < self.settings.faults && self.settings.token.is_none() {
            let then = sites(&outcome.operations, &outcome.parties, self.features);
            let pairs = pairs(&plan, &self.sites, &then, &self.settings.options);
            // No more than can be run; what is beyond it is cut already.
            let room = (self.settings.runs as usize).saturating_sub(self.seconds.len());
            self.cut += pairs.len().saturating_sub(room) as u32;
            self.seconds.extend(pairs.into_iter().take(room));
        }
        self.passed.push(plan);
    }

    /// Puts failures together that are one, and chooses the run that tells each best.
    fn clusters(&self) -> Vec<Finding> {
        let mut failed: Vec<&Failed> = self.failed.iter().collect();
        failed.sort_by_key(|failed| weaker(&failed.plan));
        let mut findings = Vec::<Finding>::new();
        for Failed {
            plan,
            failure,
            timelines,
        } in failed
        {
            let key = cluster_key(failure);
            let known = findings
                .iter_mut()
                .find(|finding| cluster_key(&finding.failure) == key);
            match known {
                Some(finding) => finding.also.push(plan.clone()),
                None => findings.push(Finding {
                    plan: plan.clone(),
                    failure: failure.clone(),
                    also: Vec::new(),
                    passed: self.weaker_that_passed(plan),
                    again: (1, 1),
                    timelines: timelines.clone(),
                }),
            }
        }
        findings
    }

    fn weaker_that_passed(&self, plan: &Plan) -> Vec<servicebus_explore::Effect> {
        let at = plan.faults.first();
        let weaker = self.passed.iter().filter_map(|passed| {
            let ((site, effect), (at, than)) = (passed.faults.first()?, at?);
            (site.key == at.key && effect.strength() <= than.strength()).then_some(*effect)
        });
        weaker.collect()
    }

    fn stop(&mut self, why: String) {
        self.stopped = Some(why);
        self.coming.clear();
    }
}

fn planned_run(plan: Plan) -> Coming {
    Coming {
        plan,
        purpose: Purpose::Planned,
    }
}
