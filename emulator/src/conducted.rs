//! The interface for an embedder that explores faults and orders in a namespace: it reads the log of operations, adds
//! faults, and learns which client processes crash.

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

/// Leaves out the contents, as for [`Emulator`].
impl fmt::Debug for ConductedNamespace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConductedNamespace")
            .finish_non_exhaustive()
    }
}

impl Emulator {
    /// Returns the namespace of this name under the control of its embedder.
    pub fn conducted(&self, name: &str) -> Option<ConductedNamespace> {
        let namespace = self.shared.namespaces.named(name)?;
        Some(ConductedNamespace { namespace })
    }
}

impl ConductedNamespace {
    /// Starts or stops recording operations; discards what was recorded before.
    pub fn record_operations(&self, records: bool) {
        self.namespace.faults.record_operations(records);
    }

    /// Returns up to `limit` operations that follow number `after` in the log.
    pub fn operations(&self, after: u64, limit: usize) -> Operations {
        self.namespace.faults.operations(after, limit)
    }

    /// Adds a fault planned from the operation log, and returns it with its id; `None` when the limit of faults is reached.
    /// It counts operations by what the log shows of them: of several messages the first, and also operations on which its
    /// effect is not possible.
    pub fn add_fault(&self, fault: Fault) -> Option<ScriptedFault> {
        self.namespace.faults.add_planned(fault)
    }

    /// Returns the faults, each with the number of operations that matched it.
    pub fn faults(&self) -> Vec<ScriptedFault> {
        self.namespace.faults.all()
    }

    /// Returns how many operations wait because a fault postponed them.
    pub fn postponed(&self) -> usize {
        self.namespace.faults.postponed.count()
    }

    /// Resumes the oldest postponed operation; returns whether there was one.
    pub fn release_postponed(&self) -> bool {
        self.namespace.release_postponed()
    }

    /// Returns whether a deadline lies within `time`: a lock or a message expires, or a scheduled message becomes active.
    pub fn has_deadline_within(&self, time: Duration) -> bool {
        let now = self.namespace.clock.now();
        let next = self.namespace.next_deadline();
        next.is_some_and(|next| next.since(now) <= time)
    }

    /// Aborts the connection of this number in the operation log without a close frame, as a network failure does.
    pub fn drop_connection(&self, connection: u32) {
        self.namespace
            .router
            .drop_connection(ConnectionId(connection));
    }

    /// Returns the parties that crashed since the last call. Their connections are closed already.
    pub fn take_crashes(&self) -> Vec<Arc<str>> {
        self.namespace.take_crashes()
    }
}
