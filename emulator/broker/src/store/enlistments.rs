//! Which locks of a store are to be settled by transactions that are still open (semantics §12).
//!
//! An enlisted lock runs on like any other, and is forgotten here when it ends, however that happens: a transaction
//! finds at its commit that it is not there any more. So does one whose time is over, by itself.

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
    /// When the transaction is over, whether or not it is discharged.
    until: Timestamp,
}

impl Enlistments {
    fn add(&mut self, offset: Offset, transaction: TransactionId, until: Timestamp) {
        self.0.insert(offset, Enlistment { transaction, until });
    }

    /// Whether this transaction settles this lock.
    fn has(&self, offset: Offset, transaction: TransactionId) -> bool {
        let enlistment = self.0.get(&offset);
        enlistment.is_some_and(|enlistment| enlistment.transaction == transaction)
    }

    /// Takes back that a transaction settles a lock.
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
    /// Lets a transaction settle a lock.
    pub(crate) fn enlist(&mut self, offset: Offset, transaction: TransactionId, until: Timestamp) {
        let enlistments = self.enlistments.get_or_insert_default();
        enlistments.add(offset, transaction, until);
    }

    /// Whether this transaction settles this lock.
    pub(crate) fn is_enlisted(&self, offset: Offset, transaction: TransactionId) -> bool {
        let enlistments = self.enlistments.as_ref();
        enlistments.is_some_and(|all| all.has(offset, transaction))
    }

    /// Takes back that a transaction settles a lock.
    pub(crate) fn withdraw(&mut self, offset: Offset, transaction: TransactionId) {
        if let Some(enlistments) = &mut self.enlistments {
            enlistments.withdraw(offset, transaction);
        }
    }

    /// The message that this token locks now, unless a transaction is to settle it.
    pub(crate) fn find_lock(&self, token: LockToken, now: Timestamp) -> Option<Offset> {
        let offset = self.locked_by(token)?;
        let enlistment = self.enlistments.as_ref();
        let enlistment = enlistment.and_then(|all| all.0.get(&offset));
        let is_free = enlistment.is_none_or(|enlistment| enlistment.until <= now);
        is_free.then_some(offset)
    }
}
