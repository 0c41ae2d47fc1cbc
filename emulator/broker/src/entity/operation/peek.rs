//! Peeks at messages without receiving them.

use super::send::milliseconds;
use crate::context::Context;
use crate::entity::Entity;
use crate::ids::{Offset, SequenceNumber, SessionName, SubQueue};
use crate::message::{BrokerProperties, Message};
use crate::policy::StorePolicy;
use crate::store::{Entry, MessageStore};

/// `x-opt-message-state` of a message that is neither deferred nor scheduled (semantics §10).
const STATE_ACTIVE: i32 = 0;
/// The state of a message that was deferred.
pub(crate) const STATE_DEFERRED: i32 = 1;
/// The state of a message that is not active yet; also of a received one that was scheduled (observed 6).
pub(crate) const STATE_SCHEDULED: i32 = 2;

/// A peeked message.
#[derive(Debug, Clone)]
pub struct Peeked {
    /// The properties that the broker writes.
    pub broker_properties: BrokerProperties,
    /// The message itself.
    pub message: Message,
}

impl Entity {
    /// Returns up to `max` messages in order, locked ones included, from the first whose sequence number is at least `from`;
    /// only those of `session` if it is given. Under [`crate::Expiry::OnReceive`] they include expired messages that are
    /// still there.
    pub fn peek(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        from: SequenceNumber,
        max: usize,
        session: Option<&SessionName>,
    ) -> Vec<Peeked> {
        self.touch(cx);
        let store = self.store(kind);
        let entries: Box<dyn Iterator<Item = (Offset, &Entry)>> = match session {
            Some(name) => store.of_session(name, from.offset()),
            None => Box::new(store.from(from.offset())),
        };
        let seen = entries.take(max).map(|(offset, entry)| Peeked {
            broker_properties: seen(store.policy(), offset, entry),
            message: entry.message().clone(),
        });
        seen.collect()
    }

    /// Returns every message from `from` on as peeking shows it. Changes nothing: runs no deadlines, and is no use of the
    /// entity.
    pub fn snapshot(
        &self,
        kind: SubQueue,
        from: SequenceNumber,
    ) -> impl Iterator<Item = (BrokerProperties, &Message)> {
        let store = self.store(kind);
        let entries = store.from(from.offset());
        entries.map(|(offset, entry)| (seen(store.policy(), offset, entry), entry.message()))
    }
}

impl MessageStore {
    /// Returns the messages of a session; where the entity has sessions, without reading the others.
    fn of_session<'a>(
        &'a self,
        name: &'a SessionName,
        from: Offset,
    ) -> Box<dyn Iterator<Item = (Offset, &'a Entry)> + 'a> {
        let Some(sessions) = self.sessions() else {
            let entries = self.from(from);
            return Box::new(entries.filter(|(offset, entry)| self.belongs(*offset, entry, name)));
        };
        let found = sessions.find(name).into_iter();
        let offsets = found.flat_map(move |(slot, _)| sessions.offsets(slot, from));
        Box::new(offsets.filter_map(|offset| Some((offset, self.get(offset)?))))
    }
}

pub(crate) fn seen(policy: &StorePolicy, offset: Offset, entry: &Entry) -> BrokerProperties {
    // A peeked message shows a time to live only if the sender set it (decision D7).
    let own = (entry.message().time_to_live()).filter(|_| policy.is_active());
    let lifetime = own.and_then(|_| entry.lifetime());
    BrokerProperties {
        delivery_count: entry.delivery_count(),
        time_to_live: lifetime
            .map(milliseconds)
            .or_else(|| entry.message().time_to_live()),
        sequence_number: entry.number(offset),
        enqueued_sequence_number: entry.number_of_origin(),
        enqueued_at: entry.enqueued_at(),
        lock: None,
        is_removed: false,
        state: Some(state(entry)),
    }
}

fn state(entry: &Entry) -> i32 {
    match entry.activates_at() {
        Some(_) => STATE_SCHEDULED,
        None if entry.is_deferred() => STATE_DEFERRED,
        None => STATE_ACTIVE,
    }
}
