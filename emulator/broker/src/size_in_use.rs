//! What counts towards the size of an entity beside its own messages: what the subscriptions of a topic hold (semantics
//! §1), and what was sent in transactions that are not committed yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that the subscriptions of one topic hold, as each of them last said.
#[derive(Debug, Clone, Default)]
pub struct SizeInUse(Arc<AtomicU64>);

impl SizeInUse {
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

/// Bytes of the messages that open transactions are to send to one entity.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingBytes(Arc<AtomicU64>);

/// A part of them, until it is dropped: with its transaction, however that ends.
#[derive(Debug)]
pub(crate) struct Reservation {
    of: PendingBytes,
    bytes: u64,
}

impl PendingBytes {
    /// The sum.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Lets so many bytes count.
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
