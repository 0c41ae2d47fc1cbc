//! Compares a received message with the sent one bit by bit, except for what the broker owns.
//!
//! The broker owns the time to live and the delivery count in the header, its annotations, and the message id of a message
//! that was sent without one. String keys of annotations and footers become symbols.

use servicebus_codec::{Descriptor, Reader, Value};

use crate::message::{DELIVERY_ANNOTATIONS, HEADER, MESSAGE_ANNOTATIONS, PROPERTIES};

const MESSAGE_ID: usize = 0;
const PROPERTY_COUNT: usize = 13;

/// Annotations of a message received with a lock, with the format codes that clients expect.
const STAMPED: [(&str, u8); 3] = [
    ("x-opt-enqueued-time", 0x83),
    ("x-opt-sequence-number", 0x81),
    ("x-opt-locked-until", 0x83),
];
const UUID: u8 = 0x98;
const NULL: &[u8] = &[0x40];

type Entries<'a> = Vec<(&'a [u8], &'a [u8])>;

/// The sections of a message.
struct Sections<'a> {
    header: &'a [u8],
    delivery_annotations: &'a [u8],
    message_annotations: &'a [u8],
    properties: &'a [u8],
    /// Application properties, body and footer.
    rest: &'a [u8],
}

/// Returns the differences of a message received with a lock from the sent one, as far as these are not allowed.
pub fn differences(sent: &[u8], received: &[u8]) -> Vec<String> {
    let (Some(sent), Some(received)) = (Sections::of(sent), Sections::of(received)) else {
        return vec!["it cannot be taken apart".to_owned()];
    };
    let mut found = Vec::new();
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            found.push(what.to_owned());
        }
    };
    expect(header(&sent, &received), "header");
    let annotations = annotations(sent.delivery_annotations, received.delivery_annotations);
    expect(
        annotations == Some(vec![("x-opt-lock-token".to_owned(), UUID)]),
        "delivery annotations",
    );
    let stamped = STAMPED.map(|(name, code)| (name.to_owned(), code)).to_vec();
    let annotations = self::annotations(sent.message_annotations, received.message_annotations);
    expect(annotations == Some(stamped), "message annotations");
    expect(properties(&sent, &received), "properties");
    expect(
        sent.rest == received.rest,
        "application properties, body or footer",
    );
    found
}

fn header(sent: &Sections<'_>, received: &Sections<'_>) -> bool {
    let (Some(sent), Some(received)) = (fields(sent.header, 5), fields(received.header, 5)) else {
        return false;
    };
    let value = |field: &[u8]| format!("{:?}", Reader::new(field).value());
    (0..4).all(|at| value(received[at]) == value(sent[at])) && received[4] == [0x43]
}

/// Returns names and types of the annotations after the sender's; `None` unless all of the sender's are there, in order.
/// Service Bus leaves out nulls, which is equivalent.
fn annotations(sent: &[u8], received: &[u8]) -> Option<Vec<(String, u8)>> {
    let mut sent = entries(sent)?;
    let is_of_service_bus = |key: &[u8]| key.windows(6).any(|part| part == b"x-opt-");
    sent.retain(|(key, value)| *value != NULL || !is_of_service_bus(key));
    let received = entries(received)?;
    let added = received.strip_prefix(&*sent)?;
    let named = |(key, value): &(&[u8], &[u8])| {
        let name = Reader::new(key).value().ok()?.as_text()?.to_owned();
        Some((name, *value.first()?))
    };
    added.iter().map(named).collect()
}

fn properties(sent: &Sections<'_>, received: &Sections<'_>) -> bool {
    let before = fields(sent.properties, PROPERTY_COUNT);
    let after = fields(received.properties, PROPERTY_COUNT);
    let (Some(before), Some(after)) = (before, after) else {
        return false;
    };
    let was_given_id = before[MESSAGE_ID] == NULL;
    if !was_given_id {
        return sent.properties == received.properties;
    }
    (0..PROPERTY_COUNT).all(|at| match at {
        MESSAGE_ID => is_given_id(after[at]),
        _ => before[at] == after[at],
    })
}

fn is_given_id(field: &[u8]) -> bool {
    let value = Reader::new(field).value();
    let Ok(Value::String(id)) = value else {
        return false;
    };
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl<'a> Sections<'a> {
    fn of(message: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(message);
        let mut section = |code: u8| {
            let before = reader;
            let mut ahead = reader;
            match ahead.descriptor() {
                Ok(Descriptor::Code(found)) if found == u64::from(code) => {}
                _ => return Some(&message[..0]),
            }
            reader.validate().ok()?;
            Some(&before.rest()[..reader.position() - before.position()])
        };
        let sections = [
            section(HEADER)?,
            section(DELIVERY_ANNOTATIONS)?,
            section(MESSAGE_ANNOTATIONS)?,
            section(PROPERTIES)?,
        ];
        let [
            header,
            delivery_annotations,
            message_annotations,
            properties,
        ] = sections;
        Some(Self {
            header,
            delivery_annotations,
            message_annotations,
            properties,
            rest: reader.rest(),
        })
    }
}

/// Returns the encoded fields of a list section, padded with nulls.
fn fields(section: &[u8], count: usize) -> Option<Vec<&[u8]>> {
    let mut fields = Vec::new();
    if !section.is_empty() {
        let mut reader = Reader::new(section);
        reader.descriptor().ok()?;
        let list = reader.list().ok()?;
        let mut items = list.items;
        for _ in 0..list.count {
            fields.push(items.skip().ok()?);
        }
    }
    fields.resize(count, NULL);
    Some(fields)
}

fn entries(section: &[u8]) -> Option<Entries<'_>> {
    if section.is_empty() {
        return Some(Vec::new());
    }
    let mut reader = Reader::new(section);
    reader.descriptor().ok()?;
    reader
        .map()
        .ok()?
        .raw_entries()
        .collect::<Result<_, _>>()
        .ok()
}
