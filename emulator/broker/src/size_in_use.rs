//! The bytes that count towards the size of an entity beside its own messages: those of a topic's subscriptions (semantics
//! §1), and those of sends in open transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes that the subscriptions of one topic hold, as each last reported.
#[derive(Debug, Clone, Default)]
pub struct SizeInUse(Arc<AtomicU64>);

impl SizeInUse {
    /// Returns the sum.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Records that a subscription that held `before` bytes holds `now`.
    pub(crate) fn changed(&self, before: u64, now: u64) {
        // Wraps if the size decreased, and so does the sum: together that is a subtraction.
        self.0
            .fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }
}

/// The bytes of messages that open transactions will send to one entity.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingBytes(Arc<AtomicU64>);

/// A part of them, held until its transaction ends.
#[derive(Debug)]
pub(crate) struct Reservation {
    of: PendingBytes,
    bytes: u64,
}

impl PendingBytes {
    /// Returns the sum.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Adds bytes until the reservation is dropped.
    pub(crate) fn reserve(&self, bytes: u64) -> Reservation {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Reservation {
            of: self.clone(),
            bytes,
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
