//! Messages went out to consumers, or never did.
//!
//! A delivery is one to somebody who received, with a lock or without; a message that merely lies in its queue
//! was not delivered.

use std::time::Duration;

use super::{
    hint,
    never::by_absence,
    recorded::{Number, Recorded, Verb, by_record},
};
use crate::{mailbox::Mailbox, matcher::Text, timeline::EventKind};

static DELIVERED: Verb = Verb {
    one: "delivery",
    many: "deliveries",
    is: |event| {
        matches!(
            event.kind,
            EventKind::Delivered | EventKind::ReceivedAndDeleted
        )
    },
    counted: |timeline| {
        let [locked, deleted] = [EventKind::Delivered, EventKind::ReceivedAndDeleted];
        Some(timeline.count(&locked) + timeline.count(&deleted))
    },
    target: |event| event.client.as_deref(),
    hint: hint::general,
};

/// Expects deliveries to consumers; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Delivered {
    recorded: Recorded,
}

by_record!(Delivered);

impl Delivered {
    /// Expects a message of any kind to have gone to anyone.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            recorded: Recorded::new(mailbox.as_ref(), &DELIVERED),
        }
    }

    /// Expects it to have gone to this client, by the name its connection has in the timeline.
    pub fn to(mut self, client: impl Into<Text>) -> Self {
        self.recorded.target = Some(client.into());
        self
    }

    /// Expects exactly so many deliveries.
    pub fn times(mut self, times: u64) -> Self {
        self.recorded.number = Number::Exactly(times);
        self
    }

    /// Expects so many deliveries or more.
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

/// Expects no deliveries to consumers once the bus is at rest.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct NeverDelivered {
    recorded: Recorded,
}

by_absence!(NeverDelivered);

impl NeverDelivered {
    /// Expects none of any kind.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            recorded: Recorded::new(mailbox.as_ref(), &DELIVERED),
        }
    }

    /// Expects none to this client, by the name its connection has in the timeline; others may be.
    pub fn to(mut self, client: impl Into<Text>) -> Self {
        self.recorded.target = Some(client.into());
        self
    }

    /// Waits so long for the bus to come to rest, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.recorded.within = within;
        self
    }
}
