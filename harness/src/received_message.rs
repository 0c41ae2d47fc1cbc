//! A message as it was read from a queue.
//!
//! One shape for peeking and for receiving: the fields a test asks about, decoded, with the service's names.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use fe2o3_amqp::types::{
    messaging::{
        AmqpSequence, AmqpValue, Body, Message as AmqpMessage, MessageAnnotations, MessageId,
    },
    primitives::{Timestamp, Value},
};

use serde::de::DeserializeOwned;

use crate::{
    error::{Error, ErrorKind},
    message::{PropertyValue, from_amqp},
};

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

/// A message as it was peeked or received.
///
/// Times are in the frame of a client's clock: a client sees true remaining durations however far the namespace's
/// clock was advanced.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ReceivedMessage {
    /// Its place in the queue.
    pub sequence_number: i64,
    /// Its sequence number where it was first enqueued.
    pub enqueued_sequence_number: Option<i64>,
    /// The message id as text, of any type.
    pub message_id: Option<String>,
    /// The body: data as it is, other bodies as text.
    pub body: Bytes,
    /// Whether it can be received.
    pub state: MessageState,
    /// How many deliveries were counted so far: those that were abandoned or deferred, or whose locks have ended.
    pub delivery_count: u32,
    /// The application properties, by name.
    pub application_properties: BTreeMap<String, PropertyValue>,
    /// The subject, also known as the label.
    pub subject: Option<String>,
    /// The content type.
    pub content_type: Option<String>,
    /// The correlation id as text.
    pub correlation_id: Option<String>,
    /// The session it belongs to.
    pub session_id: Option<String>,
    /// The address to answer to.
    pub reply_to: Option<String>,
    /// The time to live in its header.
    pub time_to_live: Option<Duration>,
    /// When it was enqueued.
    pub enqueued_at: Option<SystemTime>,
    /// When it expires, where the service says so.
    pub expires_at: Option<SystemTime>,
    /// Until when it is locked, when it was received with a lock.
    pub locked_until: Option<SystemTime>,
    /// When it is to become active.
    pub scheduled_for: Option<SystemTime>,
    /// The entity where it was dead-lettered, when it was forwarded from there.
    pub dead_letter_source: Option<String>,
}

impl ReceivedMessage {
    /// Returns the body as text; bytes that are no UTF-8 are replaced.
    pub fn body_text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// Reads the body as JSON.
    pub fn body_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// Reads the body as a value of a type in JSON.
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
            let sentence = format!("the body of {self} is no {wanted} in JSON: {error}");
            Error::new(ErrorKind::Malformed, None, sentence)
        })
    }

    /// Returns why it was dead-lettered.
    pub fn dead_letter_reason(&self) -> Option<&str> {
        self.application_properties
            .get("DeadLetterReason")?
            .as_str()
    }

    /// Returns the description that goes with the reason.
    pub fn dead_letter_error_description(&self) -> Option<&str> {
        self.application_properties
            .get("DeadLetterErrorDescription")?
            .as_str()
    }

    pub(crate) fn from_amqp(message: AmqpMessage<Body<Value>>) -> Self {
        let header = message.header.unwrap_or_default();
        let properties = message.properties.unwrap_or_default();
        let marks = Annotated(message.message_annotations);
        let enqueued_at = marks.time("x-opt-enqueued-time");
        let (expiry, creation) = (properties.absolute_expiry_time, properties.creation_time);
        let lifetime = expiry.and_then(instant).zip(creation.and_then(instant));
        // The header ends at 49.7 days; what lives longer says so in its properties (observed 5).
        let lifetime = lifetime.and_then(|(expiry, creation)| expiry.duration_since(creation).ok());
        let header_ttl = header.ttl.map(|ttl| Duration::from_millis(ttl.into()));
        let time_to_live = header_ttl.map(|ttl| lifetime.unwrap_or(ttl));
        let application_properties = message.application_properties.unwrap_or_default().0;
        Self {
            sequence_number: marks.number("x-opt-sequence-number").unwrap_or_default(),
            enqueued_sequence_number: marks.number("x-opt-enqueue-sequence-number"),
            message_id: properties.message_id.map(id_text),
            body: body_bytes(message.body),
            state: match marks.number("x-opt-message-state") {
                Some(1) => MessageState::Deferred,
                Some(2) => MessageState::Scheduled,
                _ => MessageState::Active,
            },
            delivery_count: header.delivery_count,
            application_properties: application_properties
                .into_iter()
                .map(|(name, value)| (name, from_amqp(value.into())))
                .collect(),
            subject: properties.subject,
            content_type: properties.content_type.map(|symbol| symbol.0),
            correlation_id: properties.correlation_id.map(id_text),
            session_id: properties.group_id,
            reply_to: properties.reply_to,
            time_to_live,
            enqueued_at,
            expires_at: enqueued_at
                .zip(time_to_live)
                .and_then(|(at, lives)| at.checked_add(lives)),
            locked_until: marks.time("x-opt-locked-until"),
            scheduled_for: marks.time("x-opt-scheduled-enqueue-time"),
            dead_letter_source: marks.text("x-opt-deadletter-source"),
        }
    }
}

