//! One session: its messages, its state, and who holds it.

use std::collections::BTreeSet;

use bytes::Bytes;
use uuid::Uuid;

use crate::{ClientId, ReceiverId, SequenceNumber, SessionName, Timestamp};

/// A session as long as there is anything to know about it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) name: SessionName,
    /// How many messages it has, scheduled ones included.
    pub(crate) messages: usize,
    /// Those that nobody has.
    pub(crate) ready: BTreeSet<SequenceNumber>,
    /// Those under a lock, in order: few, and mostly the last one comes and the first one goes. It lasts as long as that of the session.
    pub(crate) locked: Vec<SequenceNumber>,
    /// How many are deferred, locked or not.
    pub(crate) deferred: usize,
    /// How many are not active yet.
    pub(crate) scheduled: usize,
    pub(crate) state: Option<SessionState>,
    pub(crate) lock: Option<SessionLock>,
    /// Whether it is among those that must be served.
    pub(super) is_changed: bool,
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

/// What an application keeps with a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionState {
    pub(crate) bytes: Bytes,
    pub(crate) set_at: Timestamp,
}

impl Session {
    pub(super) fn new(name: SessionName) -> Self {
        Self {
            name,
            messages: 0,
            ready: BTreeSet::new(),
            locked: Vec::new(),
            deferred: 0,
            scheduled: 0,
            state: None,
            lock: None,
            is_changed: false,
        }
    }

    /// Messages that are neither deferred nor scheduled, whoever has them.
    pub(crate) fn active(&self) -> usize {
        self.messages - self.deferred - self.scheduled
    }

    /// Adds a message to those under a lock.
    pub(crate) fn lock_message(&mut self, number: SequenceNumber) {
        if let Err(at) = self.locked.binary_search(&number) {
            self.locked.insert(at, number);
        }
    }

    /// Takes a message from those under a lock.
    pub(crate) fn unlock_message(&mut self, number: SequenceNumber) {
        if let Ok(at) = self.locked.binary_search(&number) {
            self.locked.remove(at);
        }
    }

    /// Its place among the sessions that may be accepted: its oldest ready message (decision D10).
    pub(super) fn place(&self) -> Option<SequenceNumber> {
        match self.lock {
            Some(_) => None,
            None => self.ready.first().copied(),
        }
    }

    /// Whether there is nothing left to know about it.
    pub(super) fn is_over(&self) -> bool {
        self.messages == 0 && self.state.is_none() && self.lock.is_none()
    }

    pub(crate) fn state_size(&self) -> u64 {
        self.state
            .as_ref()
            .map_or(0, |state| state.bytes.len() as u64)
    }
}
