//! Assertions about messages that a plain receive does not deliver: deferred, scheduled, dead-lettered, or transfer
//! dead-lettered ones if requested.
//!
//! To assert that there are none, the namespace must be idle first: a receiver with a locked message may still defer it.

use std::time::SystemTime;

use crate::{
    assertion::{Assertion, ScheduledEnqueueTime},
    check::RunningCheck,
    hint,
    message::{Message, MessageState},
    report::{AssertionFailed, Report, state_of},
    selector::ExpectedDeadLetter,
    text,
};

impl RunningCheck<'_> {
    /// Counts the selected messages in a state.
    pub(crate) fn count_in_state(self, state: MessageState, messages: &[Message]) -> u64 {
        let selected = messages.iter().filter(|message| {
            message.state == state
                && self.assertion.which.matches(message)
                && self.is_timely(message)
        });
        selected.count() as u64
    }

    fn is_timely(self, message: &Message) -> bool {
        let off = |due: SystemTime, found: SystemTime| {
            due.duration_since(found)
                .unwrap_or_else(|early| early.duration())
        };
        match (self.due, message.scheduled_for) {
            (None, _) => true,
            (Some(due), Some(found)) => off(due, found) <= self.assertion.tolerance,
            (Some(_), None) => false,
        }
    }

    pub(crate) fn not_held(
        self,
        report: &Report,
        state: MessageState,
        found: u64,
    ) -> AssertionFailed {
        let expected = self.assertion.expected(found, &self.phrase(report, state));
        if self.assertion.kind.is_negative() {
            let remark = |message: &Message, _is_dead: bool| state_of(report, message);
            return report.failure(&expected, &remark, None);
        }
        let remark = |message: &Message, _is_dead: bool| match message.state == state {
            true => {
                let differences = self.assertion.which.differences(message).into_iter();
                let differences = differences.map(|difference| format!(", {difference}"));
                let mark = match self.is_timely(message) {
                    true => "",
                    false => " — differs",
                };
                state_of(report, message) + &String::from_iter(differences) + mark
            }
            false => state_of(report, message),
        };
        report.failure(&expected, &remark, hint::absence(report))
    }

    /// Phrases the expectation: `scheduled due in 600 s (± 10 s) with message id "o-17"`.
    fn phrase(self, report: &Report, state: MessageState) -> String {
        let due = self.assertion.due.map(|wanted| {
            let wait = match wanted {
                ScheduledEnqueueTime::In(delay) => text::seconds(delay),
                ScheduledEnqueueTime::At(due) => {
                    let wait = due.duration_since(report.listed_at).unwrap_or_default();
                    text::rounded_seconds(wait)
                }
            };
            let tolerance = text::seconds(self.assertion.tolerance);
            format!(" due in {wait} (± {tolerance})")
        });
        format!(
            "{state}{}{}",
            due.unwrap_or_default(),
            self.assertion.which.sentence()
        )
    }
}

impl Assertion {
    /// Counts the selected dead-lettered messages.
    pub(crate) fn dead_letters(&self, messages: &[Message]) -> u64 {
        let wanted = self.wanted();
        let selected = messages.iter().filter(|message| wanted.matches(message));
        selected.count() as u64
    }

    pub(crate) fn not_dead_lettered(&self, report: &Report, found: u64) -> AssertionFailed {
        let wanted = self.wanted();
        let expected = self.expected(found, &format!("dead-lettered{}", wanted.sentence()));
        if self.kind.is_negative() {
            return report.hinted_failure(&expected, None);
        }
        let remark = |message: &Message, is_dead: bool| match is_dead {
            true => wanted.difference(message),
            false => state_of(report, message),
        };
        let hint = hint::dead_lettering(report, &wanted);
        report.failure(&expected, &remark, hint)
    }

    fn wanted(&self) -> ExpectedDeadLetter {
        ExpectedDeadLetter {
            reason: self.reason.clone(),
            description: self.description.clone(),
            which: self.which.clone(),
        }
    }

    fn expected(&self, found: u64, phrase: &str) -> String {
        if self.kind.is_negative() {
            return format!("expected no message {phrase}, found {found}");
        }
        format!(
            "expected {} {phrase}, found {} within {}",
            text::count(self.number.exact().unwrap_or(1), "message"),
            text::found(found),
            text::seconds(self.within)
        )
    }
}
