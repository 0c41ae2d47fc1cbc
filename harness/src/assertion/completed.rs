//! Messages were settled as done.

use std::time::Duration;

use super::{
    hint,
    never::by_absence,
    recorded::{Number, Recorded, Verb, by_record},
};
use crate::{mailbox::Mailbox, timeline::EventKind};

static COMPLETED: Verb = Verb {
    one: "message completed",
    many: "messages completed",
    is: |event| event.kind == EventKind::Completed,
    counted: |timeline| Some(timeline.count(&EventKind::Completed)),
    target: |_| None,
    hint: hint::general,
};

/// Expects messages to have been completed; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Completed {
    recorded: Recorded,
}

by_record!(Completed);

impl Completed {
    /// Expects a message of any kind.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            recorded: Recorded::new(mailbox.as_ref(), &COMPLETED),
        }
    }

    /// Expects exactly so many messages.
    pub fn count(mut self, count: u64) -> Self {
        self.recorded.number = Number::Exactly(count);
        self
    }

    /// Waits so long, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.recorded.within = within;
        self
    }
}

by_absence!(
    /// Expects no messages to have been completed once the bus is at rest.
    NotCompleted, COMPLETED
);
