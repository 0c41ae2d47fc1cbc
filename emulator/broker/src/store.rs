//! One ordered set of messages: the only place where entries live.
//!
//! A queue, its dead-letter queue and its transfer dead-letter queue are the same store under different
//! [`crate::StorePolicy`]s. Every index here says something about `entries`; `invariants.rs` states what.

mod deadline_index;
mod enlistments;
pub(crate) mod entry;
mod forwards;
#[cfg(any(test, feature = "check"))]
mod invariants;
pub(crate) mod receivers;
mod reserved;
mod segmented_map;
mod sequence_set;
pub(crate) mod sessions;

use std::collections::BTreeMap;

use servicebus_codec::DecodeError;

use crate::{
    Context, Effect, EntityId, Event, EventKind, Expiry, LocksOnDetach, PropertyChanges,
    ReceiverId, SequenceNumber, StorePolicy, Timestamp,
};
use deadline_index::DeadlineIndex;
use enlistments::Enlistments;
use entry::{Entry, Lock, State};
use forwards::Forwards;
use receivers::Receivers;
use segmented_map::SegmentedMap;
use sequence_set::SequenceSet;
use sessions::{Sessions, Slot};

/// Messages in order of arrival, who may take them, and what time will do to them.
#[derive(Debug)]
pub struct MessageStore {
    entity: EntityId,
    pub(crate) policy: StorePolicy,
    pub(crate) entries: SegmentedMap<Entry>,
    last: SequenceNumber,
    /// Those that can be reserved, first come first; where there are sessions, each has its own.
    pub(crate) ready: SequenceSet,
    /// Of those, the ones that came back because a lock ended, and whose it was.
    #[expect(
        clippy::box_collection,
        reason = "an entity has three of them, mostly empty"
    )]
    returned: Option<Box<BTreeMap<SequenceNumber, ReceiverId>>>,
    /// When locks end.
    pub(crate) locks: DeadlineIndex,
    /// When unlocked messages expire.
    expiries: DeadlineIndex,
    /// When scheduled messages become active.
    activations: DeadlineIndex,
    /// Messages that are deferred, locked or not.
    deferred: usize,
    /// Where a transaction has ever been to settle a lock.
    pub(crate) enlistments: Option<Box<Enlistments>>,
    pub(crate) forwards: Forwards,
    pub(crate) receivers: Receivers,
    /// Where messages belong to sessions.
    pub(crate) sessions: Option<Box<Sessions>>,
    size: u64,
}

/// What time brings about next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A lock ends.
    LockEnd(Timestamp, SequenceNumber),
    /// The lock of a session ends.
    SessionLockEnd(Timestamp, Slot),
    /// A message expires.
    Expiry(Timestamp, SequenceNumber),
    /// A scheduled message becomes active.
    Activation(Timestamp, SequenceNumber),
    /// Dead letters are tried again that their target entity refused.
    Retry(Timestamp),
}

impl MessageStore {
    pub(crate) fn new(entity: EntityId, policy: StorePolicy) -> Self {
        Self {
            entity,
            policy,
            entries: SegmentedMap::new(),
            last: SequenceNumber(0),
            ready: SequenceSet::new(),
            returned: None,
            locks: DeadlineIndex::new(),
            expiries: DeadlineIndex::new(),
            activations: DeadlineIndex::new(),
            deferred: 0,
            enlistments: None,
            forwards: Forwards::default(),
            receivers: Receivers::default(),
            sessions: policy.has_sessions.then(|| Box::new(Sessions::new())),
            size: 0,
        }
    }

    /// Messages held, whatever their state.
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

    /// Messages set aside, those under a lock included.
    pub fn deferred(&self) -> usize {
        self.deferred
    }

    /// Messages that are not active yet.
    pub fn scheduled(&self) -> usize {
        self.activations.len()
    }

    /// Messages on their way to another entity.
    pub fn forwarding(&self) -> usize {
        self.forwards.len()
    }

    /// Bytes of all messages held, and of the states of sessions.
    pub fn size(&self) -> u64 {
        let states = self.sessions.as_ref();
        self.size + states.map_or(0, |sessions| sessions.state_bytes())
    }

    /// Whether somebody waits for messages or for a session, or has yet to take what is reserved.
    pub(crate) fn is_awaited(&self) -> bool {
        let sessions = self.sessions.as_ref();
        self.receivers.is_active() || sessions.is_some_and(|sessions| sessions.is_awaited())
    }

    /// Whose messages these are.
    pub(crate) fn entity(&self) -> EntityId {
        self.entity
    }

    /// The number that the next message will get.
    pub(crate) fn next_number(&self) -> SequenceNumber {
        SequenceNumber(self.last.0 + 1)
    }

    /// Holds `entry` under the next number; `session` is the one it belongs to, where there are sessions.
    pub(crate) fn append(&mut self, entry: Entry, session: Option<Slot>) -> SequenceNumber {
        let number = self.reserve_number();
        self.append_at(number, entry, session);
        number
    }

