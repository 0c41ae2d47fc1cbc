//! A message as it came over the wire, section by section.

use fe2o3_amqp::types::primitives::Value;
use servicebus_codec::{DecodeError, Descriptor, Reader};

use super::value::{self, field, named, text};

/// The sections with named fields or entries, by their codes (AMQP 1.0 §3.2).
const HEADER: u64 = 0x70;
const DELIVERY_ANNOTATIONS: u64 = 0x71;
const MESSAGE_ANNOTATIONS: u64 = 0x72;
const PROPERTIES: u64 = 0x73;
const APPLICATION_PROPERTIES: u64 = 0x74;
const DATA: u64 = 0x75;
const VALUE: u64 = 0x77;

const HEADER_FIELDS: [&str; 5] = [
    "durable",
    "priority",
    "ttl",
    "first-acquirer",
    "delivery-count",
];
const PROPERTY_FIELDS: [&str; 13] = [
    "message-id",
    "user-id",
    "to",
    "subject",
    "reply-to",
    "correlation-id",
    "content-type",
    "content-encoding",
    "absolute-expiry-time",
    "creation-time",
    "group-id",
    "group-sequence",
    "reply-to-group-id",
];
/// Longest text of a body that is rendered, in bytes.
const LONGEST_TEXT: usize = 200;

/// The sections of a message, as far as they decode.
#[derive(Debug, Default)]
pub(super) struct Sections {
    parts: Vec<(u64, Value)>,
    /// Whether something is left that does not decode, or was not kept.
    is_cut: bool,
}

impl Sections {
    /// Reads the sections of an encoded message.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut sections = Self::default();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            match section(&mut reader) {
                Ok(part) => sections.parts.push(part),
                Err(_) => {
                    sections.is_cut = true;
                    break;
                }
            }
        }
        sections
    }

    /// Returns what a request is known by.
    pub(super) fn message_id(&self) -> Option<String> {
        self.property(0)
    }

    /// Returns where the answer of a request is to go.
    pub(super) fn reply_to(&self) -> Option<String> {
        self.property(4)
    }

    /// Returns of which request this is the answer.
    pub(super) fn correlation_id(&self) -> Option<String> {
        self.property(5)
    }

    /// Returns an application property that is a text.
    pub(super) fn application_property(&self, name: &str) -> Option<&str> {
        let Value::Map(entries) = self.part(APPLICATION_PROPERTIES)? else {
            return None;
        };
        let mut entries = entries.iter();
        let (_, value) = entries.find(|(key, _)| text(key) == Some(name))?;
        text(value)
    }

    /// Tells an answer: its application properties, its body, and how it names its request.
    pub(super) fn described_answer(&self) -> String {
        let parts = self.parts.iter().filter_map(|(code, value)| match *code {
            APPLICATION_PROPERTIES => Some(value::described(value)),
            VALUE => Some(format!("body {}", value::described(value))),
            DATA => Some(body(value)),
            _ => None,
        });
        Vec::from_iter(parts).join(", ")
    }

    /// The field of the properties as it is compared: by its kind and its value.
    fn property(&self, index: usize) -> Option<String> {
        let Value::List(fields) = self.part(PROPERTIES)? else {
            return None;
        };
        match field(fields, index) {
            Value::Null => None,
            value => Some(format!("{value:?}")),
        }
    }

    fn part(&self, wanted: u64) -> Option<&Value> {
        let mut parts = self.parts.iter();
        parts.find_map(|(code, value)| (*code == wanted).then_some(value))
    }
}

/// Tells an encoded message.
pub(super) fn described(bytes: &[u8]) -> String {
    let sections = Sections::read(bytes);
    let mut rendered = Vec::from_iter(sections.parts.iter().map(described_part));
    if sections.is_cut {
        rendered.push("and what was not decoded".to_owned());
    }
    rendered.join(", ")
}

fn section(reader: &mut Reader<'_>) -> Result<(u64, Value), DecodeError> {
    let code = match reader.descriptor()? {
        Descriptor::Code(code) => code,
        Descriptor::Symbol(_) => 0,
    };
    Ok((code, value::take(reader)?))
}

fn described_part((code, part): &(u64, Value)) -> String {
    match (*code, part) {
        (HEADER, Value::List(fields)) => format!("header ({})", named(&HEADER_FIELDS, fields)),
        (DELIVERY_ANNOTATIONS, part) => format!("delivery annotations {}", value::described(part)),
        (MESSAGE_ANNOTATIONS, part) => format!("annotations {}", value::described(part)),
        (PROPERTIES, Value::List(fields)) => {
            format!("properties ({})", named(&PROPERTY_FIELDS, fields))
        }
        (APPLICATION_PROPERTIES, part) => {
            format!("application properties {}", value::described(part))
        }
        (DATA, part) => body(part),
        (VALUE, part) => format!("value {}", value::described(part)),
        (code, part) => format!("section {code:#x} {}", value::described(part)),
    }
}

/// Tells a section of data: a short text as it is, anything else by its length.
fn body(data: &Value) -> String {
    match data {
        Value::Binary(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if text.len() <= LONGEST_TEXT => format!("data {text:?}"),
            _ => format!("data of {} bytes", bytes.len()),
        },
        other => format!("data {}", value::described(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with a delivery count of 2, an annotation, a message id and a body.
    const MESSAGE: &[u8] = b"\x00\x53\x70\xc0\x07\x05\x41\x40\x40\x40\x52\x02\
        \x00\x53\x72\xc1\x08\x02\xa3\x03x-a\x54\x07\
        \x00\x53\x73\xc0\x06\x01\xa1\x03o-7\
        \x00\x53\x75\xa0\x02hi";

    #[test]
    fn every_section_is_rendered() {
        assert_eq!(
            described(MESSAGE),
            "header (durable true, delivery-count uint 2), annotations {x-a: int 7}, properties (message-id \"o-7\"), data \"hi\""
        );
        assert_eq!(
            Sections::read(MESSAGE).message_id().unwrap(),
            "String(\"o-7\")"
        );
    }

    #[test]
    fn a_truncated_message_is_rendered_up_to_its_end() {
        let cut = described(&MESSAGE[..MESSAGE.len() - 1]);
        assert!(cut.ends_with("\"o-7\"), and what was not decoded"), "{cut}");
    }
}
