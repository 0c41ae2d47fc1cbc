//! Frames: built from values or field by field, and parsed into values, without validation.

use serde_amqp::Value;
use servicebus_codec::{Reader, Writer};

use crate::message::section;
use crate::value::{binary, described_list, list, symbol};

/// The header of the AMQP layer.
pub const AMQP_HEADER: &[u8; 8] = b"AMQP\x00\x01\x00\x00";
/// The header of the SASL layer.
pub const SASL_HEADER: &[u8; 8] = b"AMQP\x03\x01\x00\x00";
/// The code of `open`.
pub const OPEN: u8 = 0x10;
/// The code of `begin`.
pub const BEGIN: u8 = 0x11;
/// The code of `attach`.
pub const ATTACH: u8 = 0x12;
/// The code of `flow`.
pub const FLOW: u8 = 0x13;
/// The code of `transfer`.
pub const TRANSFER: u8 = 0x14;
/// The code of `disposition`.
pub const DISPOSITION: u8 = 0x15;
/// The code of `detach`.
pub const DETACH: u8 = 0x16;
/// The code of `end`.
pub const END: u8 = 0x17;
/// The code of `close`.
pub const CLOSE: u8 = 0x18;
/// The code of `sasl-init`.
pub const SASL_INIT: u8 = 0x41;
/// The code of `sasl-outcome`.
pub const SASL_OUTCOME: u8 = 0x44;

/// A frame of the emulator.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Its channel.
    pub channel: u16,
    /// The code of the performative; 0 for a heartbeat.
    pub code: u8,
    /// The fields of the performative.
    pub fields: Vec<Value>,
    /// The bytes after the performative.
    pub payload: Vec<u8>,
    /// The performative and the bytes after it.
    pub body: Vec<u8>,
}

/// An AMQP error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceError {
    /// The condition, for programs.
    pub condition: String,
    /// The description, for people.
    pub text: String,
}

impl Frame {
    /// Returns a field; null if it is missing.
    pub fn field(&self, index: usize) -> &Value {
        self.fields.get(index).unwrap_or(&Value::Null)
    }

    /// Returns a `uint` field.
    pub fn number(&self, index: usize) -> u32 {
        match self.field(index) {
            Value::Uint(number) => *number,
            other => panic!("field {index} is not a uint but {other:?}: {self:?}"),
        }
    }

    /// Returns a boolean field; false if it is missing.
    pub fn flag(&self, index: usize) -> bool {
        match self.field(index) {
            Value::Bool(flag) => *flag,
            Value::Null => false,
            other => panic!("field {index} is not a boolean but {other:?}: {self:?}"),
        }
    }

    /// Returns whether it is a disposition of this delivery.
    pub fn is_about(&self, id: u32) -> bool {
        if self.code != DISPOSITION {
            return false;
        }
        let first = self.number(1);
        let last = match self.field(2) {
            Value::Null => first,
            _ => self.number(2),
        };
        (first..=last).contains(&id)
    }

    /// Returns the error in a field, which must be present.
    pub fn refusal(&self, index: usize) -> ServiceError {
        refusal_of(self.field(index))
    }

    /// Returns the size of the whole frame in bytes.
    pub fn size(&self) -> usize {
        8 + self.body.len()
    }

    /// Removes the first complete frame from `input`, if there is one.
    pub fn split_off(input: &mut Vec<u8>) -> Option<Self> {
        let size = u32::from_be_bytes(*input.first_chunk::<4>()?) as usize;
        if input.len() < size {
            return None;
        }
        let bytes: Vec<u8> = input.drain(..size).collect();
        Some(Self::parse(&bytes))
    }

    /// Parses a complete, valid frame.
    fn parse(bytes: &[u8]) -> Self {
        let body = bytes[8..].to_vec();
        let mut frame = Self {
            channel: u16::from_be_bytes([bytes[6], bytes[7]]),
            code: 0,
            fields: Vec::new(),
            payload: Vec::new(),
            body,
        };
        let Some(descriptor) = frame.body.first_chunk::<3>() else {
            assert!(frame.body.is_empty(), "descriptors are small ulongs");
            return frame;
        };
        assert_eq!(
            descriptor[..2],
            [0x00, 0x53],
            "descriptors are small ulongs"
        );
        frame.code = descriptor[2];
        let mut reader = Reader::new(&frame.body);
        reader.validate().expect("frames are sound");
        frame.payload = reader.rest().to_vec();
        let mut reader = Reader::new(&frame.body);
        reader.descriptor().expect("performatives are described");
        let list = reader.list().expect("performatives are lists");
        let mut items = list.items;
        for _ in 0..list.count {
            let field = items.skip().expect("fields are whole");
            // An echoed field may contain constructors that AMQP does not define, because the client has sent them.
            let field = serde_amqp::from_slice(field).unwrap_or(Value::Null);
            frame.fields.push(field);
        }
        frame
    }
}

