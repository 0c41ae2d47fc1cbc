//! Messages lie in a queue that were put aside, or none does.

use std::time::Duration;

use super::{
    held::{Held, by_absence_of_held, by_held},
    which::about_messages,
};
use crate::{mailbox::Mailbox, peeked::MessageState};

/// Expects messages that were put aside; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Deferred {
    held: Held,
}

by_held!(Deferred, MessageState::Deferred);
about_messages!(Deferred, held.which);

/// Expects no messages that were put aside once the bus is at rest.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct NotDeferred {
    held: Held,
}

by_absence_of_held!(NotDeferred, MessageState::Deferred);
about_messages!(NotDeferred, held.which);
