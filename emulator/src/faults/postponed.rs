//! Operations that wait until a test, an embedder, or the automatic clock releases them; the clock does so when nothing else
//! can happen.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::router::ConnectionId;

/// Postponed operations, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Postponed(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    ever: u64,
    connections: BTreeMap<u64, ConnectionId>,
}

impl Postponed {
    /// Adds an operation of this connection; returns its number.
    pub(crate) fn add(&self, connection: ConnectionId) -> u64 {
        let mut waiting = self.0.lock();
        waiting.ever += 1;
        let number = waiting.ever;
        waiting.connections.insert(number, connection);
        number
    }

    /// Returns whether it still waits.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.0.lock().connections.contains_key(&number)
    }

    /// Returns how many wait.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().connections.len()
    }

    /// Releases the oldest; returns its connection.
    pub(crate) fn release(&self) -> Option<ConnectionId> {
        let released = self.0.lock().connections.pop_first();
        released.map(|(_, connection)| connection)
    }

    /// Removes an operation that is gone.
    pub(crate) fn remove(&self, number: u64) {
        self.0.lock().connections.remove(&number);
    }

    /// Removes the operations of a connection that is gone.
    pub(crate) fn forget(&self, connection: ConnectionId) {
        let connections = &mut self.0.lock().connections;
        connections.retain(|_, own| *own != connection);
    }
}