    /// Gives out the next number for a message that may come later, or never.
    pub(crate) fn reserve_number(&mut self) -> SequenceNumber {
        self.last = self.next_number();
        self.last
    }

    /// Holds `entry` under a number that was reserved for it.
    pub(crate) fn append_at(
        &mut self,
        number: SequenceNumber,
        entry: Entry,
        session: Option<Slot>,
    ) {
        self.size += entry.message.size();
        let (expires_at, activates_at) = (entry.expires_at, entry.activates_at());
        let auto_forwards = self.auto_forwards(number, entry.stays);
        self.entries.insert(number.0, entry);
        if let (Some(sessions), Some(slot)) = (&mut self.sessions, session) {
            sessions.join(number, slot, activates_at.is_some());
        }
        if let Some(at) = activates_at {
            self.activations.insert(at, number);
            return;
        }
        if expires_at < Timestamp::NEVER {
            self.expiries.insert(expires_at, number);
        }
        if auto_forwards {
            self.await_forward(number);
        } else {
            self.make_ready(number);
        }
    }

    /// Takes an entry out of every index.
    pub(crate) fn remove(&mut self, number: SequenceNumber) -> Option<Entry> {
        let entry = self.entries.remove(number.0)?;
        self.size -= entry.message.size();
        self.deferred -= usize::from(entry.is_deferred());
        match entry.state {
            State::Ready => self.take_from_ready(number),
            State::Assigned(receiver) => self.receivers.unreserve(receiver, number),
            State::Locked(lock) => self.unlock(number, lock),
            State::Deferred => {}
            State::Scheduled(at) => {
                self.activations.remove(at, number);
                self.forwards.take_destination(number);
            }
            State::Forwarding => self.forwards.remove(number),
        }
        self.expiries.remove(entry.expires_at, number);
        if let Some(sessions) = &mut self.sessions {
            sessions.leave(number, &entry);
        }
        Some(entry)
    }

    /// Hands ready entries to waiting receivers, in order of arrival on both sides.
    pub(crate) fn reserve(&mut self, cx: &mut Context<'_>) {
        if !self.policy.serves {
            return;
        }
        if self.sessions.is_some() {
            self.serve_sessions(cx);
            return;
        }
        while let Some(((), number)) = self.ready.first() {
            let returned = self.returned.as_deref();
            let former = returned.and_then(|returned| returned.get(&number).copied());
            let Some((receiver, wake)) = self.receivers.reserve_next(number, former) else {
                return;
            };
            self.ready.pop_first();
            self.forget_returned(number);
            if let Some(entry) = self.entries.get_mut(number.0) {
                entry.state = State::Assigned(receiver);
            }
            if wake {
                cx.effects.push(Effect::Wake(receiver));
            }
        }
    }

    /// Puts an reserved, locked or forwarded entry back where it belongs when nobody has it: at its old place,
    /// deferred again if it was, on its way if the store forwards.
    pub(crate) fn put_back(&mut self, number: SequenceNumber) {
        let Some(entry) = self.entries.get_mut(number.0) else {
            return;
        };
        let state = std::mem::replace(&mut entry.state, State::Ready);
        let (expires_at, stays) = (entry.expires_at, entry.stays);
        if let State::Locked(lock) = state {
            if lock.deferred {
                entry.state = State::Deferred;
            }
            self.unlock(number, lock);
            if lock.deferred {
                return;
            }
        }
        if expires_at < Timestamp::NEVER {
            self.expiries.insert(expires_at, number);
        }
        if self.auto_forwards(number, stays) {
            self.await_forward(number);
        } else {
            self.make_ready(number);
        }
    }

    /// Ends the lock of an entry and sets it aside.
    pub(crate) fn defer(&mut self, number: SequenceNumber) {
        if let Some(entry) = self.entries.get_mut(number.0)
            && let State::Locked(lock) = entry.state
        {
            entry.state = State::Deferred;
            self.deferred += usize::from(!lock.deferred);
            self.unlock(number, lock);
            if let Some(sessions) = &mut self.sessions {
                sessions.change_of(number, |session, _| {
                    session.deferred += usize::from(!lock.deferred);
                });
            }
        }
    }

    /// Locks an entry that nobody has, or that is reserved to whoever locks it.
    pub(crate) fn lock(&mut self, number: SequenceNumber, lock: Lock) {
        let Some(entry) = self.entries.get_mut(number.0) else {
            return;
        };
        entry.state = State::Locked(lock);
        let expires_at = entry.expires_at;
        self.protect(number, expires_at);
        self.locks.insert(lock.until, number);
        if let Some(sessions) = &mut self.sessions {
            sessions.change_of(number, |session, number| {
                session.lock_message(number);
            });
        } else if self.policy.locks_on_detach == LocksOnDetach::Release {
            self.receivers.hold(lock.receiver, number);
        }
    }

