//! Messages as a client would encode them.

use std::time::Duration;

use bytes::Bytes;
use servicebus_broker::filter::{Encoded, Value};
use servicebus_broker::{BrokerProperties, IdSource, Message, Timestamp};
use servicebus_codec::{Reader, Writer};

const FIELDS: usize = 13;
const TO: usize = 2;
const LABEL: usize = 3;
const CORRELATION_ID: usize = 5;
const CONTENT_TYPE: usize = 6;
const SESSION: usize = 10;

/// A message to be sent.
#[derive(Debug, Clone)]
pub(crate) struct MessageBuilder {
    id: String,
    time_to_live: Option<Duration>,
    scheduled_at: Option<Timestamp>,
    partition_key: Option<String>,
    via_partition_key: Option<String>,
    /// Fields of the properties section behind the message id, by their place.
    fields: [Option<String>; FIELDS],
    /// Application properties with their encoded values.
    properties: Vec<(String, Encoded)>,
    texts: usize,
    body: usize,
}

/// A message with this id, and nothing else.
pub(crate) fn message(id: &str) -> MessageBuilder {
    MessageBuilder {
        id: id.to_owned(),
        time_to_live: None,
        scheduled_at: None,
        partition_key: None,
        via_partition_key: None,
        fields: Default::default(),
        properties: Vec::new(),
        texts: 0,
        body: 1,
    }
}

impl MessageBuilder {
    pub(crate) fn time_to_live(mut self, time_to_live: Duration) -> Self {
        self.time_to_live = Some(time_to_live);
        self
    }

    pub(crate) fn scheduled_at(mut self, at: Timestamp) -> Self {
        self.scheduled_at = Some(at);
        self
    }

    pub(crate) fn partition_key(mut self, key: &str) -> Self {
        self.partition_key = Some(key.to_owned());
        self
    }

    pub(crate) fn via_partition_key(mut self, key: &str) -> Self {
        self.via_partition_key = Some(key.to_owned());
        self
    }

    pub(crate) fn session(self, id: &str) -> Self {
        self.field(SESSION, id)
    }

    pub(crate) fn to(self, to: &str) -> Self {
        self.field(TO, to)
    }

    pub(crate) fn label(self, label: &str) -> Self {
        self.field(LABEL, label)
    }

    pub(crate) fn correlation_id(self, id: &str) -> Self {
        self.field(CORRELATION_ID, id)
    }

    pub(crate) fn content_type(self, content_type: &str) -> Self {
        self.field(CONTENT_TYPE, content_type)
    }

    fn field(mut self, place: usize, text: &str) -> Self {
        self.fields[place] = Some(text.to_owned());
        self
    }

    /// With one more application property; the first is called `text 0`.
    pub(crate) fn text(mut self, text: &str) -> Self {
        let name = format!("text {}", self.texts);
        self.texts += 1;
        self.property(&name, &Value::text(text))
    }

    /// With this application property.
    pub(crate) fn property(mut self, name: &str, value: &Value<'_>) -> Self {
        self.properties
            .push((name.to_owned(), Encoded::from(value)));
        self
    }

    /// With so many bytes in its body.
    pub(crate) fn body(mut self, bytes: usize) -> Self {
        self.body = bytes;
        self
    }

    pub(crate) fn message(&self, ids: &mut dyn IdSource) -> Message {
        Message::parse(self.encoded(), ids).unwrap()
    }

    pub(crate) fn encoded(&self) -> Bytes {
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes);
        if let Some(time_to_live) = self.time_to_live {
            out.descriptor(0x70);
            let header = out.begin_list();
            out.null();
            out.null();
            out.uint(time_to_live.as_millis() as u32);
            out.end(header, 3);
        }
        self.write_annotations(&mut out);
        self.write_properties(&mut out);
        if !self.properties.is_empty() {
            out.descriptor(0x74);
            let map = out.begin_map();
            for (name, value) in &self.properties {
                out.string(name);
                out.raw(value.as_amqp());
            }
            out.end(map, 2 * self.properties.len() as u32);
        }
        out.descriptor(0x75);
        out.binary(&vec![b'x'; self.body]);
        bytes.into()
    }

    fn write_properties(&self, out: &mut Writer<'_>) {
        let last = self.fields.iter().rposition(Option::is_some).unwrap_or(0);
        out.descriptor(0x73);
        let properties = out.begin_list();
        out.string(&self.id);
        for (place, field) in self.fields.iter().enumerate().take(last + 1).skip(1) {
            match field {
                Some(text) if place == CONTENT_TYPE => out.symbol(text),
                Some(text) => out.string(text),
                None => out.null(),
            }
        }
        out.end(properties, last as u32 + 1);
    }

    fn write_annotations(&self, out: &mut Writer<'_>) {
        let keys = [
            ("x-opt-partition-key", &self.partition_key),
            ("x-opt-via-partition-key", &self.via_partition_key),
        ];
        if self.scheduled_at.is_none() && keys.iter().all(|(_, key)| key.is_none()) {
            return;
        }
        out.descriptor(0x72);
        let map = out.begin_map();
        let mut entries = 0;
        if let Some(at) = self.scheduled_at {
            out.symbol("x-opt-scheduled-enqueue-time");
            out.timestamp(at.as_millis());
            entries += 1;
        }
        for (name, key) in keys {
            if let Some(key) = key {
                out.symbol(name);
                out.string(key);
                entries += 1;
            }
        }
        out.end(map, entries * 2);
    }
}

/// An application property that is a text.
pub(crate) fn text(message: &Message, name: &str) -> Option<String> {
    find(message.application_properties(), name)
}

/// An annotation that is a text, as the message goes out with this properties.
pub(crate) fn annotation(
    message: &Message,
    properties: &BrokerProperties,
    name: &str,
) -> Option<String> {
    let mut encoded = Vec::new();
    message.encode(properties, 0, &mut encoded).unwrap();
    let mut rest = Reader::new(&encoded);
    while !rest.is_empty() {
        let section = rest.skip().unwrap();
        if section.starts_with(&[0x00, 0x53, 0x72]) {
            return find(section, name);
        }
    }
    None
}

/// A text in a section that is a map.
fn find(section: &[u8], name: &str) -> Option<String> {
    if section.is_empty() {
        return None;
    }
    let mut reader = Reader::new(section);
    reader.descriptor().unwrap();
    let mut entries = reader.map().unwrap().entries().map(Result::unwrap);
    let (_, value) = entries.find(|(key, _)| key.as_text() == Some(name))?;
    value.as_text().map(str::to_owned)
}
