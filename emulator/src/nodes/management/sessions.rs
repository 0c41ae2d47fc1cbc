//! `renew-session-lock`, `get-session-state`, `set-session-state` and `get-message-sessions`.

use bytes::Bytes;
use serde_amqp::Value;
use servicebus_broker::{SessionError, SessionName, SubQueue, Timestamp};

use super::{Management, argument};
use crate::nodes::session::session_name;
use crate::nodes::{Condition, Reply, ServiceError};

/// From this instant on, the last millisecond of the year 9999, the filter means "sessions with messages or state": .NET
/// sends this instant, other SDKs the next (spec/newest.md 2). It is a marker, so that it is not converted.
const ANY_TIME: i64 = 253_402_300_799_999;
/// Maximum number of ids in one reply; clients page.
const SESSIONS: i64 = 10_000;

impl Management<'_, '_> {
    /// `{session-id: string}` → `{expiration: timestamp}`, in the client's time.
    pub(crate) fn renew_session_lock(&mut self) -> Result<Reply, ServiceError> {
        let session = self.held_session()?;
        let renewed = self
            .entity
            .renew_session_lock(self.cx, self.cx.client, &session);
        let end = renewed.map_err(|error| self.session_refusal(&error))?;
        let end = end.as_millis().saturating_sub(self.ahead);
        Ok(Reply::map(1, |out| {
            out.string("expiration");
            out.timestamp(end);
        }))
    }

    /// `{session-id: string}` → `{session-state: binary | null}`: null as in the service, although Rust cannot read it
    /// (wire.md §6.2).
    pub(crate) fn get_session_state(&mut self) -> Result<Reply, ServiceError> {
        let session = self.held_session()?;
        let state = match self.browses {
            true => self.browsed_state(&session),
            false => self
                .entity
                .session_state(self.cx, self.cx.client, &session)
                .map_err(|error| self.session_refusal(&error))?,
        };
        Ok(Reply::map(1, |out| {
            out.string("session-state");
            match &state {
                Some(state) => out.binary(state),
                None => out.null(),
            }
        }))
    }

    /// Returns the state of a session that another receiver may hold. This is a use of the entity, as a peek is.
    fn browsed_state(&mut self, session: &SessionName) -> Option<Bytes> {
        self.entity.touch(self.cx);
        let mut sessions = self.entity.snapshot_sessions();
        sessions.find(|seen| seen.name == session)?.state.cloned()
    }

    /// `{session-id: string, session-state: binary | null}` → 200; null clears.
    pub(crate) fn set_session_state(&mut self) -> Result<Reply, ServiceError> {
        let session = self.held_session()?;
        let state = match self.request.field("session-state") {
            Some(Value::Null) => None,
            Some(Value::Binary(state)) => Some(Bytes::copy_from_slice(state)),
            _ => return Err(argument("session-state", "a binary, or null to clear it")),
        };
        let client = self.cx.client;
        self.entity
            .set_session_state(self.cx, client, &session, state)
            .map_err(|error| self.session_refusal(&error))?;
        Ok(Reply::done())
    }

    /// `{[last-updated-time: timestamp,] skip: int, top: int}` → `{skip: int, sessions-ids: string[]}`, or 204 when there
    /// are none. Java takes the next `skip` from the reply (spec/observed.md 54).
    pub(crate) fn get_message_sessions(&mut self) -> Result<Reply, ServiceError> {
        self.check_has_sessions()?;
        let since = match self.request.field("last-updated-time") {
            None | Some(Value::Null) => None,
            Some(Value::Timestamp(since)) => Some(since.clone().into_inner()),
            Some(_) => return Err(argument("last-updated-time", "a timestamp")),
        };
        let since = since.filter(|&since| since < ANY_TIME);
        let since = since.map(|since| Timestamp::from_millis(since.saturating_add(self.ahead)));
        let skip = self.request.whole("skip", 0)?;
        let top = self.request.whole("top", 1)?.min(SESSIONS);
        let sessions = self
            .entity
            .sessions(self.cx, since, skip as usize, top as usize);
        if sessions.is_empty() {
            return Ok(Reply::Refused {
                condition: Condition::SessionNotFound,
                text: "There are no sessions.".into(),
            });
        }
        let next = skip.saturating_add(sessions.len() as i64);
        Ok(Reply::map(2, |out| {
            out.string("skip");
            out.int(i32::try_from(next).unwrap_or(i32::MAX));
            out.string("sessions-ids");
            out.string_array(sessions.iter().map(SessionName::as_str));
        }))
    }

    /// Returns the required `session-id`.
    fn held_session(&self) -> Result<SessionName, ServiceError> {
        self.check_has_sessions()?;
        let session = self.optional_held_session()?;
        session.ok_or_else(|| argument("session-id", "a string"))
    }

    /// Returns the `session-id`, if any, of a session that was not taken over from the receiver of the request: both may be
    /// on one connection (spec/newest.md 1).
    pub(crate) fn optional_held_session(&self) -> Result<Option<SessionName>, ServiceError> {
        let session = self.optional_session()?;
        match (&session, self.requested_by) {
            (Some(id), Some(receiver)) if self.entity.is_superseded(receiver, id) => {
                Err(ServiceError::session_lock_lost())
            }
            _ => Ok(session),
        }
    }

    /// Returns the `session-id` to which a request is limited, if any.
    pub(crate) fn optional_session(&self) -> Result<Option<SessionName>, ServiceError> {
        match self.request.field("session-id") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(id)) => session_name(id, self.entity.path()).map(Some),
            Some(_) => Err(argument("session-id", "a string")),
        }
    }

    /// Checks that the store has sessions; dead letters do not (semantics §3.3).
    fn check_has_sessions(&self) -> Result<(), ServiceError> {
        match self.kind == SubQueue::Active && self.entity.description().requires_session {
            true => Ok(()),
            false => Err(ServiceError::receives_no_sessions()),
        }
    }

    fn session_refusal(&self, error: &SessionError) -> ServiceError {
        let path = self.entity.path();
        match error {
            SessionError::LockLost(_) => ServiceError::session_lock_lost(),
            SessionError::StateTooLarge { .. } => {
                let text = format!("The session state was refused: {error}.");
                ServiceError::new(Condition::MessageSizeExceeded, text)
            }
            SessionError::Full(_) => {
                ServiceError::new(Condition::ResourceLimitExceeded, error.to_string())
            }
            SessionError::Disabled => ServiceError::disabled(self.host, path.as_str()),
            SessionError::NoSessions => ServiceError::receives_no_sessions(),
        }
    }
}
