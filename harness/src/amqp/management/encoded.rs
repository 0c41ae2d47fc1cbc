//! Encoded messages within the body of a management request or answer.
//!
//! The client library rejects a whole message if one application property has a type that it does not accept there, such as
//! a list. This module therefore reads that section itself, value by value, and leaves the rest to the library.

use std::collections::BTreeMap;

use fe2o3_amqp::types::{
    messaging::{
        Body, Data, Message,
        message::{__private::Serializable, DecodeIntoMessage},
    },
    primitives::Value,
};
use serde_amqp::read::SliceReader;
use servicebus_codec::{DecodeError, Descriptor, Reader};

use crate::{
    amqp::message::from_encoded, error::amqp::AmqpError, message::PropertyValue,
    received_message::ReceivedMessage,
};

const APPLICATION_PROPERTIES: Descriptor<'_> = Descriptor::Code(0x74);

pub(crate) fn write(message: Message<Data>) -> Result<Vec<u8>, AmqpError> {
    serde_amqp::to_vec(&Serializable(message))
        .map_err(|error| AmqpError::Protocol(format!("the message cannot be encoded: {error}")))
}

pub(crate) fn read(bytes: &[u8]) -> Result<ReceivedMessage, AmqpError> {
    let malformed = |error: String| AmqpError::Protocol(format!("a message is malformed: {error}"));
    let sections = Sections::split(bytes).map_err(|error| malformed(error.to_string()))?;
    let message = Body::<Value>::decode_message_from_reader(SliceReader::new(&sections.plain))
        .map_err(|error| malformed(error.to_string()))?;
    Ok(ReceivedMessage {
        application_properties: sections.application_properties,
        ..ReceivedMessage::from_amqp(message)
    })
}

/// A message without its application properties.
#[derive(Debug, Default)]
struct Sections {
    plain: Vec<u8>,
    application_properties: BTreeMap<String, PropertyValue>,
}

impl Sections {
    fn split(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut sections = Self::default();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let mut content = reader;
            let section = reader.skip()?;
            if content.descriptor()? == APPLICATION_PROPERTIES {
                sections.application_properties = properties(content)?;
            } else {
                sections.plain.extend_from_slice(section);
            }
        }
        Ok(sections)
    }
}

fn properties(mut content: Reader<'_>) -> Result<BTreeMap<String, PropertyValue>, DecodeError> {
    let mut properties = BTreeMap::new();
    for entry in content.map()?.raw_entries() {
        let (key, value) = entry?;
        if let Some(name) = Reader::new(key).value()?.as_text() {
            properties.insert(name.to_owned(), from_encoded(value));
        }
    }
    Ok(properties)
}

#[cfg(test)]
mod tests {
    use servicebus_codec::Writer;

    use super::*;

    /// Returns a message with one property, whose value the caller encodes.
    fn message(value: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes);
        out.descriptor(0x74);
        let map = out.begin_map();
        out.string("value");
        value(&mut out);
        out.string("after");
        out.int(7);
        out.end(map, 4);
        out.descriptor(0x75);
        out.binary(b"hello");
        bytes
    }

    #[test]
    fn described_values_are_decoded() {
        let bytes = message(|out| {
            out.raw(&[0x00]);
            out.symbol("com.microsoft:timespan");
            out.long(36_000_000_000);
        });
        let read = read(&bytes).unwrap();
        assert_eq!(read.body_text(), "hello");
        let properties = &read.application_properties;
        assert_eq!(properties["after"], PropertyValue::Integer(7));
        assert_eq!(
            properties["value"],
            PropertyValue::Other("com.microsoft:timespan(36000000000)".to_owned())
        );
    }

    #[test]
    fn an_unusual_property_value_is_shown() {
        let bytes = message(|out| {
            let list = out.begin_list();
            out.int(1);
            out.end(list, 1);
        });
        let properties = read(&bytes).unwrap().application_properties;
        let opaque = PropertyValue::Other("List([Int(1)])".to_owned());
        assert_eq!(properties["value"], opaque);
        assert_eq!(properties["after"], PropertyValue::Integer(7));
    }

    #[test]
    fn an_unknown_value_is_shown_as_bytes() {
        // A string that is not UTF-8.
        let bytes = message(|out| out.raw(&[0xa1, 0x01, 0xff]));
        let properties = read(&bytes).unwrap().application_properties;
        let opaque = PropertyValue::Other("0xa101ff".to_owned());
        assert_eq!(properties["value"], opaque);
        assert_eq!(properties["after"], PropertyValue::Integer(7));
    }

    #[test]
    fn a_truncated_message_is_an_error() {
        let bytes = message(|out| out.int(1));
        let without_body = bytes.len() - b"\x00\x53\x75\xa0\x05hello".len();
        for end in (1..bytes.len()).filter(|end| *end != without_body) {
            assert!(read(&bytes[..end]).is_err(), "{end}");
        }
    }
}
