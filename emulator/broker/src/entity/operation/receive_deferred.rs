//! A client asks for deferred messages by their numbers.

use std::collections::BTreeSet;

use thiserror::Error;

use super::receive::Delivery;
use crate::context::Context;
use crate::entity::Entity;
use crate::ids::{ReceiverId, SequenceNumber, SessionName, SubQueue};
use crate::store::receivers::ReceiveMode;
use crate::store::{Entry, MessageStore};

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
    /// holds the locks; where there are sessions, the receiver that holds the session, which must be a receiver of the same
    /// client. What has
    /// expired is not there any more, and leaves now that a client has asked for it (decision D9).
    pub fn receive_deferred(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        numbers: &[SequenceNumber],
        mode: ReceiveMode,
        id: ReceiverId,
        session: Option<&SessionName>,
    ) -> Result<Vec<Delivery>, ReceiveDeferredError> {
        self.verb(cx, |entity, cx| {
            if !entity.description.status.can_receive() {
                return Err(ReceiveDeferredError::Disabled);
            }
            if entity.store(kind).policy().has_sessions() {
                let held = session.map(|name| entity.session_of_client(cx.client, name));
                held.and_then(Result::ok)
                    .ok_or(ReceiveDeferredError::SessionLockLost)?;
            }
            for &number in numbers {
                let entry = entity.store(kind).deferred_entry(number, session);
                if entry.is_some_and(|entry| entry.is_expired(cx.now)) {
                    entity.expire(cx, number.offset());
                }
            }
            entity.reserve(cx);
            let store = entity.store_mut(kind);
            if !store.are_deferred(numbers, session) {
                return Err(ReceiveDeferredError::NotFound);
            }
            let each = numbers
                .iter()
                .filter_map(|number| store.hand_out(cx, number.offset(), mode, id));
            Ok(each.collect())
        })
    }
}

impl MessageStore {
    /// A message at rest among the deferred.
    fn deferred_entry(
        &self,
        number: SequenceNumber,
        session: Option<&SessionName>,
    ) -> Option<&Entry> {
        let offset = number.offset();
        let entry = self.get(offset)?;
        let found = entry.is_set_aside()
            && entry.number(offset) == number
            && session.is_none_or(|name| self.belongs(offset, entry, name));
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
