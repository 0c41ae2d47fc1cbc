//! Messages that a plain receive does not deliver: deferred or scheduled ones.
//!
//! To say that there are none the namespace must be idle first: a receiver that holds a message may still defer it.

use std::time::{Duration, SystemTime};

use super::{
    AssertionFailed, Looked, ProbeError, Report, expectation::Expectation, failure::state_of, hint,
    known, poll, selector::Selector,
};
use crate::{
    clients::{ScheduledEnqueueTime, SubQueueClient},
    received_message::{MessageState, ReceivedMessage},
    text,
};

/// Expects messages of a state.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) client: SubQueueClient,
    pub(super) state: MessageState,
    pub(super) which: Selector,
    pub(super) wanted: Option<ScheduledEnqueueTime>,
    /// When that is, counted from when the assertion started.
    pub(super) due: Option<SystemTime>,
    pub(super) tolerance: Duration,
    pub(super) count: Option<usize>,
    pub(super) within: Duration,
}

impl Stored {
    pub(super) fn new<K>(expectation: Expectation<K>, state: MessageState) -> Self {
        Self {
            client: expectation.client,
            state,
            which: expectation.which,
            wanted: expectation.due,
            due: expectation.due.map(ScheduledEnqueueTime::instant),
            tolerance: expectation.tolerance,
            count: expectation.number.exact(),
            within: expectation.within,
        }
    }

    pub(super) async fn check(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.client).await?;
            let expected = |found: &usize| self.count.map_or(*found > 0, |count| *found == count);
            poll(self.within, || self.look(), expected).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(found)) => Err(self.failure(found).await),
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }

    /// Expects none once the namespace is idle.
    pub(super) async fn check_none(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.client).await?;
            self.client.wait_idle(self.within).await?;
            self.look().await
        };
        let found = match looked.await {
            Ok(0) => return Ok(()),
            Ok(found) => found,
            Err(error) => return Err(AssertionFailed::unchecked(&error)),
        };
        let report = Report::of(&self.client).await.about(&self.which);
        let (state, which) = (self.state, self.which());
        let expected = format!("expected no message {state}{which}, found {found}");
        let remark = |message: &ReceivedMessage, _is_dead: bool| state_of(&report, message);
        Err(report.failure(&expected, &remark, None))
    }

    async fn look(&self) -> Result<usize, ProbeError> {
        let messages = self.client.try_peek().await?;
        let matching = messages.iter().filter(|message| {
            message.state == self.state && self.which.matches(message) && self.is_timely(message)
        });
        Ok(matching.count())
    }

    fn is_timely(&self, message: &ReceivedMessage) -> bool {
        let off = |due: SystemTime, found: SystemTime| {
            due.duration_since(found)
                .unwrap_or_else(|early| early.duration())
        };
        match (self.due, message.scheduled_for) {
            (None, _) => true,
            (Some(due), Some(found)) => off(due, found) <= self.tolerance,
            (Some(_), None) => false,
        }
    }

    async fn failure(&self, found: usize) -> AssertionFailed {
        let report = Report::of(&self.client).await.about(&self.which);
        let found = match found {
            0 => "none".to_owned(),
            some => some.to_string(),
        };
        let expected = format!(
            "expected {} {}{}, found {found} within {}",
            text::count(self.count.unwrap_or(1), "message"),
            self.state,
            self.which(),
            text::seconds(self.within)
        );
        let remark = |message: &ReceivedMessage, _is_dead: bool| {
            let mut remark = state_of(&report, message);
            if message.state != self.state {
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
        let due = self.wanted.map(|wanted| {
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
