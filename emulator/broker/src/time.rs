//! Wall time as the broker is told it.
//!
//! Service Bus shows its users wall-clock instants (enqueued, locked until, expires at), so the core has
//! one time type. That it never runs backwards is the shell's job.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Milliseconds since the Unix epoch, as AMQP writes instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The last instant that can be told.
    pub const MAX: Self = Self(i64::MAX);

    /// From milliseconds since the Unix epoch.
    pub const fn from_millis(milliseconds: i64) -> Self {
        Self(milliseconds)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Time passed since `earlier`; nothing when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// An instant that may be missing, in the room of one: a million messages have one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline(i64);

impl Deadline {
    pub(crate) const NONE: Self = Self(i64::MAX);

    pub(crate) fn get(self) -> Option<Timestamp> {
        (self != Self::NONE).then_some(Timestamp(self.0))
    }

    pub(crate) fn has_come(self, now: Timestamp) -> bool {
        self.get().is_some_and(|at| at <= now)
    }
}

impl Default for Deadline {
    fn default() -> Self {
        Self::NONE
    }
}

impl From<Timestamp> for Deadline {
    fn from(at: Timestamp) -> Self {
        // An instant that cannot be told from the last one never comes.
        Self(at.0)
    }
}

impl From<Option<Timestamp>> for Deadline {
    fn from(at: Option<Timestamp>) -> Self {
        at.map_or(Self::NONE, Self::from)
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    /// Saturates at [`Timestamp::MAX`].
    fn add(self, duration: Duration) -> Self {
        let milliseconds = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(milliseconds))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        let milliseconds = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(milliseconds))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ms", self.0)
    }
}
