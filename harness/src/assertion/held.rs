//! Messages that a queue holds and a plain receive does not deliver: deferred and scheduled ones, and dead letters, or what
//! could not be forwarded when that is asked.
//!
//! To say that there are none the namespace must be idle first: a receiver that holds a message may still defer it.

use std::time::SystemTime;

use super::{
    AssertionFailed, Expectation, Report, failure::state_of, found, hint, selector::Wanted,
};
use crate::{
    clients::ScheduledEnqueueTime,
    error::Error,
    received_message::{MessageState, ReceivedMessage},
    text,
};

/// Which messages they are.
#[derive(Debug, Clone)]
pub(crate) enum Held {
    /// Those of a state, and due at a time, counted from when the assertion started.
    InState(MessageState, Option<SystemTime>),
    Dead(Wanted),
}

impl Held {
    pub(crate) fn in_state<K>(
        expectation: Expectation<K>,
        state: MessageState,
    ) -> Expectation<Self> {
        let due = expectation.criteria.due.map(ScheduledEnqueueTime::instant);
        expectation.with_kind(|_| Self::InState(state, due))
    }

    /// What was said of dead letters.
    pub(crate) fn dead<K>(expectation: Expectation<K>) -> Expectation<Self> {
        let wanted = Wanted {
            reason: expectation.criteria.reason.clone(),
            description: expectation.criteria.description.clone(),
            which: expectation.criteria.which.clone(),
        };
        expectation.with_kind(|_| Self::Dead(wanted))
    }
}

impl Expectation<Held> {
    pub(crate) async fn check(self) -> Result<(), AssertionFailed> {
        let is_expected = |found: &usize| self.criteria.number.is(*found as u64);
        self.expect(|| self.look(), is_expected, |found| self.failure(found))
            .await
    }

    /// Expects none once the namespace is idle.
    pub(crate) async fn check_none(self) -> Result<(), AssertionFailed> {
        let failure = async |found| {
            let report = self.report().await;
            let expected = format!("expected no message {}, found {found}", self.phrase());
            match self.kind {
                Held::Dead(_) => report.hinted_failure(&expected, None),
                Held::InState(..) => {
                    let remark = |message: &ReceivedMessage, _is_dead| state_of(&report, message);
                    report.failure(&expected, &remark, None)
                }
            }
        };
        self.expect_none(self.look(), failure).await
    }

    async fn look(&self) -> Result<usize, Error> {
        let messages = match self.kind {
            Held::InState(..) => self.client.try_peek().await?,
            Held::Dead(_) => self.client.dead_letter_queue().try_peek().await?,
        };
        let meant = messages.iter().filter(|message| match &self.kind {
            Held::InState(state, due) => {
                message.state == *state
                    && self.criteria.which.matches(message)
                    && self.is_timely(*due, message)
            }
            Held::Dead(wanted) => wanted.matches(message),
        });
        Ok(meant.count())
    }

    fn is_timely(&self, due: Option<SystemTime>, message: &ReceivedMessage) -> bool {
        let off = |due: SystemTime, found: SystemTime| {
            due.duration_since(found)
                .unwrap_or_else(|early| early.duration())
        };
        match (due, message.scheduled_for) {
            (None, _) => true,
            (Some(due), Some(found)) => off(due, found) <= self.criteria.tolerance,
            (Some(_), None) => false,
        }
    }

    async fn report(&self) -> Report {
        let report = Report::of(&self.client).await.about(&self.criteria.which);
        Report {
            shows_dead: report.shows_dead || matches!(self.kind, Held::Dead(_)),
            ..report
        }
    }

    async fn failure(&self, number: usize) -> AssertionFailed {
        let report = self.report().await;
        let expected = format!(
            "expected {} {}, found {} within {}",
            text::count(self.criteria.number.exact().unwrap_or(1), "message"),
            self.phrase(),
            found(number as u64),
            text::seconds(self.criteria.within)
        );
        let remark =
            |message: &ReceivedMessage, is_dead: bool| self.remark(&report, message, is_dead);
        let hint = match &self.kind {
            Held::InState(..) => hint::absence(&report),
            Held::Dead(wanted) => hint::dead_lettering(&report, wanted),
        };
        report.failure(&expected, &remark, hint)
    }

    fn remark(&self, report: &Report, message: &ReceivedMessage, is_dead: bool) -> String {
        match &self.kind {
            Held::Dead(wanted) if is_dead => wanted.difference(message),
            Held::InState(state, due) if message.state == *state => {
                let differences = self.criteria.which.differences(message).into_iter();
                let differences = differences.map(|difference| format!(", {difference}"));
                let mark = match self.is_timely(*due, message) {
                    true => "",
                    false => " — differs",
                };
                state_of(report, message) + &String::from_iter(differences) + mark
            }
            _ => state_of(report, message),
        }
    }

    /// Says what they are to be: `scheduled due in 600 s (± 10 s) with message id "o-17"`.
    fn phrase(&self) -> String {
        let state = match &self.kind {
            Held::InState(state, _) => state,
            Held::Dead(wanted) => return format!("dead-lettered{}", wanted.sentence()),
        };
        let due = self.criteria.due.map(|wanted| {
            let wait = match wanted {
                ScheduledEnqueueTime::In(delay) => text::seconds(delay),
                ScheduledEnqueueTime::At(due) => {
                    let wait = due.duration_since(SystemTime::now()).unwrap_or_default();
                    text::rounded_seconds(wait)
                }
            };
            let tolerance = text::seconds(self.criteria.tolerance);
            format!(" due in {wait} (± {tolerance})")
        });
        format!(
            "{state}{}{}",
            due.unwrap_or_default(),
            self.criteria.which.sentence()
        )
    }
}
