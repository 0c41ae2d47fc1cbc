//! The sessions of a store: which message belongs to which, who holds them, and who waits for one (semantics §6).
//!
//! Only the active store of an entity that requires sessions has this. Every change of a session goes through
//! [`Sessions::change`], which keeps the indexes: the session that is next, the lock that ends next and those who
//! must be served are found without a look at the others.

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
pub(crate) use holding::{Ended, Grant};
use holding::{Standing, Waiting};

/// Places of sessions that are kept where there are none.
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
    /// When session locks end, of several at once the one of the oldest receiver first.
    ends: BTreeMap<(Timestamp, ReceiverId), Slot>,
    /// Sessions that a receiver holds and that have changed since they were served.
    changed: Vec<Slot>,
    /// Who waits for a session or holds one; not those who have lost theirs.
    standings: BTreeMap<ReceiverId, Standing>,
    /// Who waits for any session, in order of arrival.
    waiting: BTreeMap<u64, Waiting>,
    /// The last place given out among those who wait.
    latest: u64,
    /// Messages under the locks of sessions.
    locked: usize,
    /// Bytes of all states.
    state_bytes: u64,
    /// Sessions whose states were set, where that is kept beyond the process.
    touched: Option<BTreeSet<SessionName>>,
}

/// The place of a session in its store.
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
            standings: BTreeMap::new(),
            waiting: BTreeMap::new(),
            latest: 0,
            locked: 0,
            state_bytes: 0,
            touched: None,
        }
    }

    /// All sessions, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.names.values().filter_map(|&slot| self.get(slot))
    }

    /// The session of this name, if there is anything to know about it.
    pub(crate) fn find(&self, name: &SessionName) -> Option<(Slot, &Session)> {
        let slot = *self.names.get(name)?;
        Some((slot, self.get(slot)?))
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&Session> {
        self.slots.get(slot.0 as usize)?.as_ref()
    }

    /// The session that a message belongs to.
    pub(crate) fn of(&self, offset: Offset) -> Option<&Session> {
        self.get(*self.of.get(offset)?)
    }

    /// The messages of a session from `from` on.
    pub(crate) fn offsets(&self, slot: Slot, from: Offset) -> impl Iterator<Item = Offset> {
        self.members.of_from(slot, from)
    }

    /// Messages under the locks of sessions.
    pub(crate) fn locked(&self) -> usize {
        self.locked
    }

    /// Bytes of all states, which count towards the size of the entity.
    pub(crate) fn state_bytes(&self) -> u64 {
        self.state_bytes
    }

    /// When the next lock of a session ends, and of which.
    pub(crate) fn next_end(&self) -> Option<(Timestamp, Slot)> {
        let (&(at, _), &slot) = self.ends.first_key_value()?;
        Some((at, slot))
    }

    /// When the locks of sessions end, the earliest first.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (Timestamp, &SessionName)> {
        let ends = self.ends.iter();
        ends.filter_map(|(&(at, _), &slot)| Some((at, self.get(slot)?.name())))
    }

    /// Notes that a new message belongs to a session.
    pub(crate) fn join(&mut self, offset: Offset, slot: Slot, scheduled: bool) {
        self.of.insert(offset, slot);
        self.members.insert(slot, offset);
        self.change(slot, |session| {
            session.messages += 1;
            session.scheduled += usize::from(scheduled);
        });
    }

    /// Forgets a message that is in no other index any more.
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

    /// Changes the session that a message belongs to.
    fn change_of(&mut self, offset: Offset, change: impl FnOnce(&mut Session)) {
        if let Some(&slot) = self.of.get(offset) {
            self.change(slot, change);
        }
    }

    /// Adds a message to those of its session that are ready.
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

    /// Adds a message to those of its session that are under a lock.
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

    /// Counts a message of a session as deferred, if it was not before.
    pub(crate) fn defer(&mut self, offset: Offset, is_new: bool) {
        self.change_of(offset, |session| session.deferred += usize::from(is_new));
    }

    /// A message of a session is deferred no longer.
    pub(crate) fn undefer(&mut self, offset: Offset) {
        self.change_of(offset, |session| session.deferred -= 1);
    }

    /// Notes that a session has been served.
    fn served(&mut self, slot: Slot) {
        if let Some(Some(session)) = self.slots.get_mut(slot.0 as usize) {
            session.is_changed = false;
        }
    }

    /// Sets or clears the state of a session.
    pub(crate) fn set_state(&mut self, slot: Slot, state: Option<SessionState>) {
        if let Some(touched) = &mut self.touched {
            let session = self.slots[slot.0 as usize].as_ref();
            touched.extend(session.map(|session| session.name.clone()));
        }
        self.change(slot, |session| session.state = state);
    }

    /// Notes from now on whose states are set.
    pub(crate) fn keep_changes(&mut self) {
        self.touched = Some(BTreeSet::new());
    }

    /// The sessions whose states were set since this was last asked.
    pub(crate) fn take_touched(&mut self) -> BTreeSet<SessionName> {
        self.touched
            .as_mut()
            .map_or_else(BTreeSet::new, std::mem::take)
    }

    /// Forgets all states.
    pub(crate) fn clear_states(&mut self) {
        let slots: Vec<Slot> = self.names.values().copied().collect();
        for slot in slots {
            self.set_state(slot, None);
        }
    }

    /// The session of this name, made if need be; its maker gives it something at once.
    pub(crate) fn find_or_make(&mut self, name: &str) -> Option<Slot> {
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

    /// Changes a session, lets the indexes follow, and forgets it when there is nothing left to know about it.
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

    /// Gives back what many sessions took when the last of them is gone.
    fn forget_slots(&mut self) {
        if self.names.is_empty() {
            self.slots.clear();
            self.slots.shrink_to(KEPT_SLOTS);
            self.free.clear();
            self.free.shrink_to(KEPT_SLOTS);
        }
    }
}

