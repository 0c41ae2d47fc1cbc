//! Commits a transaction, so that everything in it takes effect at once, or rolls it back.
//!
//! The caller holds all participating entities, so that no other client sees a part of it. First the commit checks
//! everything that may have changed since it was enlisted; after that it cannot fail. Forwarding and publishing follow as
//! after any other operation.

use std::sync::Arc;

use thiserror::Error;

use crate::context::Context;
use crate::entity::Entity;
use crate::entity::operation::send::SendError;
use crate::entity::operation::transact::{Enlisted, TIME_LIMIT, Transaction, Work};
use crate::event::EventKind;
use crate::ids::{
    EntityId, EntityPath, LockToken, Offset, SequenceNumber, SubQueue, TransactionId,
};
use crate::time::Timestamp;

/// Why a transaction was not committed; it was rolled back.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommitError {
    /// It has lasted too long.
    #[error(
        "The transaction {0} was aborted: it was not discharged within {limit} seconds of its first operation.",
        limit = TIME_LIMIT.as_secs()
    )]
    TimedOut(TransactionId),
    /// A lock that it was to settle has ended meanwhile.
    #[error(
        "The transaction {transaction} was rolled back: the lock of message {number} of '{entity}' was lost \
         before the discharge."
    )]
    LockLost {
        /// The transaction.
        transaction: TransactionId,
        /// The entity of the message.
        entity: EntityPath,
        /// Its sequence number there.
        number: SequenceNumber,
    },
    /// An entity does not allow receiving any more, so that its locks cannot be settled.
    #[error("The transaction {transaction} was rolled back: '{entity}' is disabled for receiving.")]
    Disabled {
        /// The transaction.
        transaction: TransactionId,
        /// The entity.
        entity: EntityPath,
    },
    /// An entity does not accept the messages any more.
    #[error("The transaction {transaction} was rolled back: {error}")]
    Send {
        /// The transaction.
        transaction: TransactionId,
        /// The error.
        error: SendError,
    },
}

/// Applies a transaction in the order in which its work was enlisted. `entities` are its
/// [participants](Transaction::participants), each once; a missing one has been deleted.
pub fn commit(
    transaction: Transaction,
    entities: &mut [&mut Entity],
    cx: &mut Context<'_>,
) -> Result<(), CommitError> {
    for entity in &mut *entities {
        entity.begin(cx);
    }
    if let Err(error) = check(&transaction, entities, cx) {
        for entity in entities {
            entity.roll_back(cx, &transaction);
        }
        return Err(error);
    }
    let id = transaction.id();
    for entity in &mut *entities {
        let kind = EventKind::TransactionCommitted { transaction: id };
        entity.active.record_as(cx, None, kind);
    }
    for Enlisted { entity, work, .. } in transaction.work {
        if let Some(at) = find(entities, entity) {
            entities[at].perform(cx, work);
        }
    }
    for entity in entities {
        entity.reserve(cx);
    }
    Ok(())
}

fn check(
    transaction: &Transaction,
    entities: &[&mut Entity],
    cx: &Context<'_>,
) -> Result<(), CommitError> {
    let id = transaction.id();
    if transaction.is_over(cx.now) {
        return Err(CommitError::TimedOut(id));
    }
    for (entity, path) in transaction.participants() {
        let refused = |error| CommitError::Send {
            transaction: id,
            error,
        };
        let at = find(entities, entity);
        let at = at.ok_or_else(|| refused(SendError::NotFound(path.clone())))?;
        if transaction.sends_to(entity) {
            // Its bytes count already.
            entities[at].check_quota(0).map_err(refused)?;
            entities[at].check_room(cx).map_err(refused)?;
        }
    }
    for Enlisted { entity, work, .. } in &transaction.work {
        if let Work::Settle {
            kind,
            token,
            offset,
            number,
            ..
        } = work
            && let Some(at) = find(entities, *entity)
            && !entities[at].is_enlisted(id, *kind, *token, *offset, cx.now)
        {
            return Err(CommitError::LockLost {
                transaction: id,
                entity: entities[at].path.clone(),
                number: *number,
            });
        }
        if let Work::Settle { .. } = work
            && let Some(at) = find(entities, *entity)
            && !entities[at].description.status.can_receive()
        {
            return Err(CommitError::Disabled {
                transaction: id,
                entity: entities[at].path.clone(),
            });
        }
    }
    Ok(())
}

fn find(entities: &[&mut Entity], id: EntityId) -> Option<usize> {
    entities.iter().position(|entity| entity.id() == id)
}

impl Entity {
    /// Rolls back a transaction's work in this entity; must be called for each of its participants. Messages stay locked
    /// until their locks end, and can be settled meanwhile; delivery counts are unchanged.
    pub fn roll_back(&mut self, cx: &mut Context<'_>, transaction: &Transaction) {
        self.handle_timeout(cx);
        let own = self.id();
        for Enlisted { entity, work, .. } in &transaction.work {
            if let Work::Settle { kind, offset, .. } = work
                && *entity == own
            {
                self.store_mut(*kind).withdraw(*offset, transaction.id());
            }
        }
        let kind = EventKind::TransactionRolledBack {
            transaction: transaction.id(),
        };
        self.active.record_as(cx, None, kind);
    }

    /// Returns whether the lock that this transaction will settle is still held.
    fn is_enlisted(
        &self,
        transaction: TransactionId,
        kind: SubQueue,
        token: LockToken,
        offset: Offset,
        now: Timestamp,
    ) -> bool {
        let store = self.store(kind);
        store.is_enlisted(offset, transaction) && store.held_by(token, now) == Some(offset)
    }

    fn perform(&mut self, cx: &mut Context<'_>, work: Work) {
        match work {
            Work::Send { message, partition } => {
                self.accept(cx, message, partition);
            }
            Work::Schedule {
                message,
                partition,
                offset,
                destination,
            } => self.accept_scheduled(cx, message, partition, offset, destination),
            Work::Transfer {
                message,
                partition,
                destination,
            } => self.accept_send_via(cx, message, partition, destination),
            Work::Settle {
                kind,
                offset,
                outcome,
                ..
            } => self.settle_enlisted(cx, kind, offset, Arc::unwrap_or_clone(outcome)),
        }
    }
}
