//! Requests and responses of `$cbs` and `$management`.
//!
//! Requests are read section by section; bodies become a [`Value`]. Responses are written by hand, because SDKs require
//! exact types: the correlation id has the type of the request's message id, status codes are `int`, conditions are symbols
//! (wire.md §0.12, §6.1).

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `any other` is what is meant"
)]

use std::fmt;

use serde_amqp::Value;
use serde_amqp::primitives::OrderedMap;
use servicebus_amqp::decode;
use servicebus_codec::{DecodeError, Reader, Value as Plain, Writer};

use super::condition::{Condition, ServiceError};
use super::management::argument;

/// The client's id of a request, which the reply repeats (semantics §19).
const TRACKING_ID: &str = "com.microsoft:tracking-id";
const PROPERTIES: u64 = 0x73;
const APPLICATION_PROPERTIES: u64 = 0x74;
const AMQP_VALUE: u64 = 0x77;

/// A client's request to a node.
pub(crate) struct Request {
    /// The encoded message id; null if there is none.
    message_id: Vec<u8>,
    pub(crate) reply_to: Option<String>,
    /// Application properties that are texts.
    properties: Vec<(String, String)>,
    pub(crate) body: Value,
    /// The encoded body.
    encoded: Vec<u8>,
}

impl fmt::Debug for Request {
    /// Leaves out the body, which is a token for `$cbs`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Request")
            .field("reply_to", &self.reply_to)
            .field("properties", &self.properties)
            .finish_non_exhaustive()
    }
}

/// The answer of a node.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Success; the operation writes the body, or null.
    Done { status: i32, body: Vec<u8> },
    /// An error, with the text that includes its tracking id.
    Refused { condition: Condition, text: String },
    /// A scripted error, with any status and condition.
    Scripted {
        status: i32,
        condition: String,
        text: String,
    },
}

impl Request {
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, ServiceError> {
        let mut request = Self::empty();
        let read = request.read(payload);
        read.map(|()| request).map_err(|error| {
            let text = format!("The request cannot be decoded: {error}.");
            ServiceError::new(Condition::DecodeError, text)
        })
    }

    /// Parses the whole sections in the first bytes of a request.
    pub(crate) fn parse_head(head: &[u8]) -> Self {
        let mut request = Self::empty();
        // The error is the end of the bytes.
        let _ = request.read(head);
        request
    }

    fn empty() -> Self {
        Self {
            message_id: vec![0x40],
            reply_to: None,
            properties: Vec::new(),
            body: Value::Null,
            encoded: Vec::new(),
        }
    }

    fn read(&mut self, payload: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(payload);
        while !reader.is_empty() {
            let section = reader.descriptor()?.section();
            let mut content = reader;
            reader.validate()?;
            if section == PROPERTIES {
                self.read_properties(content)?;
            } else if section == APPLICATION_PROPERTIES {
                for entry in content.map()?.entries() {
                    if let (Plain::String(key), Plain::String(value) | Plain::Symbol(value)) =
                        entry?
                    {
                        self.properties.push((key.into(), value.into()));
                    }
                }
            } else if section == AMQP_VALUE {
                // Validated above, so that the decoder neither recurses nor allocates beyond the request.
                self.encoded = content.skip()?.to_vec();
                self.body = decoded(&self.encoded);
            }
        }
        Ok(())
    }

    fn read_properties(&mut self, mut section: Reader<'_>) -> Result<(), DecodeError> {
        let mut fields = section.fields()?;
        if let Some(id) = fields.raw()? {
            self.message_id = id.to_vec();
        }
        for _ in 0..3 {
            fields.raw()?;
        }
        self.reply_to = fields.value()?.as_text().map(str::to_owned);
        Ok(())
    }

    /// Returns whether the client can tell which request a reply answers.
    pub(crate) fn has_id(&self) -> bool {
        self.message_id != [0x40]
    }

    /// Returns a textual application property.
    pub(crate) fn property(&self, name: &str) -> Option<&str> {
        let (_, value) = self.properties.iter().find(|(key, _)| key == name)?;
        Some(value)
    }

    /// Returns an entry of a body that is a map with textual keys.
    pub(crate) fn field(&self, name: &str) -> Option<&Value> {
        let Value::Map(map) = &self.body else {
            return None;
        };
        map.iter().find_map(|(key, value)| match key {
            Value::String(key) if key == name => Some(value),
            Value::Symbol(key) if key.as_str() == name => Some(value),
            _ => None,
        })
    }

    /// Returns an encoded entry of a body that is a map.
    pub(crate) fn encoded(&self, name: &str) -> Option<&[u8]> {
        let map = Reader::new(&self.encoded).map().ok()?;
        let mut items = map.items;
        for _ in 0..map.count / 2 {
            let key = items.value().ok()?;
            let value = items.skip().ok()?;
            if key.as_text() == Some(name) {
                return Some(value);
            }
        }
        None
    }

