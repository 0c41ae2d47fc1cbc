//! Messages as a client would encode them.

use std::time::Duration;

use bytes::Bytes;
use servicebus_broker::{IdSource, Message, Stamp, Timestamp};
use servicebus_codec::{Reader, Writer};

/// A message that somebody is about to send.
#[derive(Debug, Clone)]
pub(crate) struct Letter {
    id: String,
    time_to_live: Option<Duration>,
    scheduled_at: Option<Timestamp>,
    partition_key: Option<String>,
    session: Option<String>,
    texts: Vec<String>,
    body: usize,
}

/// A message with this id, and nothing else.
pub(crate) fn letter(id: &str) -> Letter {
    Letter {
        id: id.to_owned(),
        time_to_live: None,
        scheduled_at: None,
        partition_key: None,
        session: None,
        texts: Vec::new(),
        body: 1,
    }
}

impl Letter {
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

    pub(crate) fn session(mut self, id: &str) -> Self {
        self.session = Some(id.to_owned());
        self
    }

    /// With one more application property; the first is called `text 0`.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.texts.push(text.to_owned());
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

    fn encoded(&self) -> Bytes {
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
        out.descriptor(0x73);
        let properties = out.begin_list();
        out.string(&self.id);
        let mut fields = 1;
        if let Some(session) = &self.session {
            for _ in 1..10 {
                out.null();
            }
            out.string(session);
            fields = 11;
        }
        out.end(properties, fields);
        if !self.texts.is_empty() {
            out.descriptor(0x74);
            let map = out.begin_map();
            for (at, text) in self.texts.iter().enumerate() {
                out.string(&format!("text {at}"));
                out.string(text);
            }
            out.end(map, 2 * self.texts.len() as u32);
        }
        out.descriptor(0x75);
        out.binary(&vec![b'x'; self.body]);
        bytes.into()
    }

    fn write_annotations(&self, out: &mut Writer<'_>) {
        if self.scheduled_at.is_none() && self.partition_key.is_none() {
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
        if let Some(key) = &self.partition_key {
            out.symbol("x-opt-partition-key");
            out.string(key);
            entries += 1;
        }
        out.end(map, entries * 2);
    }
}

/// An application property that is a text.
pub(crate) fn text(message: &Message, name: &str) -> Option<String> {
    find(message.application_properties(), name)
}

/// An annotation that is a text, as the message goes out with this stamp.
pub(crate) fn annotation(message: &Message, stamp: &Stamp, name: &str) -> Option<String> {
    let mut encoded = Vec::new();
    message.encode(stamp, 0, &mut encoded).unwrap();
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
