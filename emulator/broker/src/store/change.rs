//! Every change of an entry and of the indexes that depend on it, and the next deadlines of a store.

use servicebus_codec::DecodeError;

use super::indexes::DeadlineIndex;
use super::sessions::Slot;
use super::{Entry, Lock, MessageStore, State};
use crate::ids::{Offset, ReceiverId};
use crate::message::PropertyChanges;
use crate::time::{Deadline, Timestamp};

impl MessageStore {
    /// Appends `entry`; `session` is its session, if the entity has sessions.
    pub(crate) fn append(&mut self, now: Timestamp, entry: Entry, session: Option<Slot>) -> Offset {
        let offset = self.reserve_offset();
        self.append_at(offset, entry, now, session);
        offset
    }

    /// Reserves the next offset for a message that may arrive later, or never.
    pub(crate) fn reserve_offset(&mut self) -> Offset {
        let offset = self.next;
        self.next = Offset(offset.0 + 1);
        offset
    }

    /// Stores `entry` at its reserved offset, until it becomes active at `at`.
    pub(crate) fn schedule(
        &mut self,
        offset: Offset,
        mut entry: Entry,
        at: Timestamp,
        session: Option<Slot>,
    ) {
        entry.state = State::Scheduled(at);
        self.append_at(offset, entry, at, session);
    }

