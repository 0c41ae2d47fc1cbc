//! One ordered set of messages: the only place where entries live.
//!
//! A queue, its dead-letter queue and its transfer dead-letter queue are the same store under different
//! [`crate::StorePolicy`]s. Every index here says something about `entries`; `invariants.rs` states what.

mod due;
mod enlistments;
pub(crate) mod entry;
mod forwards;
mod indexes;
#[cfg(any(test, feature = "check"))]
mod invariants;
pub(crate) mod receivers;
pub(crate) mod sessions;

use std::collections::BTreeMap;

use servicebus_codec::DecodeError;

use crate::context::{Context, Effect};
use crate::event::{Event, EventKind};
use crate::ids::{EntityId, EntityPath, Offset, ReceiverId, SequenceNumber};
use crate::message::PropertyChanges;
use crate::policy::StorePolicy;
use crate::settings::LocksOnDetach;
use crate::time::{Deadline, Timestamp};
pub(crate) use due::Due;
use enlistments::Enlistments;
use entry::{Entry, Lock, State};
use forwards::Forwards;
use indexes::{DeadlineIndex, SegmentedMap, SequenceSet};
use receivers::Receivers;
use sessions::{Sessions, Slot};

/// Messages in order of arrival, who may take them, and what time will do to them.
#[derive(Debug)]
pub struct MessageStore {
    entity: EntityId,
    policy: StorePolicy,
    entries: SegmentedMap<Entry>,
    next: Offset,
    /// Those that can be reserved, first come first; where there are sessions, each has its own.
    ready: SequenceSet,
    /// Of those, the ones that came back because a lock ended, and whose it was.
    #[expect(
        clippy::box_collection,
        reason = "an entity has three of them, mostly empty"
    )]
    returned: Option<Box<BTreeMap<Offset, ReceiverId>>>,
    /// When locks end; where there are sessions, those of the sessions do.
    locks: DeadlineIndex,
    /// When unlocked messages expire.
    expiries: DeadlineIndex,
    /// When scheduled messages become active.
    activations: DeadlineIndex,
    /// Messages that are deferred, locked or not.
    deferred: usize,
    /// Where a transaction has ever been to settle a lock.
    enlistments: Option<Box<Enlistments>>,
    forwards: Forwards,
    receivers: Receivers,
    /// Where messages belong to sessions.
    sessions: Option<Box<Sessions>>,
    size: u64,
}

