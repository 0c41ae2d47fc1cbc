//! The report of an exploration, for people and for programs.

use std::{collections::BTreeMap, fmt::Write as _, time::Duration};

use serde::Serialize;
use servicebus_control_api::Operation;

use crate::{Effect, Plan};

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The message.
    pub message: String,
    /// File, line and column, if known.
    pub location: Option<String>,
}

/// Equal failures, with the run that explains them best.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Finding {
    /// The run.
    pub plan: Plan,
    /// Why it failed.
    pub failure: Failure,
    /// Other runs with this failure.
    pub also: Vec<Plan>,
    /// Weaker effects at the same operation that passed.
    pub passed: Vec<Effect>,
    /// The number of failures and of runs, including the one that found it.
    pub again: (u32, u32),
    /// Whether the time ended before the repetition.
    pub is_cut: bool,
    /// The events of the messages whose operations had faults.
    pub timelines: Vec<String>,
}

/// The numbers of tried and possible faults, by effect and operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Coverage(BTreeMap<Effect, BTreeMap<&'static str, (u32, u32)>>);

/// The result of an exploration.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Report {
    /// The name of the test.
    pub name: String,
    /// The number of runs, including those without faults.
    pub runs: u32,
    /// The duration.
    pub took: Duration,
    /// The findings, the most certain first.
    pub findings: Vec<Finding>,
    /// The tried faults.
    pub coverage: Coverage,
    /// Faults that were never applied.
    pub not_reached: u32,
    /// Planned runs that were not executed.
    pub cut: u32,
    /// The number of effects that are not possible at an operation although they are at others of its kind: a lock cannot be
    /// lost where none is held.
    pub not_applicable: usize,
    /// The number of operations in the run without faults.
    pub operations: usize,
    /// The number of runs without faults.
    pub base_runs: usize,
    /// The number of these that did the same as the first.
    pub base_alike: usize,
    /// Additional warnings.
    pub warnings: Vec<String>,
    /// Whether a token repeats only the plan, because events are ordered by real time.
    pub is_statistical: bool,
}

impl Coverage {
    /// Counts a planned run.
    pub(crate) fn add(&mut self, plan: &Plan, was_run: bool) {
        let Some((point, effect)) = plan.faults.first().filter(|_| plan.faults.len() == 1) else {
            return;
        };
        let by_operation = self.0.entry(*effect).or_default();
        let counts = by_operation
            .entry(point.operation.operation.name())
            .or_default();
        counts.0 += u32::from(was_run);
        counts.1 += 1;
    }

    /// Returns the operations that got none of their faults.
    pub(crate) fn untried(&self) -> Vec<&'static str> {
        let mut untried = self.operations();
        untried.retain(|name| {
            let mut counts = self.0.values().filter_map(|counts| counts.get(name));
            counts.all(|(ran, _)| *ran == 0)
        });
        untried
    }

    /// Returns the operations to which faults apply.
    fn operations(&self) -> Vec<&'static str> {
        let names = Operation::all().map(Operation::name);
        names
            .filter(|name| self.0.values().any(|counts| counts.contains_key(name)))
            .collect()
    }

    fn table(&self) -> String {
        let columns = self.operations();
        let mut table = format!("{:<26}", "coverage (ran/applicable)");
        for name in &columns {
            let _ = write!(table, "{name:>12}");
        }
        for (effect, counts) in &self.0 {
            let _ = write!(table, "\n  {:<24}", effect.name());
            for name in &columns {
                let cell = match counts.get(name) {
                    Some((ran, of)) => format!("{ran}/{of}"),
                    None => "–".to_owned(),
                };
                let _ = write!(table, "{cell:>12}");
            }
        }
        table
    }
}

impl Report {
    /// Returns the printed report.
    pub(crate) fn text(&self) -> String {
        let seconds = self.took.as_secs_f64();
        let found: usize = self
            .findings
            .iter()
            .map(|finding| 1 + finding.also.len())
            .sum();
        let failures = match self.findings.len() {
            1 => "1 failure".to_owned(),
            number => format!("{number} failures"),
        };
        let mut text = format!(
            "{}: {failures} in {} runs ({seconds:.1} s)",
            self.name, self.runs
        );
        if found > 0 {
            let _ = write!(text, ", found by {found} of them");
        }
        for (index, finding) in self.findings.iter().enumerate() {
            let _ = write!(text, "\n\n{}", finding.text(index + 1, self));
        }
        let _ = write!(text, "\n\n{}\n", self.coverage.table());
        let _ = write!(
            text,
            "  not reached {}; cut by budget {}; not applicable {}; base run {} ({} of {}, {} operations)",
            self.not_reached,
            self.cut,
            self.not_applicable,
            if self.base_alike == self.base_runs {
                "stable"
            } else {
                "not stable"
            },
            self.base_alike,
            self.base_runs,
            self.operations
        );
        for warning in &self.warnings {
            let _ = write!(text, "\nwarning: {warning}");
        }
        text
    }

