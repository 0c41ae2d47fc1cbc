//! The application state of sessions (semantics §6), and the list of sessions.

use bytes::Bytes;

use super::session_lock::SessionError;
use crate::context::Context;
use crate::entity::Entity;
use crate::event::EventKind;
use crate::ids::{ClientId, ReceiverId, SessionName};
use crate::store::sessions::{SessionState, Sessions};
use crate::time::Timestamp;

/// A session in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionView<'a> {
    /// The session id.
    pub name: &'a SessionName,
    /// Messages that are neither deferred nor scheduled, locked ones included.
    pub active: usize,
    /// Messages under a lock, deferred ones included.
    pub locked: usize,
    /// Deferred messages.
    pub deferred: usize,
    /// The receiver that holds it.
    pub holder: Option<ReceiverId>,
    /// When its lock ends.
    pub locked_until: Option<Timestamp>,
    /// The application's state.
    pub state: Option<&'a Bytes>,
}

impl Entity {
    /// Returns the state of a session that a receiver of `client` holds.
    pub fn session_state(
        &mut self,
        cx: &mut Context<'_>,
        client: ClientId,
        session: &SessionName,
    ) -> Result<Option<Bytes>, SessionError> {
        self.client_operation(cx, |entity, cx| {
            let slot = entity.session_of_client(client, session, cx.now)?;
            let session = entity.active.sessions().and_then(|all| all.get(slot));
            let state = session.and_then(|session| session.state());
            Ok(state.map(|state| state.bytes.clone()))
        })
    }

    /// Sets the state of a session that a receiver of `client` holds; it stays until it is set to none or to an empty one.
    pub fn set_session_state(
        &mut self,
        cx: &mut Context<'_>,
        client: ClientId,
        session: &SessionName,
        state: Option<Bytes>,
    ) -> Result<(), SessionError> {
        self.client_operation(cx, |entity, cx| {
            let slot = entity.session_of_client(client, session, cx.now)?;
            let state = state.filter(|state| !state.is_empty());
            let size = state.as_ref().map(|state| state.len() as u64);
            let limit = entity.settings.tier.max_session_state();
            if let Some(size) = size.filter(|&size| size > limit) {
                return Err(SessionError::StateTooLarge { size, limit });
            }
            let found = entity.active.sessions().and_then(|all| all.get(slot));
            let before = found.map_or(0, |session| session.state_size());
            entity.check_state_fits(cx, before, size.unwrap_or(0))?;
            let state = state.map(|bytes| SessionState {
                // A slice would keep its whole read block in memory for as long as the session.
                bytes: Bytes::copy_from_slice(&bytes),
                set_at: cx.now,
            });
            if let Some(sessions) = entity.active.sessions_mut() {
                sessions.set_state(slot, state);
            }
            entity.record_session(cx, session, |session| EventKind::SessionStateSet {
                session,
                size,
            });
            Ok(())
        })
    }

    /// Returns sessions with active messages or with state; with `since`, instead those whose state was set after that
    /// instant and still exists. Ordered by name: up to `top` after the first `skip`.
    pub fn sessions(
        &mut self,
        cx: &mut Context<'_>,
        since: Option<Timestamp>,
        skip: usize,
        top: usize,
    ) -> Vec<SessionName> {
        self.touch(cx);
        let sessions = self.active.sessions().into_iter();
        let sessions = sessions.flat_map(Sessions::iter);
        let listed = sessions.filter(|session| match since {
            None => session.active() > 0 || session.state().is_some(),
            Some(since) => session.state().is_some_and(|s| s.set_at > since),
        });
        let names = listed.map(|session| session.name().clone());
        names.skip(skip).take(top).collect()
    }

    /// Returns every known session by name. Changes nothing: runs no deadlines, and does not count as a use of it.
    pub fn snapshot_sessions(&self) -> impl Iterator<Item = SessionView<'_>> {
        let sessions = self.active.sessions().into_iter();
        let sessions = sessions.flat_map(Sessions::iter);
        sessions.map(|session| SessionView {
            name: session.name(),
            active: session.active(),
            locked: session.locked().len(),
            deferred: session.deferred(),
            holder: session.lock().map(|lock| lock.receiver),
            locked_until: session.lock().map(|lock| lock.until),
            state: session.state().map(|state| &state.bytes),
        })
    }

    /// Checks whether a state of `size` bytes fits that replaces one of `before` bytes.
    fn check_state_fits(
        &self,
        cx: &Context<'_>,
        before: u64,
        size: u64,
    ) -> Result<(), SessionError> {
        if size > before {
            self.check_size(size - before)?;
            self.check_room(cx)?;
        }
        Ok(())
    }
}
