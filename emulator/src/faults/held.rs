//! Operations that faults hold, by connection: each is in progress, so that its namespace is not idle.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::router::ConnectionId;

/// Stands for all HTTP requests: no connection has this number.
pub(crate) const REQUESTS: ConnectionId = ConnectionId(0);

#[derive(Debug, Default)]
pub(crate) struct HeldOperations(Arc<Mutex<BTreeMap<ConnectionId, usize>>>);

/// One held operation, until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldOperation {
    all: Arc<Mutex<BTreeMap<ConnectionId, usize>>>,
    connection: ConnectionId,
}

impl HeldOperations {
    /// Counts an HTTP request, which has no connection to the namespace.
    pub(crate) fn add_request(&self) -> HeldOperation {
        self.add(REQUESTS)
    }

    pub(crate) fn add(&self, connection: ConnectionId) -> HeldOperation {
        *self.0.lock().entry(connection).or_default() += 1;
        HeldOperation {
            all: Arc::clone(&self.0),
            connection,
        }
    }

    pub(crate) fn counts(&self) -> Vec<(ConnectionId, usize)> {
        Vec::from_iter(self.0.lock().iter().map(|(&id, &count)| (id, count)))
    }
}

impl Drop for HeldOperation {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(count) = all.get_mut(&self.connection) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.connection);
            }
        }
    }
}
