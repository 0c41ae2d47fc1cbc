//! One ordered set of messages: the only place where entries live.
//!
//! A queue and its dead-letter queue are the same store under different [`crate::StorePolicy`]s. Every
//! index here says something about `entries`; `invariants.rs` states what.

pub(crate) mod consumers;
pub(crate) mod entry;
#[cfg(any(test, feature = "check"))]
mod invariants;
mod segments;

use std::collections::BTreeSet;

use servicebus_codec::DecodeError;

use crate::{
    Context, Effect, EntityId, Expiry, Fact, FactKind, LocksOnDetach, PropertyChanges,
    SequenceNumber, StorePolicy, Timestamp,
};
use consumers::Consumers;
use entry::{Entry, Lock, State};
use segments::Segments;

/// Messages in order of arrival, who may take them, and what time will do to them.
#[derive(Debug)]
pub struct MessageStore {
    entity: EntityId,
    pub(crate) policy: StorePolicy,
    pub(crate) entries: Segments<Entry>,
    last: SequenceNumber,
    /// Those that can be assigned, first come first.
    ready: BTreeSet<SequenceNumber>,
    /// When locks end.
    pub(crate) locks: BTreeSet<(Timestamp, SequenceNumber)>,
    /// When unlocked messages expire.
    expiries: BTreeSet<(Timestamp, SequenceNumber)>,
    pub(crate) consumers: Consumers,
    size: u64,
}

/// What time brings about next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A lock ends.
    LockEnd(Timestamp, SequenceNumber),
    /// A message expires.
    Expiry(Timestamp, SequenceNumber),
}

impl MessageStore {
    pub(crate) fn new(entity: EntityId, policy: StorePolicy) -> Self {
        Self {
            entity,
            policy,
            entries: Segments::new(),
            last: SequenceNumber(0),
            ready: BTreeSet::new(),
            locks: BTreeSet::new(),
            expiries: BTreeSet::new(),
            consumers: Consumers::default(),
            size: 0,
        }
    }

    /// Messages held, locked ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no message is held.
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// Messages under a lock.
    pub fn locked(&self) -> usize {
        self.locks.len()
    }

    /// Bytes of all messages held.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The number that the next message will get.
    pub(crate) fn next_number(&self) -> SequenceNumber {
        SequenceNumber(self.last.0 + 1)
    }

    /// Holds `entry` under the next number, ready to be received.
    pub(crate) fn append(&mut self, entry: Entry) -> SequenceNumber {
        let number = self.next_number();
        self.last = number;
        self.size += entry.message.size();
        if entry.expires_at < Timestamp::NEVER {
            self.expiries.insert((entry.expires_at, number));
        }
        self.entries.insert(number.0, entry);
        self.ready.insert(number);
        number
    }

    /// Takes an entry out of every index.
    pub(crate) fn remove(&mut self, number: SequenceNumber) -> Option<Entry> {
        let entry = self.entries.remove(number.0)?;
        self.size -= entry.message.size();
        match entry.state {
            State::Ready => {
                self.ready.remove(&number);
            }
            State::Assigned(consumer) => self.consumers.unassign(consumer, number),
            State::Locked(lock) => self.unlock(number, lock),
        }
        self.expiries.remove(&(entry.expires_at, number));
        Some(entry)
    }

    /// Hands ready entries to waiting consumers, in order of arrival on both sides.
    pub(crate) fn assign(&mut self, cx: &mut Context<'_>) {
        while let Some(&number) = self.ready.first() {
            let Some((consumer, wake)) = self.consumers.assign_next(number) else {
                return;
            };
            self.ready.pop_first();
            if let Some(entry) = self.entries.get_mut(number.0) {
                entry.state = State::Assigned(consumer);
            }
            if wake {
                cx.effects.push(Effect::Wake(consumer));
            }
        }
    }

    /// Makes an assigned or locked entry ready again, at its old place.
    pub(crate) fn return_to_ready(&mut self, number: SequenceNumber) {
        let Some(entry) = self.entries.get_mut(number.0) else {
            return;
        };
        let state = std::mem::replace(&mut entry.state, State::Ready);
        let expires_at = entry.expires_at;
        if let State::Locked(lock) = state {
            self.unlock(number, lock);
            if expires_at < Timestamp::NEVER {
                self.expiries.insert((expires_at, number));
            }
        }
        self.ready.insert(number);
    }

    /// A lock protects from expiry: its message leaves the index until the lock ends.
    pub(crate) fn protect(&mut self, number: SequenceNumber, expires_at: Timestamp) {
        if expires_at < Timestamp::NEVER {
            self.expiries.remove(&(expires_at, number));
        }
    }

    /// Takes a lock that is over out of the indexes.
    fn unlock(&mut self, number: SequenceNumber, lock: Lock) {
        self.locks.remove(&(lock.until, number));
        if self.policy.locks_on_detach == LocksOnDetach::Release {
            self.consumers.let_go(lock.consumer, number);
        }
    }

    /// Sets application properties of an entry and then whatever `change` does; nothing when they do not fit.
    pub(crate) fn change<T: Default>(
        &mut self,
        number: SequenceNumber,
        changes: &PropertyChanges,
        change: impl FnOnce(&mut Entry) -> T,
    ) -> Result<T, DecodeError> {
        let Some(entry) = self.entries.get_mut(number.0) else {
            return Ok(T::default());
        };
        let before = entry.message.size();
        entry.message.change_properties(changes)?;
        self.size = self.size - before + entry.message.size();
        Ok(change(entry))
    }

    /// What time brings about next, if anything.
    pub(crate) fn next_due(&self) -> Option<Due> {
        let lock_end = self.locks.first().map(|&(at, n)| Due::LockEnd(at, n));
        let expiry = (self.policy.expiry == Expiry::Eager || self.consumers.is_active())
            .then(|| self.expiries.first().map(|&(at, n)| Due::Expiry(at, n)))
            .flatten();
        [lock_end, expiry]
            .into_iter()
            .flatten()
            .min_by_key(|due| due.at())
    }

    /// Notes what happened to a message of this store.
    pub(crate) fn note(&self, cx: &mut Context<'_>, number: SequenceNumber, kind: FactKind) {
        cx.facts.push(Fact {
            at: cx.now,
            entity: self.entity,
            store: self.policy.kind,
            client: cx.client,
            number,
            kind,
        });
    }
}

impl Due {
    /// When.
    pub(crate) fn at(self) -> Timestamp {
        match self {
            Self::LockEnd(at, _) | Self::Expiry(at, _) => at,
        }
    }
}
