//! Two worlds of which only one knows transactions.

use std::collections::BTreeMap;

use servicebus_broker::{
    CommitError, ConsumerId, Counts, EntityStatus, LockToken, Outcome, ReceiveMode, SendError,
    SettleError, StoreKind, Timestamp, TransactError, Transaction, TransactionId,
};

use super::{End, Sent, Step};
use crate::bus::{Letter, letter, rules, secs};
use crate::world::{World, abandon, bury, defer};

const NAMES: [&str; 9] = [
    "plain",
    "known",
    "forwards",
    "buries",
    "end",
    "graves",
    "t",
    "t/Subscriptions/s",
    "sessions",
];

pub(super) struct Twins {
    /// Where transactions are used.
    used: World,
    /// Where the same is done without.
    plain: World,
    open: Vec<Open>,
    locks: Vec<Lock>,
    /// How often an entity of this name was deleted.
    generations: BTreeMap<&'static str, u32>,
}

/// A transaction, and what it would do in a world that knows none.
struct Open {
    connection: usize,
    transaction: Transaction,
    work: Vec<Work>,
    /// The entity that the first operation was for, and of which generation it was.
    first: Option<(&'static str, u32)>,
    deadline: Option<Timestamp>,
}

enum Work {
    Send(&'static str, Vec<Letter>),
    Transfer(&'static str, &'static str, Box<Letter>),
    Settle(usize, End),
}

/// A message that somebody has locked in both worlds.
struct Lock {
    name: &'static str,
    store: StoreKind,
    holder: ConsumerId,
    used: LockToken,
    plain: LockToken,
    /// The transaction that is to settle it, and until when that may.
    enlisted: Option<(TransactionId, Timestamp)>,
}

/// What can be seen of one message: number, number where it entered, when, deliveries, state, expiry and id.
type Seen = (
    u64,
    u64,
    Timestamp,
    u32,
    Option<i32>,
    Option<Timestamp>,
    String,
);

fn world(releases: bool) -> World {
    let base = || match releases {
        true => rules().release_on_detach().max_delivery_count(2),
        false => rules().max_delivery_count(2),
    };
    let mut world = World::new();
    world.declare("end", base());
    world.declare("graves", base());
    world.declare("plain", base());
    world.declare("known", base().duplicate_detection(secs(60)));
    world.declare("forwards", base().forward_to("end"));
    world.declare("buries", base().forward_dead_letters_to("graves"));
    world.declare("sessions", base().sessions());
    world.declare_topic("t", |_| {});
    world.subscribe("t/Subscriptions/s", |_| {});
    world
}

impl Twins {
    pub(super) fn new(releases: bool) -> Self {
        Self {
            used: world(releases),
            plain: world(releases),
            open: Vec::new(),
            locks: Vec::new(),
            generations: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, step: &Step) {
        match step {
            Step::Declare(connection) => self.declare(*connection),
            Step::Send(transaction, name, sent) => self.send(*transaction, name, sent),
            Step::Transfer(transaction, via, to, sent) => {
                self.transfer(*transaction, via, to, *sent);
            }
            Step::Lock(name, store) => self.lock(name, *store),
            Step::Settle(transaction, lock, end) => self.settle(*transaction, *lock, *end),
            Step::Renew(lock) => self.renew(*lock),
            Step::Close(lock) => self.close(*lock),
            Step::Commit(transaction) => {
                if let Some(at) = pick(*transaction, self.open.len()) {
                    let open = self.open.remove(at);
                    self.commit(open);
                }
            }
            Step::RollBack(transaction) => {
                if let Some(at) = pick(*transaction, self.open.len()) {
                    let open = self.open.remove(at);
                    self.roll_back(open);
                }
            }
            Step::Lose(connection) => {
                while let Some(at) = self.open.iter().position(|o| o.connection == *connection) {
                    let open = self.open.remove(at);
                    self.roll_back(open);
                }
            }
            Step::Advance(by) => self.both(|world| world.advance(secs(*by))),
            Step::Status(name, status) => {
                self.both(|world| world.update(name, |queue| queue.status = *status));
            }
            Step::LoseLocks(name) => {
                self.both(|world| world.operate(name, |mailbox, cx| mailbox.lose_locks(cx)));
            }
            Step::Delete(name) => self.delete(name),
        }
    }

    /// Whether both worlds look the same to everybody.
    pub(super) fn compare(&self) {
        for name in NAMES {
            for store in StoreKind::ALL {
                let (used, plain) = (
                    look(&self.used, name, store),
                    look(&self.plain, name, store),
                );
                assert_eq!(used, plain, "{name} {store:?}");
            }
            assert!(!self.used.mailbox(name).is_forwarding(), "{name} is stuck");
        }
    }

    fn both(&mut self, mut work: impl FnMut(&mut World)) {
        work(&mut self.used);
        work(&mut self.plain);
    }

    fn declare(&mut self, connection: usize) {
        let transaction = self.used.transaction();
        self.open.push(Open {
            connection,
            transaction,
            work: Vec::new(),
            first: None,
            deadline: None,
        });
    }

    fn send(&mut self, transaction: Option<usize>, name: &'static str, sent: &[Sent]) {
        let letters: Vec<Letter> = sent.iter().map(|sent| self.letter(*sent)).collect();
        let Some(at) = transaction.and_then(|t| pick(t, self.open.len())) else {
            let results = [&mut self.used, &mut self.plain].map(|w| w.post_all(name, &letters));
            assert_eq!(results[0], results[1]);
            return;
        };
        let open = &mut self.open[at];
        let result = self.used.post_in(&mut open.transaction, name, &letters);
        if self.expect_enlisted(at, name, &result) {
            self.open[at].work.push(Work::Send(name, letters));
        }
    }

    fn transfer(&mut self, which: usize, via: &'static str, to: &'static str, sent: Sent) {
        let letter = self.letter(sent);
        let Some(at) = pick(which, self.open.len()) else {
            return;
        };
        let open = &mut self.open[at];
        let letters = std::slice::from_ref(&letter);
        let transaction = &mut open.transaction;
        let result = self.used.transfer_in(transaction, via, to, letters);
        if self.expect_enlisted(at, via, &result) {
            self.open[at]
                .work
                .push(Work::Transfer(via, to, Box::new(letter)));
        }
    }

    /// Whether sends were enlisted, which they are exactly if they may be.
    fn expect_enlisted(
        &mut self,
        at: usize,
        name: &'static str,
        result: &Result<(), TransactError>,
    ) -> bool {
        let can_send = self.status(name).can_send();
        match result {
            Ok(()) => {
                assert!(can_send && self.is_open_for(at, name));
                self.join(at, name);
            }
            Err(TransactError::Send(SendError::Disabled(_))) => assert!(!can_send),
            Err(error) => self.expect_closed(at, name, error),
        }
        result.is_ok()
    }

    fn expect_closed(&self, at: usize, name: &str, error: &TransactError) {
        let Open {
            first, deadline, ..
        } = &self.open[at];
        let now = self.used.now;
        match error {
            TransactError::TimedOut(_) => assert!(deadline.is_some_and(|end| end <= now)),
            TransactError::SecondEntity { .. } => {
                assert!(first.is_some_and(|(first, _)| top(first) != top(name)));
            }
            TransactError::SecondPartition { .. }
            | TransactError::TooManyMessages { .. }
            | TransactError::Release
            | TransactError::Send(_)
            | TransactError::Settle(_) => panic!("{error:?}"),
        }
    }

    fn is_open_for(&self, at: usize, name: &str) -> bool {
        let open = &self.open[at];
        let is_first = open.first.is_none_or(|(first, _)| top(first) == top(name));
        is_first && open.deadline.is_none_or(|end| end > self.used.now)
    }

    fn join(&mut self, at: usize, name: &'static str) {
        let generation = self.generation(name);
        let end = self.used.now + secs(120);
        let open = &mut self.open[at];
        open.first.get_or_insert((name, generation));
        open.deadline.get_or_insert(end);
        assert_eq!(open.transaction.deadline(), open.deadline);
    }

    fn lock(&mut self, name: &'static str, store: StoreKind) {
        let in_session = name == "sessions" && store == StoreKind::Active;
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

    fn settle(&mut self, transaction: Option<usize>, which: usize, end: End) {
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
                // Settled or not, nobody but the transaction may do it.
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
        let buried = store != StoreKind::Active && matches!(end, End::DeadLetter);
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

    fn renew(&mut self, which: usize) {
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
            let renewed =
                world.operate(name, |mailbox, cx| mailbox.renew_locks(cx, store, &[token]));
            renewed.ok()
        });
        assert_eq!(renewed[0], renewed[1]);
    }

    fn close(&mut self, which: usize) {
        if let Some(which) = pick(which, self.locks.len()) {
            let Lock {
                name,
                store,
                holder,
                ..
            } = self.locks[which];
            self.both(|world| {
                world.operate(name, |mailbox, cx| {
                    mailbox.close_consumer(cx, store, holder)
                });
            });
        }
    }

    fn commit(&mut self, open: Open) {
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
            Work::Send(name, letters) => self.plain.post_all(name, &letters).unwrap(),
            Work::Transfer(via, to, letter) => {
                let to = to.parse().unwrap();
                self.plain.send_via(via, &to, &[*letter]).unwrap();
            }
            Work::Settle(which, end) => {
                settle(&mut self.plain, &self.locks[which], false, end).unwrap();
            }
        }
    }

