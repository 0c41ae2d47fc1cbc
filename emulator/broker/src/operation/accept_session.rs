//! Somebody wants to hold a session: a certain one, or the next that is available (decision D10).

use thiserror::Error;

use crate::store::sessions::SessionLock;
use crate::{ConsumerId, Context, Mailbox, ReceiveMode, SessionName, StoreKind, Timestamp};

/// A session that a consumer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedSession {
    /// Its id.
    pub session: SessionName,
    /// When its lock ends unless it is renewed.
    pub locked_until: Timestamp,
}

/// Why a session was not accepted; no consumer was registered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AcceptSessionError {
    /// Somebody holds it (semantics §20.2).
    #[error(
        "The requested session '{0}' cannot be accepted. It may be locked by another receiver."
    )]
    Locked(SessionName),
}

impl Mailbox {
    /// Registers a consumer without credit that holds the session `wanted`, or the next available; none when it has to
    /// wait, and is woken once it is granted one. A certain session may be accepted even if it has no message.
    ///
    /// At an entity without sessions it waits for ever.
    pub fn open_session_consumer(
        &mut self,
        cx: &mut Context<'_>,
        id: ConsumerId,
        mode: ReceiveMode,
        wanted: Option<&SessionName>,
    ) -> Result<Option<AcceptedSession>, AcceptSessionError> {
        self.begin(cx);
        match wanted {
            Some(name) => self.hold_session(cx, id, mode, name)?,
            None => self.await_session(cx, id, mode),
        }
        self.assign(cx);
        // Whoever asks right now need not be woken for what it is told.
        self.active.consumers.listen(id);
        Ok(self.accepted_session(id))
    }

    /// The session that a consumer holds: what it asked for, or was granted meanwhile.
    pub fn accepted_session(&self, id: ConsumerId) -> Option<AcceptedSession> {
        let sessions = self.active.sessions.as_ref()?;
        let session = sessions.get(sessions.held_by(id)?)?;
        Some(AcceptedSession {
            session: session.name.clone(),
            locked_until: session.lock?.until,
        })
    }

    fn hold_session(
        &mut self,
        cx: &mut Context<'_>,
        id: ConsumerId,
        mode: ReceiveMode,
        name: &SessionName,
    ) -> Result<(), AcceptSessionError> {
        let store = self.store_mut(StoreKind::Active);
        let found = store.sessions.as_ref().and_then(|all| all.find(name));
        if found.is_some_and(|(_, session)| session.lock.is_some()) {
            return Err(AcceptSessionError::Locked(name.clone()));
        }
        store.consumers.add(id, mode);
        let lock = SessionLock {
            consumer: id,
            client: cx.client,
            until: cx.now + store.policy.lock_duration,
        };
        if let Some(sessions) = &mut store.sessions {
            sessions.hold(name, lock);
            store.note_accepted(cx, name, lock);
        }
        Ok(())
    }

    fn await_session(&mut self, cx: &mut Context<'_>, id: ConsumerId, mode: ReceiveMode) {
        self.active.consumers.add(id, mode);
        self.active.consumers.wake(id);
        if let Some(sessions) = &mut self.active.sessions {
            sessions.wait(id, cx.client);
        }
        // It receives from now on (decision D1): a session with nothing but what has expired is not available.
        self.expire_what_waited(cx);
    }
}
