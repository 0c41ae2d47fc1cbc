//! The holder of a lock asks for more time.

use thiserror::Error;

use crate::context::Context;
use crate::entity::Entity;
use crate::event::EventKind;
use crate::ids::{LockToken, Offset, SubQueue};
use crate::time::Timestamp;

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
            if store.policy().has_sessions()
                && let Some(&token) = tokens.first()
            {
                return Err(RenewError::UnderSession(token));
            }
            let renewed = offsets.into_iter().filter_map(|offset| {
                let locked_until = store.renew_lock(offset, cx.now)?;
                store.record(cx, offset, EventKind::LockRenewed { locked_until });
                Some(locked_until)
            });
            Ok(renewed.collect())
        })
    }
}
