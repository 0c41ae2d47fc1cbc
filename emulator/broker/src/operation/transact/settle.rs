//! Locks are settled in a transaction: they are held on until the commit, and nobody else can settle them.

use super::TransactError;
use crate::operation::settle::SettleError;
use crate::transaction::{Partition, Transaction, Work};
use crate::{
    Context, Entity, EventKind, LockToken, Outcome, PropertyChanges, SequenceNumber, SubQueue,
};

impl Entity {
    /// Enlists the end of several locks with the same outcome: all, or none when one of them is not held, is named
    /// twice or is enlisted already. Locks of another partition end.
    pub fn enlist_settlement(
        &mut self,
        cx: &mut Context<'_>,
        transaction: &mut Transaction,
        kind: SubQueue,
        tokens: &[LockToken],
        outcome: &Outcome,
    ) -> Result<(), TransactError> {
        self.begin(cx);
        transaction.check(cx.now, &self.path, 0)?;
        self.check_settling()?;
        let numbers = self.find_lock(cx.now, kind, tokens)?;
        self.check_outcome(kind, &numbers, outcome)?;
        if let Err(error) = self.join_partition_of(transaction, kind, &numbers) {
            self.give_back(cx, kind, numbers);
            return Err(error);
        }
        let until = transaction.begin(cx.now);
        for (&token, number) in tokens.iter().zip(numbers) {
            let store = self.store_mut(kind);
            let enlistments = store.enlistments.get_or_insert_default();
            enlistments.add(number, transaction.id(), until);
            let enlisted = EventKind::SettlementEnlisted {
                transaction: transaction.id(),
            };
            store.record(cx, number, enlisted);
            let work = Work::Settle {
                kind,
                token,
                number,
                outcome: outcome.clone(),
            };
            transaction.enlist(cx.now, self, work);
        }
        Ok(())
    }

    /// What belongs to another partition comes back, as if it had been abandoned (spec/observed.md 42).
    fn give_back(&mut self, cx: &mut Context<'_>, kind: SubQueue, numbers: Vec<SequenceNumber>) {
        for number in numbers {
            let changes = PropertyChanges::default();
            // Without changes it cannot fail.
            let _ = self.apply_outcome(cx, kind, number, Outcome::Abandon { changes });
        }
        self.reserve(cx);
    }

    /// Settles a lock that a transaction has held until now.
    pub(super) fn settle_enlisted(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        number: SequenceNumber,
        outcome: Outcome,
    ) {
        // An outcome that was possible stays so while the message is locked. Were it not so, the message would come back.
        if self.apply_outcome(cx, kind, number, outcome).is_err() {
            self.requeue_or_dead_letter(cx, kind, number);
        }
    }

    /// Whether this can be done to these messages at all: nothing but their locks can change until the commit.
    fn check_outcome(
        &self,
        kind: SubQueue,
        numbers: &[SequenceNumber],
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
        for number in numbers {
            self.try_changes(kind, *number, changes)?;
        }
        Ok(())
    }

    fn try_changes(
        &self,
        kind: SubQueue,
        number: SequenceNumber,
        changes: &PropertyChanges,
    ) -> Result<(), SettleError> {
        let entry = self.store(kind).entries.get(number.0);
        let Some(mut message) = entry.map(|entry| entry.message.clone()) else {
            return Err(SettleError::LockLost);
        };
        Ok(message.change_properties(changes)?)
    }

    fn join_partition_of(
        &self,
        transaction: &mut Transaction,
        kind: SubQueue,
        numbers: &[SequenceNumber],
    ) -> Result<(), TransactError> {
        if !self.description.enable_partitioning {
            return Ok(());
        }
        let entries = &self.store(kind).entries;
        let partitions = numbers.iter().filter_map(|number| entries.get(number.0));
        let mut joined = transaction.partition().cloned();
        for number in partitions.map(|entry| entry.partition) {
            joined = Some(Partition::join(joined, Partition { number, key: None })?);
        }
        if let Some(joined) = joined {
            transaction.set_partition(joined);
        }
        Ok(())
    }
}
