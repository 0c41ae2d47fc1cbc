//! What an operation may know, and where it says what it did.

use crate::{ClientId, Effects, Events, IdSource, Timestamp};

/// The world as one operation sees it.
pub struct Context<'a> {
    /// The namespace's time.
    pub now: Timestamp,
    /// Who asks; the broker itself for what time brings about.
    pub client: ClientId,
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
