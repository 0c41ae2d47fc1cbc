//! Settles locked messages and renews their locks.
//!
//! A disposition on a link and `update-disposition` over `$management` are the same call.

use std::collections::BTreeSet;

use servicebus_codec::DecodeError;
use thiserror::Error;

use super::dead_letter::DeadLetterCause;
use super::receive::DeliveryView;
use crate::context::Context;
use crate::entity::Entity;
use crate::event::EventKind;
use crate::ids::{LockToken, Offset, SequenceNumber, SubQueue};
use crate::message::{Message, PropertyChanges};
use crate::store::MessageStore;
use crate::time::Timestamp;

/// The outcome of a delivery (semantics §2.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The message is removed.
    Complete,
    /// The message is ready again, and the delivery counts as failed.
    Abandon {
        /// Application properties to set.
        changes: PropertyChanges,
    },
    /// The message is ready again, and the delivery does not count.
    Release,
    /// The message is deferred until a client asks for its sequence number, and the delivery counts (observed 10).
    Defer {
        /// Application properties to set.
        changes: PropertyChanges,
    },
    /// The message moves to the dead-letter store.
    DeadLetter {
        /// `DeadLetterReason`.
        reason: Option<String>,
        /// `DeadLetterErrorDescription`.
        description: Option<String>,
        /// Further application properties to set.
        changes: PropertyChanges,
    },
}

impl Outcome {
    /// Returns the bytes of its texts and properties.
    pub(crate) fn bytes(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        match self {
            Self::Complete | Self::Release => 0,
            Self::Abandon { changes } | Self::Defer { changes } => changes.bytes(),
            Self::DeadLetter {
                reason,
                description,
                changes,
            } => length(reason) + length(description) + changes.bytes(),
        }
    }
}

/// Why a settlement failed; the message is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettleError {
    /// The lock has ended, was settled before, or never existed.
    #[error("the lock is not held")]
    LockLost,
    /// The same at an entity that requires sessions, where the session's lock governed the message.
    #[error("the lock of the session is not held")]
    SessionLockLost,
    /// The entity does not allow receiving now; the lock continues (decision D27).
    #[error("the entity is disabled")]
    Disabled,
    /// Dead letters cannot be dead-lettered again (semantics §3.3).
    #[error("a message of a dead-letter queue cannot be dead-lettered")]
    AlreadyDeadLettered,
    /// The properties to set do not fit the message.
    #[error("the properties to modify cannot be decoded: {0}")]
    Properties(#[from] DecodeError),
}

impl Entity {
    /// Ends a lock with an outcome.
    pub fn settle(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        token: LockToken,
        outcome: Outcome,
    ) -> Result<(), SettleError> {
        self.client_operation(cx, |entity, cx| {
            entity.check_settling()?;
            let store = entity.store(kind);
            let offset = store.find_lock(token, cx.now);
            let offset = offset.ok_or_else(|| store.lock_lost())?;
            entity.apply_outcome(cx, kind, offset, outcome)
        })
    }

    /// Applies an outcome to a locked message.
    pub(crate) fn apply_outcome(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        offset: Offset,
        outcome: Outcome,
    ) -> Result<(), SettleError> {
        let store = self.store_mut(kind);
        match outcome {
            Outcome::Complete => {
                store.record(cx, offset, EventKind::Completed);
                store.remove(offset);
            }
            Outcome::Abandon { changes } => {
                let delivery_count = store.count_delivery(offset, &changes)?;
                store.record(cx, offset, EventKind::Abandoned { delivery_count });
                if !self.dead_letter_exceeding_headers(cx, kind, offset, &changes) {
                    self.requeue_or_dead_letter(cx, kind, offset);
                }
            }
            Outcome::Defer { changes } => {
                store.count_delivery(offset, &changes)?;
                store.record(cx, offset, EventKind::Deferred);
                if !self.dead_letter_exceeding_headers(cx, kind, offset, &changes)
                    && !self.dead_letter_exhausted(cx, kind, offset)
                {
                    self.store_mut(kind).defer(offset);
                }
            }
            Outcome::Release => {
                store.record(cx, offset, EventKind::Released);
                self.requeue_or_dead_letter(cx, kind, offset);
            }
            Outcome::DeadLetter {
                reason,
                description,
                changes,
            } => {
                if kind != SubQueue::Active {
                    return Err(SettleError::AlreadyDeadLettered);
                }
                let cause = DeadLetterCause::Client(reason, description);
                self.dead_letter(cx, offset, cause, &changes)?;
            }
        }
        Ok(())
    }

    /// Settles several locks with the same outcome, all or none; fails if one is not held or occurs twice.
    pub fn settle_all(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        tokens: &[LockToken],
        outcome: &Outcome,
    ) -> Result<(), SettleError> {
        self.client_operation(cx, |entity, cx| {
            entity.check_settling()?;
            entity.find_locks(cx.now, kind, tokens)?;
            // All other errors come from the outcome, which the locks share: they occur for the first one.
            tokens
                .iter()
                .try_for_each(|&token| entity.settle(cx, kind, token, outcome.clone()))
        })
    }

