//! Frames: made of values, and taken apart into values.

use serde_amqp::Value;
use servicebus_codec::{Reader, Writer};

use super::value::described_list;

pub(crate) const OPEN: u8 = 0x10;
pub(crate) const BEGIN: u8 = 0x11;
pub(crate) const ATTACH: u8 = 0x12;
pub(crate) const FLOW: u8 = 0x13;
pub(crate) const TRANSFER: u8 = 0x14;
pub(crate) const DISPOSITION: u8 = 0x15;
pub(crate) const DETACH: u8 = 0x16;
pub(crate) const END: u8 = 0x17;
pub(crate) const CLOSE: u8 = 0x18;

/// One frame of the emulator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) channel: u16,
    /// Of the performative; 0 for a heartbeat.
    pub(crate) code: u8,
    pub(crate) fields: Vec<Value>,
    pub(crate) payload: Vec<u8>,
    /// Of the whole frame, in bytes.
    pub(crate) size: usize,
}

/// An AMQP error as a client reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceError {
    pub(crate) condition: String,
    pub(crate) text: String,
}

impl Frame {
    /// A field; null when it was left out.
    pub(crate) fn field(&self, index: usize) -> &Value {
        self.fields.get(index).unwrap_or(&Value::Null)
    }

    /// A field that is a `uint`.
    pub(crate) fn number(&self, index: usize) -> u32 {
        match self.field(index) {
            Value::Uint(number) => *number,
            other => panic!("field {index} is no uint but {other:?}: {self:?}"),
        }
    }

    pub(crate) fn flag(&self, index: usize) -> bool {
        match self.field(index) {
            Value::Bool(flag) => *flag,
            Value::Null => false,
            other => panic!("field {index} is no boolean but {other:?}: {self:?}"),
        }
    }

    /// The error in a field, which there must be.
    pub(crate) fn refusal(&self, index: usize) -> ServiceError {
        refusal_of(self.field(index))
    }

    /// Takes the first whole frame off `input`, if there is one.
    pub(crate) fn split_off(input: &mut Vec<u8>) -> Option<Self> {
        let size = u32::from_be_bytes(*input.first_chunk::<4>()?) as usize;
        if input.len() < size {
            return None;
        }
        let bytes: Vec<u8> = input.drain(..size).collect();
        Some(Self::parse(&bytes))
    }

    fn parse(bytes: &[u8]) -> Self {
        let channel = u16::from_be_bytes([bytes[6], bytes[7]]);
        let body = &bytes[8..];
        let mut frame = Self {
            channel,
            code: 0,
            fields: Vec::new(),
            payload: Vec::new(),
            size: bytes.len(),
        };
        if body.is_empty() {
            return frame;
        }
        assert_eq!(body[..2], [0x00, 0x53], "descriptors are small ulongs");
        frame.code = body[2];
        let mut reader = Reader::new(body);
        reader.validate().expect("frames are sound");
        frame.payload = reader.rest().to_vec();
        let mut reader = Reader::new(body);
        reader.descriptor().expect("performatives are described");
        let list = reader.list().expect("performatives are lists");
        let mut items = list.items;
        for _ in 0..list.count {
            let encoded = items.skip().expect("fields are whole");
            let field = serde_amqp::from_slice(encoded).expect("fields can be decoded");
            frame.fields.push(field);
        }
        frame
    }
}

impl ServiceError {
    /// The text without its tail: tracking id, system tracker and time, all of which there must be (D29).
    pub(crate) fn words(&self) -> &str {
        untracked(&self.text).0
    }

    pub(crate) fn tracking_id(&self) -> &str {
        untracked(&self.text).1
    }
}

/// A text of the service parted into its words and its tracking id.
pub(crate) fn untracked(text: &str) -> (&str, &str) {
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
pub(crate) fn refusal_of(error: &Value) -> ServiceError {
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
pub(crate) fn performative(channel: u16, code: u8, fields: &[Value], payload: &[u8]) -> Vec<u8> {
    framed(0, channel, code, fields, payload)
}

/// A whole frame of either layer.
pub(super) fn framed(
    kind: u8,
    channel: u16,
    code: u8,
    fields: &[Value],
    payload: &[u8],
) -> Vec<u8> {
    let [high, low] = channel.to_be_bytes();
    let mut frame = vec![0, 0, 0, 0, 2, kind, high, low];
    let mut writer = Writer::new(&mut frame);
    writer.descriptor(code);
    let mark = writer.begin_list();
    for field in fields {
        writer.raw(&serde_amqp::to_vec(field).expect("values can be encoded"));
    }
    writer.end(mark, fields.len() as u32);
    frame.extend_from_slice(payload);
    let size = frame.len() as u32;
    frame[..4].copy_from_slice(&size.to_be_bytes());
    frame
}
