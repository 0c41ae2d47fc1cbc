//! A namespace as an embedder sees it that explores what can go wrong: it reads what clients did, sets faults on that, and is
//! told which of its parties crash.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use servicebus_control_api::{Fault, Operations, ScriptedFault};

use crate::emulator::Emulator;
use crate::namespace::Namespace;
use crate::router::ConnectionId;

/// A namespace of an emulator in this process.
#[derive(Clone)]
pub struct ConductedNamespace {
    namespace: Arc<Namespace>,
}

/// Not what it holds, as with [`Emulator`].
impl fmt::Debug for ConductedNamespace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConductedNamespace")
            .finish_non_exhaustive()
    }
}

impl Emulator {
    /// The namespace of this name, to be conducted by its embedder.
    pub fn conducted(&self, name: &str) -> Option<ConductedNamespace> {
        let namespace = self.shared.namespaces.named(name)?;
        Some(ConductedNamespace { namespace })
    }
}

impl ConductedNamespace {
    /// Records operations from now on, or no more; what was recorded before is gone.
    pub fn record_operations(&self, records: bool) {
        self.namespace.faults.record_operations(records);
    }

    /// The operations after this number in the log, so many at most.
    pub fn operations(&self, after: u64, limit: usize) -> Operations {
        self.namespace.faults.operations(after, limit)
    }

    /// Sets a fault and returns it with its id; none when there are as many as there may be.
    pub fn add_fault(&self, fault: Fault) -> Option<ScriptedFault> {
        self.namespace.faults.add(fault)
    }

    /// The faults, each with how often it was met.
    pub fn faults(&self) -> Vec<ScriptedFault> {
        self.namespace.faults.all()
    }

    /// How many operations wait because a fault has postponed them.
    pub fn postponed(&self) -> usize {
        self.namespace.faults.postponed.count()
    }

    /// Lets the oldest operation go on that was postponed; says whether there was one.
    pub fn release_postponed(&self) -> bool {
        self.namespace.release_postponed()
    }

    /// Whether something is to happen by itself within this time: a lock or a message ends, one becomes active.
    pub fn has_deadline_within(&self, time: Duration) -> bool {
        let now = self.namespace.clock.now();
        let next = self.namespace.next_deadline();
        next.is_some_and(|next| next.since(now) <= time)
    }

    /// Ends the connection of this number in the operation log without a word, as a network that fails does.
    pub fn drop_connection(&self, connection: u32) {
        self.namespace
            .router
            .drop_connection(ConnectionId(connection));
    }

    /// The parties whose processes crashed since this was last asked: their connections are gone already.
    pub fn take_crashes(&self) -> Vec<Arc<str>> {
        self.namespace.take_crashes()
    }
}