/// A session as long as there is anything to know about it.
#[derive(Debug)]
pub(crate) struct Session {
    name: SessionName,
    /// How many messages it has, scheduled ones included.
    messages: usize,
    /// Those that are ready.
    ready: BTreeSet<Offset>,
    /// Those under a lock, which lasts as long as that of the session.
    locked: BTreeSet<Offset>,
    /// How many are deferred, locked or not.
    deferred: usize,
    /// How many are not active yet.
    scheduled: usize,
    state: Option<SessionState>,
    lock: Option<SessionLock>,
    /// Whether it is among those that must be served.
    is_changed: bool,
}

/// Who holds a session, for messages that are there and messages to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionLock {
    pub(crate) receiver: ReceiverId,
    /// Whose receiver it is.
    pub(crate) client: ClientId,
    pub(crate) until: Timestamp,
    /// By which another receiver may take the session over; none where it is held exclusively.
    pub(crate) token: Option<Uuid>,
}

impl SessionLock {
    /// A token that cannot be guessed, by which a session is taken over.
    pub(crate) fn new_token(ids: &mut dyn IdSource) -> Uuid {
        let bits = u128::from(ids.next()) << 64 | u128::from(ids.next());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }
}

/// What an application keeps with a session.
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

    /// Who holds it.
    pub(crate) fn lock(&self) -> Option<SessionLock> {
        self.lock
    }

    pub(crate) fn state(&self) -> Option<&SessionState> {
        self.state.as_ref()
    }

    /// Messages under a lock.
    pub(crate) fn locked(&self) -> &BTreeSet<Offset> {
        &self.locked
    }

    /// Messages that are deferred, locked or not.
    pub(crate) fn deferred(&self) -> usize {
        self.deferred
    }

    /// Messages that are neither deferred nor scheduled, locked ones included.
    pub(crate) fn active(&self) -> usize {
        self.messages - self.deferred - self.scheduled
    }

    /// Its place among the sessions that may be accepted: its oldest ready message (decision D10).
    fn place(&self) -> Option<Offset> {
        match self.lock {
            Some(_) => None,
            None => self.ready.first().copied(),
        }
    }

    /// Whether there is nothing left to know about it.
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
    fn places_of_many_sessions_are_given_back_with_the_last_of_them() {
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
