//! What time will do to the messages of a store.

use super::MessageStore;
use super::sessions::Slot;
use crate::ids::Offset;
use crate::time::Timestamp;

/// What time brings about next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A lock ends.
    LockEnd(Timestamp, Offset),
    /// The lock of a session ends.
    SessionLockEnd(Timestamp, Slot),
    /// A message expires.
    Expiry(Timestamp, Offset),
    /// A scheduled message becomes active.
    Activation(Timestamp, Offset),
    /// Dead letters are tried again that their target entity refused.
    Retry(Timestamp),
}

impl MessageStore {
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

    /// When time next does something that a client may wait for, and whether it is the end of a lock whose holder is still
    /// attached. That messages expire and that forwarding is tried again is none of it.
    pub(crate) fn next_awaited(&self) -> Option<(Timestamp, bool)> {
        let lock_end = self.locks.first().map(|(at, offset)| {
            let lock = self.get(offset).and_then(|entry| entry.lock());
            let is_held = lock.is_some_and(|lock| self.receivers.knows(lock.receiver));
            (at, is_held)
        });
        // The link that holds a session gives it back where it is detached.
        let session_end = self.sessions.as_ref().and_then(|all| all.next_end());
        let session_end = session_end.map(|(at, _)| (at, true));
        let activation = self.activations.first().map(|(at, _)| (at, false));
        let all = [lock_end, session_end, activation].into_iter().flatten();
        all.min_by_key(|(at, _)| *at)
    }

    /// What time brings about next, if anything.
    pub(crate) fn next_due(&self) -> Option<Due> {
        let lock_end = self.locks.first();
        let lock_end = lock_end.map(|(at, n)| Due::LockEnd(at, n));
        let session_end = self.sessions.as_ref().and_then(|all| all.next_end());
        let session_end = session_end.map(|(at, slot)| Due::SessionLockEnd(at, slot));
        let expiry = (self
            .expiries
            .first()
            .filter(|_| self.policy.lets_expire(self.is_awaited())))
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
