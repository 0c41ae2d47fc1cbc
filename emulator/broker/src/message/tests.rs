//! Parses and encodes whole messages.

mod accepted;
mod batches;
mod changed;
mod delivered;
mod limits;
mod random;
mod refused;
mod scheduled;
mod stored_body;

use bytes::Bytes;
use servicebus_codec::{Fields, Reader, Writer};

use super::sections::{self, Sections};
use super::{BrokerProperties, Message, MessageError, PropertyChanges};
use crate::ids::{IdSource, SequenceNumber};
use crate::time::Timestamp;

/// Predictable ids: 1, 2, 3 …
#[derive(Debug, Default)]
struct Counting(u64);

impl IdSource for Counting {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

fn parse(payload: impl Into<Bytes>) -> Result<Message, MessageError> {
    Message::parse(payload.into(), &mut Counting::default())
}

/// Encodes what `write` writes.
fn encoded(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Writer::new(&mut bytes));
    bytes
}

fn section(code: u64, content: &[u8]) -> Vec<u8> {
    encoded(|out| {
        out.descriptor(code as u8);
        out.raw(content);
    })
}

fn list(items: &[&[u8]]) -> Vec<u8> {
    encoded(|out| {
        let mark = out.begin_list();
        items.iter().for_each(|item| out.raw(item));
        out.end(mark, items.len() as u32);
    })
}

/// Encodes a map of alternating keys and values.
fn map(items: &[&[u8]]) -> Vec<u8> {
    encoded(|out| {
        let mark = out.begin_map();
        items.iter().for_each(|item| out.raw(item));
        out.end(mark, items.len() as u32);
    })
}

fn string(text: &str) -> Vec<u8> {
    encoded(|out| out.string(text))
}

fn symbol(text: &str) -> Vec<u8> {
    encoded(|out| out.symbol(text))
}

fn null() -> Vec<u8> {
    encoded(|out| out.null())
}

fn header(time_to_live: u32) -> Vec<u8> {
    let time_to_live = encoded(|out| out.uint(time_to_live));
    section(sections::HEADER, &list(&[&null(), &null(), &time_to_live]))
}

/// Encodes properties with this message id only.
fn properties(id: &str) -> Vec<u8> {
    section(sections::PROPERTIES, &list(&[&string(id)]))
}

/// Encodes properties with a message id, creation and expiry time.
fn lifetime(creation: i64, expiry: i64) -> Vec<u8> {
    let null = null();
    let mut fields = vec![null.as_slice(); 10];
    let id = string("id");
    let (creation, expiry) = (
        encoded(|out| out.timestamp(creation)),
        encoded(|out| out.timestamp(expiry)),
    );
    fields[0] = &id;
    fields[8] = &expiry;
    fields[9] = &creation;
    section(sections::PROPERTIES, &list(&fields))
}

fn application(items: &[&[u8]]) -> Vec<u8> {
    section(sections::APPLICATION_PROPERTIES, &map(items))
}

fn data(bytes: &[u8]) -> Vec<u8> {
    section(sections::DATA, &encoded(|out| out.binary(bytes)))
}

/// The smallest broker properties.
fn plain() -> BrokerProperties {
    BrokerProperties {
        delivery_count: 0,
        time_to_live: None,
        sequence_number: SequenceNumber(5),
        enqueued_sequence_number: Some(SequenceNumber(3)),
        enqueued_at: Timestamp::from_millis(1_000),
        lock: None,
        is_removed: false,
        state: None,
    }
}

/// A decoded delivery.
struct Delivered {
    bytes: Vec<u8>,
    sections: Sections,
}

impl Delivered {
    fn of(message: &Message, broker_properties: &BrokerProperties) -> Self {
        Self::ahead(message, broker_properties, 0)
    }

    fn ahead(message: &Message, broker_properties: &BrokerProperties, ahead: i64) -> Self {
        let mut bytes = Vec::new();
        let rest = message
            .encode(broker_properties, ahead, &mut bytes)
            .unwrap();
        bytes.extend_from_slice(&rest);
        let scanned = Sections::scan(&bytes).expect("what goes out is a message again");
        assert!(!scanned.is_other_form, "in its standard form");
        let sections = scanned.sections;
        Self { bytes, sections }
    }

    fn header(&self) -> Fields<'_> {
        fields(self.sections.header(&self.bytes))
    }

    fn properties(&self) -> &[u8] {
        self.sections.properties(&self.bytes)
    }

    fn application(&self) -> &[u8] {
        self.sections.application(&self.bytes)
    }

    fn body(&self) -> &[u8] {
        &self.bytes[self.sections.application_range().1..]
    }

    fn delivery_annotations(&self) -> Vec<(&[u8], &[u8])> {
        entries(self.sections.delivery_annotations(&self.bytes))
    }

    fn message_annotations(&self) -> Vec<(&[u8], &[u8])> {
        entries(self.sections.message_annotations(&self.bytes))
    }
}

fn fields(section: &[u8]) -> Fields<'_> {
    sections::content(section).unwrap().fields().unwrap()
}

/// Returns the encoded fields of a list section; nulls are empty.
fn raw_fields(section: &[u8], count: usize) -> Vec<&[u8]> {
    let mut fields = fields(section);
    let next = |_| fields.raw().unwrap().unwrap_or_default();
    (0..count).map(next).collect()
}

/// Returns the encoded keys and values of a map section.
fn entries(section: &[u8]) -> Vec<(&[u8], &[u8])> {
    if section.is_empty() {
        return Vec::new();
    }
    let map = sections::content(section).unwrap().map().unwrap();
    let mut items: Reader<'_> = map.items;
    let next = |_| (items.skip().unwrap(), items.skip().unwrap());
    (0..map.count / 2).map(next).collect()
}

fn changes(items: &[&[u8]]) -> PropertyChanges {
    PropertyChanges::from_map(&map(items)).unwrap()
}
