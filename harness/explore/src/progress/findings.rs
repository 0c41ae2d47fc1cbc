//! Evaluates failed runs: those that were expected, those with the same failure, and which explains it best.

use super::{Failed, Outcome, PlannedRun, Progress, Purpose};
use crate::{
    Effect, Plan,
    report::{Failure, Finding, failure_key, simpler, weaker},
};

/// The largest number of failures that are repeated, and how often.
const MAX_REPEATED: usize = 10;
const REPETITIONS: usize = 2;

impl Progress {
    /// Removes expected failures, and returns the expected runs that have not failed yet.
    pub(crate) fn expect_failures(&mut self) -> Vec<(Plan, Purpose)> {
        let mut runs = Vec::new();
        for (index, (plan, _)) in self.expected.iter().enumerate() {
            let before = self.failed.len();
            self.failed
                .retain(|failed| failed.plan.token() != plan.token());
            if before == self.failed.len() {
                runs.push((plan.clone(), Purpose::Expected(index)));
            }
        }
        runs
    }

    /// Groups equal failures, with the plan that explains each best.
    pub(crate) fn group_failures(&self) -> Vec<Finding> {
        let mut failed: Vec<&Failed> = self.failed.iter().collect();
        failed.sort_by_key(|failed| weaker(&failed.plan));
        let mut findings = Vec::<Finding>::new();
        for failed in failed {
            let key = failure_key(&failed.failure);
            let mut known = findings.iter_mut();
            match known.find(|finding| failure_key(&finding.failure) == key) {
                Some(finding) => finding.also.push(failed.plan.clone()),
                None => findings.push(Finding {
                    plan: failed.plan.clone(),
                    failure: failed.failure.clone(),
                    also: Vec::new(),
                    passed: self.weaker_that_passed(&failed.plan),
                    again: (1, 1),
                    is_cut: false,
                    timelines: failed.timelines.clone(),
                }),
            }
        }
        findings
    }

    fn weaker_that_passed(&self, plan: &Plan) -> Vec<Effect> {
        let at = plan.faults.first();
        let weaker = self.passed.iter().filter_map(|passed| {
            let ((point, effect), (at, than)) = (passed.faults.first()?, at?);
            (point.key == at.key && effect.strength() <= than.strength()).then_some(*effect)
        });
        weaker.collect()
    }

    /// Returns plans that may explain findings with several faults better.
    pub(crate) fn simpler_plans(&self) -> Vec<(Plan, Purpose)> {
        let mut runs = Vec::new();
        for (index, finding) in self.report.findings.iter().enumerate() {
            if finding.plan.faults.len() > 1 {
                let mut plans = simpler(&finding.plan);
                plans.retain(|plan| !self.passed.contains(plan));
                let plans = plans.into_iter();
                runs.extend(plans.map(|plan| (plan, Purpose::Simpler(index))));
            }
        }
        runs
    }

    pub(crate) fn record_simpler(&mut self, index: usize, plan: Plan, outcome: Outcome) {
        let passed = self.weaker_that_passed(&plan);
        let is_reached = self.applied(&plan, &outcome) == plan;
        let finding = &mut self.report.findings[index];
        let fails_so = |failure: &Failure| failure_key(failure) == failure_key(&finding.failure);
        if let Some(failure) = outcome.failure.filter(fails_so)
            && is_reached
        {
            (finding.plan, finding.failure) = (plan, failure);
            (finding.passed, finding.timelines) = (passed, outcome.timelines);
            let others = |run: &PlannedRun| run.purpose != Purpose::Simpler(index);
            self.queue.retain(others);
        }
    }

    pub(crate) fn repetitions(&self) -> Vec<(Plan, Purpose)> {
        let mut runs = Vec::new();
        let findings = self.report.findings.iter().enumerate();
        for (index, Finding { plan, .. }) in findings.take(MAX_REPEATED) {
            let mut failed = self.failed.iter();
            if !failed.any(|failed| failed.is_hung && failed.plan == *plan) {
                runs.extend(vec![(plan.clone(), Purpose::Repeat(index)); REPETITIONS]);
            }
        }
        runs
    }

    pub(crate) fn finish(&mut self) {
        let findings = &mut self.report.findings;
        findings.sort_by_key(|finding| finding.again.0 < finding.again.1);
        let not_reached = self.report.not_reached;
        let untried = self.report.coverage.untried();
        let (name, unreached, planned) = (&self.settings.name, self.unreached, self.planned);
        if unreached * 5 > planned {
            self.unexpected.push(format!(
                "{name}: the exploration is inconclusive: {unreached} of {planned} faults were never applied, because the code does not do the same in each run; make its message ids, order and number of operations the same in each run"
            ));
        } else if self.settings.runs > 0
            && self.report.cut == 0
            && self.report.runs as usize == self.report.base_runs
        {
            self.unexpected.push(format!(
                "{name}: the exploration is inconclusive: `effects`, `only` and `except` leave no fault to apply"
            ));
        } else if self.report.findings.is_empty()
            && self.report.runs < self.settings.runs
            && !untried.is_empty()
        {
            let within = self.settings.within.as_secs_f64();
            let untried = untried.join(", ");
            self.unexpected.push(format!(
                "{name}: the exploration is inconclusive: its {within} s ended before any fault at these operations was tried: {untried}; give it more time with `within`, or fewer faults with `only`, `except` or `effects`"
            ));
        } else if not_reached > 0 && self.unexpected.is_empty() {
            self.report.warnings.push(format!(
                "{not_reached} faults were never applied, and show nothing"
            ));
        }
    }
}