/// Parses complete frames, and skips protocol headers.
pub fn split(bytes: &[u8]) -> Vec<Frame> {
    let mut input = bytes.to_vec();
    let mut frames = Vec::new();
    while !input.is_empty() {
        if input.starts_with(b"AMQP") {
            input.drain(..8);
            continue;
        }
        frames.push(Frame::split_off(&mut input).expect("frames are whole"));
    }
    frames
}

/// Returns the codes of the performatives.
pub fn codes(frames: &[Frame]) -> Vec<u8> {
    frames.iter().map(|frame| frame.code).collect()
}

impl ServiceError {
    /// Returns the text without its tail: tracking id, system tracker and time, all of which must be present (D29).
    pub fn words(&self) -> &str {
        untracked(&self.text).0
    }

    /// Returns the tracking id of the text.
    pub fn tracking_id(&self) -> &str {
        untracked(&self.text).1
    }
}

/// Splits a text of the service into the message and its tracking id.
pub fn untracked(text: &str) -> (&str, &str) {
    let parts = || {
        let (words, tail) = text.split_once(" TrackingId:")?;
        let (id, tail) = tail.split_once("_B")?;
        let (_, tail) = tail.split_once(", SystemTracker:")?;
        let (_, time) = tail.split_once(", Timestamp:")?;
        let sound = id.len() == 36 && time.len() == "yyyy-MM-ddTHH:mm:ss".len();
        sound.then_some((words, id))
    };
    parts().unwrap_or_else(|| panic!("no tracking id, system tracker or time: {text}"))
}

/// Returns condition and text of an error, all three fields of which must be present (wire.md §0.7).
pub fn refusal_of(error: &Value) -> ServiceError {
    let (code, fields) = described_list(error);
    assert_eq!(code, 0x1d, "not an error: {error:?}");
    let [Value::Symbol(condition), Value::String(text), _info] = fields else {
        panic!("an error has a symbol, a string and a third field: {fields:?}");
    };
    ServiceError {
        condition: condition.as_str().to_owned(),
        text: text.clone(),
    }
}

/// Encodes a frame of the AMQP layer.
pub fn performative(channel: u16, code: u8, fields: &[Value], payload: &[u8]) -> Vec<u8> {
    let mut frame = framed(0, channel, &encoded_list(code, fields));
    frame.extend_from_slice(payload);
    sized(frame, 0)
}

/// Encodes a frame of the SASL layer.
pub fn sasl(code: u8, fields: &[Value]) -> Vec<u8> {
    framed(1, 0, &encoded_list(code, fields))
}

/// Encodes the `sasl-init` frame.
pub fn sasl_init(mechanism: &str, response: &[u8]) -> Vec<u8> {
    sasl(SASL_INIT, &[symbol(mechanism), binary(response)])
}

/// Encodes a frame of either layer with this body.
pub fn framed(kind: u8, channel: u16, body: &[u8]) -> Vec<u8> {
    let [high, low] = channel.to_be_bytes();
    let frame = [&[0, 0, 0, 0, 2, kind, high, low], body].concat();
    sized(frame, 0)
}

/// Appends a frame with a performative; `fields` writes its fields and returns their number.
pub fn append(
    out: &mut Vec<u8>,
    kind: u8,
    channel: u16,
    code: u8,
    fields: impl FnOnce(&mut Writer<'_>) -> u32,
) {
    let start = out.len();
    let [high, low] = channel.to_be_bytes();
    out.extend_from_slice(&[0, 0, 0, 0, 2, kind, high, low]);
    let mut writer = Writer::new(out);
    writer.descriptor(code);
    let mark = writer.begin_list();
    let count = fields(&mut writer);
    writer.end(mark, count);
    *out = sized(std::mem::take(out), start);
}

/// Sets the size of the last frame, which begins at `start`.
pub fn sized(mut bytes: Vec<u8>, start: usize) -> Vec<u8> {
    let size = (bytes.len() - start) as u32;
    bytes[start..start + 4].copy_from_slice(&size.to_be_bytes());
    bytes
}

/// Encodes a described list.
pub fn encoded_list(code: u8, fields: &[Value]) -> Vec<u8> {
    section(code, &list(fields.iter().cloned()))
}
