//! Operations that wait until they are released: by a test, by who conducts the namespace, or by its automatic clock when
//! nothing else can happen.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::router::ConnectionId;

/// What waits, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Postponed(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    ever: u64,
    connections: BTreeMap<u64, ConnectionId>,
}

impl Postponed {
    /// An operation of this connection waits from now on; returns by which number.
    pub(crate) fn add(&self, connection: ConnectionId) -> u64 {
        let mut waiting = self.0.lock();
        waiting.ever += 1;
        let number = waiting.ever;
        waiting.connections.insert(number, connection);
        number
    }

    /// Whether it still waits.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.0.lock().connections.contains_key(&number)
    }

    /// How many wait.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().connections.len()
    }

    /// Lets the oldest go on; returns the connection that it is of.
    pub(crate) fn release(&self) -> Option<ConnectionId> {
        let released = self.0.lock().connections.pop_first();
        released.map(|(_, connection)| connection)
    }

    /// A connection is gone, and nothing of it waits any longer.
    pub(crate) fn forget(&self, connection: ConnectionId) {
        let connections = &mut self.0.lock().connections;
        connections.retain(|_, own| *own != connection);
    }
}