    /// Returns the machine-readable report.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let findings = self.findings.iter().map(|finding| {
            serde_json::json!({
                "token": finding.plan.token().to_string(),
                "message": finding.failure.message,
                "location": finding.failure.location,
                "again": finding.again.0 - 1,
                "repetitions": finding.again.1 - 1,
                "also": Vec::from_iter(finding.also.iter().map(|plan| plan.token().to_string())),
                "passed": Vec::from_iter(finding.passed.iter().map(|effect| effect.name())),
                "timelines": finding.timelines,
            })
        });
        serde_json::json!({
            "name": self.name,
            "runs": self.runs,
            "seconds": self.took.as_secs_f64(),
            "findings": Vec::from_iter(findings),
            "notReached": self.not_reached,
            "cutByBudget": self.cut,
            "notApplicable": self.not_applicable,
            "operations": self.operations,
            "baseRuns": self.base_runs,
            "baseAlike": self.base_alike,
            "warnings": self.warnings,
        })
    }
}

impl Finding {
    fn text(&self, number: usize, report: &Report) -> String {
        let mut titles = self
            .plan
            .faults
            .iter()
            .map(|(point, effect)| format!("{}: {}", point.title(), effect.sentence()));
        let mut text = format!("{number}  {}", titles.next().unwrap_or_default());
        for second in titles {
            let _ = write!(text, "\n   and {second}");
        }
        let location = self.failure.location.as_ref();
        let location = location.map_or_else(String::new, |at| format!("  ({at})"));
        let mut lines = self.failure.message.lines();
        let _ = write!(text, "\n   {}{location}", lines.next().unwrap_or_default());
        for line in lines {
            let _ = write!(text, "\n   {line}");
        }
        let (again, of) = self.again;
        match (of, self.is_cut) {
            (1, true) => text += "\n   not repeated: the time limit was reached",
            (1, false) => text += "\n   not repeated",
            _ => {
                let _ = write!(text, "\n   again in {again} of {of} runs");
            }
        }
        if again < of {
            text += ", so it is flaky";
        }
        if !self.also.is_empty() {
            let _ = write!(text, "; also found by: {}", listed(&self.also));
        }
        if !self.passed.is_empty() {
            let passed: Vec<&str> = self.passed.iter().map(|effect| effect.name()).collect();
            let _ = write!(
                text,
                "\n   weaker faults that passed: {}",
                passed.join(", ")
            );
        }
        text.push('\n');
        for timeline in &self.timelines {
            let _ = write!(text, "\n   {}", timeline.replace('\n', "\n   "));
        }
        let token = self.plan.token();
        if report.is_statistical {
            let _ = write!(
                text,
                "\n   replay: explore with \"token\": \"{token}\" (statistical: events come in the order of real time)"
            );
            return text;
        }
        let test = &report.name;
        let filter = test.rsplit("::").next().unwrap_or(test);
        let _ = write!(
            text,
            "\n   replay: SERVICEBUS_EXPLORE='{token}' cargo test {filter}"
        );
        let _ = write!(text, "\n   keep:   .always(\"{token}\")");
        text
    }
}

/// Lists the first of some runs, by effect and operation.
fn listed(plans: &[Plan]) -> String {
    const SHOWN: usize = 4;
    let listed = plans.iter().take(SHOWN).filter_map(|plan| {
        let (point, effect) = plan.faults.last()?;
        Some(format!("{effect} at {}", point.key))
    });
    let mut listed = Vec::from_iter(listed).join(", ");
    if plans.len() > SHOWN {
        let _ = write!(listed, " and {} more", plans.len() - SHOWN);
    }
    listed
}

/// Returns what equal failures have in common: location and message without numbers and ids.
pub(crate) fn failure_key(failure: &Failure) -> (Option<String>, String) {
    let is_in_word = |character: char| character.is_alphanumeric() || character == '-';
    let words = failure
        .message
        .split_inclusive(|character| !is_in_word(character));
    let plain = words.map(|word| {
        let name = word.trim_end_matches(|character| !is_in_word(character));
        match name.contains(|character: char| character.is_ascii_digit()) {
            true => &word[name.len()..],
            false => word,
        }
    });
    (failure.location.clone(), plain.collect())
}

/// Orders plans by how much they explain: fewer faults, weaker effects, earlier operations.
pub(crate) fn weaker(plan: &Plan) -> (usize, u32, u64) {
    let effects = plan.faults.iter().map(|(_, effect)| effect.strength());
    let first = plan.faults.first();
    let number = first.map_or(0, |(point, _)| point.operation.number);
    (plan.faults.len(), effects.sum(), number)
}

/// Returns plans that may fail in the same way and explain more, the best first: a single one of the faults, then weaker
/// effects at the same operations.
pub(crate) fn simpler(plan: &Plan) -> Vec<Plan> {
    let alone = plan.faults.iter().map(|fault| vec![fault.clone()]);
    let mut simpler: Vec<Vec<_>> = alone.filter(|_| plan.faults.len() > 1).collect();
    for (index, (point, effect)) in plan.faults.iter().enumerate() {
        let mut effects = Effect::applicable(&point.operation);
        effects.retain(|other| other.strength() < effect.strength());
        effects.sort_by_key(|other| other.strength());
        simpler.extend(effects.into_iter().map(|other| {
            let mut faults = plan.faults.clone();
            faults[index].1 = other;
            faults
        }));
    }
    simpler.into_iter().map(|faults| Plan { faults }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_that_differ_in_numbers_and_ids_are_equal() {
        let key = |message: &str| {
            failure_key(&Failure {
                message: message.to_owned(),
                location: None,
            })
        };
        assert_eq!(
            key("o-1 (f3a0-9b) was charged 2 times"),
            key("o-17 (77c1-0d) was charged 3 times")
        );
        assert_ne!(key("o-1 was charged"), key("o-1 was lost"));
    }
}
