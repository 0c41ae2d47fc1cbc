//! Which locks of a store are to be settled by transactions that are still open (semantics §12).
//!
//! An enlisted lock runs on like any other, and is forgotten here when it ends, however that happens: a transaction
//! finds at its commit that it is not there any more. So does one whose time is over, by itself.

use std::collections::BTreeMap;

use crate::{LockToken, MessageStore, SequenceNumber, Timestamp, TransactionId};

/// The transactions that will settle locks, by the numbers of the locked messages.
#[derive(Debug, Default)]
pub(crate) struct Enlistments(BTreeMap<SequenceNumber, Enlistment>);

#[derive(Debug)]
struct Enlistment {
    transaction: TransactionId,
    /// When the transaction is over, whether or not somebody says so.
    until: Timestamp,
}

impl Enlistments {
    pub(crate) fn add(
        &mut self,
        number: SequenceNumber,
        transaction: TransactionId,
        until: Timestamp,
    ) {
        self.0.insert(number, Enlistment { transaction, until });
    }

    /// Whether this transaction settles this lock.
    pub(crate) fn has(&self, number: SequenceNumber, transaction: TransactionId) -> bool {
        let enlistment = self.0.get(&number);
        enlistment.is_some_and(|enlistment| enlistment.transaction == transaction)
    }

    /// Takes back that a transaction settles a lock.
    pub(crate) fn withdraw(&mut self, number: SequenceNumber, transaction: TransactionId) {
        if self.has(number, transaction) {
            self.remove(number);
        }
    }

    pub(super) fn remove(&mut self, number: SequenceNumber) {
        self.0.remove(&number);
    }

    #[cfg(any(test, feature = "check"))]
    pub(super) fn numbers(&self) -> impl Iterator<Item = SequenceNumber> {
        self.0.keys().copied()
    }
}

impl MessageStore {
    /// The message that this token locks now, unless a transaction is to settle it.
    pub(crate) fn find_lock(&self, token: LockToken, now: Timestamp) -> Option<SequenceNumber> {
        let number = self.locked_by(token)?;
        let enlistment = self.enlistments.as_ref();
        let enlistment = enlistment.and_then(|all| all.0.get(&number));
        let is_free = enlistment.is_none_or(|enlistment| enlistment.until <= now);
        is_free.then_some(number)
    }
}
