//! The sessions of a store: their messages, holders and waiting receivers (semantics §6).
//!
//! Only the active store of an entity that requires sessions has them. Every change of a session goes through
//! [`Sessions::change`], which updates the indexes: the next session, the next end of a lock and the sessions to serve are
//! found without a look at the others.

mod holding;
#[cfg(any(test, feature = "check"))]
mod invariants;
mod serving;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use uuid::Uuid;

use super::Entry;
use super::indexes::{SegmentedMap, SequenceSet};
use crate::ids::{ClientId, IdSource, Offset, ReceiverId, SessionName};
use crate::time::Timestamp;
pub(crate) use holding::{EndedLock, Grant};
use holding::{SessionReceiverState, WaitingReceiver};

/// Slots whose memory is kept when there are no sessions.
const KEPT_SLOTS: usize = 64;

/// The sessions of one store.
#[derive(Debug)]
pub(crate) struct Sessions {
    names: BTreeMap<SessionName, Slot>,
    slots: Vec<Option<Session>>,
    /// Slots without a session.
    free: Vec<Slot>,
    /// The session of each message.
    of: SegmentedMap<Slot>,
    /// The messages of each session.
    members: SequenceSet<Slot>,
    /// Sessions that may be accepted, by their oldest ready message (decision D10).
    available: BTreeMap<Offset, Slot>,
    /// When session locks end; at the same instant the one of the oldest receiver first.
    ends: BTreeMap<(Timestamp, ReceiverId), Slot>,
    /// Held sessions that have changed since they were served.
    changed: Vec<Slot>,
    /// Receivers that wait for a session or hold one; not those that have lost theirs.
    receiver_states: BTreeMap<ReceiverId, SessionReceiverState>,
    /// Receivers that wait for any session, in order of arrival.
    waiting: BTreeMap<u64, WaitingReceiver>,
    /// The last place given to a waiting receiver.
    latest: u64,
    /// Messages under the locks of sessions.
    locked: usize,
    /// Bytes of all states.
    state_bytes: u64,
    /// Sessions whose states were set, if changes are stored.
    changed_entries: Option<BTreeSet<SessionName>>,
}

/// The index of a session in its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(u32);

