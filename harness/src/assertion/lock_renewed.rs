//! Locks were prolonged by their holders.

use std::time::Duration;

use super::{
    hint,
    never::by_absence,
    recorded::{Number, Recorded, Verb, by_record},
};
use crate::{mailbox::Mailbox, timeline::EventKind};

static RENEWED: Verb = Verb {
    one: "lock renewed",
    many: "locks renewed",
    is: |event| event.kind == EventKind::LockRenewed,
    counted: |timeline| Some(timeline.count(&EventKind::LockRenewed)),
    target: |_| None,
    hint: hint::absence,
};

/// Expects locks to have been renewed; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct LockRenewed {
    recorded: Recorded,
}

by_record!(LockRenewed);

impl LockRenewed {
    /// Expects it of a message of any kind.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            recorded: Recorded::new(mailbox.as_ref(), &RENEWED),
        }
    }

    /// Expects it exactly so many times.
    pub fn times(mut self, times: u64) -> Self {
        self.recorded.number = Number::Exactly(times);
        self
    }

    /// Expects it so many times or more.
    pub fn at_least(mut self, times: u64) -> Self {
        self.recorded.number = Number::AtLeast(times);
        self
    }

    /// Waits so long, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.recorded.within = within;
        self
    }
}

by_absence!(
    /// Expects no locks to have been renewed once the bus is at rest.
    LockNotRenewed, RENEWED
);