    /// Returns the message that a token locks and its sequence number; `None` if the lock has ended.
    pub fn locked_message(
        &self,
        kind: SubQueue,
        token: LockToken,
    ) -> Option<(SequenceNumber, &Message)> {
        let locked = self.locked_delivery(kind, token)?;
        Some((locked.number, locked.message))
    }

    /// Returns the message that a token locks with the number of its delivery.
    pub fn locked_delivery(&self, kind: SubQueue, token: LockToken) -> Option<DeliveryView<'_>> {
        let store = self.store(kind);
        store.view(store.locked_by(token)?)
    }

    /// Ends the lock of a message as if its time were over; returns false if the lock has ended, or is that of a session.
    pub fn lose_lock(&mut self, cx: &mut Context<'_>, kind: SubQueue, token: LockToken) -> bool {
        self.client_operation(cx, |entity, cx| {
            let store = entity.store(kind);
            let locked = store.locked_by(token);
            let offset = locked.filter(|_| !store.policy().has_sessions());
            if let Some(offset) = offset {
                entity.expire_lock(&mut cx.at(cx.now), kind, offset);
            }
            offset.is_some()
        })
    }

    /// Returns the messages under these locks, if all of them are held and none occurs twice.
    pub(crate) fn find_locks(
        &self,
        now: Timestamp,
        kind: SubQueue,
        tokens: &[LockToken],
    ) -> Result<Vec<Offset>, SettleError> {
        let distinct: BTreeSet<&LockToken> = tokens.iter().collect();
        let lost = || self.store(kind).lock_lost();
        if distinct.len() < tokens.len() {
            return Err(lost());
        }
        let locked = |&token: &LockToken| self.store(kind).find_lock(token, now);
        let offsets = tokens.iter().map(locked).collect::<Option<Vec<_>>>();
        offsets.ok_or_else(lost)
    }

    pub(crate) fn check_settling(&self) -> Result<(), SettleError> {
        match self.description.status.can_receive() {
            true => Ok(()),
            false => Err(SettleError::Disabled),
        }
    }

    /// Dead-letters a message whose changed properties exceed the limit (decision D23).
    fn dead_letter_exceeding_headers(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        offset: Offset,
        changes: &PropertyChanges,
    ) -> bool {
        let entry = self.store(kind).get(offset);
        let exceeds_header_limit = kind == SubQueue::Active
            && !changes.is_empty()
            && entry.is_some_and(|entry| entry.message().exceeds_header_limit());
        if exceeds_header_limit {
            self.dead_letter_by_rule(cx, offset, DeadLetterCause::HeaderSize);
        }
        exceeds_header_limit
    }
}

impl MessageStore {
    /// Returns the message that this token locks now.
    pub(crate) fn locked_by(&self, token: LockToken) -> Option<Offset> {
        let (nonce, offset) = token.parts();
        let lock = self.get(offset)?.lock()?;
        (lock.nonce == nonce && LockToken::new(nonce, offset) == token).then_some(offset)
    }

    /// The same unless its time is over, which happens to some of very many locks a moment later.
    pub(crate) fn held_by(&self, token: LockToken, now: Timestamp) -> Option<Offset> {
        let offset = self.locked_by(token)?;
        let is_over = self.get(offset)?.lock()?.until.is_due(now);
        let session = self.session_lock_of(offset);
        let is_over = is_over || session.is_some_and(|session| session.until <= now);
        (!is_over).then_some(offset)
    }

    fn lock_lost(&self) -> SettleError {
        match self.policy().has_sessions() {
            true => SettleError::SessionLockLost,
            false => SettleError::LockLost,
        }
    }
}

/// Why locks were not renewed; none of them was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RenewError {
    /// One of the locks has ended, was settled, or never existed.
    #[error("the lock {0} is not held")]
    LockLost(LockToken),
    /// One of the messages belongs to a session: its lock is that of the session, which can be renewed.
    #[error("the lock {0} is that of its session")]
    UnderSession(LockToken),
    /// The entity does not allow receiving now; the locks continue (decision D27).
    #[error("the entity is disabled")]
    Disabled,
}

impl Entity {
    /// Renews locks, all or none: each lasts from now for the lock duration, however much was left of it (semantics §2.4),
    /// and ends at least a millisecond later than before (observed 16). Returns their new ends in order.
    pub fn renew_locks(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        tokens: &[LockToken],
    ) -> Result<Vec<Timestamp>, RenewError> {
        self.client_operation(cx, |entity, cx| {
            if !entity.description.status.can_receive() {
                return Err(RenewError::Disabled);
            }
            let store = entity.store_mut(kind);
            let offsets: Vec<Offset> = tokens
                .iter()
                .map(|&token| {
                    let held = store.held_by(token, cx.now);
                    held.ok_or(RenewError::LockLost(token))
                })
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
