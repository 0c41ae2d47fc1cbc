//! The faults that a test has scripted on its bus and not taken out again.

use std::{
    panic::Location,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::Operation;

/// What must have fired when the bus ends.
#[derive(Debug, Default)]
pub(crate) struct Script(Mutex<Vec<Set>>);

/// A fault that was set.
#[derive(Debug, Clone)]
pub(super) struct Set {
    pub(super) id: u64,
    pub(super) operation: Operation,
    /// The fault as it is written in a test.
    pub(super) words: String,
    /// Where that is.
    pub(super) at: &'static Location<'static>,
}

impl Script {
    pub(super) fn add(&self, set: Set) {
        self.sets().push(set);
    }

    pub(super) fn forget(&self, id: u64) {
        self.sets().retain(|set| set.id != id);
    }

    /// Returns everything and keeps nothing, so that it is judged once.
    pub(super) fn take(&self) -> Vec<Set> {
        std::mem::take(&mut *self.sets())
    }

    fn sets(&self) -> MutexGuard<'_, Vec<Set>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
