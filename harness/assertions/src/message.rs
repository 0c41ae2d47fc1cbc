//! A message as an assertion sees it: what it compares, and what its failure shows.

use std::{borrow::Cow, fmt, time::SystemTime};

use bytes::Bytes;
use serde_json::Value;

use crate::matcher::Predicate;

/// Whether a message can be received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessageState {
    /// It can, or it is locked.
    #[default]
    Active,
    /// Only by its sequence number.
    Deferred,
    /// Not before its time.
    Scheduled,
}

impl fmt::Display for MessageState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Deferred => "deferred",
            Self::Scheduled => "scheduled",
        })
    }
}

/// A message that lies in a queue or is on record. Times are those of a client's clock.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// Its place in the queue.
    pub sequence_number: i64,
    /// The message id as text, of any type.
    pub message_id: Option<String>,
    /// The body: data as it is, other bodies as text.
    pub body: Bytes,
    /// Whether it can be received.
    pub state: MessageState,
    /// How many deliveries were counted so far.
    pub delivery_count: u32,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// When it expires, where that is known.
    pub expires_at: Option<SystemTime>,
    /// When it is to become active.
    pub scheduled_for: Option<SystemTime>,
    /// Why it was dead-lettered.
    pub dead_letter_reason: Option<String>,
    /// The description that goes with the reason.
    pub dead_letter_error_description: Option<String>,
    /// Asks what the test's predicate says of it, where there is one.
    pub predicate: Option<Predicate<()>>,
}

impl Message {
    /// Returns the body as text; bytes that are no UTF-8 are replaced.
    pub(crate) fn body_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// Reads the body as JSON.
    pub(crate) fn body_json(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.message_id.as_deref();
        f.write_str(&summary(self.sequence_number, &self.body, id))
    }
}

/// One line for failures: number, start of the body, id.
pub fn summary(sequence_number: i64, body: &[u8], message_id: Option<&str>) -> String {
    const SHOWN: usize = 60;
    let body = String::from_utf8_lossy(body);
    let start: String = body.chars().take(SHOWN).collect();
    let more = if start.len() < body.len() { "…" } else { "" };
    let id = message_id.map_or_else(String::new, |id| format!(" (message-id {id})"));
    format!("#{sequence_number} {start:?}{more}{id}")
}
