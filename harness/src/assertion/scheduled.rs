//! Messages lie in a queue that become active later, or none does.

use std::time::{Duration, SystemTime};

use super::{
    held::{Held, by_absence_of_held, by_held},
    which::about_messages,
};
use crate::{mailbox::Mailbox, peeked::MessageState};

/// Expects messages that become active later; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Scheduled {
    held: Held,
}

by_held!(Scheduled, MessageState::Scheduled);
about_messages!(Scheduled, held.which);

impl Scheduled {
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
}

/// Expects no messages that become active later once the bus is at rest.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct NotScheduled {
    held: Held,
}

by_absence_of_held!(NotScheduled, MessageState::Scheduled);
about_messages!(NotScheduled, held.which);

impl NotScheduled {
    /// Expects none for this time, by the test's own clock; for others they may be.
    pub fn at(mut self, due: SystemTime) -> Self {
        self.held.due = Some(due);
        self
    }

    /// Expects none to be due so long from now.
    pub fn due_in(self, delay: Duration) -> Self {
        self.at(SystemTime::now() + delay)
    }

    /// Takes times that differ by so much for the same; by ten seconds unless said otherwise.
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.held.tolerance = tolerance;
        self
    }
}
