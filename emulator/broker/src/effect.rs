//! The only way out of the core: what the shell has to do because of an operation.

use crate::{ConsumerId, EntityPath, StoreKind};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Something is assigned to this consumer: its owner should take it. Said once until the owner takes, and
    /// again for what comes after it has set its credit with nothing assigned.
    ///
    /// Said also to a consumer that waited for a session and was granted one: see
    /// [`crate::Mailbox::accepted_session`].
    Wake(ConsumerId),
    /// The lock of the session that this consumer held is over: it gets nothing more, and its link is to be detached
    /// with `com.microsoft:session-lock-lost`.
    SessionLost(ConsumerId),
    /// This store has messages to forward: see [`crate::forward`].
    Forward(EntityPath, StoreKind),
    /// The entity was idle for as long as its description allows: it is to be deleted with its messages.
    Delete(EntityPath),
}

/// Effects in the order in which they came about.
pub type Effects = Vec<Effect>;