    fn roll_back(&mut self, open: Open) {
        let id = open.transaction.id();
        self.used.roll_back(open.transaction);
        self.free(id);
    }

    fn free(&mut self, id: TransactionId) {
        for lock in &mut self.locks {
            lock.enlisted.take_if(|(by, _)| *by == id);
        }
    }

    fn delete(&mut self, name: &'static str) {
        self.both(|world| {
            world.delete(name);
            let rules = match name {
                "known" => rules().duplicate_detection(secs(60)),
                _ => rules(),
            };
            world.declare(name, rules);
        });
        *self.generations.entry(name).or_default() += 1;
    }

    fn generation(&self, name: &str) -> u32 {
        self.generations.get(name).copied().unwrap_or(0)
    }

    fn is_enlisted(&self, which: usize) -> bool {
        let until = self.locks[which].enlisted.map(|(_, until)| until);
        until.is_some_and(|until| until > self.used.now)
    }

    /// Whether the lock is held where no transaction is known.
    fn holds(&self, which: usize) -> bool {
        let lock = &self.locks[which];
        let mailbox = self.plain.mailbox(lock.name);
        let mut holders = mailbox.lock_holders(lock.store);
        holders.any(|holder| holder == lock.holder)
    }

    fn status(&self, name: &str) -> EntityStatus {
        self.plain.mailbox(name).description().status
    }

