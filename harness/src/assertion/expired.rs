//! The time of messages ran out.
//!
//! An expired message is dropped or dead-lettered, as its queue says; either way it expired.

use std::time::Duration;

use super::{
    hint,
    never::by_absence,
    recorded::{Number, Recorded, Verb, by_record},
};
use crate::{mailbox::Mailbox, timeline::EventKind};

/// The reason of dead letters that expired.
pub(super) const REASON: &str = "TTLExpiredException";

static EXPIRED: Verb = Verb {
    one: "message expired",
    many: "messages expired",
    is: |event| match event.kind {
        EventKind::Expired => true,
        EventKind::DeadLettered => event.reason.as_deref() == Some(REASON),
        _ => false,
    },
    // The counter of dead letters does not tell their reasons.
    counted: |_| None,
    target: |_| None,
    hint: hint::expiry,
};

/// Expects messages to have expired, dropped or dead-lettered; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Expired {
    recorded: Recorded,
}

by_record!(Expired);

impl Expired {
    /// Expects a message of any kind.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            recorded: Recorded::new(mailbox.as_ref(), &EXPIRED),
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
    /// Expects no messages to have expired once the bus is at rest.
    NotExpired, EXPIRED
);
