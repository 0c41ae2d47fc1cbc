//! Who holds a session, and who waits for one.

use uuid::Uuid;

use super::{Sessions, Slot};
use crate::ids::{ClientId, Offset, ReceiverId, SessionName};
use crate::store::sessions::SessionLock;
use crate::time::Timestamp;

/// How a receiver stands to the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It waits for any session, at this place in the order of arrival.
    Waits(u64),
    Holds(Slot),
}

/// A receiver that waits for any session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) receiver: ReceiverId,
    pub(crate) client: ClientId,
    pub(crate) exclusive: bool,
}

/// A session that goes to the first who waits.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) session: SessionName,
    pub(crate) lock: SessionLock,
}

/// What is left when a receiver holds a session no more.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) session: SessionName,
    pub(crate) lock: SessionLock,
    /// What was locked under it, in order.
    pub(crate) locked: Vec<Offset>,
}

impl Sessions {
    /// Lets a receiver hold a session that is free.
    pub(crate) fn hold(&mut self, name: &SessionName, lock: SessionLock) {
        if let Some(slot) = self.find_or_make(name.as_str()) {
            self.hold_slot(slot, lock);
        }
    }

    /// Lets a receiver wait for any session, behind everybody who waits.
    pub(crate) fn wait(&mut self, receiver: ReceiverId, client: ClientId, exclusive: bool) {
        self.latest += 1;
        let waiting = Waiting {
            receiver,
            client,
            exclusive,
        };
        self.waiting.insert(self.latest, waiting);
        self.standings
            .insert(receiver, Standing::Waits(self.latest));
    }

    /// The receivers that wait for a session, in order of arrival.
    pub(crate) fn awaiting(&self) -> impl Iterator<Item = ReceiverId> {
        self.waiting.values().map(|waiting| waiting.receiver)
    }

    /// Whether a receiver waits for a session.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Hands the next session to the first who waits, if there are both; under a new token if it may be taken over.
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

    /// The session that a receiver holds.
    pub(crate) fn held_by(&self, receiver: ReceiverId) -> Option<Slot> {
        match self.standings.get(&receiver)? {
            Standing::Waits(_) => None,
            Standing::Holds(slot) => Some(*slot),
        }
    }

    /// Whether a receiver waits for a session or holds one.
    pub(crate) fn knows(&self, receiver: ReceiverId) -> bool {
        self.standings.contains_key(&receiver)
    }

    /// Every session that a receiver holds.
    pub(crate) fn held(&self) -> Vec<Slot> {
        let standings = self.standings.keys();
        standings.filter_map(|&id| self.held_by(id)).collect()
    }

    /// Lets the lock of a session last until `until` has it; returns its end.
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

    /// Ends the waiting of a receiver.
    pub(crate) fn stop_waiting(&mut self, receiver: ReceiverId) {
        if let Some(&Standing::Waits(place)) = self.standings.get(&receiver) {
            self.standings.remove(&receiver);
            self.waiting.remove(&place);
        }
    }

    /// Ends the lock of a session; what is locked under it is left to the caller.
    pub(crate) fn end(&mut self, slot: Slot) -> Option<Ended> {
        let session = self.get(slot)?;
        let ended = Ended {
            session: session.name.clone(),
            lock: session.lock?,
            locked: session.locked.iter().copied().collect(),
        };
        self.standings.remove(&ended.lock.receiver);
        self.change(slot, |session| session.lock = None);
        Some(ended)
    }

    /// Notes that a receiver may be served more than before.
    pub(crate) fn credit_changed(&mut self, receiver: ReceiverId) {
        if let Some(slot) = self.held_by(receiver) {
            // What its holder can take is a change of it.
            self.change(slot, |_| ());
        }
    }

    fn hold_slot(&mut self, slot: Slot, lock: SessionLock) {
        self.standings.insert(lock.receiver, Standing::Holds(slot));
        self.change(slot, |session| session.lock = Some(lock));
    }
}
