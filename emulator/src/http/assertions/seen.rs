//! Converts a message of the broker into the form of assertions: as a client that peeks reads it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use serde_amqp::Value;
use servicebus_amqp::decode;
use servicebus_assertions::{Message, MessageState, PropertyValue};
use servicebus_broker::{self as broker, Timestamp};
use servicebus_codec::{DecodeError, Reader};

use crate::clock;
use crate::http::messages::value_to_json;
use crate::http::timeline::Recorded;

/// Converts a message; `ahead` is how many milliseconds the namespace's clock is ahead of the client's.
pub(crate) fn message((properties, message): &Recorded, ahead: i64) -> Message {
    let client_time = |instant: Timestamp| {
        let millis = instant.as_millis().saturating_sub(ahead);
        clock::system_time(Timestamp::from_millis(millis))
    };
    let enqueued_at = client_time(properties.enqueued_at);
    let lives = properties.time_to_live.map(Duration::from_millis);
    let (reason, description) = dead_letter(message).unwrap_or_default();
    Message {
        sequence_number: properties.sequence_number.0.cast_signed(),
        message_id: Some(message.id().into_owned()),
        body: body_of(&message.content()).unwrap_or_default(),
        state: match properties.state {
            Some(1) => MessageState::Deferred,
            Some(2) => MessageState::Scheduled,
            _ => MessageState::Active,
        },
        delivery_count: properties.delivery_count,
        session_id: message.session_id().map(Into::into),
        expires_at: lives.and_then(|lives| enqueued_at.checked_add(lives)),
        scheduled_for: message.scheduled_at().map(client_time),
        dead_letter_reason: reason,
        dead_letter_error_description: description,
        predicate: None,
    }
}

/// Returns the reason and the description of a dead letter.
fn dead_letter(message: &broker::Message) -> Result<(Option<String>, Option<String>), DecodeError> {
    let (mut reason, mut description) = (None, None);
    let section = message.application_properties();
    if section.is_empty() {
        return Ok((reason, description));
    }
    let mut reader = Reader::new(section);
    reader.descriptor()?;
    for entry in reader.map()?.entries() {
        let (name, value) = entry?;
        let text = || value.as_text().map(str::to_owned);
        match name.as_text() {
            Some("DeadLetterReason") => reason = text(),
            Some("DeadLetterErrorDescription") => description = text(),
            _ => {}
        }
    }
    Ok((reason, description))
}

/// Returns, as JSON, a value that `serde_amqp` cannot read.
fn shown(encoded: &[u8]) -> String {
    value_to_json(encoded, "string").map_or_else(|error| error.to_string(), |json| json.to_string())
}

/// Returns the body: data as it is, other bodies as text.
fn body_of(content: &Bytes) -> Result<Bytes, DecodeError> {
    let mut data: Vec<Bytes> = Vec::new();
    let mut sequence: Option<Vec<Value>> = None;
    let mut reader = Reader::new(content);
    while !reader.is_empty() {
        let section = reader.descriptor()?.section();
        let mut inside = reader;
        let encoded = reader.skip()?;
        let value = || decode(encoded).unwrap_or_else(|| Value::String(shown(encoded)));
        match section {
            0x75 => {
                data.push(content.slice_ref(inside.binary()?));
            }
            0x76 => {
                let values = match decode(encoded) {
                    Some(Value::List(values)) => values,
                    _ => vec![value()],
                };
                sequence.get_or_insert_default().extend(values);
            }
            0x77 => {
                return Ok(PropertyValue::of_amqp(value()).into_body());
            }
            _ => {}
        }
    }
    if let Some(values) = sequence {
        return Ok(Bytes::from(format!("{values:?}")));
    }
    Ok(match data.as_slice() {
        [only] => only.clone(),
        parts => BytesMut::from_iter(parts.iter().flatten().copied()).freeze(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &'static [u8]) -> String {
        let body = body_of(&Bytes::from_static(body)).unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[test]
    fn bodies_that_the_library_cannot_read_are_json() {
        // A list of an empty array that has a constructor and the number 7.
        let value = b"\x00\x53\x77\xc0\x07\x02\xe0\x02\x00\x70\x54\x07";
        assert_eq!(
            text(value),
            r#"{"list":[{"encoded":"4AIAcA=="},{"int":7}]}"#
        );
        let sequence = b"\x00\x53\x76\xc0\x07\x02\xe0\x02\x00\x70\x54\x07";
        assert!(text(sequence).contains("int"), "{}", text(sequence));
        assert_eq!(text(b"\x00\x53\x76\xc0\x03\x01\x54\x07"), "[Int(7)]");
    }
}
