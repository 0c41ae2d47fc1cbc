//! The holders of sessions, and the receivers that wait for one.

use uuid::Uuid;

use super::{Sessions, Slot};
use crate::ids::{ClientId, Offset, ReceiverId, SessionName};
use crate::store::sessions::SessionLock;
use crate::time::Timestamp;

/// The state of a receiver with respect to sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionReceiverState {
    /// It waits for any session, at this place in the order of arrival.
    Waits(u64),
    Holds(Slot),
}

/// A receiver that waits for any session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitingReceiver {
    pub(crate) receiver: ReceiverId,
    pub(crate) client: ClientId,
    pub(crate) exclusive: bool,
}

/// A session for the first waiting receiver.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) session: SessionName,
    pub(crate) lock: SessionLock,
}

/// A session lock that has ended.
#[derive(Debug)]
pub(crate) struct EndedLock {
    pub(crate) session: SessionName,
    pub(crate) lock: SessionLock,
    /// The messages that were locked under it, in order.
    pub(crate) locked: Vec<Offset>,
}

impl Sessions {
    /// Gives a receiver a free session.
    pub(crate) fn hold(&mut self, name: &SessionName, lock: SessionLock) {
        if let Some(slot) = self.find_or_create(name.as_str()) {
            self.hold_slot(slot, lock);
        }
    }

    /// Queues a receiver for any session.
    pub(crate) fn wait(&mut self, receiver: ReceiverId, client: ClientId, exclusive: bool) {
        self.latest += 1;
        let waiting = WaitingReceiver {
            receiver,
            client,
            exclusive,
        };
        self.waiting.insert(self.latest, waiting);
        self.receiver_states
            .insert(receiver, SessionReceiverState::Waits(self.latest));
    }

    /// Returns the receivers that wait for a session, in order of arrival.
    pub(crate) fn awaiting(&self) -> impl Iterator<Item = ReceiverId> {
        self.waiting.values().map(|waiting| waiting.receiver)
    }

    /// Returns whether a receiver waits for a session.
    pub(crate) fn has_waiting_receiver(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Grants the next session to the first waiting receiver, if there are both; with a new token if it may be taken over.
    pub(crate) fn grant_next(
        &mut self,
        until: Timestamp,
        new_token: impl FnOnce() -> Uuid,
    ) -> Option<Grant> {
        let (_, &slot) = self.available.first_key_value()?;
        let session = self.get(slot)?.name.clone();
        let (_, first) = self.waiting.pop_first()?;
        let lock = SessionLock {
            receiver: first.receiver,
            client: first.client,
            until,
            token: (!first.exclusive).then(new_token),
        };
        self.hold_slot(slot, lock);
        Some(Grant { session, lock })
    }

    /// Returns the session that a receiver holds.
    pub(crate) fn held_by(&self, receiver: ReceiverId) -> Option<Slot> {
        match self.receiver_states.get(&receiver)? {
            SessionReceiverState::Waits(_) => None,
            SessionReceiverState::Holds(slot) => Some(*slot),
        }
    }

    /// Returns whether a receiver waits for a session or holds one.
    pub(crate) fn knows(&self, receiver: ReceiverId) -> bool {
        self.receiver_states.contains_key(&receiver)
    }

    /// Returns every session that a receiver holds.
    pub(crate) fn held(&self) -> Vec<Slot> {
        let receiver_states = self.receiver_states.keys();
        receiver_states.filter_map(|&id| self.held_by(id)).collect()
    }

    /// Extends the lock of a session to the end that `until` computes; returns that end.
    pub(crate) fn renew(
        &mut self,
        slot: Slot,
        until: impl FnOnce(Timestamp) -> Timestamp,
    ) -> Option<Timestamp> {
        let mut end = None;
        self.change(slot, |session| {
            if let Some(lock) = &mut session.lock {
                lock.until = until(lock.until);
                end = Some(lock.until);
            }
        });
        end
    }

    /// Removes a receiver from the waiting ones.
    pub(crate) fn stop_waiting(&mut self, receiver: ReceiverId) {
        if let Some(&SessionReceiverState::Waits(place)) = self.receiver_states.get(&receiver) {
            self.receiver_states.remove(&receiver);
            self.waiting.remove(&place);
        }
    }

    /// Ends the lock of a session; the caller handles the messages locked under it.
    pub(crate) fn end(&mut self, slot: Slot) -> Option<EndedLock> {
        let session = self.get(slot)?;
        let ended = EndedLock {
            session: session.name.clone(),
            lock: session.lock?,
            locked: session.locked.iter().copied().collect(),
        };
        self.receiver_states.remove(&ended.lock.receiver);
        self.change(slot, |session| session.lock = None);
        Some(ended)
    }

    /// Marks the sessions of a receiver to be served with its new credit.
    pub(crate) fn credit_changed(&mut self, receiver: ReceiverId) {
        if let Some(slot) = self.held_by(receiver) {
            // A change of the holder's credit counts as a change of the session.
            self.change(slot, |_| ());
        }
    }

    fn hold_slot(&mut self, slot: Slot, lock: SessionLock) {
        self.receiver_states
            .insert(lock.receiver, SessionReceiverState::Holds(slot));
        self.change(slot, |session| session.lock = Some(lock));
    }
}
