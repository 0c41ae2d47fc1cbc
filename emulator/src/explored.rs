//! What an exploration asks of an emulator in its own process, without a request: the operation log and faults of its first
//! namespace.

use std::sync::Arc;

use servicebus_control_api::{Fault, LoggedOperation};

use crate::emulator::Emulator;
use crate::shared::Shared;

/// The first namespace of an emulator, as an exploration sees it.
#[derive(Debug, Clone)]
pub struct Explored(Arc<Shared>);

impl Emulator {
    /// Returns what an exploration asks.
    pub fn explored(&self) -> Explored {
        Explored(Arc::clone(&self.shared))
    }
}

impl Explored {
    /// Records operations from now on.
    pub fn record(&self) {
        if let Some(namespace) = self.0.namespaces.first() {
            namespace.faults.record_operations(true);
        }
    }

    /// Returns the operations after this number in the log.
    pub fn operations(&self, after: u64) -> Vec<LoggedOperation> {
        let namespace = self.0.namespaces.first();
        namespace.map_or_else(Vec::new, |namespace| {
            namespace.faults.operations(after, usize::MAX).operations
        })
    }

    /// Scripts a fault; says whether there was room for it.
    pub fn add_fault(&self, fault: Fault) -> bool {
        let namespace = self.0.namespaces.first();
        namespace.is_some_and(|namespace| namespace.faults.add(fault).is_some())
    }

    /// Returns how often each fault has struck, in the order in which they were added.
    pub fn strikes(&self) -> Vec<u64> {
        let namespace = self.0.namespaces.first();
        let faults = namespace.map_or_else(Vec::new, |namespace| namespace.faults.all());
        faults.iter().map(|fault| fault.hits).collect()
    }
}
