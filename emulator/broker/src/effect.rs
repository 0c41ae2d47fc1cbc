//! The only way out of the core: what the shell has to do because of an operation.

use crate::{EntityPath, ReceiverId, SubQueue};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Something is reserved to this receiver: its owner should take it. Said once until the owner takes, and
    /// again for what comes after it has set its credit with nothing reserved.
    ///
    /// Said also to a receiver that waited for a session and was granted one: see
    /// [`crate::Entity::accepted_session`].
    Wake(ReceiverId),
    /// The lock of the session that this receiver held is over: it gets nothing more, and its link is to be detached
    /// with `com.microsoft:session-lock-lost`.
    SessionLost(ReceiverId),
    /// This store has messages to forward: see [`crate::forward`].
    Forward(EntityPath, SubQueue),
    /// The entity was idle for as long as its description allows: it is to be deleted with its messages.
    Delete(EntityPath),
}

/// Effects in the order in which they came about.
pub type Effects = Vec<Effect>;
