//! What is declared in a namespace.

pub(crate) mod description;
pub(crate) mod role;
pub(crate) mod topic;

use crate::{EntityId, EntityPath, Mailbox, NamespaceSettings, QueueDescription, Timestamp};

/// A queue: a mailbox with a name.
#[derive(Debug)]
pub struct Queue {
    /// Its number in facts.
    pub id: EntityId,
    /// Its name.
    pub path: EntityPath,
    /// Its messages, under the rules of its description.
    pub mailbox: Mailbox,
}

impl Queue {
    /// A mailbox under its name.
    pub fn of(id: EntityId, mailbox: Mailbox) -> Self {
        Self {
            id,
            path: mailbox.path().clone(),
            mailbox,
        }
    }

    /// An empty queue.
    pub fn new(
        id: EntityId,
        path: EntityPath,
        description: QueueDescription,
        settings: &NamespaceSettings,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            mailbox: Mailbox::new(id, path.clone(), description, settings, now),
            path,
        }
    }
}