    /// Stores `entry` at its offset; its time to live begins at `begin`.
    fn append_at(
        &mut self,
        offset: Offset,
        mut entry: Entry,
        begin: Timestamp,
        session: Option<Slot>,
    ) {
        self.size += entry.message.size();
        let lifetime = self.policy.lifetime(entry.time_to_live());
        entry.expires_at = lifetime.map(|lifetime| begin + lifetime).into();
        let (expires_at, activates_at) = (entry.expires_at, entry.activates_at());
        let auto_forwards = self.auto_forwards(offset, entry.stays);
        self.entries.insert(offset, entry);
        self.record_added(offset);
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
            self.mark_for_forwarding(offset);
        } else {
            self.make_ready(offset);
        }
    }

    /// Removes an entry from every index.
    pub(crate) fn remove(&mut self, offset: Offset) -> Option<Entry> {
        let entry = self.entries.remove(offset)?;
        self.record_removed(offset, entry.message.body_id());
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
        self.suspend_expiry(offset, entry.expires_at);
        if let Some(sessions) = &mut self.sessions {
            sessions.leave(offset, &entry);
        }
        Some(entry)
    }

    /// Puts a reserved, locked or forwarded entry back: at its offset, deferred again if it was deferred, or to be forwarded
    /// if the store forwards.
    pub(crate) fn requeue(&mut self, offset: Offset) {
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
            self.record_changed(offset);
            if lock.deferred {
                return;
            }
        }
        if let Some(at) = expires_at.get() {
            self.expiries.insert(at, offset);
        }
        if self.auto_forwards(offset, stays) {
            self.mark_for_forwarding(offset);
        } else {
            self.make_ready(offset);
        }
    }

    /// Ends the lock of an entry and defers it.
    pub(crate) fn defer(&mut self, offset: Offset) {
        if let Some(entry) = self.entries.get_mut(offset)
            && let State::Locked(lock) = entry.state
        {
            entry.state = State::Deferred;
            self.deferred += usize::from(!lock.deferred);
            self.unlock(offset, lock);
            self.record_changed(offset);
            if let Some(sessions) = &mut self.sessions {
                sessions.defer(offset, !lock.deferred);
            }
        }
    }

    /// Makes a deferred entry that is not locked ready again, at its offset.
    pub(crate) fn undefer(&mut self, offset: Offset) {
        if self.get(offset).is_some_and(Entry::is_deferred_unlocked) {
            self.deferred -= 1;
            self.record_changed(offset);
            if let Some(sessions) = &mut self.sessions {
                sessions.undefer(offset);
            }
            self.requeue(offset);
        }
    }

    /// Locks an entry that is ready, or that is reserved for the receiver that locks it.
    pub(crate) fn lock(&mut self, offset: Offset, lock: Lock) {
        let Some(entry) = self.entries.get_mut(offset) else {
            return;
        };
        entry.state = State::Locked(lock);
        let expires_at = entry.expires_at;
        self.record_changed(offset);
        self.suspend_expiry(offset, expires_at);
        if let Some(until) = lock.until.get() {
            self.locks.insert(until, offset);
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.lock(offset);
        } else if self.policy.releases_on_detach() {
            self.receivers.hold(lock.receiver, offset);
        }
    }

    /// Reserves a ready entry for a receiver.
    pub(crate) fn reserve_to(&mut self, receiver: ReceiverId, offset: Offset) {
        self.take_from_ready(offset);
        if let Some(entry) = self.entries.get_mut(offset) {
            entry.state = State::Reserved(receiver);
        }
    }

    /// Marks an entry as ready.
    pub(super) fn make_ready(&mut self, offset: Offset) {
        match &mut self.sessions {
            Some(sessions) => sessions.make_ready(offset),
            None => {
                self.ready.insert((), offset);
                if self.receivers.have_selectors() {
                    self.receivers.mark_ready(offset);
                }
            }
        }
    }

    pub(crate) fn take_from_ready(&mut self, offset: Offset) {
        match &mut self.sessions {
            Some(sessions) => sessions.take_from_ready(offset),
            None => {
                self.ready.remove((), offset);
                self.forget_returned(offset);
            }
        }
    }

    /// Records the former lock holder of an entry that is ready again: other receivers are served first (spec/observed.md
    /// 17).
    pub(crate) fn mark_returned(&mut self, offset: Offset, former: ReceiverId) {
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

    /// Removes a locked or forwarded entry from the index of expiries until that is over.
    pub(crate) fn suspend_expiry(&mut self, offset: Offset, expires_at: Deadline) {
        if let Some(at) = expires_at.get() {
            self.expiries.remove(at, offset);
        }
    }

    /// Renews a lock that has its own deadline; returns its new end.
    pub(crate) fn renew_lock(&mut self, offset: Offset, now: Timestamp) -> Option<Timestamp> {
        let State::Locked(lock) = &mut self.entries.get_mut(offset)?.state else {
            return None;
        };
        let before = lock.until.get()?;
        let until = self.policy.renewed_until(now, before);
        lock.until = until.into();
        self.locks.remove(before, offset);
        self.locks.insert(until, offset);
        self.record_changed(offset);
        Some(until)
    }

    /// Renews the lock of a session; returns its new end.
    pub(crate) fn renew_session(&mut self, slot: Slot, now: Timestamp) -> Option<Timestamp> {
        let policy = &self.policy;
        let sessions = self.sessions.as_mut()?;
        // A due lock with many messages ends in several steps.
        let is_held = sessions.get(slot)?.lock()?.until > now;
        is_held.then(|| sessions.renew(slot, |before| policy.renewed_until(now, before)))?
    }

    /// Counts a delivery whose lock has ended; returns the holder of the lock and the number of failed deliveries.
    pub(crate) fn count_lock_expiry(
        &mut self,
        offset: Offset,
    ) -> Option<(Option<ReceiverId>, u32)> {
        let entry = self.entries.get_mut(offset)?;
        entry.delivery_count += u32::from(self.policy.is_active());
        let counted = (entry.lock().map(|lock| lock.receiver), entry.delivery_count);
        self.record_changed(offset);
        Some(counted)
    }

    /// Removes an ended lock from the indexes.
    fn unlock(&mut self, offset: Offset, lock: Lock) {
        if let Some(until) = lock.until.get() {
            self.locks.remove(until, offset);
        }
        if let Some(enlistments) = &mut self.enlistments {
            enlistments.remove(offset);
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.unlock(offset);
        } else if self.policy.releases_on_detach() {
            self.receivers.release_lock(lock.receiver, offset);
        }
    }

    /// Changes when an entry expires.
    pub(crate) fn reschedule_expiry(&mut self, offset: Offset, expires_at: Deadline) {
        let Some(entry) = self.entries.get_mut(offset) else {
            return;
        };
        let before = std::mem::replace(&mut entry.expires_at, expires_at);
        let can_expire = entry.can_expire() && !self.forwards.is_in_transfer(offset);
        self.suspend_expiry(offset, before);
        self.record_changed(offset);
        if let Some(at) = expires_at.get().filter(|_| can_expire) {
            self.expiries.insert(at, offset);
        }
    }

    /// Sets application properties of an entry; changes nothing if they do not fit.
    pub(crate) fn change_properties(
        &mut self,
        offset: Offset,
        changes: &PropertyChanges,
    ) -> Result<(), DecodeError> {
        if let Some(entry) = self.entries.get_mut(offset) {
            let before = entry.message.size();
            entry.message.change_properties(changes)?;
            self.size = self.size - before + entry.message.size();
            self.record_changed(offset);
        }
        Ok(())
    }

    /// Sets application properties of an entry and counts a delivery that did not complete; returns the number of such
    /// deliveries.
    pub(crate) fn count_delivery(
        &mut self,
        offset: Offset,
        changes: &PropertyChanges,
    ) -> Result<u32, DecodeError> {
        self.change_properties(offset, changes)?;
        let counts = self.policy.is_active();
        self.record_changed(offset);
        let entry = self.entries.get_mut(offset);
        Ok(entry.map_or(0, |entry| {
            entry.delivery_count += u32::from(counts);
            entry.delivery_count
        }))
    }
}

