//! The lock of a session is renewed, expires, or ends because its holder detaches (semantics §6).

use thiserror::Error;

use crate::context::{Context, Effect};
use crate::entity::Entity;
use crate::entity::operation::send::SendError;
use crate::event::{EventKind, Text};
use crate::ids::{ClientId, ReceiverId, SessionName, SubQueue};
use crate::store::sessions::{EndedLock, Session, SessionLock, Sessions, Slot};
use crate::time::Timestamp;

/// Maximum number of messages that lose their locks together with their session in one step.
const LOCKED_AT_ONCE: usize = 1024;

/// Why an operation for the holder of a session failed; nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SessionError {
    /// The client does not hold the session, or no longer.
    #[error("the lock of session '{0}' is not held")]
    LockLost(SessionName),
    /// The state is larger than allowed (semantics §1).
    #[error("the state of a session has {size} bytes, at most {limit} are allowed")]
    StateTooLarge {
        /// Size of the state in bytes.
        size: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The entity is full.
    #[error(transparent)]
    Full(#[from] SendError),
    /// The entity does not allow receiving now; the lock continues (decision D27).
    #[error("the entity is disabled")]
    Disabled,
    /// The entity does not require sessions.
    #[error("the entity has no sessions")]
    NoSessions,
}

impl Entity {
    /// Renews the lock of a session that a receiver of `client` holds: the lock of the session and of every message under it
    /// lasts from now for the lock duration. Returns its new end.
    pub fn renew_session_lock(
        &mut self,
        cx: &mut Context<'_>,
        client: ClientId,
        session: &SessionName,
    ) -> Result<Timestamp, SessionError> {
        self.client_operation(cx, |entity, cx| {
            let slot = entity.session_of_client(client, session, cx.now)?;
            let renewed = entity.active.renew_session(slot, cx.now);
            let lost = || SessionError::LockLost(session.clone());
            let locked_until = renewed.ok_or_else(lost)?;
            entity.record_session(cx, session, |session| EventKind::SessionLockRenewed {
                session,
                locked_until,
            });
            Ok(locked_until)
        })
    }

    /// Ends the lock of a session as if its time were over; returns false if no receiver holds it.
    pub fn lose_session_lock(&mut self, cx: &mut Context<'_>, session: &SessionName) -> bool {
        self.follow_up(cx, |entity, cx| {
            let found = entity.active.sessions().and_then(|all| all.find(session));
            let held = found.filter(|(_, session)| session.lock().is_some());
            let slot = held.map(|(slot, _)| slot);
            if let Some(slot) = slot {
                entity.session_lock_expired(cx, slot);
            }
            slot.is_some()
        })
    }

    /// Returns the receiver that holds a session.
    pub fn session_holder(&self, session: &SessionName) -> Option<ReceiverId> {
        let (_, session) = self.active.sessions()?.find(session)?;
        Some(session.lock()?.receiver)
    }

    /// Returns whether a receiver other than `receiver` holds a session that may be taken over.
    pub fn is_superseded(&self, receiver: ReceiverId, session: &SessionName) -> bool {
        let found = self.active.sessions().and_then(|all| all.find(session));
        let lock = found.and_then(|(_, session)| session.lock());
        lock.is_some_and(|lock| lock.token.is_some() && lock.receiver != receiver)
    }

    /// Returns the session of this name, if a receiver of this client holds it at `now` and receiving is allowed.
    pub(crate) fn session_of_client(
        &self,
        client: ClientId,
        name: &SessionName,
        now: Timestamp,
    ) -> Result<Slot, SessionError> {
        if !self.description.status.can_receive() {
            return Err(SessionError::Disabled);
        }
        let sessions = self.active.sessions().ok_or(SessionError::NoSessions)?;
        let found = sessions.find(name);
        let holds = |lock: SessionLock| lock.client == client && now < lock.until;
        let held = found.filter(|(_, session)| session.lock().is_some_and(holds));
        let (slot, _) = held.ok_or_else(|| SessionError::LockLost(name.clone()))?;
        Ok(slot)
    }

    /// Ends a session lock whose time is over. Where very many messages are under it, one of them loses its lock instead, so
    /// that each step is short; the holder gets nothing more.
    pub(crate) fn session_lock_is_due(&mut self, cx: &mut Context<'_>, slot: Slot) {
        let session = self.active.sessions().and_then(|all| all.get(slot));
        let is_large = |session: &&Session| session.locked().len() > LOCKED_AT_ONCE;
        let first = session.filter(is_large).and_then(|session| {
            let holder = session.lock()?.receiver;
            Some((holder, *session.locked().first()?))
        });
        match first {
            Some((holder, offset)) => {
                self.active.set_credit(holder, 0);
                self.expire_lock(cx, SubQueue::Active, offset);
            }
            None => self.session_lock_expired(cx, slot),
        }
    }

    /// Ends the lock of a session that its holder did not release: each delivery under it has failed.
    pub(crate) fn session_lock_expired(&mut self, cx: &mut Context<'_>, slot: Slot) {
        let ended = self.end_session(cx, slot, |session| EventKind::SessionLockExpired {
            session,
        });
        let Some(ended) = ended else {
            return;
        };
        cx.effects.push(Effect::SessionLost(ended.lock.receiver));
        for offset in ended.locked {
            self.expire_lock(cx, SubQueue::Active, offset);
        }
    }

    /// Ends the locks of all sessions in the same way.
    pub(crate) fn session_locks_expired(&mut self, cx: &mut Context<'_>) {
        for slot in self.held_sessions() {
            self.session_lock_expired(cx, slot);
        }
    }

    /// Ends the sessions of a receiver that detaches: its session is free at once, and the messages locked under it count as
    /// not delivered (semantics §3.1, decision D2).
    pub(crate) fn leave_session(&mut self, cx: &mut Context<'_>, id: ReceiverId) {
        let Some(sessions) = self.active.sessions_mut() else {
            return;
        };
        sessions.stop_waiting(id);
        let held = sessions.held_by(id);
        let ended = held.and_then(|slot| self.release_session(cx, slot));
        for offset in ended.into_iter().flat_map(|ended| ended.locked) {
            self.active.record(cx, offset, EventKind::Released);
            self.requeue_or_dead_letter(cx, SubQueue::Active, offset);
        }
    }

    /// Removes all sessions but those that receivers wait for; every holder loses its session.
    pub(crate) fn forget_sessions(&mut self, cx: &mut Context<'_>) {
        for slot in self.held_sessions() {
            if let Some(ended) = self.release_session(cx, slot) {
                cx.effects.push(Effect::SessionLost(ended.lock.receiver));
            }
        }
        if let Some(sessions) = self.active.sessions_mut() {
            sessions.clear_states();
        }
    }

    fn held_sessions(&self) -> Vec<Slot> {
        self.active.sessions().map_or_else(Vec::new, Sessions::held)
    }

    fn release_session(&mut self, cx: &mut Context<'_>, slot: Slot) -> Option<EndedLock> {
        self.end_session(cx, slot, |session| EventKind::SessionReleased { session })
    }

    /// Ends the lock of a session; the caller handles the messages that were locked under it.
    fn end_session(
        &mut self,
        cx: &mut Context<'_>,
        slot: Slot,
        kind: impl FnOnce(Text) -> EventKind,
    ) -> Option<EndedLock> {
        let ended = self.active.end_session(slot)?;
        self.record_session(cx, &ended.session, kind);
        Some(ended)
    }

    pub(crate) fn record_session(
        &self,
        cx: &mut Context<'_>,
        session: &SessionName,
        kind: impl FnOnce(Text) -> EventKind,
    ) {
        let session = cx.events.text(session.as_str());
        self.active.record_as(cx, None, kind(session));
    }
}
