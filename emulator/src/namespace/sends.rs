//! How many sends to an entity wait for their outcome, and how many ever did at once.
//!
//! A send counts from the turn in which it arrived until its outcome is in the socket, as its sender sees it. What was
//! sent settled, over HTTP or by a schedule waits for nothing and is not counted.

use std::sync::atomic::{AtomicU32, Ordering};

/// The unsettled sends of one entity, over all connections.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    now: AtomicU32,
    most: AtomicU32,
}

impl Sends {
    /// One more waits.
    pub(crate) fn begin(&self) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        if now > self.most.load(Ordering::Relaxed) {
            self.most.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// So many wait no longer, because they were answered or their link is gone.
    pub(crate) fn end(&self, number: u32) {
        self.now.fetch_sub(number, Ordering::Relaxed);
    }

    /// Forgets how many there were before now.
    pub(super) fn forget(&self) {
        self.most.store(self.now(), Ordering::Relaxed);
    }

    /// How many wait now.
    pub(crate) fn now(&self) -> u32 {
        self.now.load(Ordering::Relaxed)
    }

    /// How many ever waited at once.
    pub(crate) fn most(&self) -> u32 {
        self.most.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_what_waited_at_once() {
        let sends = Sends::default();
        sends.begin();
        sends.begin();
        sends.end(1);
        sends.begin();
        assert_eq!((sends.now(), sends.most()), (2, 2));
        sends.end(2);
        assert_eq!((sends.now(), sends.most()), (0, 2));
        sends.forget();
        assert_eq!(sends.most(), 0);
    }
}
