//! What is declared in a namespace.

pub(crate) mod description;

use crate::{EntityId, EntityPath, Mailbox, NamespaceSettings, QueueDescription};

/// A queue: a mailbox with a name and a description.
#[derive(Debug)]
pub struct Queue {
    /// Its number in facts.
    pub id: EntityId,
    /// Its name.
    pub path: EntityPath,
    /// What it was declared as.
    pub description: QueueDescription,
    /// Its messages.
    pub mailbox: Mailbox,
}

impl Queue {
    /// An empty queue.
    pub fn new(
        id: EntityId,
        path: EntityPath,
        description: QueueDescription,
        settings: &NamespaceSettings,
    ) -> Self {
        Self {
            id,
            path,
            mailbox: Mailbox::new(id, &description, settings),
            description,
        }
    }
}
