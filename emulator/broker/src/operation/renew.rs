//! Whoever holds a lock asks for more time.

use std::time::Duration;

use thiserror::Error;

use crate::store::entry::State;
use crate::{Context, Entity, EventKind, LockToken, SequenceNumber, SubQueue, Timestamp};

/// By how much a renewed lock ends later than before, however soon it is renewed (observed 16).
pub(crate) const RENEWED_BY: Duration = Duration::from_millis(1);

/// Why locks were not renewed; none of them was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RenewError {
    /// One of the locks has ended, was settled, or never was.
    #[error("the lock {0} is not held")]
    LockLost(LockToken),
    /// One of the messages belongs to a session: its lock lasts as long as that of the session, which can be renewed.
    #[error("the lock {0} is that of its session")]
    UnderSession(LockToken),
    /// Nothing can be received from the entity now; the locks run on (decision D27).
    #[error("the entity is disabled")]
    Disabled,
}

impl Entity {
    /// Renews locks: each lasts from now for the lock duration, whatever was left of it (semantics §2.4), and ends at least
    /// a millisecond later than before (observed 16).
    /// Returns their new ends in order. All or none.
    pub fn renew_locks(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        tokens: &[LockToken],
    ) -> Result<Vec<Timestamp>, RenewError> {
        self.begin(cx);
        if !self.description.status.can_receive() {
            return Err(RenewError::Disabled);
        }
        let store = self.store_mut(kind);
        let numbers: Vec<SequenceNumber> = tokens
            .iter()
            .map(|&token| store.locked_by(token).ok_or(RenewError::LockLost(token)))
            .collect::<Result<_, _>>()?;
        if store.policy.has_sessions
            && let Some(&token) = tokens.first()
        {
            return Err(RenewError::UnderSession(token));
        }
        let renewed = cx.now + store.policy.lock_duration;
        let mut ends = Vec::with_capacity(tokens.len());
        for &number in &numbers {
            let Some(entry) = store.entries.get_mut(number.0) else {
                continue;
            };
            let mut locked_until = renewed;
            if let State::Locked(lock) = &mut entry.state {
                store.locks.remove(lock.until, number);
                locked_until = renewed.max(lock.until + RENEWED_BY);
                lock.until = locked_until;
                store.locks.insert(locked_until, number);
            }
            store.record(cx, number, EventKind::LockRenewed { locked_until });
            ends.push(locked_until);
        }
        Ok(ends)
    }
}
