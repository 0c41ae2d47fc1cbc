//! Settles locks in a transaction: the transaction holds them until the commit, and no other client can settle them.

use std::sync::Arc;

use super::{Partition, TransactError, Transaction, Work};
use crate::context::Context;
use crate::entity::Entity;
use crate::entity::operation::settle::{Outcome, SettleError};
use crate::event::EventKind;
use crate::ids::{LockToken, Offset, SubQueue};
use crate::message::PropertyChanges;

impl Entity {
    /// Enlists the settlement of several locks with the same outcome, all or none; fails if one is not held, occurs twice or
    /// is enlisted already. Locks of another partition end.
    pub fn enlist_settlement(
        &mut self,
        cx: &mut Context<'_>,
        transaction: &mut Transaction,
        kind: SubQueue,
        tokens: &[LockToken],
        outcome: &Outcome,
    ) -> Result<(), TransactError> {
        self.client_operation(cx, |entity, cx| {
            transaction.check(cx.now, &entity.path, 0)?;
            entity.check_settling()?;
            let offsets = entity.find_locks(cx.now, kind, tokens)?;
            entity.check_outcome(kind, &offsets, outcome)?;
            if let Err(error) = entity.join_partition_of(transaction, kind, &offsets) {
                entity.abandon_of_other_partition(cx, kind, offsets);
                return Err(error);
            }
            let until = transaction.begin(cx.now);
            transaction.hold(outcome);
            let outcome = Arc::new(outcome.clone());
            for (&token, offset) in tokens.iter().zip(offsets) {
                let store = entity.store_mut(kind);
                store.enlist(offset, transaction.id(), until);
                let enlisted = EventKind::SettlementEnlisted {
                    transaction: transaction.id(),
                };
                store.record(cx, offset, enlisted);
                let entry = store.get(offset).ok_or(SettleError::LockLost)?;
                let work = Work::Settle {
                    kind,
                    token,
                    offset,
                    number: entry.number(offset),
                    outcome: Arc::clone(&outcome),
                };
                transaction.enlist(cx.now, entity, work);
            }
            Ok(())
        })
    }

    /// Abandons messages of another partition (spec/observed.md 42).
    fn abandon_of_other_partition(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        offsets: Vec<Offset>,
    ) {
        for offset in offsets {
            let changes = PropertyChanges::default();
            // This cannot fail without changes.
            let _ = self.apply_outcome(cx, kind, offset, Outcome::Abandon { changes });
        }
    }

    /// Settles a lock that a transaction has held until now.
    pub(crate) fn settle_enlisted(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        offset: Offset,
        outcome: Outcome,
    ) {
        // A valid outcome stays valid while the message is locked. If it did not, the message would be put back.
        if self.apply_outcome(cx, kind, offset, outcome).is_err() {
            self.requeue_or_dead_letter(cx, kind, offset);
        }
    }

    /// Checks whether this outcome is possible for these messages at all: only their locks can change until the commit.
    fn check_outcome(
        &self,
        kind: SubQueue,
        offsets: &[Offset],
        outcome: &Outcome,
    ) -> Result<(), TransactError> {
        let changes = match outcome {
            Outcome::Complete => return Ok(()),
            Outcome::Release => return Err(TransactError::Release),
            Outcome::DeadLetter { .. } if kind != SubQueue::Active => {
                return Err(SettleError::AlreadyDeadLettered.into());
            }
            Outcome::Abandon { changes }
            | Outcome::Defer { changes }
            | Outcome::DeadLetter { changes, .. } => changes,
        };
        for offset in offsets {
            self.check_changes(kind, *offset, changes)?;
        }
        Ok(())
    }

    fn check_changes(
        &self,
        kind: SubQueue,
        offset: Offset,
        changes: &PropertyChanges,
    ) -> Result<(), SettleError> {
        let entry = self.store(kind).get(offset);
        let Some(mut message) = entry.map(|entry| entry.message().clone()) else {
            return Err(SettleError::LockLost);
        };
        Ok(message.change_properties(changes)?)
    }

    /// Determines the partition: without partitions the first; for a subscription that of its topic.
    fn join_partition_of(
        &self,
        transaction: &mut Transaction,
        kind: SubQueue,
        offsets: &[Offset],
    ) -> Result<(), TransactError> {
        let store = self.store(kind);
        let partitions = offsets.iter().filter_map(|offset| store.get(*offset));
        let mut joined = transaction.partition().cloned();
        for number in partitions.map(|entry| entry.partition()) {
            joined = Some(Partition::join(joined, Partition { number, key: None })?);
        }
        if let Some(joined) = joined {
            transaction.set_partition(joined);
        }
        Ok(())
    }
}