/// The next deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    LockEnd(Timestamp, Offset),
    SessionLockEnd(Timestamp, Slot),
    /// A message expires.
    Expiry(Timestamp, Offset),
    /// A scheduled message becomes active.
    Activation(Timestamp, Offset),
    /// Dead letters that the target refused are forwarded again.
    Retry(Timestamp),
}

impl MessageStore {
    /// Returns false if nothing is due by `now`; true if something may be.
    pub(crate) fn may_be_due(&self, now: Timestamp) -> bool {
        let instants = [&self.locks, &self.expiries, &self.activations];
        let session_end = self.sessions.as_ref().and_then(|all| all.next_end());
        instants.into_iter().any(|all| all.may_be_due(now))
            || session_end.is_some_and(|(at, _)| at <= now)
            || self.forwards.retry_at().is_some_and(|at| at <= now)
    }

    /// Updates the bounds after everything due has run.
    pub(crate) fn update_bounds(&mut self) {
        for instants in [&mut self.locks, &mut self.expiries, &mut self.activations] {
            instants.follow();
        }
    }

    /// Returns the next deadline that a client may wait for, and whether it is the end of a lock whose holder is still
    /// attached. Leaves out expiry and retries of forwarding.
    pub(crate) fn next_awaited(&self) -> Option<(Timestamp, bool)> {
        let lock_end = self.locks.first().map(|(at, offset)| {
            let lock = self.get(offset).and_then(|entry| entry.lock());
            let is_held = lock.is_some_and(|lock| self.receivers.knows(lock.receiver));
            (at, is_held)
        });
        // A link that detaches releases its session.
        let session_end = self.sessions.as_ref().and_then(|all| all.next_end());
        let session_end = session_end.map(|(at, _)| (at, true));
        let activation = self.activations.first().map(|(at, _)| (at, false));
        let all = [lock_end, session_end, activation].into_iter().flatten();
        all.min_by_key(|(at, _)| *at)
    }

    /// Returns when locks with their own deadlines end.
    pub(crate) fn lock_ends(&self) -> &DeadlineIndex {
        &self.locks
    }

    /// Returns when messages expire.
    pub(crate) fn expiries(&self) -> &DeadlineIndex {
        &self.expiries
    }

    /// Returns when scheduled messages become active.
    pub(crate) fn activations(&self) -> &DeadlineIndex {
        &self.activations
    }

    /// Returns when forwarding is retried.
    pub(crate) fn forward_retry_at(&self) -> Option<Timestamp> {
        self.forwards.retry_at()
    }

    /// Returns the next deadline, if any.
    pub(crate) fn next_due(&self) -> Option<Due> {
        let lock_end = self.locks.first();
        let lock_end = lock_end.map(|(at, n)| Due::LockEnd(at, n));
        let session_end = self.sessions.as_ref().and_then(|all| all.next_end());
        let session_end = session_end.map(|(at, slot)| Due::SessionLockEnd(at, slot));
        let expiry = (self
            .expiries
            .first()
            .filter(|_| self.policy.lets_expire(self.has_waiting_receiver())))
        .map(|(at, n)| Due::Expiry(at, n));
        let activation = self.activations.first();
        let activation = activation.map(|(at, n)| Due::Activation(at, n));
        let retry = self.forwards.retry_at().map(Due::Retry);
        [lock_end, session_end, expiry, activation, retry]
            .into_iter()
            .flatten()
            .min_by_key(|due| due.at())
    }
}

impl Due {
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