impl Sessions {
    pub(crate) fn new() -> Self {
        Self {
            names: BTreeMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            of: SegmentedMap::new(),
            members: SequenceSet::new(),
            available: BTreeMap::new(),
            ends: BTreeMap::new(),
            changed: Vec::new(),
            receiver_states: BTreeMap::new(),
            waiting: BTreeMap::new(),
            latest: 0,
            locked: 0,
            state_bytes: 0,
            changed_entries: None,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.names.values().filter_map(|&slot| self.get(slot))
    }

    /// Returns the session of this name, if it is known.
    pub(crate) fn find(&self, name: &SessionName) -> Option<(Slot, &Session)> {
        let slot = *self.names.get(name)?;
        Some((slot, self.get(slot)?))
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Session> {
        self.slots.get(slot.0 as usize)?.as_ref()
    }

    pub(crate) fn of(&self, offset: Offset) -> Option<&Session> {
        self.get(*self.of.get(offset)?)
    }

    /// Returns the messages of a session from `from` on.
    pub(crate) fn offsets(&self, slot: Slot, from: Offset) -> impl Iterator<Item = Offset> {
        self.members.of_from(slot, from)
    }

    /// Returns the number of messages under the locks of sessions.
    pub(crate) fn locked(&self) -> usize {
        self.locked
    }

    /// Returns the bytes of all states, which count towards the size of the entity.
    pub(crate) fn state_bytes(&self) -> u64 {
        self.state_bytes
    }

    /// Returns when the next lock of a session ends, and the session.
    pub(crate) fn next_end(&self) -> Option<(Timestamp, Slot)> {
        let (&(at, _), &slot) = self.ends.first_key_value()?;
        Some((at, slot))
    }

    /// Returns when the locks of sessions end, the earliest first.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (Timestamp, &SessionName)> {
        let ends = self.ends.iter();
        ends.filter_map(|(&(at, _), &slot)| Some((at, self.get(slot)?.name())))
    }

    /// Adds a new message to a session.
    pub(crate) fn join(&mut self, offset: Offset, slot: Slot, scheduled: bool) {
        self.of.insert(offset, slot);
        self.members.insert(slot, offset);
        self.change(slot, |session| {
            session.messages += 1;
            session.scheduled += usize::from(scheduled);
        });
    }

    /// Removes a message that is in no other index any more.
    pub(crate) fn leave(&mut self, offset: Offset, entry: &Entry) {
        let Some(slot) = self.of.remove(offset) else {
            return;
        };
        self.members.remove(slot, offset);
        self.change(slot, |session| {
            session.messages -= 1;
            session.deferred -= usize::from(entry.is_deferred());
            session.scheduled -= usize::from(entry.activates_at().is_some());
        });
    }

    /// Changes the session of a message.
    fn change_of(&mut self, offset: Offset, change: impl FnOnce(&mut Session)) {
        if let Some(&slot) = self.of.get(offset) {
            self.change(slot, change);
        }
    }

    /// Adds a message to the ready ones of its session.
    pub(crate) fn make_ready(&mut self, offset: Offset) {
        self.change_of(offset, |session| {
            session.ready.insert(offset);
        });
    }

    pub(crate) fn take_from_ready(&mut self, offset: Offset) {
        self.change_of(offset, |session| {
            session.ready.remove(&offset);
        });
    }

    /// Adds a message to the locked ones of its session.
    pub(crate) fn lock(&mut self, offset: Offset) {
        self.change_of(offset, |session| {
            session.locked.insert(offset);
        });
    }

    pub(crate) fn unlock(&mut self, offset: Offset) {
        self.change_of(offset, |session| {
            session.locked.remove(&offset);
        });
    }

    /// Counts a message of a session as deferred, if `is_new`.
    pub(crate) fn defer(&mut self, offset: Offset, is_new: bool) {
        self.change_of(offset, |session| session.deferred += usize::from(is_new));
    }

    /// Counts a message of a session as no longer deferred.
    pub(crate) fn undefer(&mut self, offset: Offset) {
        self.change_of(offset, |session| session.deferred -= 1);
    }

    /// Marks a session as served.
    fn served(&mut self, slot: Slot) {
        if let Some(Some(session)) = self.slots.get_mut(slot.0 as usize) {
            session.is_changed = false;
        }
    }

    pub(crate) fn set_state(&mut self, slot: Slot, state: Option<SessionState>) {
        if let Some(changed_entries) = &mut self.changed_entries {
            let session = self.slots[slot.0 as usize].as_ref();
            changed_entries.extend(session.map(|session| session.name.clone()));
        }
        self.change(slot, |session| session.state = state);
    }

    /// Records set states from now on.
    pub(crate) fn record_changes(&mut self) {
        self.changed_entries = Some(BTreeSet::new());
    }

    /// Takes the sessions whose states were set since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<SessionName> {
        self.changed_entries
            .as_mut()
            .map_or_else(BTreeSet::new, std::mem::take)
    }

    pub(crate) fn clear_states(&mut self) {
        let slots: Vec<Slot> = self.names.values().copied().collect();
        for slot in slots {
            self.set_state(slot, None);
        }
    }

    /// Returns the session of this name, created if needed; the caller must use it at once.
    pub(crate) fn find_or_create(&mut self, name: &str) -> Option<Slot> {
        if let Some(&slot) = self.names.get(name) {
            return Some(slot);
        }
        let name = SessionName::new(name)?;
        let session = Some(Session::new(name.clone()));
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot.0 as usize] = session;
                slot
            }
            None => {
                self.slots.push(session);
                Slot((self.slots.len() - 1) as u32)
            }
        };
        self.names.insert(name, slot);
        Some(slot)
    }

    /// Changes a session, updates the indexes, and removes the session when it is empty.
    fn change(&mut self, slot: Slot, change: impl FnOnce(&mut Session)) {
        let Some(Some(session)) = self.slots.get_mut(slot.0 as usize) else {
            return;
        };
        let (place, lock) = (session.place(), session.lock);
        self.state_bytes -= session.state_size();
        self.locked -= session.locked.len();
        change(session);
        self.state_bytes += session.state_size();
        self.locked += session.locked.len();
        let (new_place, new_lock) = (session.place(), session.lock);
        if place != new_place {
            place.map(|place| self.available.remove(&place));
            new_place.map(|place| self.available.insert(place, slot));
        }
        if lock != new_lock {
            lock.map(|lock| self.ends.remove(&(lock.until, lock.receiver)));
            new_lock.map(|lock| self.ends.insert((lock.until, lock.receiver), slot));
        }
        if new_lock.is_some() && !std::mem::replace(&mut session.is_changed, true) {
            self.changed.push(slot);
        }
        if session.is_over() {
            self.names.remove(&session.name);
            self.slots[slot.0 as usize] = None;
            self.free.push(slot);
            self.forget_slots();
        }
    }

    /// Frees the memory of many sessions once the last is gone.
    fn forget_slots(&mut self) {
        if self.names.is_empty() {
            self.slots.clear();
            self.slots.shrink_to(KEPT_SLOTS);
            self.free.clear();
            self.free.shrink_to(KEPT_SLOTS);
        }
    }
}

