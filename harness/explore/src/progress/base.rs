//! Evaluates the runs without faults: the operations that can get faults, and those of tokens.

use super::{PlannedRun, Progress, Purpose};
use crate::{
    Outcome, Plan,
    fault_point::{
        FaultPoint, KeyParts, describe_divergence, fault_points, have_equal_keys, stable_key_parts,
    },
    plan::not_applicable,
    report::Failure,
};

impl Progress {
    /// Evaluates both runs without faults.
    pub(crate) fn evaluate_base(&mut self) {
        let base = std::mem::take(&mut self.base);
        let [first, second] = base.as_slice() else {
            return;
        };
        let differ = describe_divergence(first, second);
        match (&first.failure, &second.failure) {
            (Some(failure), _) if first.is_hung => return self.stop(failure.message.clone()),
            (Some(Failure { message, location }), Some(_)) => {
                let at = location.as_ref().map(|at| format!("  ({at})"));
                let at = at.unwrap_or_default();
                let hint = match self.settings.is_statistical && message.contains("Lock") {
                    true => {
                        "\nhint: after a second without traffic the clock steps to the end of the lock; hold it while the code works (`clock/hold`)"
                    }
                    false => "",
                };
                return self.stop(format!(
                    "the test fails without any fault; make it pass first\n{message}{at}{hint}"
                ));
            }
            (Some(failure), None) | (None, Some(failure)) => {
                let message = &failure.message;
                return self.stop(format!(
                    "the base run is itself flaky: without any fault one of two runs fails{differ}; make what it depends on the same in each run, and keep nothing from one run to the next in statics, files or databases\n{message}"
                ));
            }
            (None, None) => {}
        }
        let mut parties = first.parties.clone();
        parties.extend(second.parties.clone());
        self.key_parts = stable_key_parts(&first.operations, &second.operations, &parties);
        self.fault_points = fault_points(&first.operations, &parties, self.key_parts);
        self.count_base(first);
        self.count_base(second);
        let is_other_order = !self.settings.is_statistical && !differ.is_empty();
        if self.key_parts != KeyParts::default() || is_other_order {
            let warning = format!(
                "two runs without faults perform different operations{differ}; operations are identified by less: take ids and times neither from random numbers nor from the wall clock"
            );
            if self.settings.is_strict {
                return self.stop(format!("{warning}, and `strict` is set"));
            }
            self.report.warnings.push(warning);
        }
        self.begin_with_fault_points();
    }

    /// Counts a run without faults, and whether it did the same as the first.
    pub(crate) fn count_base(&mut self, outcome: &Outcome) {
        let done = fault_points(&outcome.operations, &outcome.parties, self.key_parts);
        let [first, done] = [&self.fault_points, &done].map(|fault_points| {
            let most = self.settings.operations.min(fault_points.len());
            &fault_points[..most]
        });
        self.report.base_runs += 1;
        self.report.base_alike += usize::from(have_equal_keys(first, done));
    }

    fn begin_with_fault_points(&mut self) {
        self.report.operations = self.fault_points.len();
        self.report.not_applicable = not_applicable(&self.fault_points, &self.settings.options);
        if self.fault_points.is_empty() {
            let connect = match self.settings.is_statistical {
                true => {
                    "let the code under test connect with the connection string of a party, which each run names"
                }
                false => {
                    "start the code under test by `run.party(\"worker\", async |bus| …)` or `run.job`, and let it connect with `bus.connection_string()`"
                }
            };
            return self.stop(format!(
                "there is no operation to apply a fault to: {connect}"
            ));
        }
        let most = self.settings.operations;
        if let Some(more @ 1..) = self.fault_points.len().checked_sub(most) {
            self.fault_points.truncate(most);
            let warning =
                format!("{more} operations are left without faults: only the first {most}");
            self.report.warnings.push(warning);
        }
        let always = match &self.settings.token {
            Some(token) => vec![token.clone()],
            None => std::mem::take(&mut self.settings.always),
        };
        let expected = std::mem::take(&mut self.settings.expected).into_iter();
        let expected = expected.map(|(token, reason)| (token, Some(reason)));
        let always = always.into_iter().map(|token| (token, None));
        self.pending_tokens = always.chain(expected).collect();
        self.resolve_tokens(Plan::default(), self.fault_points.clone());
    }

    /// Finds the operations of tokens: the first of each in a run without faults, each next one in a run with those before
    /// it.
    pub(crate) fn resolve_tokens(&mut self, mut plan: Plan, mut known: Vec<FaultPoint>) {
        while let Some((token, _)) = self.pending_tokens.front()
            && let Some((key, effect)) = token.0.get(plan.faults.len())
        {
            let Some(point) = known.iter().find(|point| point.key == *key) else {
                return self.stop(format!(
                    "the token {token} names the operation `{key}`, which this test does not perform: the token belongs to another test, or the code has changed since; explore again without it"
                ));
            };
            plan.faults.push((point.clone(), *effect));
            if plan.faults.len() < token.0.len() {
                let purpose = Purpose::ResolveToken;
                return self.queue.push_back(PlannedRun { plan, purpose });
            }
            match self.pending_tokens.pop_front() {
                Some((_, Some(reason))) => self.expected.push((plan, reason)),
                Some((_, None)) | None => self.always.push(plan),
            }
            (plan, known) = (Plan::default(), self.fault_points.clone());
        }
    }
}