impl MessageStore {
    pub(crate) fn new(entity: EntityId, policy: StorePolicy) -> Self {
        Self {
            entity,
            policy,
            entries: SegmentedMap::new(),
            next: Offset(1),
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

    /// Messages held, in any state.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no message is held.
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// Messages under a lock.
    pub fn locked(&self) -> usize {
        let under_sessions = self.sessions.as_ref();
        under_sessions.map_or(self.locks.len(), |sessions| sessions.locked())
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

    /// Whether a receiver waits for messages or for a session, or has yet to take what is reserved.
    pub(crate) fn is_awaited(&self) -> bool {
        let sessions = self.sessions.as_ref();
        self.receivers.is_active() || sessions.is_some_and(|sessions| sessions.is_awaited())
    }

    /// Whose messages these are.
    pub(crate) fn entity(&self) -> EntityId {
        self.entity
    }

    /// Its rules.
    pub(crate) fn policy(&self) -> &StorePolicy {
        &self.policy
    }

    /// Goes by other rules from now on; nothing is reserved any more.
    pub(crate) fn set_policy(&mut self, policy: StorePolicy) {
        self.policy = policy;
        self.unreserve_all();
    }

    /// The sessions, where messages belong to sessions.
    pub(crate) fn sessions(&self) -> Option<&Sessions> {
        self.sessions.as_deref()
    }

    pub(crate) fn sessions_mut(&mut self) -> Option<&mut Sessions> {
        self.sessions.as_deref_mut()
    }

    /// Forgets all sessions, whose locks must be over.
    pub(crate) fn drop_sessions(&mut self) {
        self.sessions = None;
    }

    /// An entry by where it stands.
    pub(crate) fn get(&self, offset: Offset) -> Option<&Entry> {
        self.entries.get(offset)
    }

    /// The entries from `from` on, in order.
    pub(crate) fn from(&self, from: Offset) -> impl Iterator<Item = (Offset, &Entry)> {
        self.entries.range_from(from)
    }

    /// Every entry, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Offset, &Entry)> {
        self.entries.iter()
    }

    /// The messages under locks that end by themselves, those that end first first.
    pub(crate) fn locks(&self) -> impl Iterator<Item = Offset> {
        self.locks.offsets()
    }

    /// Who holds the locks, a receiver for each locked message.
    pub(crate) fn lock_holders(&self) -> impl Iterator<Item = ReceiverId> {
        let locks = self.locks.offsets();
        let locks = locks.filter_map(|offset| Some(self.entries.get(offset)?.lock()?.receiver));
        let sessions = self.sessions.iter().flat_map(|sessions| sessions.iter());
        let under_sessions = sessions.flat_map(|session| {
            let holder = session.lock.map(|lock| lock.receiver);
            session.locked.iter().filter_map(move |_| holder)
        });
        locks.chain(under_sessions)
    }

    /// Where the next message will stand.
    pub(crate) fn next_offset(&self) -> Offset {
        self.next
    }

    /// Holds `entry` behind all others; `session` is the one it belongs to, where there are sessions.
    pub(crate) fn append(&mut self, entry: Entry, session: Option<Slot>) -> Offset {
        let offset = self.reserve_offset();
        self.append_at(offset, entry, session);
        offset
    }

    /// Gives out the next place for a message that may come later, or never.
    pub(crate) fn reserve_offset(&mut self) -> Offset {
        let offset = self.next;
        self.next = Offset(offset.0 + 1);
        offset
    }

    /// Holds `entry` at the place that was reserved for it.
    pub(crate) fn append_at(&mut self, offset: Offset, entry: Entry, session: Option<Slot>) {
        self.size += entry.message.size();
        let (expires_at, activates_at) = (entry.expires_at, entry.activates_at());
        let auto_forwards = self.auto_forwards(offset, entry.stays);
        self.entries.insert(offset, entry);
        if let (Some(sessions), Some(slot)) = (&mut self.sessions, session) {
            sessions.join(offset, slot, activates_at.is_some());
        }
        if let Some(at) = activates_at {
            self.activations.insert(at, offset);
            return;
        }
        if let Some(at) = expires_at.get() {
            self.expiries.insert(at, offset);
        }
        if auto_forwards {
            self.await_forward(offset);
        } else {
            self.make_ready(offset);
        }
    }

    /// Takes an entry out of every index.
    pub(crate) fn remove(&mut self, offset: Offset) -> Option<Entry> {
        let entry = self.entries.remove(offset)?;
        self.size -= entry.message.size();
        self.deferred -= usize::from(entry.is_deferred());
        match entry.state {
            State::Ready => self.take_from_ready(offset),
            State::Reserved(receiver) => self.receivers.unreserve(receiver, offset),
            State::Locked(lock) => self.unlock(offset, lock),
            State::Deferred => {}
            State::Scheduled(at) => {
                self.activations.remove(at, offset);
                self.forwards.take_destination(offset);
            }
            State::Forwarding => self.forwards.remove(offset),
        }
        self.protect(offset, entry.expires_at);
        if let Some(sessions) = &mut self.sessions {
            sessions.leave(offset, &entry);
        }
        Some(entry)
    }

    /// Hands ready entries to waiting receivers, and asks for what must be carried elsewhere from this entity.
    pub(crate) fn serve(&mut self, cx: &mut Context<'_>, path: &EntityPath) {
        self.reserve(cx);
        if self.must_announce() {
            let forward = Effect::Forward(path.clone(), self.policy.kind);
            cx.effects.push(forward);
        }
    }

    /// Hands ready entries to waiting receivers, in order of arrival on both sides.
    fn reserve(&mut self, cx: &mut Context<'_>) {
        if !self.policy.serves {
            return;
        }
        if self.sessions.is_some() {
            self.serve_sessions(cx);
            return;
        }
        while let Some(((), offset)) = self.ready.first() {
            let returned = self.returned.as_deref();
            let former = returned.and_then(|returned| returned.get(&offset).copied());
            let Some((receiver, wake)) = self.receivers.reserve_next(offset, former) else {
                return;
            };
            self.ready.pop_first();
            self.forget_returned(offset);
            if let Some(entry) = self.entries.get_mut(offset) {
                entry.state = State::Reserved(receiver);
            }
            if wake {
                cx.effects.push(Effect::Wake(receiver));
            }
        }
    }

    /// Reserves the first entry that is reserved to a receiver to another one that waits; says whether one does.
    pub(crate) fn reassign(&mut self, cx: &mut Context<'_>, id: ReceiverId) -> bool {
        let other = self.receivers.waiting_beside(id);
        let first = self.receivers.first_reserved(id);
        let (Some(other), Some((offset, _))) = (other, first) else {
            return false;
        };
        self.receivers.unreserve(id, offset);
        let is_told = self.receivers.reserve_to(other, offset) == Some(false);
        if let Some(entry) = self.entries.get_mut(offset) {
            entry.state = State::Reserved(other);
        }
        if !is_told {
            cx.effects.push(Effect::Wake(other));
        }
        true
    }

    /// Puts a reserved, locked or forwarded entry back where it belongs when no receiver has it: at its old place,
    /// deferred again if it was, on its way if the store forwards.
    pub(crate) fn put_back(&mut self, offset: Offset) {
        let Some(entry) = self.entries.get_mut(offset) else {
            return;
        };
        let state = std::mem::replace(&mut entry.state, State::Ready);
        let (expires_at, stays) = (entry.expires_at, entry.stays);
        if let State::Locked(lock) = state {
            if lock.deferred {
                entry.state = State::Deferred;
            }
            self.unlock(offset, lock);
            if lock.deferred {
                return;
            }
        }
        if let Some(at) = expires_at.get() {
            self.expiries.insert(at, offset);
        }
        if self.auto_forwards(offset, stays) {
            self.await_forward(offset);
        } else {
            self.make_ready(offset);
        }
    }

    /// Ends the lock of an entry and sets it aside.
    pub(crate) fn defer(&mut self, offset: Offset) {
        if let Some(entry) = self.entries.get_mut(offset)
            && let State::Locked(lock) = entry.state
        {
            entry.state = State::Deferred;
            self.deferred += usize::from(!lock.deferred);
            self.unlock(offset, lock);
            if let Some(sessions) = &mut self.sessions {
                sessions.change_of(offset, |session, _| {
                    session.deferred += usize::from(!lock.deferred);
                });
            }
        }
    }

    /// Locks an entry that is ready, or that is reserved to the receiver that locks it.
    pub(crate) fn lock(&mut self, offset: Offset, lock: Lock) {
        let Some(entry) = self.entries.get_mut(offset) else {
            return;
        };
        entry.state = State::Locked(lock);
        let expires_at = entry.expires_at;
        self.protect(offset, expires_at);
        if let Some(until) = lock.until.get() {
            self.locks.insert(until, offset);
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.change_of(offset, |session, offset| {
                session.lock_message(offset);
            });
        } else if self.policy.locks_on_detach == LocksOnDetach::Release {
            self.receivers.hold(lock.receiver, offset);
        }
    }

    /// Adds an entry to those that are ready.
    fn make_ready(&mut self, offset: Offset) {
        match &mut self.sessions {
            Some(sessions) => sessions.change_of(offset, |session, offset| {
                session.ready.insert(offset);
            }),
            None => {
                self.ready.insert((), offset);
            }
        }
    }

    fn take_from_ready(&mut self, offset: Offset) {
        match &mut self.sessions {
            Some(sessions) => sessions.change_of(offset, |session, offset| {
                session.ready.remove(&offset);
            }),
            None => {
                self.ready.remove((), offset);
                self.forget_returned(offset);
            }
        }
    }

    /// Notes who lost the lock of an entry that is ready again: others are served first (spec/observed.md 17).
    pub(crate) fn note_returned(&mut self, offset: Offset, former: ReceiverId) {
        let entry = self.entries.get(offset);
        if self.sessions.is_none() && entry.is_some_and(|entry| entry.state == State::Ready) {
            self.returned.get_or_insert_default().insert(offset, former);
        }
    }

    fn forget_returned(&mut self, offset: Offset) {
        if let Some(returned) = &mut self.returned {
            returned.remove(&offset);
            if returned.is_empty() {
                self.returned = None;
            }
        }
    }

    /// Nothing expires that is locked or on its way: it leaves the index until that is over.
    fn protect(&mut self, offset: Offset, expires_at: Deadline) {
        if let Some(at) = expires_at.get() {
            self.expiries.remove(at, offset);
        }
    }

    /// Renews a lock that ends by itself; returns its new end.
    pub(crate) fn renew_lock(&mut self, offset: Offset, now: Timestamp) -> Option<Timestamp> {
        let State::Locked(lock) = &mut self.entries.get_mut(offset)?.state else {
            return None;
        };
        let before = lock.until.get()?;
        let until = self.policy.renewed_until(now, before);
        lock.until = until.into();
        self.locks.remove(before, offset);
        self.locks.insert(until, offset);
        Some(until)
    }

    /// Renews the lock of a session; returns its new end.
    pub(crate) fn renew_session(&mut self, slot: Slot, now: Timestamp) -> Option<Timestamp> {
        let policy = &self.policy;
        self.sessions
            .as_mut()?
            .renew(slot, |before| policy.renewed_until(now, before))
    }

    /// Counts a delivery whose lock has ended, and returns whose lock it was and how many deliveries have failed.
    pub(crate) fn count_lock_expiry(
        &mut self,
        offset: Offset,
    ) -> Option<(Option<ReceiverId>, u32)> {
        let entry = self.entries.get_mut(offset)?;
        entry.delivery_count += u32::from(self.policy.counts_lock_expiry);
        Some((entry.lock().map(|lock| lock.receiver), entry.delivery_count))
    }

    /// Takes a lock that is over out of the indexes.
    fn unlock(&mut self, offset: Offset, lock: Lock) {
        if let Some(until) = lock.until.get() {
            self.locks.remove(until, offset);
        }
        if let Some(enlistments) = &mut self.enlistments {
            enlistments.remove(offset);
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.change_of(offset, |session, offset| {
                session.unlock_message(offset);
            });
        } else if self.policy.locks_on_detach == LocksOnDetach::Release {
            self.receivers.release_lock(lock.receiver, offset);
        }
    }

    /// Lets an entry expire at another instant.
    pub(crate) fn reschedule_expiry(&mut self, offset: Offset, expires_at: Deadline) {
        let Some(entry) = self.entries.get_mut(offset) else {
            return;
        };
        let before = std::mem::replace(&mut entry.expires_at, expires_at);
        let can_expire = entry.can_expire() && !self.forwards.is_in_transfer(offset);
        self.protect(offset, before);
        if let Some(at) = expires_at.get().filter(|_| can_expire) {
            self.expiries.insert(at, offset);
        }
    }

    /// Sets application properties of an entry and then what `change` does; nothing when they do not fit.
    pub(crate) fn change<T: Default>(
        &mut self,
        offset: Offset,
        changes: &PropertyChanges,
        change: impl FnOnce(&mut Entry) -> T,
    ) -> Result<T, DecodeError> {
        let Some(entry) = self.entries.get_mut(offset) else {
            return Ok(T::default());
        };
        let before = entry.message.size();
        entry.message.change_properties(changes)?;
        self.size = self.size - before + entry.message.size();
        Ok(change(entry))
    }

    /// Records what happened to an entry that is here.
    pub(crate) fn record(&self, cx: &mut Context<'_>, offset: Offset, kind: EventKind) {
        let entry = self.entries.get(offset);
        self.record_as(cx, entry.map(|entry| entry.number(offset)), kind);
    }

    /// Records what happened to a message by its number, or to none.
    pub(crate) fn record_as(
        &self,
        cx: &mut Context<'_>,
        number: impl Into<Option<SequenceNumber>>,
        kind: EventKind,
    ) {
        cx.events.push(Event::new(
            cx.now,
            (self.entity, self.policy.kind),
            cx.client,
            number.into(),
            kind,
        ));
    }
}
