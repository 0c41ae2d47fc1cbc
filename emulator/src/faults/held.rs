//! Operations that faults hold, by connection: each is in progress, so that its namespace is not idle.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use servicebus_broker::{EntityId, SubQueue};

use crate::router::ConnectionId;

/// Stands for all HTTP requests: no connection has this number.
pub(crate) const REQUESTS: ConnectionId = ConnectionId(0);

#[derive(Debug, Default)]
pub(crate) struct HeldOperations(Arc<Mutex<BTreeMap<Held, usize>>>);

/// What a fault holds, of which there may be several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Held {
    pub(crate) connection: ConnectionId,
    /// The store of a delivery, whose message other receivers may take meanwhile: then nothing is left to wait for.
    pub(crate) delivery_from: Option<(EntityId, SubQueue)>,
}

/// One held operation, until this is dropped.
#[derive(Debug)]
pub(crate) struct HeldOperation {
    all: Arc<Mutex<BTreeMap<Held, usize>>>,
    held: Held,
}

impl HeldOperations {
    /// Counts an HTTP request, which has no connection to the namespace.
    pub(crate) fn add_request(&self) -> HeldOperation {
        self.add(REQUESTS)
    }

    pub(crate) fn add(&self, connection: ConnectionId) -> HeldOperation {
        self.insert(connection, None)
    }

    pub(crate) fn add_delivery(
        &self,
        connection: ConnectionId,
        from: (EntityId, SubQueue),
    ) -> HeldOperation {
        self.insert(connection, Some(from))
    }

    fn insert(
        &self,
        connection: ConnectionId,
        delivery_from: Option<(EntityId, SubQueue)>,
    ) -> HeldOperation {
        let held = Held {
            connection,
            delivery_from,
        };
        *self.0.lock().entry(held).or_default() += 1;
        HeldOperation {
            all: Arc::clone(&self.0),
            held,
        }
    }

    pub(crate) fn counts(&self) -> Vec<(Held, usize)> {
        Vec::from_iter(self.0.lock().iter().map(|(&held, &count)| (held, count)))
    }
}

impl Drop for HeldOperation {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(count) = all.get_mut(&self.held) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.held);
            }
        }
    }
}
