//! What an application keeps with a session (semantics §6).

use bytes::Bytes;

use super::session_lock::SessionError;
use crate::store::sessions::SessionState;
use crate::{ClientId, Context, Entity, EventKind, SessionName};

impl Entity {
    /// The state of a session that a receiver of `client` holds.
    pub fn session_state(
        &mut self,
        cx: &mut Context<'_>,
        client: ClientId,
        session: &SessionName,
    ) -> Result<Option<Bytes>, SessionError> {
        self.begin(cx);
        let slot = self.session_of_client(client, session)?;
        let sessions = self.active.sessions.as_ref();
        let state = sessions.and_then(|sessions| sessions.get(slot)?.state.as_ref());
        Ok(state.map(|state| state.bytes.clone()))
    }

    /// Sets the state of a session that a receiver of `client` holds; it lives until it is set to none
    /// or to an empty one.
    pub fn set_session_state(
        &mut self,
        cx: &mut Context<'_>,
        client: ClientId,
        session: &SessionName,
        state: Option<Bytes>,
    ) -> Result<(), SessionError> {
        self.begin(cx);
        let slot = self.session_of_client(client, session)?;
        let state = state.filter(|state| !state.is_empty());
        let size = state.as_ref().map(|state| state.len() as u64);
        let limit = self.settings.tier.max_session_state();
        if let Some(size) = size.filter(|&size| size > limit) {
            return Err(SessionError::StateTooLarge { size, limit });
        }
        let found = self.active.sessions.as_ref().and_then(|all| all.get(slot));
        let before = found.map_or(0, |session| session.state_size());
        self.check_state_fits(before, size.unwrap_or(0))?;
        let state = state.map(|bytes| SessionState {
            // A slice would keep its whole read block alive for as long as the session.
            bytes: Bytes::copy_from_slice(&bytes),
            set_at: cx.now,
        });
        if let Some(sessions) = &mut self.active.sessions {
            sessions.set_state(slot, state);
        }
        self.note_session(cx, session, |session| EventKind::SessionStateSet {
            session,
            size,
        });
        self.reserve(cx);
        Ok(())
    }

    /// Whether a state of `size` bytes fits that replaces one of `before` bytes.
    fn check_state_fits(&self, before: u64, size: u64) -> Result<(), SessionError> {
        let (held, max) = (self.whole_size(), self.max_size());
        match size > before && held + size - before > max {
            true => Err(SessionError::QuotaExceeded {
                kind: self.kind(),
                path: self.path.clone(),
                size: held,
                max,
            }),
            false => Ok(()),
        }
    }
}
