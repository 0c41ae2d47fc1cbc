//! Scripted faults, where the operations are that they strike (harness.md §8).

use std::sync::Arc;

use super::peer::Peer;
use crate::faults::{Effect, Operation};
use crate::namespace::Entity;

/// A fault that strikes an operation of this connection.
#[derive(Debug)]
pub(super) struct Struck {
    operation: Operation,
    pub(super) effect: Effect,
    /// What the operation concerns; its timelines tell of the fault.
    entities: Vec<Arc<Entity>>,
}

impl Peer {
    /// Counts a discharge of this transaction, and says what goes wrong with it. Asked before it happens, because
    /// afterwards nobody knows where the transaction had work.
    pub(super) fn fault_on_discharge(&mut self, transaction: &[u8]) -> Option<Struck> {
        let namespace = self.namespace.as_ref()?;
        let open = self.transactions.find(transaction).ok();
        let entities: Vec<_> = open.into_iter().flat_map(|open| open.entities()).collect();
        let operation = Operation::Discharge;
        let paths = || entities.iter().map(|entity| entity.path.as_str()).collect();
        let effect = namespace.faults.strike(operation, paths)?;
        let entities = entities.into_iter().map(Arc::clone).collect();
        Some(Struck {
            operation,
            effect,
            entities,
        })
    }

    /// Puts a fault into the record, behind what it did not prevent.
    pub(super) fn note_fault(&self, struck: &Struck) {
        let Some(namespace) = &self.namespace else {
            return;
        };
        let operation = struck.operation.name();
        let text = match struck.effect {
            Effect::LoseReply => format!("the reply to the {operation} was lost"),
        };
        let client = self.caller.client;
        if struck.entities.is_empty() {
            namespace.note_fault(client, None, &text);
        }
        for entity in &struck.entities {
            namespace.note_fault(client, Some(entity), &text);
        }
    }
}
