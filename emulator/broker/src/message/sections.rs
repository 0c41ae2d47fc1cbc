//! Finds the sections of an encoded message.

use bytes::Bytes;
use servicebus_codec::{DecodeError, Descriptor, MAX_WIDTHLESS, Reader};

use super::{MessageError, limits};

pub(super) const HEADER: u64 = 0x70;
pub(super) const DELIVERY_ANNOTATIONS: u64 = 0x71;
pub(super) const MESSAGE_ANNOTATIONS: u64 = 0x72;
pub(super) const PROPERTIES: u64 = 0x73;
pub(super) const APPLICATION_PROPERTIES: u64 = 0x74;
pub(super) const DATA: u64 = 0x75;
pub(super) const SEQUENCE: u64 = 0x76;
pub(super) const VALUE: u64 = 0x77;
const FOOTER: u64 = 0x78;

/// Ranks of the three kinds of body: a message has one kind.
const BODY: std::ops::RangeInclusive<usize> = 6..=8;

/// Where each section ends; it begins where the one before it ended, and is empty when it is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sections {
    header: u32,
    delivery_annotations: u32,
    message_annotations: u32,
    properties: u32,
    application: u32,
}

impl Sections {
    /// Walks the sections once and checks their order (AMQP 1.0 §3.2).
    pub(super) fn scan(payload: &[u8]) -> Result<Self, MessageError> {
        if u32::try_from(payload.len()).is_err() {
            return Err(MessageError::TooLarge(payload.len()));
        }
        let mut reader = Reader::new(payload);
        let mut ends = [0; 5];
        let mut last = 0;
        let mut widthless = MAX_WIDTHLESS;
        while !reader.is_empty() {
            let code = section_code(reader.descriptor()?);
            let rank = rank(code).ok_or(MessageError::Section(code))?;
            let repeats = rank == last && matches!(code, DATA | SEQUENCE);
            let second_body = BODY.contains(&last) && BODY.contains(&rank);
            if (rank <= last || second_body) && !repeats {
                return Err(MessageError::Section(code));
            }
            // Down to the leaves: what is accepted here will be decoded by somebody else's client.
            let content = reader;
            reader.validate_within(&mut widthless)?;
            check_shape(code, content)?;
            for end in ends.iter_mut().skip(rank - 1) {
                *end = reader.position() as u32;
            }
            last = rank;
        }
        let [
            header,
            delivery_annotations,
            message_annotations,
            properties,
            application,
        ] = ends;
        Ok(Self {
            header,
            delivery_annotations,
            message_annotations,
            properties,
            application,
        })
    }

    pub(super) fn header<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[..self.header as usize]
    }

    pub(super) fn delivery_annotations<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.header as usize..self.delivery_annotations as usize]
    }

    pub(super) fn message_annotations<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.delivery_annotations as usize..self.message_annotations as usize]
    }

    pub(super) fn properties<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.message_annotations as usize..self.properties as usize]
    }

    pub(super) fn application<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[self.properties as usize..self.application as usize]
    }

    /// Where the message annotations end.
    pub(super) fn message_annotations_end(&self) -> usize {
        self.message_annotations as usize
    }

    /// Where the application properties begin and end.
    pub(super) fn application_range(&self) -> (usize, usize) {
        (self.properties as usize, self.application as usize)
    }

    /// The payload and its sections with another properties section.
    pub(super) fn replace_properties(&self, payload: &[u8], properties: &[u8]) -> (Bytes, Self) {
        let before = &payload[..self.message_annotations as usize];
        let after = &payload[self.properties as usize..];
        let replaced = [before, properties, after].concat();
        let end = self.message_annotations + properties.len() as u32;
        let sections = Self {
            properties: end,
            application: end + (self.application - self.properties),
            ..*self
        };
        (replaced.into(), sections)
    }
}

/// Steps into a section: past its descriptor.
pub(super) fn content(section: &[u8]) -> Result<Reader<'_>, DecodeError> {
    let mut reader = Reader::new(section);
    reader.descriptor()?;
    Ok(reader)
}

/// Sections that the broker takes apart when it delivers have the type that AMQP gives them. Maps are
/// stepped through as they are copied later: the broker must not find then that it cannot.
fn check_shape(code: u64, mut content: Reader<'_>) -> Result<(), MessageError> {
    match code {
        HEADER | PROPERTIES | SEQUENCE => drop(content.list()?),
        DELIVERY_ANNOTATIONS => limits::check_annotations(content.map()?, false)?,
        MESSAGE_ANNOTATIONS => limits::check_annotations(content.map()?, true)?,
        APPLICATION_PROPERTIES => limits::check_application(content.map()?)?,
        FOOTER => content
            .map()?
            .raw_entries()
            .try_for_each(|entry| entry.map(drop))?,
        DATA => drop(content.binary()?),
        _ => {}
    }
    Ok(())
}

pub(super) fn section_code(descriptor: Descriptor<'_>) -> u64 {
    match descriptor {
        Descriptor::Code(code) => code,
        Descriptor::Symbol(name) => match name {
            "amqp:header:list" => HEADER,
            "amqp:delivery-annotations:map" => DELIVERY_ANNOTATIONS,
            "amqp:message-annotations:map" => MESSAGE_ANNOTATIONS,
            "amqp:properties:list" => PROPERTIES,
            "amqp:application-properties:map" => APPLICATION_PROPERTIES,
            "amqp:data:binary" => DATA,
            "amqp:amqp-sequence:list" => SEQUENCE,
            "amqp:amqp-value:*" => VALUE,
            "amqp:footer:map" => FOOTER,
            _ => 0,
        },
    }
}

/// The place of a section in a message.
fn rank(code: u64) -> Option<usize> {
    Some(match code {
        HEADER => 1,
        DELIVERY_ANNOTATIONS => 2,
        MESSAGE_ANNOTATIONS => 3,
        PROPERTIES => 4,
        APPLICATION_PROPERTIES => 5,
        DATA => 6,
        SEQUENCE => 7,
        VALUE => 8,
        FOOTER => 9,
        _ => return None,
    })
}
