//! A message in AMQP's sections.

use std::time::{SystemTime, UNIX_EPOCH};

use fe2o3_amqp::types::{
    messaging::{
        ApplicationProperties, Data, Header, Message as AmqpMessage, MessageAnnotations,
        Properties,
        annotations::{Annotations, OwnedKey},
    },
    primitives::{Binary, OrderedMap, Timestamp, Value},
};

use super::Message;

/// Writes the message; sections without content are left out.
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
    properties: Vec<(String, super::PropertyValue)>,
) -> Option<ApplicationProperties> {
    if properties.is_empty() {
        return None;
    }
    let mut map = OrderedMap::new();
    for (name, value) in properties {
        map.insert(name, value.into_simple());
    }
    Some(ApplicationProperties(map))
}

fn timestamp(instant: SystemTime) -> Timestamp {
    let since = instant.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
