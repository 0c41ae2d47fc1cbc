//! Converts messages to and from AMQP's sections; no other module knows these.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fe2o3_amqp::types::{
    messaging::{
        AmqpSequence, AmqpValue, ApplicationProperties, Body, Data, Header, Message as AmqpMessage,
        MessageAnnotations, MessageId, Properties,
        annotations::{Annotations, OwnedKey},
    },
    primitives::{Binary, OrderedMap, SimpleValue, Timestamp, Value},
};

use bytes::Bytes;
use servicebus_codec::{ElementBudget, Reader};

use crate::{
    message::{Message, PropertyValue},
    received_message::{MessageState, ReceivedMessage},
};

/// Converts the message to AMQP; sections without content are left out.
pub(crate) fn to_amqp(message: Message) -> AmqpMessage<Data> {
    AmqpMessage {
        header: Some(header(&message)),
        delivery_annotations: None,
        message_annotations: annotations(&message),
        properties: Some(properties(&message)),
        application_properties: application_properties(message.properties),
        body: Data(Binary::from(message.body.to_vec())),
        footer: None,
    }
}

fn header(message: &Message) -> Header {
    Header {
        durable: true,
        ttl: message
            .time_to_live
            .map(|time| u32::try_from(time.as_millis()).unwrap_or(u32::MAX)),
        ..Header::default()
    }
}

fn annotations(message: &Message) -> Option<MessageAnnotations> {
    let mut annotations = Annotations::new();
    if let Some(key) = &message.partition_key {
        annotations.insert(
            OwnedKey::from("x-opt-partition-key"),
            Value::String(key.clone()),
        );
    }
    if let Some(instant) = message.scheduled_for {
        annotations.insert(
            OwnedKey::from("x-opt-scheduled-enqueue-time"),
            Value::Timestamp(timestamp(instant)),
        );
    }
    (!annotations.is_empty()).then_some(MessageAnnotations(annotations))
}

fn properties(message: &Message) -> Properties {
    Properties {
        message_id: message.id.clone().map(Into::into),
        subject: message.subject.clone(),
        content_type: message.content_type.clone().map(Into::into),
        correlation_id: message.correlation_id.clone().map(Into::into),
        group_id: message.session_id.clone(),
        reply_to: message.reply_to.clone(),
        reply_to_group_id: message.reply_to_session_id.clone(),
        to: message.to.clone(),
        ..Properties::default()
    }
}

fn application_properties(
    properties: Vec<(String, PropertyValue)>,
) -> Option<ApplicationProperties> {
    let properties = properties
        .into_iter()
        .map(|(name, value)| (name, simple(value)));
    let properties = OrderedMap::from_iter(properties);
    (!properties.is_empty()).then_some(ApplicationProperties(properties))
}

fn timestamp(instant: SystemTime) -> Timestamp {
    let since = instant.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl ReceivedMessage {
    /// Converts a message from AMQP.
    pub(crate) fn from_amqp(message: AmqpMessage<Body<Value>>) -> Self {
        let header = message.header.unwrap_or_default();
        let properties = message.properties.unwrap_or_default();
        let marks = Annotated(message.message_annotations);
        let enqueued_at = marks.time("x-opt-enqueued-time");
        let (expiry, creation) = (properties.absolute_expiry_time, properties.creation_time);
        let lifetime = expiry.and_then(instant).zip(creation.and_then(instant));
        // The header ends at 49.7 days; the properties of a message have a longer time to live (observed 5).
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
                .map(|(name, value)| (name, PropertyValue::of_amqp(value.into())))
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

struct Annotated(Option<MessageAnnotations>);

impl Annotated {
    fn value(&self, name: &str) -> Option<&Value> {
        let mut entries = self.0.as_ref()?.0.iter();
        entries.find_map(|(key, value)| match key {
            OwnedKey::Symbol(symbol) if symbol.0 == name => Some(value),
            _ => None,
        })
    }

    fn number(&self, name: &str) -> Option<i64> {
        match PropertyValue::of_amqp(self.value(name)?.clone()) {
            PropertyValue::Integer(number) => Some(number),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<String> {
        match PropertyValue::of_amqp(self.value(name)?.clone()) {
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
        Body::Value(AmqpValue(value)) => PropertyValue::of_amqp(value).into_body(),
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

fn simple(value: PropertyValue) -> SimpleValue {
    match value {
        PropertyValue::Null => SimpleValue::Null,
        PropertyValue::Bool(value) => SimpleValue::Bool(value),
        PropertyValue::Integer(value) => SimpleValue::Long(value),
        PropertyValue::Unsigned(value) => SimpleValue::Ulong(value),
        PropertyValue::Float(value) => SimpleValue::Double(value.into()),
        PropertyValue::Text(value) | PropertyValue::Other(value) => SimpleValue::String(value),
        PropertyValue::Bytes(value) => SimpleValue::Binary(value.into()),
    }
}

/// Decodes a value of any type.
pub(crate) fn from_encoded(bytes: &[u8]) -> PropertyValue {
    // Validated first, so that the decoder neither recurses nor allocates more than the input justifies.
    let mut budget = ElementBudget::for_serde_amqp();
    let is_valid = Reader::new(bytes).validate_within(&mut budget).is_ok();
    let decoded = is_valid.then(|| serde_amqp::from_slice(bytes));
    match decoded {
        Some(Ok(value)) => PropertyValue::of_amqp(value),
        _ => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            PropertyValue::Other(format!("0x{}", String::from_iter(digits)))
        }
    }
}
