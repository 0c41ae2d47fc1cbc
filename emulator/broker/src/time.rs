//! Wall time as the broker gets it.
//!
//! Service Bus shows wall-clock instants to clients (enqueued, locked until, expires at), so the core has one type of time.
//! The shell ensures that it never runs backwards.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Milliseconds since the Unix epoch, as in AMQP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The last representable instant.
    pub const MAX: Self = Self(i64::MAX);

    /// Creates an instant from milliseconds since the Unix epoch.
    pub const fn from_millis(milliseconds: i64) -> Self {
        Self(milliseconds)
    }

    /// Returns milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// An optional instant of the size of an instant, since a million messages have one each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline(i64);

impl Deadline {
    pub(crate) const NONE: Self = Self(i64::MAX);

    pub(crate) fn get(self) -> Option<Timestamp> {
        (self != Self::NONE).then_some(Timestamp(self.0))
    }

    pub(crate) fn is_due(self, now: Timestamp) -> bool {
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
        // The last instant stands for none: it never comes.
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
