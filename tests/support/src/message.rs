//! Messages: encoded and parsed section by section.

use serde_amqp::Value;
use servicebus_codec::{Descriptor, Reader, Writer};
use uuid::Uuid;

use crate::value::{binary, list, map, symbol, text, timestamp};

/// The descriptor of the section header.
pub const HEADER: u8 = 0x70;
/// The descriptor of the section delivery annotations.
pub const DELIVERY_ANNOTATIONS: u8 = 0x71;
/// The descriptor of the section message annotations.
pub const MESSAGE_ANNOTATIONS: u8 = 0x72;
/// The descriptor of the section properties.
pub const PROPERTIES: u8 = 0x73;
/// The descriptor of the section application properties.
pub const APPLICATION_PROPERTIES: u8 = 0x74;
/// The descriptor of the section data.
pub const DATA: u8 = 0x75;
/// The descriptor of the section sequence.
pub const SEQUENCE: u8 = 0x76;
/// The descriptor of the section value.
pub const VALUE: u8 = 0x77;
/// The descriptor of the section footer.
pub const FOOTER: u8 = 0x78;

/// A message to be sent.
#[derive(Debug, Clone, Default)]
pub struct Message {
    ttl: Option<u32>,
    annotations: Vec<(String, Value)>,
    properties: Vec<Value>,
    application: Vec<(String, Value)>,
    body: Vec<u8>,
    value: Option<Value>,
}

impl Message {
    /// Creates a message with this id and a short body.
    pub fn new(id: &str) -> Self {
        Self {
            body: b"body".to_vec(),
            ..Self::default()
        }
        .property(0, text(id))
    }

    /// Creates a request to a node.
    pub fn request(id: Value, reply_to: Value, body: Value) -> Self {
        let request = Self {
            value: Some(body),
            ..Self::default()
        };
        request.property(0, id).property(4, reply_to)
    }

    /// Sets the body.
    pub fn body(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.body = bytes.into();
        self
    }

    /// Sets the time to live in milliseconds.
    pub fn ttl(mut self, milliseconds: u32) -> Self {
        self.ttl = Some(milliseconds);
        self
    }

    /// Sets when it becomes active, in milliseconds since the Unix epoch.
    pub fn scheduled_at(self, at: i64) -> Self {
        self.annotation("x-opt-scheduled-enqueue-time", timestamp(at))
    }

    /// Sets a message annotation.
    pub fn annotation(mut self, name: &str, value: Value) -> Self {
        self.annotations.push((name.to_owned(), value));
        self
    }

    /// Sets a field of the properties by its index: message-id 0, reply-to 4, correlation-id 5, group-id 10.
    pub fn property(mut self, index: usize, value: Value) -> Self {
        if self.properties.len() <= index {
            self.properties.resize(index + 1, Value::Null);
        }
        self.properties[index] = value;
        self
    }

    /// Sets the session id.
    pub fn session(self, id: &str) -> Self {
        self.property(10, text(id))
    }

    /// Sets an application property.
    pub fn application(mut self, name: &str, value: Value) -> Self {
        self.application.push((name.to_owned(), value));
        self
    }

    /// Encodes all sections.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut add = |code, content: &Value| out.extend(section(code, content));
        if let Some(ttl) = self.ttl {
            add(HEADER, &list([Value::Null, Value::Null, Value::Uint(ttl)]));
        }
        if !self.annotations.is_empty() {
            let entries = self.annotations.iter();
            let entries = entries.map(|(name, value)| (symbol(name), value.clone()));
            add(MESSAGE_ANNOTATIONS, &map(entries));
        }
        if !self.properties.is_empty() {
            add(PROPERTIES, &list(self.properties.clone()));
        }
        if !self.application.is_empty() {
            let entries = self.application.iter();
            let entries = entries.map(|(name, value)| (text(name), value.clone()));
            add(APPLICATION_PROPERTIES, &map(entries));
        }
        match &self.value {
            Some(value) => add(VALUE, value),
            None => add(DATA, &binary(&self.body)),
        }
        out
    }
}

/// Encodes a described value, such as a section of a message.
pub fn section(code: u8, content: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.descriptor(code);
    writer.raw(&serde_amqp::to_vec(content).expect("values can be encoded"));
    out
}

