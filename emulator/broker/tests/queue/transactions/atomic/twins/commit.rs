//! Ends transactions, and applies their operations in the world without them.

use servicebus_broker::{CommitError, SendError, TransactionId};

use super::{Open, Twins, Work, settle::settle};

impl Twins {
    pub(crate) fn commit(&mut self, open: Open) {
        let Open {
            transaction,
            work,
            first,
            deadline,
            ..
        } = open;
        let id = transaction.id();
        match self.used.commit(transaction) {
            Ok(()) => work.into_iter().for_each(|work| self.do_plainly(work)),
            Err(CommitError::TimedOut(_)) => {
                assert!(deadline.is_some_and(|end| end <= self.used.now));
            }
            Err(CommitError::LockLost { .. }) => {
                let mut enlisted = work.iter().filter_map(Work::lock);
                assert!(enlisted.any(|which| !self.holds(which)), "{id}");
            }
            Err(CommitError::Disabled { entity, .. }) => {
                assert!(!self.status(entity.as_str()).can_receive());
            }
            Err(CommitError::Send { error, .. }) => {
                let (name, generation) = first.expect("there was work");
                let is_new = self.generation(name) != generation;
                assert!(is_new || matches!(error, SendError::Disabled(_)), "{error}");
            }
        }
        self.free(id);
    }

    /// Does without a transaction what one did. Nothing of it may fail.
    fn do_plainly(&mut self, work: Work) {
        match work {
            Work::Send(name, messages) => self.plain.post_all(name, &messages).unwrap(),
            Work::Transfer(via, to, message) => {
                let to = to.parse().unwrap();
                self.plain.send_via(via, &to, &[*message]).unwrap();
            }
            Work::Settle(which, end) => {
                settle(&mut self.plain, &self.locks[which], false, end).unwrap();
            }
        }
    }

    pub(crate) fn roll_back(&mut self, open: Open) {
        let id = open.transaction.id();
        self.used.roll_back(open.transaction);
        self.free(id);
    }

    fn free(&mut self, id: TransactionId) {
        for lock in &mut self.locks {
            lock.enlisted.take_if(|(by, _)| *by == id);
        }
    }
}

impl Work {
    fn lock(&self) -> Option<usize> {
        match self {
            Self::Settle(which, _) => Some(*which),
            Self::Send(..) | Self::Transfer(..) => None,
        }
    }
}