/// A session, which exists while it has messages, a holder or a state.
#[derive(Debug)]
pub(crate) struct Session {
    name: SessionName,
    /// The number of messages, scheduled ones included.
    messages: usize,
    ready: BTreeSet<Offset>,
    /// Locked messages; their locks are that of the session.
    locked: BTreeSet<Offset>,
    /// The number of deferred messages, locked or not.
    deferred: usize,
    /// The number of messages that are not active yet.
    scheduled: usize,
    state: Option<SessionState>,
    lock: Option<SessionLock>,
    /// Whether it is among the sessions to serve.
    is_changed: bool,
}

/// The holder of a session, for present and future messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionLock {
    pub(crate) receiver: ReceiverId,
    /// The client of the receiver.
    pub(crate) client: ClientId,
    pub(crate) until: Timestamp,
    /// The token by which another receiver can take the session over; `None` if it is held exclusively.
    pub(crate) token: Option<Uuid>,
}

impl SessionLock {
    /// Creates an unpredictable takeover token.
    pub(crate) fn new_token(ids: &mut dyn IdSource) -> Uuid {
        let bits = u128::from(ids.next()) << 64 | u128::from(ids.next());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }
}

/// The application's state of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionState {
    pub(crate) bytes: Bytes,
    pub(crate) set_at: Timestamp,
}

impl Session {
    fn new(name: SessionName) -> Self {
        Self {
            name,
            messages: 0,
            ready: BTreeSet::new(),
            locked: BTreeSet::new(),
            deferred: 0,
            scheduled: 0,
            state: None,
            lock: None,
            is_changed: false,
        }
    }

    pub(crate) fn name(&self) -> &SessionName {
        &self.name
    }

    pub(crate) fn lock(&self) -> Option<SessionLock> {
        self.lock
    }

    pub(crate) fn state(&self) -> Option<&SessionState> {
        self.state.as_ref()
    }

    pub(crate) fn locked(&self) -> &BTreeSet<Offset> {
        &self.locked
    }

    /// Returns whether a message of it is ready.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the number of deferred messages, locked or not.
    pub(crate) fn deferred(&self) -> usize {
        self.deferred
    }

    /// Returns the number of messages that are neither deferred nor scheduled, locked ones included.
    pub(crate) fn active(&self) -> usize {
        self.messages - self.deferred - self.scheduled
    }

    /// Returns its place among the available sessions: its oldest ready message (decision D10).
    fn place(&self) -> Option<Offset> {
        match self.lock {
            Some(_) => None,
            None => self.ready.first().copied(),
        }
    }

    /// Returns whether it is empty and can be removed.
    fn is_over(&self) -> bool {
        self.messages == 0 && self.state.is_none() && self.lock.is_none()
    }

    pub(crate) fn state_size(&self) -> u64 {
        self.state
            .as_ref()
            .map_or(0, |state| state.bytes.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slots_of_many_sessions_are_freed_with_the_last_session() {
        const SESSIONS: u64 = 10_000;
        let mut sessions = Sessions::new();
        for id in 1..=SESSIONS {
            let name = SessionName::new(&id.to_string()).expect("a session id");
            let lock = SessionLock {
                receiver: ReceiverId(id),
                client: ClientId(1),
                until: Timestamp::default(),
                token: None,
            };
            sessions.hold(&name, lock);
        }
        for slot in sessions.held() {
            sessions.end(slot).expect("it is held");
        }
        let room = sessions.slots.capacity() + sessions.free.capacity();
        assert!(room <= 2 * KEPT_SLOTS, "room for {room}");
    }
}
