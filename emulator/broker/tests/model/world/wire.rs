//! Messages as bytes, and what can be read from them.

use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use servicebus_broker::{BrokerProperties, Message, PropertyChanges};
use servicebus_codec::{Reader, Value, Writer};

use crate::event::{id_of, session_text};
use crate::history::{Draft, ObservedMessage, Properties, Size};

/// Three of them fit into a queue of one mebibyte and leave room for everything else.
const LARGE: usize = 300 * 1024;

/// The names of properties that histories know.
const PROPERTIES: [&str; 5] = [
    "DeadLetterErrorDescription",
    "DeadLetterReason",
    "a",
    "b",
    "c",
];

thread_local! {
    static LARGE_ONES: RefCell<BTreeMap<(u8, Option<u8>), Bytes>> = const { RefCell::new(BTreeMap::new()) };
}

/// For a queue that can hold so many bytes more. Large messages differ in id and session only, and are made once.
pub(crate) fn encoded(draft: &Draft, now: i64, room: u64) -> Bytes {
    match draft.size {
        Size::Small => return encode(draft, now, b"body"),
        Size::Filling(more) => {
            // Long enough for the longer form of a length.
            let least = encode(draft, now, &[b'f'; 300]).len() as u64;
            let missing = (room + u64::from(more)).saturating_sub(least);
            return encode(draft, now, &vec![b'f'; missing as usize + 300]);
        }
        Size::Large => {}
    }
    LARGE_ONES.with_borrow_mut(|made| {
        let make = || encode(draft, now, &vec![b'l'; LARGE]);
        let key = (draft.id, draft.session);
        made.entry(key).or_insert_with(make).clone()
    })
}

fn encode(draft: &Draft, now: i64, body: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(200 + body.len());
    let mut out = Writer::new(&mut bytes);
    if let Some(milliseconds) = draft.time_to_live {
        out.descriptor(0x70);
        let header = out.begin_list();
        out.null();
        out.null();
        out.uint(milliseconds);
        out.end(header, 3);
    }
    if draft.delay.is_some() || draft.key.is_some() {
        out.descriptor(0x72);
        let annotations = out.begin_map();
        if let Some(delay) = draft.delay {
            out.symbol("x-opt-scheduled-enqueue-time");
            out.timestamp(now + delay);
        }
        if let Some(key) = draft.key {
            out.symbol("x-opt-partition-key");
            out.string(&session_text(key));
        }
        let entries = u32::from(draft.delay.is_some()) + u32::from(draft.key.is_some());
        out.end(annotations, entries * 2);
    }
    out.descriptor(0x73);
    let properties = out.begin_list();
    out.string(&format!("m{}", draft.id));
    if let Some(session) = draft.session {
        (1..10).for_each(|_| out.null());
        out.string(&session_text(session));
    }
    let fields = if draft.session.is_some() { 11 } else { 1 };
    out.end(properties, fields);
    out.descriptor(0x75);
    out.binary(body);
    bytes.into()
}

/// Bytes of an application-properties section.
pub(crate) fn section_size(properties: &Properties) -> u64 {
    let mut bytes = Vec::new();
    let mut out = Writer::new(&mut bytes);
    out.descriptor(0x74);
    let map = out.begin_map();
    for (name, text) in &properties.0 {
        out.string(name);
        out.string(text);
    }
    out.end(map, properties.0.len() as u32 * 2);
    bytes.len() as u64
}

pub(crate) fn changes(properties: &Properties) -> PropertyChanges {
    let mut changes = PropertyChanges::new();
    for (name, text) in &properties.0 {
        changes.set_text(name, text);
    }
    changes
}

pub(crate) fn properties(section: &[u8]) -> Properties {
    let mut properties = Properties::default();
    if section.is_empty() {
        return properties;
    }
    let mut reader = Reader::new(section);
    reader.descriptor().unwrap();
    for entry in reader.map().unwrap().entries() {
        let (Value::String(name), Value::String(text)) = entry.unwrap() else {
            panic!("only texts were set, found {section:?}")
        };
        let known = PROPERTIES.iter().find(|&&known| known == name);
        properties.set(known.expect("only these were set"), text.into());
    }
    properties
}

pub(crate) fn see(broker_properties: &BrokerProperties, message: &Message) -> ObservedMessage {
    ObservedMessage {
        number: broker_properties.sequence_number.0,
        enqueued_number: broker_properties
            .enqueued_sequence_number
            .map(|number| number.0),
        id: id_of(&message.id()),
        size: message.size(),
        delivery_count: broker_properties.delivery_count,
        enqueued_at: broker_properties.enqueued_at.as_millis(),
        time_to_live: broker_properties.time_to_live,
        locked_until: broker_properties.lock.map(|(_, until)| until.as_millis()),
        state: broker_properties.state,
        source: None,
        properties: properties(message.application_properties()),
    }
}

/// `x-opt-deadletter-source` in what goes out before the message.
pub(crate) fn source(mut head: &[u8]) -> Option<&str> {
    while let Some(rest) = head.get(3..) {
        let section = head[2];
        let mut reader = Reader::new(rest);
        if section == 0x72 {
            let entries = reader.map().unwrap().entries();
            let mut entries = entries.map(|entry| entry.unwrap());
            let source =
                entries.find(|(name, _)| name.as_text() == Some("x-opt-deadletter-source"));
            return source.and_then(|(_, value)| value.as_text());
        }
        let length = reader.skip().unwrap().len();
        head = &rest[length..];
    }
    None
}
