//! How much one recorder keeps.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Most operations that are kept of one bus. What comes after is passed on and not told.
const MOST: usize = 1_000;

/// What is left of it.
#[derive(Debug, Default)]
pub(super) struct Budget {
    taken: AtomicUsize,
}

impl Budget {
    /// Takes room for one operation, session or link, if there is any.
    pub(super) fn take(&self) -> bool {
        self.taken.fetch_add(1, Ordering::Relaxed) < MOST
    }

    /// Says that something was left out.
    pub(super) fn exceeded(&self) -> Option<String> {
        let is_exceeded = self.taken.load(Ordering::Relaxed) > MOST;
        is_exceeded.then(|| format!("only the first {MOST} operations are recorded"))
    }
}
