//! Messages that a plain receive does not deliver: deferred or scheduled ones.
//!
//! To say that there are none the namespace must be idle first: a receiver that holds a message may still defer it.

use std::time::SystemTime;

use super::{AssertionFailed, Expectation, Report, failure::state_of, found, hint};
use crate::{
    clients::ScheduledEnqueueTime,
    error::Error,
    received_message::{MessageState, ReceivedMessage},
    text,
};

/// Messages of a state.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    state: MessageState,
    /// When they are due, counted from when the assertion started.
    due: Option<SystemTime>,
}

impl Stored {
    pub(super) fn of<K>(expectation: Expectation<K>, state: MessageState) -> Expectation<Self> {
        let due = expectation.due.map(ScheduledEnqueueTime::instant);
        expectation.with_kind(|_| Self { state, due })
    }
}

impl Expectation<Stored> {
    pub(super) async fn check(self) -> Result<(), AssertionFailed> {
        let is_expected = |found: &usize| self.number.is(*found as u64);
        self.expect(|| self.look(), is_expected, |found| self.failure(found))
            .await
    }

    /// Expects none once the namespace is idle.
    pub(super) async fn check_none(self) -> Result<(), AssertionFailed> {
        let failure = async |found| {
            let report = Report::of(&self.client).await.about(&self.which);
            let (state, which) = (self.kind.state, self.which());
            let expected = format!("expected no message {state}{which}, found {found}");
            let remark = |message: &ReceivedMessage, _is_dead: bool| state_of(&report, message);
            report.failure(&expected, &remark, None)
        };
        self.expect_none(self.look(), failure).await
    }

    async fn look(&self) -> Result<usize, Error> {
        let messages = self.client.try_peek().await?;
        let matching = messages.iter().filter(|message| {
            message.state == self.kind.state
                && self.which.matches(message)
                && self.is_timely(message)
        });
        Ok(matching.count())
    }

    fn is_timely(&self, message: &ReceivedMessage) -> bool {
        let off = |due: SystemTime, found: SystemTime| {
            due.duration_since(found)
                .unwrap_or_else(|early| early.duration())
        };
        match (self.kind.due, message.scheduled_for) {
            (None, _) => true,
            (Some(due), Some(found)) => off(due, found) <= self.tolerance,
            (Some(_), None) => false,
        }
    }

    async fn failure(&self, number: usize) -> AssertionFailed {
        let report = Report::of(&self.client).await.about(&self.which);
        let expected = format!(
            "expected {} {}{}, found {} within {}",
            text::count(self.number.exact().unwrap_or(1), "message"),
            self.kind.state,
            self.which(),
            found(number as u64),
            text::seconds(self.within)
        );
        let remark = |message: &ReceivedMessage, _is_dead: bool| {
            let mut remark = state_of(&report, message);
            if message.state != self.kind.state {
                return remark;
            }
            for difference in self.which.differences(message) {
                remark += &format!(", {difference}");
            }
            let mark = if self.is_timely(message) {
                ""
            } else {
                " — differs"
            };
            remark + mark
        };
        report.failure(&expected, &remark, hint::absence(&report))
    }

    fn which(&self) -> String {
        let due = self.due.map(|wanted| {
            let wait = match wanted {
                ScheduledEnqueueTime::In(delay) => text::seconds(delay),
                ScheduledEnqueueTime::At(due) => {
                    let wait = due.duration_since(SystemTime::now()).unwrap_or_default();
                    text::rounded_seconds(wait)
                }
            };
            let tolerance = text::seconds(self.tolerance);
            format!(" due in {wait} (± {tolerance})")
        });
        due.unwrap_or_default() + &self.which.sentence()
    }
}
