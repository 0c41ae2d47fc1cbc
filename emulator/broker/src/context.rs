//! The inputs of an operation, and its outputs: effects for the shell, and events.

use crate::events::Events;
use crate::ids::{ClientId, EntityId, EntityPath, IdSource, ReceiverId, SubQueue};
use crate::time::Timestamp;

/// The inputs and outputs of one operation.
pub struct Context<'a> {
    /// The namespace's time.
    pub now: Timestamp,
    /// The client of the operation; the broker for deadlines.
    pub client: ClientId,
    /// Whether the data directory, if any, has space for what clients send.
    pub has_room: bool,
    /// The source of lock tokens and message ids.
    pub ids: &'a mut dyn IdSource,
    /// What the shell must do, in order.
    pub effects: &'a mut Effects,
    /// What happened, in order.
    pub events: &'a mut Events,
}

impl Context<'_> {
    /// Returns a context for the broker's own action at `instant`.
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

    /// Returns a context for an action of `client`.
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

/// An instruction to the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Something is reserved for this receiver: its owner should take it. Sent once until the owner takes, and again for
    /// what comes after it has set its credit with nothing reserved.
    ///
    /// Also sent to a receiver that waited for a session and was granted one: see [`crate::Entity::accepted_session`].
    Wake(ReceiverId),
    /// The receiver's session lock has ended: it gets no more messages, and its link must be detached with
    /// `com.microsoft:session-lock-lost`.
    SessionLost(ReceiverId),
    /// This store has messages to forward: see [`crate::forward`].
    Forward(EntityPath, SubQueue),
    /// The entity was idle for as long as its description allows: it must be deleted with its messages.
    Delete(EntityPath, EntityId),
}

/// Effects in the order in which they arose.
pub type Effects = Vec<Effect>;