/// One line for failures: number, start of the body, id.
impl fmt::Display for ReceivedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 60;
        let body = self.body_text();
        let start: String = body.chars().take(SHOWN).collect();
        let more = if start.len() < body.len() { "…" } else { "" };
        write!(f, "#{} {start:?}{more}", self.sequence_number)?;
        match &self.message_id {
            Some(id) => write!(f, " (message-id {id})"),
            None => Ok(()),
        }
    }
}

struct Annotated(Option<MessageAnnotations>);

impl Annotated {
    fn value(&self, name: &str) -> Option<&Value> {
        let mut entries = self.0.as_ref()?.0.iter();
        entries.find_map(|(key, value)| match key {
            fe2o3_amqp::types::messaging::annotations::OwnedKey::Symbol(symbol)
                if symbol.0 == name =>
            {
                Some(value)
            }
            _ => None,
        })
    }

    fn number(&self, name: &str) -> Option<i64> {
        match from_amqp(self.value(name)?.clone()) {
            PropertyValue::Integer(number) => Some(number),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        match from_amqp(self.value(name)?.clone()) {
            PropertyValue::Text(text) => Some(text),
            _ => None,
        }
    }

    fn time(&self, name: &str) -> Option<SystemTime> {
        match self.value(name)? {
            Value::Timestamp(timestamp) => instant(timestamp.clone()),
            _ => None,
        }
    }
}

fn instant(timestamp: Timestamp) -> Option<SystemTime> {
    let since = Duration::from_millis(u64::try_from(timestamp.milliseconds()).ok()?);
    UNIX_EPOCH.checked_add(since)
}

fn id_text(id: MessageId) -> String {
    match id {
        MessageId::Ulong(number) => number.to_string(),
        MessageId::String(text) => text,
        MessageId::Uuid(uuid) => format!("{uuid:x}"),
        MessageId::Binary(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

fn body_bytes(body: Body<Value>) -> Bytes {
    match body {
        Body::Data(sections) => sections
            .into_iter()
            .flat_map(|section| section.0.into_vec())
            .collect(),
        Body::Value(AmqpValue(value)) => value_bytes(value),
        Body::Sequence(sections) => {
            let values: Vec<Value> = sections
                .into_iter()
                .flat_map(|AmqpSequence(values)| values)
                .collect();
            Bytes::from(format!("{values:?}"))
        }
        Body::Empty => Bytes::new(),
    }
}

fn value_bytes(value: Value) -> Bytes {
    match from_amqp(value) {
        PropertyValue::Null => Bytes::new(),
        PropertyValue::Text(text) => Bytes::from(text),
        PropertyValue::Bytes(bytes) => Bytes::from(bytes),
        other => Bytes::from(other.to_string()),
    }
}
