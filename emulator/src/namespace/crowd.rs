//! Whether so many messages wait for those who receive that senders give way.
//!
//! To take a message in costs less than to hand it out. Of a sender and a receiver who both do nothing else the sender
//! would be ahead by ever more: each message would wait longer than the one before, and none would still be in the
//! processor's cache when it goes out, which was measured to cost an eighth of the whole.

use std::sync::atomic::{AtomicBool, Ordering};

/// Waiting messages from which on senders give way. They go on below [`RELIEVED`], far enough apart that neither side
/// waits for the other all the time.
const CROWDED: usize = 16_000;
const RELIEVED: usize = 6_000;

/// What an entity knows of it.
#[derive(Debug, Default)]
pub(crate) struct Crowd(AtomicBool);

impl Crowd {
    /// Whether a crowd begins with so many messages waiting. It does not begin twice, so that those who take nothing
    /// are waited for once.
    pub(crate) fn begins(&self, waiting: usize) -> bool {
        waiting > CROWDED && !self.0.swap(true, Ordering::Relaxed)
    }

    /// Whether the crowd is over with so few messages waiting.
    pub(crate) fn ends(&self, waiting: usize) -> bool {
        waiting < RELIEVED && self.is_there() && self.0.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_once_and_ends_once() {
        let crowd = Crowd::default();
        assert!(!crowd.begins(CROWDED) && !crowd.is_there());
        assert!(crowd.begins(CROWDED + 1) && crowd.is_there());
        assert!(!crowd.begins(CROWDED + 2), "it has begun already");
        assert!(!crowd.ends(RELIEVED) && crowd.is_there());
        assert!(crowd.ends(RELIEVED - 1) && !crowd.is_there());
        assert!(!crowd.ends(0), "it is over already");
        assert!(crowd.begins(CROWDED + 1));
    }
}
