//! A message as assertions compare and show it.

use std::{borrow::Cow, fmt, time::SystemTime};

use bytes::Bytes;
use serde_json::Value;

use crate::{matcher::Predicate, text};

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessageState {
    /// It can be received, or is locked.
    #[default]
    Active,
    /// It can only be received by its sequence number.
    Deferred,
    /// It becomes active later.
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

/// A message in a queue or in the record. Times are by a client's clock.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// Its sequence number in the queue.
    pub sequence_number: i64,
    /// The message id, of any type, as text.
    pub message_id: Option<String>,
    /// The body: data unchanged, other bodies as text.
    pub body: Bytes,
    /// Its state.
    pub state: MessageState,
    /// The number of counted deliveries.
    pub delivery_count: u32,
    /// The id of its session.
    pub session_id: Option<String>,
    /// When it expires, if known.
    pub expires_at: Option<SystemTime>,
    /// When it becomes active, if it is scheduled.
    pub scheduled_for: Option<SystemTime>,
    /// Why it was dead-lettered.
    pub dead_letter_reason: Option<String>,
    /// The description that belongs to the reason.
    pub dead_letter_error_description: Option<String>,
    /// Evaluates the test's predicate on it, if there is one.
    pub predicate: Option<Predicate<()>>,
}

impl Message {
    /// Returns the body as text; invalid UTF-8 is replaced.
    pub(crate) fn body_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// Parses the body as JSON.
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

/// Formats sequence number, start of the body and id in one line.
pub fn summary(sequence_number: i64, body: &[u8], message_id: Option<&str>) -> String {
    const SHOWN: usize = 60;
    let body = String::from_utf8_lossy(body);
    let start: String = body.chars().take(SHOWN).collect();
    let more = if start.len() < body.len() { "…" } else { "" };
    let id = message_id.map_or_else(String::new, |id| {
        format!(" (message-id {})", text::one_line(id))
    });
    format!("#{sequence_number} {start:?}{more}{id}")
}
