//! How much the subscriptions of a topic hold: what a topic may hold counts them too (semantics §1).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that the subscriptions of one topic hold, as each of them last said.
#[derive(Debug, Clone, Default)]
pub struct Held(Arc<AtomicU64>);

impl Held {
    /// The sum.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A subscription holds `now` bytes that held `before`.
    pub(crate) fn changed(&self, before: u64, now: u64) {
        // Wraps when it became less, and so does the sum: together that is a subtraction.
        self.0
            .fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }
}
