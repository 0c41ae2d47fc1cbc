//! Two worlds, of which only one has transactions.

mod commit;
mod settle;

use std::collections::BTreeMap;

use servicebus_broker::{
    Counts, EntityStatus, LockToken, ReceiverId, SendError, SequenceNumber, SubQueue, Timestamp,
    TransactError, Transaction, TransactionId,
};

use super::{End, Sent, Step};
use crate::bus::{MessageBuilder, message, rules, secs};
use crate::world::World;

const NAMES: [&str; 9] = [
    "plain",
    "known",
    "forwards",
    "forwards_dead_letters",
    "end",
    "failed",
    "t",
    "t/Subscriptions/s",
    "sessions",
];

pub(crate) struct Twins {
    /// Where transactions are used.
    used: World,
    /// Where the same is done without.
    plain: World,
    open: Vec<Open>,
    locks: Vec<Lock>,
    /// How often an entity of this name was deleted.
    generations: BTreeMap<&'static str, u32>,
}

/// A transaction, and its operations in a world without transactions.
pub(crate) struct Open {
    connection: usize,
    transaction: Transaction,
    work: Vec<Work>,
    /// The entity of the first operation, and its generation.
    first: Option<(&'static str, u32)>,
    deadline: Option<Timestamp>,
}

enum Work {
    Send(&'static str, Vec<MessageBuilder>),
    Transfer(&'static str, &'static str, Box<MessageBuilder>),
    Settle(usize, End),
}

/// A message that a receiver has locked in both worlds.
struct Lock {
    name: &'static str,
    store: SubQueue,
    holder: ReceiverId,
    used: LockToken,
    plain: LockToken,
    /// The transaction that is to settle it, and until when that may.
    enlisted: Option<(TransactionId, Timestamp)>,
}

/// What can be seen of one message: number, number where it entered, when, deliveries, state, expiry and id.
type Seen = (
    u64,
    Option<SequenceNumber>,
    Timestamp,
    u32,
    Option<i32>,
    Option<u64>,
    String,
);

fn world(releases: bool) -> World {
    let base = || match releases {
        true => rules().release_on_detach().max_delivery_count(2),
        false => rules().max_delivery_count(2),
    };
    let mut world = World::new();
    world.declare("end", base());
    world.declare("failed", base());
    world.declare("plain", base());
    world.declare("known", base().duplicate_detection(secs(60)));
    world.declare("forwards", base().forward_to("end"));
    world.declare(
        "forwards_dead_letters",
        base().forward_dead_letters_to("failed"),
    );
    world.declare("sessions", base().sessions());
    world.declare_topic("t", |_| {});
    world.subscribe("t/Subscriptions/s", |_| {});
    world
}

impl Twins {
    pub(crate) fn new(releases: bool) -> Self {
        Self {
            used: world(releases),
            plain: world(releases),
            open: Vec::new(),
            locks: Vec::new(),
            generations: BTreeMap::new(),
        }
    }

    pub(crate) fn take(&mut self, step: &Step) {
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
                self.both(|world| world.operate(name, |entity, cx| entity.lose_locks(cx)));
            }
            Step::Delete(name) => self.delete(name),
        }
    }

    /// Whether both worlds look the same to everybody.
    pub(crate) fn compare(&self) {
        for name in NAMES {
            for store in SubQueue::ALL {
                let (used, plain) = (
                    look(&self.used, name, store),
                    look(&self.plain, name, store),
                );
                assert_eq!(used, plain, "{name} {store:?}");
            }
            assert!(!self.used.entity(name).is_forwarding(), "{name} is stuck");
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
        let messages: Vec<MessageBuilder> = sent.iter().map(|sent| self.message(*sent)).collect();
        let Some(at) = transaction.and_then(|t| pick(t, self.open.len())) else {
            let results = [&mut self.used, &mut self.plain].map(|w| w.post_all(name, &messages));
            assert_eq!(results[0], results[1]);
            return;
        };
        let open = &mut self.open[at];
        let result = self.used.post_in(&mut open.transaction, name, &messages);
        if self.expect_enlisted(at, name, &result) {
            self.open[at].work.push(Work::Send(name, messages));
        }
    }

    fn transfer(&mut self, which: usize, via: &'static str, to: &'static str, sent: Sent) {
        let message = self.message(sent);
        let Some(at) = pick(which, self.open.len()) else {
            return;
        };
        let open = &mut self.open[at];
        let messages = std::slice::from_ref(&message);
        let transaction = &mut open.transaction;
        let result = self.used.transfer_in(transaction, via, to, messages);
        if self.expect_enlisted(at, via, &result) {
            self.open[at]
                .work
                .push(Work::Transfer(via, to, Box::new(message)));
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

    /// Whether the lock is held where no transaction is known.
    fn holds(&self, which: usize) -> bool {
        let lock = &self.locks[which];
        let entity = self.plain.entity(lock.name);
        let mut holders = entity.lock_holders(lock.store);
        holders.any(|holder| holder == lock.holder)
    }

    fn status(&self, name: &str) -> EntityStatus {
        self.plain.entity(name).description().status
    }

    fn message(&self, sent: Sent) -> MessageBuilder {
        let session = (sent.id % 3).to_string();
        let mut message = message(&sent.id.to_string()).session(&session);
        if let Some(seconds) = sent.time_to_live {
            message = message.time_to_live(secs(seconds));
        }
        match sent.scheduled_in {
            Some(seconds) => message.scheduled_at(self.used.now + secs(seconds)),
            None => message,
        }
    }
}

fn look(world: &World, name: &str, store: SubQueue) -> (Counts, Vec<Seen>) {
    let seen = world
        .peek(name, store)
        .into_iter()
        .map(|(properties, message)| {
            (
                properties.sequence_number.0,
                properties.enqueued_sequence_number,
                properties.enqueued_at,
                properties.delivery_count,
                properties.state,
                properties.time_to_live,
                message.id().into_owned(),
            )
        });
    (world.entity(name).counts(store), seen.collect())
}

/// One of so many, if there are any.
fn pick(which: usize, length: usize) -> Option<usize> {
    which.checked_rem(length)
}

fn top(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}
