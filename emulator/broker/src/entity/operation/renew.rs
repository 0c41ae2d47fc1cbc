//! The holder of a lock asks for more time.

use std::time::Duration;

use thiserror::Error;

use crate::ids::Offset;
use crate::{Context, Entity, EventKind, LockToken, SubQueue, Timestamp};

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
    /// Renews locks: each lasts from now for the lock duration, however much was left of it (semantics §2.4), and ends at least
    /// a millisecond later than before (observed 16).
    /// Returns their new ends in order. All or none.
    pub fn renew_locks(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        tokens: &[LockToken],
    ) -> Result<Vec<Timestamp>, RenewError> {
        self.verb(cx, |entity, cx| {
            if !entity.description.status.can_receive() {
                return Err(RenewError::Disabled);
            }
            let store = entity.store_mut(kind);
            let offsets: Vec<Offset> = tokens
                .iter()
                .map(|&token| store.locked_by(token).ok_or(RenewError::LockLost(token)))
                .collect::<Result<_, _>>()?;
            if store.policy().has_sessions
                && let Some(&token) = tokens.first()
            {
                return Err(RenewError::UnderSession(token));
            }
            let renewed = store.policy().lock_until(cx.now);
            let mut ends = Vec::with_capacity(tokens.len());
            for &offset in &offsets {
                let locked_until = store.extend_lock(offset, renewed, RENEWED_BY);
                let locked_until = locked_until.unwrap_or(renewed);
                store.record(cx, offset, EventKind::LockRenewed { locked_until });
                ends.push(locked_until);
            }
            Ok(ends)
        })
    }
}
