//! Frames: made of values or written field by field, and taken apart into values. Nothing here knows what is right.

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

/// One frame of the emulator.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The channel it came on.
    pub channel: u16,
    /// Of the performative; 0 for a heartbeat.
    pub code: u8,
    /// Of the performative.
    pub fields: Vec<Value>,
    /// What follows the performative.
    pub payload: Vec<u8>,
    /// The performative and what follows it.
    pub body: Vec<u8>,
}

/// An AMQP error as a client reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceError {
    /// What programs read.
    pub condition: String,
    /// What people read.
    pub text: String,
}

impl Frame {
    /// A field; null when it was left out.
    pub fn field(&self, index: usize) -> &Value {
        self.fields.get(index).unwrap_or(&Value::Null)
    }

    /// A field that is a `uint`.
    pub fn number(&self, index: usize) -> u32 {
        match self.field(index) {
            Value::Uint(number) => *number,
            other => panic!("field {index} is no uint but {other:?}: {self:?}"),
        }
    }

    /// A field that is a boolean; false when it was left out.
    pub fn flag(&self, index: usize) -> bool {
        match self.field(index) {
            Value::Bool(flag) => *flag,
            Value::Null => false,
            other => panic!("field {index} is no boolean but {other:?}: {self:?}"),
        }
    }

    /// Whether it is a disposition about this delivery.
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

    /// The error in a field, which there must be.
    pub fn refusal(&self, index: usize) -> ServiceError {
        refusal_of(self.field(index))
    }

    /// Of the whole frame, in bytes.
    pub fn size(&self) -> usize {
        8 + self.body.len()
    }

    /// Takes the first whole frame off `input`, if there is one.
    pub fn split_off(input: &mut Vec<u8>) -> Option<Self> {
        let size = u32::from_be_bytes(*input.first_chunk::<4>()?) as usize;
        if input.len() < size {
            return None;
        }
        let bytes: Vec<u8> = input.drain(..size).collect();
        Some(Self::parse(&bytes))
    }

    /// A whole frame, which must be sound.
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
            // An echo may hold constructors that AMQP does not define; they are the client's own.
            let field = serde_amqp::from_slice(field).unwrap_or(Value::Null);
            frame.fields.push(field);
        }
        frame
    }
}

/// Takes whole frames apart, and leaves protocol headers out.
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

/// The performatives of frames.
pub fn codes(frames: &[Frame]) -> Vec<u8> {
    frames.iter().map(|frame| frame.code).collect()
}

impl ServiceError {
    /// The text without its tail: tracking id, system tracker and time, all of which there must be (D29).
    pub fn words(&self) -> &str {
        untracked(&self.text).0
    }

    /// The tracking id in the text.
    pub fn tracking_id(&self) -> &str {
        untracked(&self.text).1
    }
}

/// A text of the service parted into its words and its tracking id.
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

/// Condition and text of an error, all three fields of which must have been written (wire.md §0.7).
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

/// A whole frame of the AMQP layer.
pub fn performative(channel: u16, code: u8, fields: &[Value], payload: &[u8]) -> Vec<u8> {
    let mut frame = framed(0, channel, &encoded_list(code, fields));
    frame.extend_from_slice(payload);
    sized(frame, 0)
}

/// A whole frame of the SASL layer.
pub fn sasl(code: u8, fields: &[Value]) -> Vec<u8> {
    framed(1, 0, &encoded_list(code, fields))
}

/// The frame that offers a SASL mechanism.
pub fn sasl_init(mechanism: &str, response: &[u8]) -> Vec<u8> {
    sasl(SASL_INIT, &[symbol(mechanism), binary(response)])
}

/// A frame of either layer with this body.
pub fn framed(kind: u8, channel: u16, body: &[u8]) -> Vec<u8> {
    let [high, low] = channel.to_be_bytes();
    let frame = [&[0, 0, 0, 0, 2, kind, high, low], body].concat();
    sized(frame, 0)
}

/// Appends a frame of one performative, whose fields are written and counted.
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

/// Bytes whose last frame begins at `start`, with its size as it is now.
pub fn sized(mut bytes: Vec<u8>, start: usize) -> Vec<u8> {
    let size = (bytes.len() - start) as u32;
    bytes[start..start + 4].copy_from_slice(&size.to_be_bytes());
    bytes
}

/// A described list as bytes.
pub fn encoded_list(code: u8, fields: &[Value]) -> Vec<u8> {
    section(code, &list(fields.iter().cloned()))
}
