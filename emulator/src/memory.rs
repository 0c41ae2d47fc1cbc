//! Limits the memory that peers use: an account in bytes for each connection, and the sum of all accounts.
//!
//! Unfinished messages, request bodies, responses and other unwritten output, links, sessions, unsettled deliveries, pending
//! replies and tokens count. Messages in entities do not; they have limits of their own. A connection that exceeds its limit
//! is closed. At the limit of the process, the connection that asks for more is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use servicebus_control_api::MemoryUsage;
use thiserror::Error;

/// Limit in bytes of a connection until a token was accepted.
const UNPROVED: usize = 1024 * 1024;
/// Connections up to this size continue at the limit of the process, so that connections that use much memory do not shut
/// out those that use little.
const SMALL: usize = 64 * 1024;

/// The memory account of a process.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Limit in bytes of a connection; higher where twice the largest message of its namespace exceeds it.
    connection: usize,
    /// Limit in bytes of all connections.
    process: usize,
    held: AtomicUsize,
    closed: AtomicU64,
}

/// The account of one connection; released when dropped.
#[derive(Debug)]
pub(crate) struct Account {
    memory: Arc<Memory>,
    held: usize,
}

/// Which limit a connection exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Exceeded {
    #[error(
        "The connection holds {held} bytes; the limit until a token is accepted is {limit}. Unfinished messages, \
         bodies of requests, unread output, links and other state count."
    )]
    Unproved { held: usize, limit: usize },
    #[error(
        "The connection holds {held} bytes; the limit is {limit} (--connection-memory). Unfinished messages, \
         bodies of requests, unread output, links and other state count."
    )]
    Connection { held: usize, limit: usize },
    #[error(
        "All connections hold {total} bytes, this one {held}; the limit is {limit} (--process-memory), and this one asked \
         for more. Unfinished messages, bodies of requests, unread output, links and other state \
         count."
    )]
    Process {
        held: usize,
        total: usize,
        limit: usize,
    },
}

impl Memory {
    pub(crate) fn new(connection: u64, process: u64) -> Arc<Self> {
        let bytes = |limit| usize::try_from(limit).unwrap_or(usize::MAX);
        Arc::new(Self {
            connection: bytes(connection),
            process: bytes(process),
            held: AtomicUsize::new(0),
            closed: AtomicU64::new(0),
        })
    }

    /// Opens an empty account for a connection.
    pub(crate) fn open(self: &Arc<Self>) -> Account {
        Account {
            memory: Arc::clone(self),
            held: 0,
        }
    }

    pub(crate) fn usage(&self) -> MemoryUsage {
        MemoryUsage {
            held_bytes: self.held.load(Ordering::Relaxed),
            limit_bytes: self.process,
            connection_limit_bytes: self.connection,
            closed_connections: self.closed.load(Ordering::Relaxed),
        }
    }
}

impl Account {
    /// Records that the connection holds `held` bytes. `largest` is the largest message of its namespace, once a token was
    /// accepted. An error counts in the metrics and means that the connection must be closed.
    pub(crate) fn hold(&mut self, held: usize, largest: Option<u64>) -> Result<(), Exceeded> {
        let before = self.held;
        let total = self.set(held);
        let found = self.check_limits(before, total, largest);
        if found.is_err() {
            self.memory.closed.fetch_add(1, Ordering::Relaxed);
        }
        found
    }

    /// Returns the recorded bytes.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Records what the connection holds without a limit; returns the total of all connections.
    pub(crate) fn set(&mut self, held: usize) -> usize {
        let total = &self.memory.held;
        let before = std::mem::replace(&mut self.held, held);
        match held.checked_sub(before) {
            // Most turns change nothing.
            Some(0) => total.load(Ordering::Relaxed),
            Some(more) => total.fetch_add(more, Ordering::Relaxed) + more,
            None => total.fetch_sub(before - held, Ordering::Relaxed) - (before - held),
        }
    }

    /// Returns the limit in bytes of a connection whose token was accepted, by the largest message of its namespace.
    pub(crate) fn limit(&self, largest: u64) -> usize {
        let largest = usize::try_from(largest).unwrap_or(usize::MAX);
        self.memory.connection.max(largest.saturating_mul(2))
    }

    fn check_limits(
        &self,
        before: usize,
        total: usize,
        largest: Option<u64>,
    ) -> Result<(), Exceeded> {
        let held = self.held;
        let Memory {
            connection,
            process,
            ..
        } = *self.memory;
        let Some(largest) = largest else {
            let limit = UNPROVED.min(connection);
            return match held > limit {
                true => Err(Exceeded::Unproved { held, limit }),
                false => Ok(()),
            };
        };
        let limit = self.limit(largest);
        if held > limit {
            return Err(Exceeded::Connection { held, limit });
        }
        if total > process && held > before && held > SMALL {
            let limit = process;
            return Err(Exceeded::Process { held, total, limit });
        }
        Ok(())
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;
    const SMALLEST: Option<u64> = Some(256 * 1024);

    #[test]
    fn an_unauthenticated_connection_may_hold_little_memory() {
        let memory = Memory::new(64 << 20, 1 << 30);
        let mut account = memory.open();
        assert_eq!(account.hold(MIB, None), Ok(()));
        let held = MIB + 1;
        let refused = Exceeded::Unproved { held, limit: MIB };
        assert_eq!(account.hold(held, None), Err(refused));
        assert_eq!(account.hold(held, SMALLEST), Ok(()));
        assert_eq!(memory.usage().held_bytes, held);
        assert_eq!(memory.usage().closed_connections, 1);
        drop(account);
        assert_eq!(memory.usage().held_bytes, 0);
    }

    #[test]
    fn a_connection_may_hold_the_largest_message_twice() {
        let memory = Memory::new(64 << 20, 1 << 30);
        let mut account = memory.open();
        let (held, limit) = (64 * MIB + 1, 64 * MIB);
        let refused = Exceeded::Connection { held, limit };
        assert_eq!(account.hold(held, SMALLEST), Err(refused));
        let large = Some(100 << 20);
        assert_eq!(account.hold(200 * MIB, large), Ok(()));
        assert!(account.hold(200 * MIB + 1, large).is_err());
    }

    #[test]
    fn at_the_memory_limit_the_requesting_connection_is_closed() {
        let memory = Memory::new(64 << 20, 100 << 20);
        let [mut large, mut other, mut small] = [memory.open(), memory.open(), memory.open()];
        assert_eq!(large.hold(60 * MIB, SMALLEST), Ok(()));
        let (held, total) = (50 * MIB, 110 * MIB);
        let limit = 100 * MIB;
        let refused = Exceeded::Process { held, total, limit };
        assert_eq!(other.hold(held, SMALLEST), Err(refused));
        assert_eq!(
            large.hold(60 * MIB, SMALLEST),
            Ok(()),
            "it asks for nothing"
        );
        assert_eq!(large.hold(55 * MIB, SMALLEST), Ok(()), "it gives back");
        assert_eq!(small.hold(SMALL, SMALLEST), Ok(()), "it is small");
        drop(other);
        assert_eq!(large.hold(60 * MIB, SMALLEST), Ok(()));
    }
}
