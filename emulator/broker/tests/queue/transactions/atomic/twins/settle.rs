//! Locks are taken and settled, in both worlds or in a transaction.

use servicebus_broker::{Outcome, ReceiveMode, SettleError, SubQueue, TransactError};

use super::{End, Lock, Twins, Work, pick};
use crate::world::{World, abandon, dead_lettered, defer};

impl Twins {
    pub(crate) fn lock(&mut self, name: &'static str, store: SubQueue) {
        let in_session = name == "sessions" && store == SubQueue::Active;
        let taken = [&mut self.used, &mut self.plain].map(|world| match in_session {
            true => world.take_from_next_session(name),
            false => world.take_and_stay(name, store, ReceiveMode::PeekLock),
        });
        let [used, plain] = taken;
        assert_eq!(used.is_some(), plain.is_some());
        if let (Some((used, holder)), Some((plain, _))) = (used, plain) {
            self.locks.push(Lock {
                name,
                store,
                holder,
                used: used.token,
                plain: plain.token,
                enlisted: None,
            });
        }
    }

    pub(crate) fn settle(&mut self, transaction: Option<usize>, which: usize, end: End) {
        let Some(back) = pick(which, self.locks.len()) else {
            return;
        };
        // The latest are the likeliest to be held.
        let which = self.locks.len() - 1 - back;
        let is_free = !self.is_enlisted(which);
        let Some(at) = transaction.and_then(|t| pick(t, self.open.len())) else {
            let result = settle(&mut self.used, &self.locks[which], true, end);
            match is_free {
                true => {
                    let plain = settle(&mut self.plain, &self.locks[which], false, end);
                    assert_eq!(result, plain);
                }
                // Settled or not, only the transaction may do it.
                false => assert!(result.is_err()),
            }
            return;
        };
        let Lock {
            name, store, used, ..
        } = self.locks[which];
        let (holds, status) = (self.holds(which), self.status(name));
        let transaction = &mut self.open[at].transaction;
        let tokens = [used];
        let result = self
            .used
            .settle_all_in(transaction, (name, store), &tokens, &end.outcome());
        let buried = store != SubQueue::Active && matches!(end, End::DeadLetter);
        match &result {
            Ok(()) => {
                assert!(holds && is_free && status.can_receive() && !buried);
                assert!(self.is_open_for(at, name));
                self.join(at, name);
                let open = &mut self.open[at];
                open.work.push(Work::Settle(which, end));
                let until = open.deadline.expect("it has begun");
                self.locks[which].enlisted = Some((open.transaction.id(), until));
            }
            Err(TransactError::Settle(SettleError::LockLost | SettleError::SessionLockLost)) => {
                assert!(!holds || !is_free);
            }
            Err(TransactError::Settle(SettleError::Disabled)) => assert!(!status.can_receive()),
            Err(TransactError::Settle(SettleError::AlreadyDeadLettered)) => assert!(buried),
            Err(error) => self.expect_closed(at, name, error),
        }
    }

    pub(crate) fn renew(&mut self, which: usize) {
        let Some(which) = pick(which, self.locks.len()) else {
            return;
        };
        let Lock {
            name,
            store,
            used,
            plain,
            ..
        } = self.locks[which];
        let renewed = [(&mut self.used, used), (&mut self.plain, plain)].map(|(world, token)| {
            let renewed = world.operate(name, |entity, cx| entity.renew_locks(cx, store, &[token]));
            renewed.ok()
        });
        assert_eq!(renewed[0], renewed[1]);
    }

    pub(crate) fn close(&mut self, which: usize) {
        if let Some(which) = pick(which, self.locks.len()) {
            let Lock {
                name,
                store,
                holder,
                ..
            } = self.locks[which];
            self.both(|world| {
                world.operate(name, |entity, cx| entity.detach_receiver(cx, store, holder));
            });
        }
    }

    fn is_enlisted(&self, which: usize) -> bool {
        let until = self.locks[which].enlisted.map(|(_, until)| until);
        until.is_some_and(|until| until > self.used.now)
    }
}

impl End {
    fn outcome(self) -> Outcome {
        match self {
            Self::Complete => Outcome::Complete,
            Self::Abandon => abandon(),
            Self::Defer => defer(),
            Self::DeadLetter => dead_lettered("why"),
        }
    }
}

pub(crate) fn settle(
    world: &mut World,
    lock: &Lock,
    used: bool,
    end: End,
) -> Result<(), SettleError> {
    let token = if used { lock.used } else { lock.plain };
    world.operate(lock.name, |entity, cx| {
        entity.settle(cx, lock.store, token, end.outcome())
    })
}
