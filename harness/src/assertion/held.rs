//! Messages that lie in a queue and cannot simply be received: deferred or scheduled ones.
//!
//! To say that there are none the bus must have come to rest first: whoever holds a message may still put it aside.

use std::time::{Duration, SystemTime};

use super::{
    AssertionFailed, Looked, ProbeError, Report, WITHIN, failure::state_of, hint, known, poll,
    which::Which,
};
use crate::{
    mailbox::Mailbox,
    peeked::{MessageState, PeekedMessage},
    text,
};

/// By how much a time may differ, unless said otherwise: a busy machine takes a while from the one look at its clock to
/// the other.
const TOLERANCE: Duration = Duration::from_secs(10);

/// Expects messages of a state.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) mailbox: Mailbox,
    pub(super) state: MessageState,
    pub(super) which: Which,
    pub(super) due: Option<SystemTime>,
    pub(super) tolerance: Duration,
    pub(super) count: Option<usize>,
    pub(super) within: Duration,
}

impl Held {
    pub(super) fn new(mailbox: &Mailbox, state: MessageState) -> Self {
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

    pub(super) async fn check(self) -> Result<(), AssertionFailed> {
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

    /// Expects none once the bus is at rest.
    pub(super) async fn check_none(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.mailbox).await?;
            self.mailbox.settled(self.within).await?;
            self.look().await
        };
        let found = match looked.await {
            Ok(0) => return Ok(()),
            Ok(found) => found,
            Err(error) => return Err(AssertionFailed::unchecked(&error)),
        };
        let report = Report::of(&self.mailbox).await;
        let (state, which) = (self.state, self.which());
        let expected = format!("expected no message {state}{which}, found {found}");
        let remark = |message: &PeekedMessage, _is_dead: bool| state_of(&report, message);
        Err(report.failure(&expected, &remark, None))
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

/// Lets an assertion of messages that are there be built and checked.
macro_rules! by_held {
    ($expectation:ident, $state:expr) => {
        impl $expectation {
            /// Expects a message of any kind.
            pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
                Self {
                    held: Held::new(mailbox.as_ref(), $state),
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

        impl $crate::assertion::Expectation for $expectation {
            fn mailbox(&self) -> &Mailbox {
                &self.held.mailbox
            }

            async fn check(self) -> Result<(), $crate::assertion::AssertionFailed> {
                self.held.check().await
            }
        }
    };
}

/// The same for one of messages that are not there.
macro_rules! by_absence_of_held {
    ($expectation:ident, $state:expr) => {
        impl $expectation {
            /// Expects none of any kind.
            pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
                Self {
                    held: Held::new(mailbox.as_ref(), $state),
                }
            }

            /// Waits so long for the bus to come to rest, in real time.
            pub fn within(mut self, within: Duration) -> Self {
                self.held.within = within;
                self
            }
        }

        impl $crate::assertion::Expectation for $expectation {
            fn mailbox(&self) -> &Mailbox {
                &self.held.mailbox
            }

            async fn check(self) -> Result<(), $crate::assertion::AssertionFailed> {
                self.held.check_none().await
            }
        }
    };
}

pub(super) use by_absence_of_held;
pub(super) use by_held;
