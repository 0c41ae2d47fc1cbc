//! Accepts a session for a receiver: a named one, or the next available one (decision D10).

use thiserror::Error;
use uuid::Uuid;

use crate::context::{Context, Effect};
use crate::entity::Entity;
use crate::ids::{ReceiverId, SessionName, SubQueue};
use crate::store::receivers::ReceiveMode;
use crate::store::sessions::SessionLock;
use crate::time::Timestamp;

/// How a receiver holds its session (spec/newest.md 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAccess {
    /// Until it releases the session or its lock ends.
    Exclusive,
    /// Until then, or until another receiver takes the session over, which needs the token.
    NonExclusive,
    /// Taken over, with this token and all locked messages, from the receiver that holds it.
    Takeover(Uuid),
}

/// A session that a receiver holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedSession {
    /// The session id.
    pub session: SessionName,
    /// When its lock ends unless it is renewed.
    pub locked_until: Timestamp,
    /// The token with which another receiver can take it over; `None` if it is held exclusively.
    pub token: Option<Uuid>,
}

/// Why a session was not accepted; no receiver was registered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AcceptSessionError {
    /// Another receiver holds it (semantics §20.2), or the token is not the right one.
    #[error(
        "The requested session '{0}' cannot be accepted. It may be locked by another receiver."
    )]
    Locked(SessionName),
}

impl Entity {
    /// Registers a receiver without credit that holds the session `wanted`, or the next available one. Returns `None` if the
    /// receiver must wait; it is woken once it is granted a session. A named session may be accepted even if it has no
    /// message.
    ///
    /// At an entity without sessions the receiver waits for ever.
    pub fn attach_session_receiver(
        &mut self,
        cx: &mut Context<'_>,
        id: ReceiverId,
        mode: ReceiveMode,
        wanted: Option<&SessionName>,
        access: SessionAccess,
    ) -> Result<Option<AcceptedSession>, AcceptSessionError> {
        self.client_operation(cx, |entity, cx| match wanted {
            Some(name) => entity.hold_session(cx, id, mode, name, access),
            None => {
                entity.await_session(cx, id, mode, access);
                Ok(())
            }
        })?;
        // The receiver gets the session as a result and needs no notification.
        self.active.listen(id);
        Ok(self.accepted_session(id))
    }

    /// Returns the session that a receiver holds, whether requested or granted later.
    pub fn accepted_session(&self, id: ReceiverId) -> Option<AcceptedSession> {
        let sessions = self.active.sessions()?;
        let session = sessions.get(sessions.held_by(id)?)?;
        let lock = session.lock()?;
        Some(AcceptedSession {
            session: session.name().clone(),
            locked_until: lock.until,
            token: lock.token,
        })
    }

    fn hold_session(
        &mut self,
        cx: &mut Context<'_>,
        id: ReceiverId,
        mode: ReceiveMode,
        name: &SessionName,
        access: SessionAccess,
    ) -> Result<(), AcceptSessionError> {
        let store = self.store_mut(SubQueue::Active);
        let found = store.sessions().and_then(|all| all.find(name));
        let held = found.and_then(|(slot, session)| Some((slot, session.lock()?)));
        let token = match (access, held) {
            (SessionAccess::Exclusive, None) => None,
            (SessionAccess::NonExclusive, None) => Some(SessionLock::new_token(cx.ids)),
            (SessionAccess::Takeover(token), Some((_, lock))) if lock.token == Some(token) => {
                Some(token)
            }
            _ => return Err(AcceptSessionError::Locked(name.clone())),
        };
        store.attach(id, mode, None);
        let lock = SessionLock {
            receiver: id,
            client: cx.client,
            until: store.policy().lock_until(cx.now),
            token,
        };
        match held {
            None => {
                if let Some(sessions) = store.sessions_mut() {
                    sessions.hold(name, lock);
                }
            }
            Some((slot, former)) => {
                store.hand_over_session(slot, lock);
                cx.effects.push(Effect::SessionLost(former.receiver));
            }
        }
        store.record_accepted(cx, name, lock);
        Ok(())
    }

    fn await_session(
        &mut self,
        cx: &mut Context<'_>,
        id: ReceiverId,
        mode: ReceiveMode,
        access: SessionAccess,
    ) {
        self.active.attach(id, mode, None);
        self.active.wake(id);
        if let Some(sessions) = self.active.sessions_mut() {
            sessions.wait(id, cx.client, access == SessionAccess::Exclusive);
        }
        // The receiver is active from now on (decision D1): a session with only expired messages is not available.
        self.run_due(cx);
    }
}