    /// Returns a whole number of any width.
    pub(crate) fn integer(&self, name: &str) -> Option<i64> {
        match *self.field(name)? {
            Value::Long(number) => Some(number),
            Value::Int(number) => Some(number.into()),
            Value::Short(number) => Some(number.into()),
            Value::Byte(number) => Some(number.into()),
            Value::Ulong(number) => i64::try_from(number).ok(),
            Value::Uint(number) => Some(number.into()),
            Value::Ushort(number) => Some(number.into()),
            Value::Ubyte(number) => Some(number.into()),
            _ => None,
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match self.field(name)? {
            Value::String(text) => Some(text),
            Value::Symbol(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// A whole number that fits an int, `least` or more.
    pub(crate) fn whole(&self, name: &str, least: i64) -> Result<i64, ServiceError> {
        let allowed = format!("an int from {least} to {}", i32::MAX);
        let number = self.integer(name);
        let number = number.ok_or_else(|| argument(name, &allowed))?;
        match (least..=i32::MAX.into()).contains(&number) {
            true => Ok(number),
            false => {
                let text = format!("{name} is {number}; it must be {allowed}.");
                Err(ServiceError::new(Condition::ArgumentOutOfRange, text))
            }
        }
    }

    /// Returns the elements of a list or array.
    pub(crate) fn elements(&self, name: &str) -> Option<&[Value]> {
        match self.field(name)? {
            Value::List(list) => Some(list),
            Value::Array(array) => Some(&array.0),
            _ => None,
        }
    }
}

/// Decodes a body. The entries of a map are decoded one by one, because `serde_amqp` cannot read every value; what it cannot
/// read becomes an empty list, which no field may be.
fn decoded(body: &[u8]) -> Value {
    let Ok(map) = Reader::new(body).map() else {
        return decode(body).unwrap_or(Value::Null);
    };
    let of = |part: &[u8]| decode(part).unwrap_or(Value::List(Vec::new()));
    let mut fields = OrderedMap::new();
    for (key, value) in map.raw_entries().flatten() {
        fields.insert(of(key), of(value));
    }
    Value::Map(fields)
}

/// The spelling of the status in a node's replies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spelling {
    status: &'static str,
    description: &'static str,
}

/// The two spellings.
pub(crate) mod spelling {
    use super::Spelling;

    pub(crate) const MANAGEMENT: Spelling = Spelling {
        status: "statusCode",
        description: "statusDescription",
    };
    pub(crate) const CBS: Spelling = Spelling {
        status: "status-code",
        description: "status-description",
    };
}

impl Reply {
    /// Success without a body.
    pub(crate) fn done() -> Self {
        Self::Done {
            status: 200,
            body: vec![0x40],
        }
    }

    /// Success without content.
    pub(crate) fn no_content() -> Self {
        Self::Done {
            status: 204,
            body: vec![0x40],
        }
    }

    /// Success with a map of `entries` entries that `write` appends.
    pub(crate) fn map(entries: u32, write: impl FnOnce(&mut Writer<'_>)) -> Self {
        let mut body = Vec::new();
        let mut out = Writer::new(&mut body);
        let mark = out.begin_map();
        write(&mut out);
        out.end(mark, entries * 2);
        Self::Done { status: 200, body }
    }

    /// Encodes the response to `request`.
    pub(crate) fn encode(&self, request: &Request, spelling: Spelling) -> Vec<u8> {
        let mut message = Vec::with_capacity(256);
        let mut out = Writer::new(&mut message);
        out.descriptor(0x73);
        let properties = out.begin_list();
        for _ in 0..5 {
            out.null();
        }
        out.raw(&request.message_id);
        out.end(properties, 6);

        out.descriptor(0x74);
        let map = out.begin_map();
        let (status, description) = match self {
            Self::Done { status, .. } => (*status, if *status == 202 { "Accepted" } else { "OK" }),
            Self::Refused { condition, text } => (condition.status(), text.as_str()),
            Self::Scripted { status, text, .. } => (*status, text.as_str()),
        };
        out.string(spelling.status);
        out.int(status);
        out.string(spelling.description);
        out.string(description);
        let mut entries = 2;
        // Not on `$cbs`, where Python takes its mere presence for a failure; a failure there has a status.
        let condition = match self {
            Self::Done { .. } => None,
            Self::Refused { condition, .. } => Some(condition.symbol()),
            Self::Scripted { condition, .. } => Some(condition.as_str()),
        };
        if let (Some(condition), "statusCode") = (condition, spelling.status) {
            out.string("errorCondition");
            out.symbol(condition);
            entries += 1;
        }
        if let Some(id) = request.property(TRACKING_ID) {
            out.string(TRACKING_ID);
            out.string(id);
            entries += 1;
        }
        out.end(map, entries * 2);

        out.descriptor(0x77);
        match self {
            Self::Done { body, .. } => out.raw(body),
            Self::Refused { .. } | Self::Scripted { .. } => out.null(),
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Java writes such arrays for `boolean[]` (spec/observed.md 68).
    #[test]
    fn a_zero_width_array_does_not_hide_other_request_fields() {
        for value in [&[0xe0, 0x02, 0x04, 0x41][..], &[0x74, 0, 0, 0, 0]] {
            let mut payload = Vec::new();
            let mut out = Writer::new(&mut payload);
            out.descriptor(0x77);
            let body = out.begin_map();
            out.string("properties-to-modify");
            let changes = out.begin_map();
            out.string("a");
            out.raw(value);
            out.end(changes, 2);
            out.string("disposition-status");
            out.string("completed");
            out.end(body, 4);
            let request = Request::parse(&payload).expect("it can be decoded");
            let status = request.text("disposition-status");
            assert_eq!(status, Some("completed"), "{value:?}");
        }
    }
}
