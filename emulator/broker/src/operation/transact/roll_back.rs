//! A transaction is rolled back: what was enlisted does not happen.

use crate::transaction::{Enlisted, Transaction, Work};
use crate::{Context, Entity, EventKind, SequenceNumber};

impl Entity {
    /// Takes back what a transaction was to do here, which is to be said to each of its participants. Messages stay
    /// locked until their locks end, and may be settled by them meanwhile; delivery counts are as they were.
    pub fn roll_back(&mut self, cx: &mut Context<'_>, transaction: &Transaction) {
        self.handle_timeout(cx);
        let entity = self.active.entity();
        for enlisted in &transaction.work {
            if let Enlisted {
                work: Work::Settle { kind, number, .. },
                ..
            } = enlisted
                && enlisted.entity == entity
                && let Some(enlistments) = &mut self.store_mut(*kind).enlistments
            {
                enlistments.withdraw(*number, transaction.id());
            }
        }
        let kind = EventKind::TransactionRolledBack {
            transaction: transaction.id(),
        };
        self.active.record(cx, SequenceNumber(0), kind);
    }
}
