//! Somebody asks for deferred messages by their numbers.

use std::collections::BTreeSet;

use thiserror::Error;

use super::receive::{Delivery, ReceiveMode};
use crate::store::entry::{Entry, State};
use crate::{Context, Entity, MessageStore, ReceiverId, SequenceNumber, SessionName, SubQueue};

/// Why deferred messages were not handed out; none of them was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReceiveDeferredError {
    /// One of them is unknown, not deferred, locked, or past its time (semantics §20.2).
    #[error(
        "Failed to lock one or more specified messages. Either the message is already locked or does not exist."
    )]
    NotFound,
    /// The client that asks does not hold the session of the messages, or names none (semantics §7).
    #[error("the lock of the session is not held")]
    SessionLockLost,
    /// Nothing can be received from the entity now (semantics §14).
    #[error("the entity is disabled")]
    Disabled,
}

impl Entity {
    /// Hands out deferred messages, all or none, in the order asked for; of `session` only if it is given. `id` is who
    /// holds the locks; where there are sessions, whoever holds the session, which must be a receiver of the same
    /// client. What has
    /// expired is not there any more, and leaves now that somebody has asked for it (decision D9).
    pub fn receive_deferred(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        numbers: &[SequenceNumber],
        mode: ReceiveMode,
        id: ReceiverId,
        session: Option<&SessionName>,
    ) -> Result<Vec<Delivery>, ReceiveDeferredError> {
        self.begin(cx);
        if !self.description.status.can_receive() {
            return Err(ReceiveDeferredError::Disabled);
        }
        if self.store(kind).policy.has_sessions {
            let held = session.map(|name| self.session_of_client(cx.client, name));
            held.and_then(Result::ok)
                .ok_or(ReceiveDeferredError::SessionLockLost)?;
        }
        for &number in numbers {
            let entry = self.store(kind).deferred_entry(number, session);
            if entry.is_some_and(|entry| entry.is_expired(cx.now)) {
                self.expire(cx, number.place());
            }
        }
        self.reserve(cx);
        let store = self.store_mut(kind);
        if !store.are_deferred(numbers, session) {
            return Err(ReceiveDeferredError::NotFound);
        }
        let each = numbers
            .iter()
            .filter_map(|number| store.hand_out(cx, number.place(), mode, id));
        let deliveries = each.collect();
        self.reserve(cx);
        Ok(deliveries)
    }
}

impl MessageStore {
    /// A message at rest among the deferred.
    fn deferred_entry(
        &self,
        number: SequenceNumber,
        session: Option<&SessionName>,
    ) -> Option<&Entry> {
        let place = number.place();
        let entry = self.entries.get(place.0)?;
        let found = entry.state == State::Deferred
            && entry.number(place) == number
            && session.is_none_or(|name| self.belongs(place, entry, name));
        found.then_some(entry)
    }

    /// Whether each number is that of a message at rest among the deferred, and none is named twice.
    fn are_deferred(&self, numbers: &[SequenceNumber], session: Option<&SessionName>) -> bool {
        let distinct: BTreeSet<_> = numbers.iter().collect();
        let mut all = numbers.iter();
        distinct.len() == numbers.len()
            && all.all(|&number| self.deferred_entry(number, session).is_some())
    }
}
