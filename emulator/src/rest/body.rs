//! The body of a message as the body of a response.
//!
//! Data is given as it is. A value that is text or binary is given as its bytes; every other value and sequence has no
//! form of its own over HTTP and is given as JSON.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `any other` is what is meant"
)]

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_amqp::Value as Amqp;
use serde_json::{Map, Value as Json};
use servicebus_codec::{DecodeError, Reader, Value};

use super::dates::http_date;

/// The body so far, section by section.
#[derive(Debug, Default)]
pub(super) struct Body {
    bytes: Vec<u8>,
    /// Sequences: each section is an array of the same list.
    elements: Option<Vec<Json>>,
}

impl Body {
    /// A data section.
    pub(super) fn put_data(&mut self, content: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.bytes.extend_from_slice(content.binary()?);
        Ok(())
    }

    /// A value section.
    pub(super) fn put_value(&mut self, content: &mut Reader<'_>) -> Result<(), DecodeError> {
        let encoded = content.skip()?;
        match Reader::new(encoded).value()? {
            Value::Null => {}
            Value::String(text) | Value::Symbol(text) => self.bytes.extend(text.as_bytes()),
            Value::Binary(bytes) => self.bytes.extend(bytes),
            _ => self.bytes.extend(decoded(encoded).to_string().into_bytes()),
        }
        Ok(())
    }

    /// A sequence section.
    pub(super) fn put_sequence(&mut self, content: &mut Reader<'_>) -> Result<(), DecodeError> {
        let encoded = content.skip()?;
        let elements = self.elements.get_or_insert_default();
        if let Json::Array(more) = decoded(encoded) {
            elements.extend(more);
        }
        Ok(())
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        match self.elements {
            Some(elements) => Json::Array(elements).to_string().into_bytes(),
            None => self.bytes,
        }
    }
}

/// A value that the broker has read down to its leaves, so that the decoder neither recurses without end nor allocates
/// beyond it.
fn decoded(encoded: &[u8]) -> Json {
    json(&serde_amqp::from_slice(encoded).unwrap_or(Amqp::Null))
}

fn json(value: &Amqp) -> Json {
    match value {
        Amqp::Null => Json::Null,
        Amqp::Bool(flag) => (*flag).into(),
        Amqp::Ubyte(number) => (*number).into(),
        Amqp::Ushort(number) => (*number).into(),
        Amqp::Uint(number) => (*number).into(),
        Amqp::Ulong(number) => (*number).into(),
        Amqp::Byte(number) => (*number).into(),
        Amqp::Short(number) => (*number).into(),
        Amqp::Int(number) => (*number).into(),
        Amqp::Long(number) => (*number).into(),
        Amqp::Float(number) => f64::from(number.0).into(),
        Amqp::Double(number) => number.0.into(),
        Amqp::Char(c) => c.to_string().into(),
        Amqp::String(text) => text.as_str().into(),
        Amqp::Symbol(text) => text.as_str().into(),
        Amqp::Binary(bytes) => BASE64_STANDARD.encode(bytes).into(),
        Amqp::Uuid(uuid) => uuid::Uuid::from_bytes(uuid.clone().into_inner())
            .to_string()
            .into(),
        Amqp::Timestamp(instant) => {
            let milliseconds = instant.clone().into_inner();
            http_date(milliseconds).map_or_else(|| milliseconds.into(), Json::from)
        }
        Amqp::List(elements) => elements.iter().map(json).collect(),
        Amqp::Array(elements) => elements.0.iter().map(json).collect(),
        Amqp::Map(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (key_of(key), json(value)));
            Json::Object(entries.collect::<Map<_, _>>())
        }
        Amqp::Described(described) => json(&described.value),
        // Decimals, which serde_amqp keeps as they are encoded.
        _ => Json::Null,
    }
}

fn key_of(key: &Amqp) -> String {
    match json(key) {
        Json::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use servicebus_codec::Writer;

    use super::*;

    fn sequence(numbers: &[i64]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        let list = writer.begin_list();
        numbers.iter().for_each(|&number| writer.long(number));
        writer.end(list, numbers.len() as u32);
        out
    }

    #[test]
    fn sections_of_one_kind_are_one_body() {
        let mut body = Body::default();
        for bytes in [&b"a"[..], b"", b"bc"] {
            let mut out = Vec::new();
            Writer::new(&mut out).binary(bytes);
            assert_eq!(body.put_data(&mut Reader::new(&out)), Ok(()));
        }
        assert_eq!(body.into_bytes(), b"abc");

        let mut body = Body::default();
        for numbers in [&[1, 2][..], &[], &[3]] {
            let encoded = sequence(numbers);
            assert_eq!(body.put_sequence(&mut Reader::new(&encoded)), Ok(()));
        }
        assert_eq!(body.into_bytes(), b"[1,2,3]");
        assert_eq!(Body::default().into_bytes(), b"");
    }
}