    /// Adds an entry to those that nobody has.
    fn make_ready(&mut self, number: SequenceNumber) {
        match &mut self.sessions {
            Some(sessions) => sessions.change_of(number, |session, number| {
                session.ready.insert(number);
            }),
            None => {
                self.ready.insert((), number);
            }
        }
    }

    pub(super) fn take_from_ready(&mut self, number: SequenceNumber) {
        match &mut self.sessions {
            Some(sessions) => sessions.change_of(number, |session, number| {
                session.ready.remove(&number);
            }),
            None => {
                self.ready.remove((), number);
                self.forget_returned(number);
            }
        }
    }

    /// Notes who lost the lock of an entry that is ready again: others are served first (spec/observed.md 17).
    pub(crate) fn note_returned(&mut self, number: SequenceNumber, former: ReceiverId) {
        let entry = self.entries.get(number.0);
        if self.sessions.is_none() && entry.is_some_and(|entry| entry.state == State::Ready) {
            self.returned.get_or_insert_default().insert(number, former);
        }
    }

    fn forget_returned(&mut self, number: SequenceNumber) {
        if let Some(returned) = &mut self.returned {
            returned.remove(&number);
            if returned.is_empty() {
                self.returned = None;
            }
        }
    }

    /// Nothing expires that is locked or on its way: it leaves the index until that is over.
    fn protect(&mut self, number: SequenceNumber, expires_at: Timestamp) {
        if expires_at < Timestamp::NEVER {
            self.expiries.remove(expires_at, number);
        }
    }

    /// Takes a lock that is over out of the indexes.
    fn unlock(&mut self, number: SequenceNumber, lock: Lock) {
        self.locks.remove(lock.until, number);
        if let Some(enlistments) = &mut self.enlistments {
            enlistments.remove(number);
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.change_of(number, |session, number| {
                session.unlock_message(number);
            });
        } else if self.policy.locks_on_detach == LocksOnDetach::Release {
            self.receivers.release_lock(lock.receiver, number);
        }
    }

    /// Lets an entry expire at another instant.
    pub(crate) fn reschedule_expiry(&mut self, number: SequenceNumber, expires_at: Timestamp) {
        let Some(entry) = self.entries.get_mut(number.0) else {
            return;
        };
        let before = std::mem::replace(&mut entry.expires_at, expires_at);
        let can_expire = entry.can_expire() && !self.forwards.is_in_transfer(number);
        self.expiries.remove(before, number);
        if can_expire {
            self.expiries.insert(expires_at, number);
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

    /// Whether what has expired may leave (decision D1).
    fn lets_expire(&self) -> bool {
        self.policy.expiry == Expiry::Eager || self.is_awaited() || self.policy.forwards
    }

    /// False when nothing is due by `now`; when true, something may be.
    pub(crate) fn may_be_due(&self, now: Timestamp) -> bool {
        let instants = [&self.locks, &self.expiries, &self.activations];
        let session_end = self.sessions.as_ref().and_then(|all| all.next_end());
        instants.into_iter().any(|all| all.may_have_come(now))
            || session_end.is_some_and(|(at, _)| at <= now)
            || self.forwards.retry_at().is_some_and(|at| at <= now)
    }

    /// Everything that is due has happened.
    pub(crate) fn came_up_to_date(&mut self) {
        for instants in [&mut self.locks, &mut self.expiries, &mut self.activations] {
            instants.follow();
        }
    }

    /// What time brings about next, if anything.
    pub(crate) fn next_due(&self) -> Option<Due> {
        // A lock under a session has no end of its own.
        let lock_end = self.locks.first().filter(|(at, _)| *at < Timestamp::NEVER);
        let lock_end = lock_end.map(|(at, n)| Due::LockEnd(at, n));
        let session_end = self.sessions.as_ref().and_then(|all| all.next_end());
        let session_end = session_end.map(|(at, slot)| Due::SessionLockEnd(at, slot));
        let expiry = (self.expiries.first().filter(|_| self.lets_expire()))
            .map(|(at, n)| Due::Expiry(at, n));
        let activation = self.activations.first();
        let activation = activation.map(|(at, n)| Due::Activation(at, n));
        let retry = self.forwards.retry_at().map(Due::Retry);
        [lock_end, session_end, expiry, activation, retry]
            .into_iter()
            .flatten()
            .min_by_key(|due| due.at())
    }

    /// Notes what happened to an entry that is here; 0 stands for none.
    pub(crate) fn record(&self, cx: &mut Context<'_>, number: SequenceNumber, kind: EventKind) {
        let entry = self.entries.get(number.0);
        let shown = entry.map_or(number, |entry| entry.number(number));
        self.record_as(cx, shown, kind);
    }

    /// Notes what happened to a message by its number as clients see it.
    pub(crate) fn record_as(&self, cx: &mut Context<'_>, number: SequenceNumber, kind: EventKind) {
        cx.events.push(Event {
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
            Self::LockEnd(at, _)
            | Self::SessionLockEnd(at, _)
            | Self::Expiry(at, _)
            | Self::Activation(at, _)
            | Self::Retry(at) => at,
        }
    }
}
