//! Evaluates planned runs: whether their faults were applied, whether they failed, and which second faults they allow.

use super::{Failed, Outcome, Progress, Purpose, Stage};
use crate::{
    Plan,
    fault_point::fault_points,
    plan::{plan, with_second_fault},
};

impl Progress {
    /// Returns the runs with one fault, after those of tokens.
    pub(crate) fn singles(&mut self) -> Vec<(Plan, Purpose)> {
        let always = std::mem::take(&mut self.always).into_iter();
        let mut singles = Vec::from_iter(always.map(|plan| (plan, Purpose::Always)));
        if self.settings.token.is_none() && self.settings.runs > 0 {
            let plans = plan(&self.fault_points, &self.settings.options).into_iter();
            singles.extend(plans.map(|plan| (plan, Purpose::Planned)));
        }
        singles
    }

    /// Returns the faults of a plan that were applied at the operations for which they were planned.
    pub(crate) fn applied(&self, plan: &Plan, outcome: &Outcome) -> Plan {
        let performed = fault_points(&outcome.operations, &outcome.parties, self.key_parts);
        let faults = plan.faults.iter().zip(&outcome.fault_ids);
        let applied = faults.filter(|((planned, _), id)| {
            let mut performed = performed.iter();
            performed.any(|point| {
                let mut applied = point.operation.faults.iter();
                point.key == planned.key && applied.any(|applied| applied.fault == **id)
            })
        });
        Plan {
            faults: applied.map(|(fault, _)| fault.clone()).collect(),
        }
    }

    pub(crate) fn record_planned(&mut self, plan: Plan, outcome: Outcome) {
        self.report.coverage.add(&plan, true);
        self.tried.insert(plan.token());
        let is_random = self.stage == Stage::Shuffled;
        self.planned += u32::from(!is_random);
        let applied = self.applied(&plan, &outcome);
        // A run that cannot be ended has no log.
        if applied != plan && !outcome.is_hung {
            self.report.not_reached += 1;
            // In a random order, one fault may prevent the operation of another.
            self.unreached += u32::from(!is_random);
            return self.record_unreached(&plan, applied, outcome);
        }
        if outcome.failure.is_some() {
            return self.record_failed(plan, outcome);
        }
        if self.stage != Stage::Singles {
            return;
        }
        if plan.faults.len() < self.settings.faults && self.settings.token.is_none() {
            let then = fault_points(&outcome.operations, &outcome.parties, self.key_parts);
            for second in
                with_second_fault(&plan, &self.fault_points, &then, &self.settings.options)
            {
                self.queue_second_fault(second);
            }
        }
        self.passed.push(plan);
    }

    /// Explains a failure by the faults that were applied. Without any, it shows nothing about faults.
    fn record_unreached(&mut self, plan: &Plan, applied: Plan, outcome: Outcome) {
        let Some(failure) = &outcome.failure else {
            return;
        };
        if !applied.faults.is_empty() {
            return self.record_failed(applied, outcome);
        }
        self.unreached_failures += 1;
        if self.unreached_failures == 1 {
            let (name, token, message) = (&self.settings.name, plan.token(), &failure.message);
            self.unexpected.push(format!(
                "{name}: the run with {token} fails although its fault was not applied, and without faults the test passes: make its message ids, order and number of operations the same in each run, and keep nothing from one run to the next in statics, files or databases\n{message}"
            ));
        }
    }

    fn record_failed(&mut self, plan: Plan, outcome: Outcome) {
        if let Some(failure) = outcome.failure {
            self.failed.push(Failed {
                plan,
                failure,
                timelines: outcome.timelines,
                is_hung: outcome.is_hung,
            });
        }
    }

    /// Keeps at most as many plans as the budget allows; surplus plans count as cut, those of the last class first.
    fn queue_second_fault(&mut self, plan: Plan) {
        let Some((point, _)) = plan.faults.last() else {
            return;
        };
        let is_known = self.fault_points.iter().any(|known| known.key == point.key);
        let class = usize::from(!point.is_of_new_kind(&self.fault_points)) + usize::from(is_known);
        let kept: usize = self.second_faults.iter().map(Vec::len).sum();
        if kept >= self.settings.runs as usize {
            self.report.cut += 1;
            let mut later = self.second_faults[class + 1..].iter_mut().rev();
            if later.find_map(Vec::pop).is_none() {
                return;
            }
        }
        self.second_faults[class].push(plan);
    }
}
