//! Messages that lie in a queue and cannot simply be received: deferred or scheduled ones.

use std::time::{Duration, SystemTime};

use super::{
    AssertionFailed, Expectation, Looked, ProbeError, Report, WITHIN,
    failure::state_of,
    hint, known, poll,
    which::{Which, about_messages},
};
use crate::{
    mailbox::Mailbox,
    peeked::{MessageState, PeekedMessage},
    text,
};

/// By how much a time may differ, unless said otherwise: a busy machine takes a while from the one look at its clock to
/// the other.
const TOLERANCE: Duration = Duration::from_secs(10);

/// Expects messages that were put aside; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Deferred {
    held: Held,
}

about_messages!(Deferred, held.which);

impl Deferred {
    /// Expects a message of any kind.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            held: Held::new(mailbox.as_ref(), MessageState::Deferred),
        }
    }

    /// Expects exactly so many messages.
    pub fn count(mut self, count: usize) -> Self {
        self.held.count = Some(count);
        self
    }

    /// Waits so long, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.held.within = within;
        self
    }
}

/// Expects messages that become active later; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Scheduled {
    held: Held,
}

about_messages!(Scheduled, held.which);

impl Scheduled {
    /// Expects a message of any kind, for any time.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            held: Held::new(mailbox.as_ref(), MessageState::Scheduled),
        }
    }

    /// Expects this time, by the test's own clock.
    pub fn at(mut self, due: SystemTime) -> Self {
        self.held.due = Some(due);
        self
    }

    /// Expects it to be due so long from now.
    pub fn due_in(self, delay: Duration) -> Self {
        self.at(SystemTime::now() + delay)
    }

    /// Lets the time differ by so much; by ten seconds unless said otherwise.
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.held.tolerance = tolerance;
        self
    }

    /// Expects exactly so many messages.
    pub fn count(mut self, count: usize) -> Self {
        self.held.count = Some(count);
        self
    }

    /// Waits so long, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.held.within = within;
        self
    }
}

/// What both have in common.
#[derive(Debug, Clone)]
struct Held {
    mailbox: Mailbox,
    state: MessageState,
    which: Which,
    due: Option<SystemTime>,
    tolerance: Duration,
    count: Option<usize>,
    within: Duration,
}

impl Held {
    fn new(mailbox: &Mailbox, state: MessageState) -> Self {
        Self {
            mailbox: mailbox.clone(),
            state,
            which: Which::default(),
            due: None,
            tolerance: TOLERANCE,
            count: None,
            within: WITHIN,
        }
    }

    async fn check(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.mailbox).await?;
            let expected = |found: &usize| self.count.map_or(*found > 0, |count| *found == count);
            poll(self.within, || self.look(), expected).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(found)) => Err(self.failure(found).await),
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }

    async fn look(&self) -> Result<usize, ProbeError> {
        let messages = self.mailbox.try_peek().await?;
        let matching = messages.iter().filter(|message| {
            message.state == self.state && self.which.matches(message) && self.is_timely(message)
        });
        Ok(matching.count())
    }

    fn is_timely(&self, message: &PeekedMessage) -> bool {
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
        let report = Report::of(&self.mailbox).await;
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
        let remark = |message: &PeekedMessage, _is_dead: bool| {
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
        let due = self.due.map(|due| {
            let wait = due.duration_since(SystemTime::now()).unwrap_or_default();
            let tolerance = text::seconds(self.tolerance);
            format!(" due in {} (± {tolerance})", text::rounded_seconds(wait))
        });
        due.unwrap_or_default() + &self.which.sentence()
    }
}

impl Expectation for Deferred {
    fn mailbox(&self) -> &Mailbox {
        &self.held.mailbox
    }

    async fn check(self) -> Result<(), AssertionFailed> {
        self.held.check().await
    }
}

impl Expectation for Scheduled {
    fn mailbox(&self) -> &Mailbox {
        &self.held.mailbox
    }

    async fn check(self) -> Result<(), AssertionFailed> {
        self.held.check().await
    }
}
