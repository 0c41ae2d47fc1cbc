//! The sessions of a queue or subscription as the emulator sees them, and ending the lock of one.

use std::{fmt, time::SystemTime};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::json;

use super::SubQueueClient;
use crate::{action::Action, error::Error, text, timeline::instant};

/// One session, as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its id.
    #[serde(rename = "id")]
    pub session_id: String,
    /// How many messages can be received from it, locked ones included.
    pub active: u64,
    /// How many of its messages are locked.
    pub locked: u64,
    /// How many of its messages were deferred.
    pub deferred: u64,
    /// The client that holds it, by the name its connection has in the timeline.
    pub holder: Option<String>,
    /// Until when it is held, on the clock of the namespace.
    #[serde(default, with = "instant::optional")]
    pub locked_until: Option<SystemTime>,
    /// What is kept with it.
    #[serde(default, deserialize_with = "state")]
    pub state: Option<Bytes>,
}

impl SubQueueClient {
    /// Returns the sessions that have messages, a holder or a state, in the order of their ids.
    ///
    /// # Panics
    ///
    /// When the queue has no sessions or the emulator does not answer.
    #[track_caller]
    pub fn sessions(&self) -> Action<'_, Vec<SessionInfo>> {
        Action::new(self.try_sessions())
    }

    /// Returns the sessions, or says why not.
    pub(crate) async fn try_sessions(&self) -> Result<Vec<SessionInfo>, Error> {
        #[derive(Deserialize)]
        struct Listed {
            sessions: Vec<SessionInfo>,
        }
        let listed = self.run(|client| async move {
            let query = [("entity", client.path.as_str())];
            client
                .connections
                .control
                .get::<Listed>("sessions", &query)
                .await
        });
        match listed.await {
            Ok(listed) => Ok(listed.sessions),
            Err(error) => {
                let operation = format!("list the sessions of {self}");
                Err(self.control_error(operation, error).await)
            }
        }
    }

    /// Ends the lock of a session as if its time had run out.
    ///
    /// # Panics
    ///
    /// When no receiver holds it.
    #[track_caller]
    pub fn lose_session_lock<'a>(&'a self, id: &'a str) -> Action<'a, ()> {
        Action::new(async move {
            let body = json!({ "entity": self.path, "session": id });
            let lost = self.run(move |client| async move {
                let control = &client.connections.control;
                control
                    .order("sessions/lose", &body, std::time::Duration::ZERO)
                    .await
            });
            match lost.await {
                Ok(()) => Ok(()),
                Err(error) => {
                    let operation = format!("take the session {id:?} of {self} away");
                    Err(self.control_error(operation, error).await)
                }
            }
        })
    }
}

impl fmt::Display for SessionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = text::count(
            usize::try_from(self.active).unwrap_or(usize::MAX),
            "message",
        );
        write!(f, "\"{}\": {messages}", self.session_id)?;
        if self.locked > 0 {
            write!(f, ", {} locked", self.locked)?;
        }
        if self.deferred > 0 {
            write!(f, ", {} deferred", self.deferred)?;
        }
        match &self.holder {
            Some(holder) => write!(f, ", held by {holder}")?,
            None => f.write_str(", free")?,
        }
        match &self.state {
            Some(state) => write!(f, ", state {}", state_text(state)),
            None => f.write_str(", no state"),
        }
    }
}

/// What is kept with a session, as a text in quotes where it is one.
pub(crate) fn state_text(state: &[u8]) -> String {
    match std::str::from_utf8(state) {
        Ok(text) => format!("{text:?}"),
        Err(_) => format!("of {}", text::count(state.len(), "byte")),
    }
}

fn state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    let Some(encoded) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let state = BASE64_STANDARD.decode(encoded).map_err(D::Error::custom)?;
    Ok(Some(state.into()))
}
