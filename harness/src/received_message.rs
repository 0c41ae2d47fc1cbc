//! A message that was peeked or received.
//!
//! Peeking and receiving share one type, with decoded fields and the names of the service.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use serde::de::DeserializeOwned;
pub use servicebus_assertions::MessageState;
use servicebus_assertions::{Message, summary};

use crate::{
    error::{Error, ErrorKind},
    message::PropertyValue,
};

/// A message that was peeked or received.
///
/// Times are by a client's clock: the remaining durations are right, however far the namespace's clock was advanced.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ReceivedMessage {
    /// Its sequence number in the queue.
    pub sequence_number: i64,
    /// Its sequence number in the queue or topic where it was first enqueued.
    pub enqueued_sequence_number: Option<i64>,
    /// The message id, of any type, as text.
    pub message_id: Option<String>,
    /// The body: data unchanged, other bodies as text.
    pub body: Bytes,
    /// The state, which shows whether it can be received.
    pub state: MessageState,
    /// The number of counted deliveries: those that were abandoned or deferred, or whose locks have ended.
    pub delivery_count: u32,
    /// The application properties, by name.
    pub application_properties: BTreeMap<String, PropertyValue>,
    /// The subject, also known as the label.
    pub subject: Option<String>,
    /// The content type.
    pub content_type: Option<String>,
    /// The correlation id as text.
    pub correlation_id: Option<String>,
    /// The id of its session.
    pub session_id: Option<String>,
    /// The address to reply to.
    pub reply_to: Option<String>,
    /// The time to live of its header.
    pub time_to_live: Option<Duration>,
    /// When it was enqueued.
    pub enqueued_at: Option<SystemTime>,
    /// When it expires, if the service includes that.
    pub expires_at: Option<SystemTime>,
    /// The end of its lock, if it was received with a lock.
    pub locked_until: Option<SystemTime>,
    /// When it becomes active, if it is scheduled.
    pub scheduled_for: Option<SystemTime>,
    /// The entity where it was dead-lettered, if it was forwarded from there.
    pub dead_letter_source: Option<String>,
}

impl ReceivedMessage {
    /// Returns the body as text; invalid UTF-8 is replaced.
    pub fn body_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// Parses the body as JSON.
    pub fn body_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// Deserializes the body from JSON.
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # async fn test(servicebus: ServiceBus) {
    /// #[derive(serde::Deserialize)]
    /// struct Order { total: u32 }
    /// let order: Order = servicebus.queue("orders").receive().await.body_as().unwrap();
    /// # }
    /// ```
    pub fn body_as<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let wanted = std::any::type_name::<T>();
            let sentence = format!("the body of {self} is not a JSON {wanted}: {error}");
            Error::new(ErrorKind::Malformed, None, sentence)
        })
    }

    /// Returns the reason of a dead-lettered message.
    pub fn dead_letter_reason(&self) -> Option<&str> {
        self.application_properties
            .get("DeadLetterReason")?
            .as_str()
    }

    /// Returns the description that belongs to the reason.
    pub fn dead_letter_error_description(&self) -> Option<&str> {
        self.application_properties
            .get("DeadLetterErrorDescription")?
            .as_str()
    }
}

/// Shows sequence number, start of the body and id in one line.
impl fmt::Display for ReceivedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.message_id.as_deref();
        f.write_str(&summary(self.sequence_number, &self.body, id))
    }
}

/// Converts the message for assertions.
impl From<&ReceivedMessage> for Message {
    fn from(message: &ReceivedMessage) -> Self {
        Self {
            sequence_number: message.sequence_number,
            message_id: message.message_id.clone(),
            body: message.body.clone(),
            state: message.state,
            delivery_count: message.delivery_count,
            session_id: message.session_id.clone(),
            expires_at: message.expires_at,
            scheduled_for: message.scheduled_for,
            dead_letter_reason: message.dead_letter_reason().map(str::to_owned),
            dead_letter_error_description: message
                .dead_letter_error_description()
                .map(str::to_owned),
            predicate: None,
        }
    }
}
