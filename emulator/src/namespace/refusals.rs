//! Counts requests that were refused through no fault of the client. The record counts all refusals.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::nodes::Condition;

/// Counters since the namespace was created or reset.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    throttled: AtomicU64,
    failed: AtomicU64,
}

impl Refusals {
    /// Counts a refusal by its condition, as in the client's error.
    pub(crate) fn count(&self, condition: &str) {
        let counter = match Condition::of_symbol(condition) {
            Some(Condition::ServerBusy) => &self.throttled,
            Some(Condition::InternalError) => &self.failed,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often the server was busy.
    pub(crate) fn throttled(&self) -> u64 {
        self.throttled.load(Ordering::Relaxed)
    }

    /// Returns how often the server failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Begins again with zero.
    pub(crate) fn clear(&self) {
        self.throttled.store(0, Ordering::Relaxed);
        self.failed.store(0, Ordering::Relaxed);
    }
}
