//! Messages were given back.

use std::time::Duration;

use super::{
    hint,
    never::by_absence,
    recorded::{Number, Recorded, Verb, by_record},
};
use crate::{mailbox::Mailbox, timeline::EventKind};

static ABANDONED: Verb = Verb {
    one: "delivery abandoned",
    many: "deliveries abandoned",
    is: |event| event.kind == EventKind::Abandoned,
    counted: |timeline| Some(timeline.count(&EventKind::Abandoned)),
    target: |_| None,
    hint: hint::general,
};

/// Expects deliveries to have been abandoned; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Abandoned {
    recorded: Recorded,
}

by_record!(Abandoned);

impl Abandoned {
    /// Expects it of a message of any kind.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            recorded: Recorded::new(mailbox.as_ref(), &ABANDONED),
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
    /// Expects no deliveries to have been abandoned once the bus is at rest.
    NotAbandoned, ABANDONED
);
