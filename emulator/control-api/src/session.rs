//! The receivers and sessions of an entity.

use std::{fmt, time::SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::encoding::{Base64, DateTime};
use crate::encoding::{optional_base64, optional_instant};

/// The receivers of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Receivers {
    /// The receivers that have requested messages since they attached, and those that wait for a session.
    pub receivers: Vec<Receiver>,
}

/// A receiver that has requested messages or waits for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Receiver {
    /// The name of its client, as in the timeline.
    pub client: String,
    /// Its remaining credit.
    pub credit: u32,
}

/// The sessions of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sessions {
    /// All sessions with messages, a receiver or a state, ordered by id.
    pub sessions: Vec<Session>,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Session {
    /// Its id.
    #[serde(rename = "id")]
    pub session_id: String,
    /// The number of messages that can be received, locked ones included.
    pub active: u64,
    /// The number of locked messages.
    pub locked: u64,
    /// The number of deferred messages.
    pub deferred: u64,
    /// The client that holds it, by the name of its connection in the timeline.
    pub holder: Option<String>,
    /// The end of the lock, by the clock of the namespace.
    #[serde(default, with = "optional_instant")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<DateTime>"))]
    pub locked_until: Option<SystemTime>,
    /// Its state, in base64.
    #[serde(default, with = "optional_base64")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Base64>"))]
    pub state: Option<Bytes>,
}

/// Ends the lock of a session as if it had expired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoseSessionLock {
    /// The address of a queue or subscription with sessions.
    pub entity: String,
    /// The id of the session.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 128)))]
    pub session: String,
}

impl Session {
    /// Creates an empty session with this id.
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            active: 0,
            locked: 0,
            deferred: 0,
            holder: None,
            locked_until: None,
            state: None,
        }
    }

    /// Formats the state of a session: in quotes if it is text.
    pub fn state_text(state: &[u8]) -> String {
        match std::str::from_utf8(state) {
            Ok(text) => format!("{text:?}"),
            Err(_) => format!("of {}", count(state.len() as u64, "byte")),
        }
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = count(self.active, "message");
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
            Some(state) => write!(f, ", state {}", Self::state_text(state)),
            None => f.write_str(", no state"),
        }
    }
}

fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
