//! A message at rest.

use crate::ids::LockNonce;
use crate::{ConsumerId, Message, SequenceNumber, Timestamp};

/// One message with what the broker knows about it. Where it stands in its life is `state` and nothing else.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) message: Message,
    pub(crate) enqueued_at: Timestamp,
    /// Its number where it first entered the entity.
    pub(crate) enqueued_number: SequenceNumber,
    /// [`Timestamp::NEVER`] when it does not expire.
    pub(crate) expires_at: Timestamp,
    /// Deliveries that failed.
    pub(crate) delivery_count: u32,
    pub(crate) state: State,
}

/// Who has an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody.
    Ready,
    /// A consumer with credit for it has yet to take it; nothing has begun.
    Assigned(ConsumerId),
    /// Whoever holds the token.
    Locked(Lock),
}

/// A lock that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) nonce: LockNonce,
    pub(crate) until: Timestamp,
    /// Who took it; may be gone by now.
    pub(crate) consumer: ConsumerId,
}

impl Entry {
    /// Whether its time has passed at `now`.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }

    pub(crate) fn lock(&self) -> Option<&Lock> {
        match &self.state {
            State::Locked(lock) => Some(lock),
            State::Ready | State::Assigned(_) => None,
        }
    }
}
