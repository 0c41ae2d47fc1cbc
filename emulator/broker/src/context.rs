//! What an operation may know, and where it says what it did and what the shell has to do because of it.

use crate::events::Events;
use crate::ids::{ClientId, EntityId, EntityPath, IdSource, ReceiverId, SubQueue};
use crate::time::Timestamp;

/// The world as one operation sees it.
pub struct Context<'a> {
    /// The namespace's time.
    pub now: Timestamp,
    /// Who asks; the broker itself for what time brings about.
    pub client: ClientId,
    /// Whether there is room for what clients send, where it is kept beyond the process.
    pub has_room: bool,
    /// Where lock tokens and message ids come from.
    pub ids: &'a mut dyn IdSource,
    /// What the shell must do, in order.
    pub effects: &'a mut Effects,
    /// What happened, in order.
    pub events: &'a mut Events,
}

impl Context<'_> {
    /// The same world when time itself acts, at `instant`.
    pub(crate) fn at(&mut self, instant: Timestamp) -> Context<'_> {
        Context {
            now: instant,
            client: ClientId::BROKER,
            has_room: self.has_room,
            ids: self.ids,
            effects: self.effects,
            events: self.events,
        }
    }

    /// The same world when `client` asks.
    pub(crate) fn by(&mut self, client: ClientId) -> Context<'_> {
        Context {
            now: self.now,
            client,
            has_room: self.has_room,
            ids: self.ids,
            effects: self.effects,
            events: self.events,
        }
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Context")
            .field("now", &self.now)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

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
    Delete(EntityPath, EntityId),
}

/// Effects in the order in which they came about.
pub type Effects = Vec<Effect>;