/// A message that the emulator sent.
#[derive(Debug, Clone)]
pub struct Received {
    sections: Vec<(u8, Value)>,
}

impl Received {
    /// Parses a valid message.
    pub fn parse(payload: &[u8]) -> Self {
        let mut reader = Reader::new(payload);
        let mut sections = Vec::new();
        while !reader.is_empty() {
            let Ok(Descriptor::Code(code)) = reader.descriptor() else {
                panic!("no section: {payload:x?}");
            };
            let content = reader.skip().expect("sections are whole");
            let content = serde_amqp::from_slice(content).expect("sections can be decoded");
            sections.push((code as u8, content));
        }
        Self { sections }
    }

    /// Returns the codes of its sections, in order.
    pub fn codes(&self) -> Vec<u8> {
        self.sections.iter().map(|(code, _)| *code).collect()
    }

    /// Returns the content of a section.
    pub fn section(&self, code: u8) -> Option<&Value> {
        let mut found = self.sections.iter().filter(|(own, _)| *own == code);
        let first = found.next();
        assert!(found.next().is_none(), "section 0x{code:x} twice: {self:?}");
        first.map(|(_, content)| content)
    }

    fn item(&self, code: u8, index: usize) -> Value {
        match self.section(code) {
            Some(Value::List(fields)) => fields.get(index).cloned().unwrap_or_default(),
            None => Value::Null,
            other => panic!("section 0x{code:x} is not a list: {other:?}"),
        }
    }

    fn entry(&self, code: u8, key: &Value) -> Value {
        match self.section(code) {
            Some(Value::Map(map)) => map.get(key).cloned().unwrap_or_default(),
            None => Value::Null,
            other => panic!("section 0x{code:x} is not a map: {other:?}"),
        }
    }

    /// Returns a field of the header: durable 0, ttl 2, delivery-count 4.
    pub fn header(&self, index: usize) -> Value {
        self.item(HEADER, index)
    }

    /// Returns a field of the properties: message-id 0, correlation-id 5, absolute-expiry-time 8.
    pub fn property(&self, index: usize) -> Value {
        self.item(PROPERTIES, index)
    }

    /// Returns a message annotation; null if it is missing.
    pub fn annotation(&self, name: &str) -> Value {
        self.entry(MESSAGE_ANNOTATIONS, &symbol(name))
    }

    /// Returns a delivery annotation; null if it is missing.
    pub fn delivery_annotation(&self, name: &str) -> Value {
        self.entry(DELIVERY_ANNOTATIONS, &symbol(name))
    }

    /// Returns an application property; null if it is missing.
    pub fn application(&self, name: &str) -> Value {
        self.entry(APPLICATION_PROPERTIES, &text(name))
    }

    /// Returns the dead-letter reason; null if it is missing.
    pub fn dead_letter_reason(&self) -> Value {
        self.application("DeadLetterReason")
    }

    /// Returns the dead-letter description; null if it is missing.
    pub fn dead_letter_description(&self) -> Value {
        self.application("DeadLetterErrorDescription")
    }

    /// Returns the message id, which must be a string.
    pub fn id(&self) -> String {
        match self.property(0) {
            Value::String(id) => id,
            other => panic!("the message id is {other:?}"),
        }
    }

    /// Returns a timestamp annotation.
    pub fn instant(&self, name: &str) -> i64 {
        match self.annotation(name) {
            Value::Timestamp(instant) => instant.milliseconds(),
            other => panic!("{name} is {other:?}"),
        }
    }

    /// Returns the lock token, if there is one.
    pub fn lock_token(&self) -> Option<Uuid> {
        match self.delivery_annotation("x-opt-lock-token") {
            Value::Uuid(uuid) => Some(Uuid::from_bytes(uuid.into_inner())),
            Value::Null => None,
            other => panic!("the lock token is {other:?}"),
        }
    }

    /// Returns whether it has a data body.
    pub fn has_data(&self) -> bool {
        self.section(DATA).is_some()
    }

    /// Returns the data body.
    pub fn data(&self) -> Vec<u8> {
        match self.section(DATA) {
            Some(Value::Binary(bytes)) => bytes.to_vec(),
            other => panic!("the body is not data: {other:?}"),
        }
    }

    /// Returns the value body; `None` without such a section.
    pub fn value(&self) -> Option<&Value> {
        self.section(VALUE)
    }
}
