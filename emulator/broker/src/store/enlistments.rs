//! The locks of a store that open transactions will settle (semantics §12).
//!
//! An enlisted lock runs on like any other, and is removed here when it ends for any reason: the transaction finds at its
//! commit that the lock is gone. So does a transaction whose time is over.

use std::collections::BTreeMap;

use crate::ids::{LockToken, Offset, TransactionId};
use crate::store::MessageStore;
use crate::time::Timestamp;

/// The transactions that will settle locks, by the offsets of the locked messages.
#[derive(Debug, Default)]
pub(crate) struct Enlistments(BTreeMap<Offset, Enlistment>);

#[derive(Debug)]
struct Enlistment {
    transaction: TransactionId,
    /// The deadline of the transaction, whether or not it is discharged.
    until: Timestamp,
}

impl Enlistments {
    fn add(&mut self, offset: Offset, transaction: TransactionId, until: Timestamp) {
        self.0.insert(offset, Enlistment { transaction, until });
    }

    /// Returns whether this transaction will settle this lock.
    fn has(&self, offset: Offset, transaction: TransactionId) -> bool {
        let enlistment = self.0.get(&offset);
        enlistment.is_some_and(|enlistment| enlistment.transaction == transaction)
    }

    /// Removes the enlistment of a lock by a transaction.
    fn withdraw(&mut self, offset: Offset, transaction: TransactionId) {
        if self.has(offset, transaction) {
            self.remove(offset);
        }
    }

    pub(crate) fn remove(&mut self, offset: Offset) {
        self.0.remove(&offset);
    }

    #[cfg(any(test, feature = "check"))]
    pub(crate) fn offsets(&self) -> impl Iterator<Item = Offset> {
        self.0.keys().copied()
    }
}

impl MessageStore {
    /// Enlists a lock in a transaction.
    pub(crate) fn enlist(&mut self, offset: Offset, transaction: TransactionId, until: Timestamp) {
        let enlistments = self.enlistments.get_or_insert_default();
        enlistments.add(offset, transaction, until);
    }

    /// Returns whether this transaction will settle this lock.
    pub(crate) fn is_enlisted(&self, offset: Offset, transaction: TransactionId) -> bool {
        let enlistments = self.enlistments.as_ref();
        enlistments.is_some_and(|all| all.has(offset, transaction))
    }

    /// Removes the enlistment of a lock by a transaction.
    pub(crate) fn withdraw(&mut self, offset: Offset, transaction: TransactionId) {
        if let Some(enlistments) = &mut self.enlistments {
            enlistments.withdraw(offset, transaction);
        }
    }

    /// Returns the message that this token locks now, unless a transaction will settle it.
    pub(crate) fn find_lock(&self, token: LockToken, now: Timestamp) -> Option<Offset> {
        let offset = self.held_by(token, now)?;
        let enlistment = self.enlistments.as_ref();
        let enlistment = enlistment.and_then(|all| all.0.get(&offset));
        let is_free = enlistment.is_none_or(|enlistment| enlistment.until <= now);
        is_free.then_some(offset)
    }
}
