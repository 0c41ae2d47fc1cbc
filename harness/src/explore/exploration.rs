//! An exploration from its first run to its report.

use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use servicebus_explore::{
    Coverage, Features, Finding, Plan, Report, Site, Token, cluster_key, pairs, plan, shuffled,
    simpler, sites, unstable_features, weaker,
};

use super::{
    Explore, Passes,
    attempt::{self, Outcome},
    end::Expected,
    run::Run,
};

/// How long a run may take in real time.
const STUCK: Duration = Duration::from_secs(20);
/// How often a failure is repeated.
const AGAIN: u32 = 2;
/// Most runs that look for what explains failures better.
const SIMPLER: u32 = 40;
/// Most findings whose runs are repeated.
const FINDINGS: usize = 10;

pub(crate) struct Exploration<F> {
    explore: Explore,
    test: Arc<F>,
    begun: Instant,
    runs: u32,
    /// What each run has to end with, if it has to.
    end: Option<Expected>,
}

/// What the runs without faults have shown.
struct Base {
    sites: Vec<Site>,
    features: Features,
    warnings: Vec<String>,
}

type Made = (Plan, Outcome);

impl<F, R> Exploration<F>
where
    F: AsyncFn(&Run) -> R + Send + Sync + 'static,
    R: Passes,
{
    pub(crate) fn new(explore: Explore, test: F) -> Self {
        Self {
            explore,
            test: Arc::new(test),
            begun: Instant::now(),
            runs: 0,
            end: None,
        }
    }

    /// Explores, or runs the faults of one token alone. Returns the report, and what to fail with.
    pub(crate) fn explore(
        mut self,
        name: &str,
        only: Option<Token>,
    ) -> Result<(Report, Option<String>), String> {
        let base = self.base(name)?;
        let (always, expected) = self.named(&base)?;
        let planned = match (&only, self.explore.budget) {
            (Some(token), _) => vec![self.find(token, &base)?],
            (None, 0) => Vec::new(),
            (None, _) => {
                let singles = plan(&base.sites, &self.explore.options);
                always.into_iter().chain(singles).collect()
            }
        };
        let mut coverage = Coverage::default();
        let (mut failed, mut not_reached, mut cut) = (Vec::new(), 0, 0);
        let mut passed = Vec::new();
        let before = self.runs;
        self.make(planned, &mut coverage, &mut cut, |plan, outcome| {
            match (outcome.failure.is_some(), outcome.is_reached) {
                (true, _) => failed.push((plan, outcome)),
                (false, false) => not_reached += 1,
                (false, true) => passed.push((plan, outcome)),
            }
        });
        if self.explore.faults > 1 && only.is_none() {
            let second = self.second_faults(&passed, &base);
            self.make(second, &mut coverage, &mut cut, |plan, outcome| {
                if outcome.failure.is_some() {
                    failed.push((plan, outcome));
                }
            });
        }
        let planned = self.runs - before;
        if only.is_none() {
            let orders = shuffled(&base.sites, &self.explore.options, self.explore.shuffled);
            self.make(orders, &mut coverage, &mut cut, |plan, outcome| {
                if outcome.failure.is_some() {
                    failed.push((plan, outcome));
                }
            });
        }
        let mut unexpected = self.not_failed(expected, &mut failed);
        let mut warnings = base.warnings;
        if !failed.is_empty() {
            self.check_base_again(name)?;
        }
        if not_reached * 5 > planned {
            unexpected.push(format!(
                "{name}: the exploration is inconclusive: {not_reached} of {planned} faults were never applied, because the code does not do the same in each run; make its message ids, order and number of operations the same in each run"
            ));
        }
        if not_reached > 0 && unexpected.is_empty() {
            warnings.push(format!(
                "{not_reached} faults were never applied, and say nothing"
            ));
        }
        let report = Report {
            name: name.to_owned(),
            findings: self.findings(failed, &passed),
            runs: self.runs,
            took: self.begun.elapsed(),
            coverage,
            not_reached,
            cut,
            operations: base.sites.len(),
            warnings,
            is_statistical: false,
        };
        unexpected.extend((!report.findings.is_empty()).then(|| report.text()));
        let failure = (!unexpected.is_empty()).then(|| unexpected.join("\n"));
        Ok((report, failure))
    }

    /// Plans second faults for the runs that passed: at operations first that exist only after the first fault.
    fn second_faults(&self, passed: &[Made], base: &Base) -> Vec<Plan> {
        let second = passed.iter().flat_map(|(plan, outcome)| {
            let then = sites(&outcome.operations, &outcome.parties, base.features);
            pairs(plan, &base.sites, &then, &self.explore.options)
        });
        let mut second: Vec<Plan> = second.collect();
        second.sort_by_cached_key(|plan| {
            let second = plan.faults.last().map(|(site, _)| &site.key);
            base.sites.iter().any(|site| Some(&site.key) == second)
        });
        second
    }

    /// Runs without a fault once more, and fails where that fails by now.
    fn check_base_again(&mut self, name: &str) -> Result<(), String> {
        let after = self.once(&Plan { faults: Vec::new() });
        let Some(failure) = after.failure else {
            return Ok(());
        };
        Err(format!(
            "{name}: state leaks between runs: without a fault the test passed before the others and fails after them; make in the closure what a run changes, and keep nothing in statics, files or databases\n{}",
            failure.message
        ))
    }

    /// Returns the runs of tokens that are always made, and of those that are expected to fail with the reason.
    #[expect(clippy::type_complexity, reason = "it is taken apart at once")]
    fn named(&mut self, base: &Base) -> Result<(Vec<Plan>, Vec<(Plan, String)>), String> {
        let (mut always, mut expected) = (Vec::new(), Vec::new());
        for token in self.explore.always.clone() {
            let token = token.parse::<Token>().map_err(|error| error.to_string())?;
            always.push(self.find(&token, base)?);
        }
        for (token, reason) in self.explore.expected.clone() {
            let token = token.parse::<Token>().map_err(|error| error.to_string())?;
            expected.push((self.find(&token, base)?, reason));
        }
        Ok((always, expected))
    }

    /// Takes failures that are expected out, and tells of those that did not happen.
    fn not_failed(&mut self, expected: Vec<(Plan, String)>, failed: &mut Vec<Made>) -> Vec<String> {
        let mut unexpected = Vec::new();
        for (plan, reason) in expected {
            let token = plan.token();
            let before = failed.len();
            failed.retain(|(failed, _)| failed.token() != token);
            if before == failed.len() && self.once(&plan).failure.is_none() {
                unexpected.push(format!(
                    "the run with {token} passes, and was expected to fail ({reason}): take `expect_failure` out"
                ));
            }
        }
        unexpected
    }

    /// Runs the test twice as it is.
    fn base(&mut self, name: &str) -> Result<Base, String> {
        let none = Plan { faults: Vec::new() };
        let (first, second) = (self.once(&none), self.once(&none));
        match (&first.failure, &second.failure) {
            (Some(failure), _) if first.is_stuck => {
                return Err(format!("{name}: {}", failure.message));
            }
            (Some(first), Some(_)) => {
                return Err(format!(
                    "{name} fails without any fault; make it pass first\n{}{}",
                    first.message,
                    first
                        .location
                        .as_ref()
                        .map_or_else(String::new, |at| format!("  ({at})")),
                ));
            }
            (Some(failure), None) | (None, Some(failure)) => {
                return Err(format!(
                    "{name}: the base run is itself flaky: without any fault one of two runs fails{1}; make what it depends on the same in each run\n{0}",
                    failure.message,
                    diverging(&first, &second),
                ));
            }
            (None, None) => {}
        }
        if let (Some(first), Some(second)) = (first.end.clone(), &second.end) {
            let end = Expected::of(first, second);
            self.end = Some(end.map_err(|difference| {
                format!("{name}: `same_end` was said, and two runs without a fault end otherwise:{difference}")
            })?);
        }
        let features = unstable_features(&first.operations, &second.operations, &first.parties);
        let mut warnings = Vec::new();
        let found = sites(&first.operations, &first.parties, features);
        if features != Features::default() || !diverging(&first, &second).is_empty() {
            let warning = format!(
                "two runs without a fault do not do the same{}; operations are told apart by less: take ids and times neither from chance nor from the wall clock",
                diverging(&first, &second)
            );
            if self.explore.is_strict {
                return Err(format!("{name}: {warning}, and `strict` was said"));
            }
            warnings.push(warning);
        }
        if found.is_empty() {
            return Err(format!(
                "{name}: there is no operation to apply a fault to: start the code under test by `run.party(\"worker\", async |bus| …)` or `run.job`, and let it connect with `bus.connection_string()`"
            ));
        }
        Ok(Base {
            sites: found,
            features,
            warnings,
        })
    }

    /// Finds the operations of a token: the first in a run without faults, each other in one with those before it.
    fn find(&mut self, token: &Token, base: &Base) -> Result<Plan, String> {
        let mut plan = Plan { faults: Vec::new() };
        let mut known = base.sites.clone();
        for (key, effect) in &token.0 {
            if !plan.faults.is_empty() {
                let outcome = self.once(&plan);
                known = sites(&outcome.operations, &outcome.parties, base.features);
            }
            let site = known.iter().find(|site| site.key == *key).ok_or_else(|| {
                format!(
                    "the token {token} names the operation `{key}`, which this test does not do: the token is of another test, or the code has changed since; explore again without it"
                )
            })?;
            plan.faults.push((site.clone(), *effect));
        }
        Ok(plan)
    }

    /// Makes the runs that the budget has, several at a time.
    fn make(
        &mut self,
        plans: Vec<Plan>,
        coverage: &mut Coverage,
        cut: &mut u32,
        mut take: impl FnMut(Plan, Outcome),
    ) {
        let room = self.explore.budget.max(1).saturating_sub(self.runs) as usize;
        let mut done = vec![false; plans.len()];
        let end = self.begun + self.explore.within;
        let next = Arc::new(Mutex::new(0..plans.len().min(room)));
        let plans = Arc::new(plans);
        let (sender, outcomes) = mpsc::channel();
        for _ in 0..self.explore.jobs.min(plans.len()) {
            let (next, plans, sender) = (Arc::clone(&next), Arc::clone(&plans), sender.clone());
            let (explore, test) = (self.explore.clone(), Arc::clone(&self.test));
            thread::spawn(move || {
                while Instant::now() < end
                    && let Some(index) = next.lock().ok().and_then(|mut next| next.next())
                {
                    let outcome = attempt::run(&explore, &*test, &plans[index]);
                    if sender.send((index, outcome)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let patience = self.patience();
        loop {
            match outcomes.recv_timeout(patience) {
                Ok((index, mut outcome)) => {
                    self.check_end(&mut outcome);
                    (done[index], self.runs) = (true, self.runs + 1);
                    take(plans[index].clone(), outcome);
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let begun = next.lock().map_or(plans.len(), |next| next.start);
                    if let Some(index) = (0..begun).find(|&index| !done[index]) {
                        done[index] = true;
                        take(plans[index].clone(), stuck(patience));
                    }
                    break;
                }
            }
        }
        for (plan, done) in plans.iter().zip(done) {
            coverage.add(plan, done);
            *cut += u32::from(!done);
        }
    }

    /// Makes one run, which may take so long and no longer.
    fn once(&mut self, plan: &Plan) -> Outcome {
        self.runs += 1;
        let (sender, outcome) = mpsc::channel();
        let (explore, test) = (self.explore.clone(), Arc::clone(&self.test));
        let plan = plan.clone();
        thread::spawn(move || {
            // It fails only when the run was not waited for any longer.
            let _ = sender.send(attempt::run(&explore, &*test, &plan));
        });
        let patience = self.patience();
        let ended = outcome.recv_timeout(patience);
        let mut outcome = ended.unwrap_or_else(|_| stuck(patience));
        self.check_end(&mut outcome);
        outcome
    }

    fn check_end(&self, outcome: &mut Outcome) {
        if let Some(end) = &self.end {
            end.check(outcome);
        }
    }

    /// How long a run may take in real time.
    fn patience(&self) -> Duration {
        STUCK.min(self.explore.within)
    }

    fn has_time(&self) -> bool {
        self.begun.elapsed() < self.explore.within
    }

    /// Looks for a run that fails in the same way and explains more: without one of its faults, or with weaker ones.
    fn simplified(&mut self, failed: Made, left: &mut u32, known: &[Made]) -> Made {
        let Some(key) = failed.1.failure.as_ref().map(cluster_key) else {
            return failed;
        };
        for plan in simpler(&failed.0) {
            if *left == 0 || !self.has_time() {
                break;
            }
            if known.iter().any(|(known, _)| *known == plan) {
                continue;
            }
            *left -= 1;
            let outcome = self.once(&plan);
            let found = outcome.failure.as_ref().map(cluster_key);
            if outcome.is_reached && found.as_ref() == Some(&key) {
                return (plan, outcome);
            }
        }
        failed
    }

    /// Puts failures together that are one, chooses the run that tells each best, and repeats that.
    fn findings(&mut self, mut failed: Vec<Made>, passed: &[Made]) -> Vec<Finding> {
        failed.sort_by_key(|(plan, _)| weaker(plan));
        let mut clusters = Vec::<(Vec<Made>, _)>::new();
        for (plan, outcome) in failed {
            let Some(failure) = &outcome.failure else {
                continue;
            };
            let key = cluster_key(failure);
            match clusters.iter_mut().find(|(_, known)| *known == key) {
                Some((cluster, _)) => cluster.push((plan, outcome)),
                None => clusters.push((vec![(plan, outcome)], key)),
            }
        }
        let (mut findings, mut left) = (Vec::new(), SIMPLER);
        for (index, (cluster, _)) in clusters.into_iter().enumerate() {
            let mut cluster = cluster.into_iter();
            let Some(mut chosen) = cluster.next() else {
                continue;
            };
            if chosen.0.faults.len() > 1 {
                chosen = self.simplified(chosen, &mut left, passed);
            }
            let (plan, outcome) = chosen;
            let Some(failure) = outcome.failure else {
                continue;
            };
            let mut again = (1, 1);
            if !outcome.is_stuck && index < FINDINGS && self.has_time() {
                let repeated = (0..AGAIN)
                    .filter(|_| self.once(&plan).failure.is_some())
                    .count();
                again = (1 + repeated as u32, 1 + AGAIN);
            }
            let weaker_ones = passed.iter().filter_map(|(other, _)| {
                let ((at, effect), (site, than)) = (other.faults.first()?, plan.faults.first()?);
                (at.key == site.key && effect.strength() <= than.strength()).then_some(*effect)
            });
            findings.push(Finding {
                passed: weaker_ones.collect(),
                also: cluster.map(|(plan, _)| plan).collect(),
                timelines: outcome.timelines,
                plan,
                failure,
                again,
            });
        }
        findings.sort_by_key(|finding| finding.again.0 < finding.again.1);
        findings
    }
}

/// What is said of a run that could not be ended.
fn stuck(patience: Duration) -> Outcome {
    let seconds = patience.as_secs_f64();
    let mut outcome = Outcome::failed(format!(
        "the run does not end: after {seconds} s of real time it still runs; do not block the thread (`std::thread::sleep`, a lock, a blocking client) and do not spin: await, or put it into `tokio::task::spawn_blocking` or `run.outside(…)`"
    ));
    outcome.is_stuck = true;
    outcome
}

/// Tells the first operation in which two runs differ.
fn diverging(first: &Outcome, second: &Outcome) -> String {
    let keys = |outcome: &Outcome| {
        let all = sites(&outcome.operations, &outcome.parties, Features::default());
        all.into_iter().map(|site| site.key).collect::<Vec<_>>()
    };
    let (first, second) = (keys(first), keys(second));
    let none = "nothing more".to_owned();
    let length = first.len().max(second.len());
    let differing = (0..length).find(|&index| first.get(index) != second.get(index));
    differing.map_or_else(String::new, |index| {
        let [one, other] = [&first, &second].map(|keys| keys.get(index).unwrap_or(&none));
        format!(" (one does `{one}` where the other does `{other}`)")
    })
}
