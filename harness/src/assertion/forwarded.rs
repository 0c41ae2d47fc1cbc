//! Messages went on to another queue.

use std::time::Duration;

use super::{
    hint,
    never::by_absence,
    recorded::{Number, Recorded, Verb, by_record},
};
use crate::{mailbox::Mailbox, matcher::Text, timeline::EventKind};

static FORWARDED: Verb = Verb {
    one: "message forwarded",
    many: "messages forwarded",
    is: |event| event.kind == EventKind::Forwarded,
    counted: |timeline| Some(timeline.count(&EventKind::Forwarded)),
    target: |event| event.detail.as_deref(),
    hint: hint::forwarding,
};

/// Expects messages to have been forwarded; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Forwarded {
    recorded: Recorded,
}

by_record!(Forwarded);

impl Forwarded {
    /// Expects a message of any kind to have gone anywhere.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            recorded: Recorded::new(mailbox.as_ref(), &FORWARDED),
        }
    }

    /// Expects it to have gone to this queue.
    pub fn to(mut self, queue: impl Into<Text>) -> Self {
        self.recorded.target = Some(queue.into());
        self
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
    /// Expects no messages to have been forwarded once the bus is at rest.
    NotForwarded, FORWARDED
);

impl NotForwarded {
    /// Expects none to have gone to this queue; to others they may.
    pub fn to(mut self, queue: impl Into<Text>) -> Self {
        self.recorded.target = Some(queue.into());
        self
    }
}