    fn letter(&self, sent: Sent) -> Letter {
        let session = (sent.id % 3).to_string();
        let mut letter = letter(&sent.id.to_string()).session(&session);
        if let Some(seconds) = sent.time_to_live {
            letter = letter.time_to_live(secs(seconds));
        }
        match sent.scheduled_in {
            Some(seconds) => letter.scheduled_at(self.used.now + secs(seconds)),
            None => letter,
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

impl End {
    fn outcome(self) -> Outcome {
        match self {
            Self::Complete => Outcome::Complete,
            Self::Abandon => abandon(),
            Self::Defer => defer(),
            Self::DeadLetter => bury("why"),
        }
    }
}

fn settle(world: &mut World, lock: &Lock, used: bool, end: End) -> Result<(), SettleError> {
    let token = if used { lock.used } else { lock.plain };
    world.operate(lock.name, |mailbox, cx| {
        mailbox.settle(cx, lock.store, token, end.outcome())
    })
}

fn look(world: &World, name: &str, store: StoreKind) -> (Counts, Vec<Seen>) {
    let seen = world.peek(name, store).into_iter().map(|(stamp, message)| {
        (
            stamp.sequence_number.0,
            stamp.enqueued_sequence_number.0,
            stamp.enqueued_at,
            stamp.delivery_count,
            stamp.state,
            stamp.expires_at,
            message.id().into_owned(),
        )
    });
    (world.mailbox(name).counts(store), seen.collect())
}

/// One of so many, if there are any.
fn pick(which: usize, length: usize) -> Option<usize> {
    which.checked_rem(length)
}

fn top(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}
