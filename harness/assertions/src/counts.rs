//! Assertions of exact message counts, and of empty queues.

use servicebus_control_api::Counts;

use crate::{
    assertion::Assertion,
    hint,
    report::{AssertionFailed, Report},
    text,
};

impl Assertion {
    pub(crate) fn are_counted(&self, counts: &Counts) -> bool {
        let mut wanted = self.counts.iter();
        wanted.all(|(name, wanted)| number(counts, name) == *wanted)
    }

    pub(crate) fn not_counted(&self, report: &Report, found: &Counts) -> AssertionFailed {
        let wanted = self.counts.iter();
        let wanted = wanted.map(|(name, number)| format!("{name} = {number}"));
        let counted = self.counts.iter();
        let counted = counted.map(|(name, _)| format!("{name} = {}", number(found, name)));
        let sentence = format!(
            "expected {}, found {} after {}",
            Vec::from_iter(wanted).join(", "),
            Vec::from_iter(counted).join(", "),
            text::seconds(self.within)
        );
        let mut wanted = self.counts.iter();
        let hint = match wanted.any(|(name, wanted)| number(found, name) < *wanted) {
            true => hint::locate_messages(report),
            false => hint::not_receivable(report),
        };
        report.hinted_failure(&sentence, hint)
    }

    pub(crate) fn not_empty(&self, report: &Report, found: u64) -> AssertionFailed {
        let found = text::count(found, "message");
        let within = text::seconds(self.within);
        let sentence = format!("expected to be empty, found {found} after {within}");
        report.hinted_failure(&sentence, hint::remaining(report))
    }
}

fn number(counts: &Counts, name: &str) -> u64 {
    match name {
        "active" => counts.active,
        "dead_letter" => counts.dead_letter,
        "transfer_dead_letter" => counts.transfer_dead_letter,
        "scheduled" => counts.scheduled,
        "locked" => counts.locked,
        "deferred" => counts.deferred,
        _ => counts.transfer,
    }
}
