//! Values of application properties, without AMQP's many widths.
//!
//! A test compares with a number, not with a `ulong`: every integer reads as one kind, and so does every
//! float. Kinds that tests do not use are kept as text.

use std::fmt;

use fe2o3_amqp::types::primitives::{SimpleValue, Value};
use serde_amqp::descriptor::Descriptor;
use servicebus_codec::Reader;

/// The value of an application property.
#[derive(Debug, Clone, PartialEq)]
pub enum PropertyValue {
    /// A value that is null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer of any width.
    Integer(i64),
    /// A float of any width.
    Float(f64),
    /// A string or symbol.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Anything else, as text: `com.microsoft:timespan(36000000000)`, or the bytes of what is not understood.
    Other(String),
}

impl PropertyValue {
    /// Returns the text of a string or symbol.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn into_simple(self) -> SimpleValue {
        match self {
            Self::Null => SimpleValue::Null,
            Self::Bool(value) => SimpleValue::Bool(value),
            Self::Integer(value) => SimpleValue::Long(value),
            Self::Float(value) => SimpleValue::Double(value.into()),
            Self::Text(value) | Self::Other(value) => SimpleValue::String(value),
            Self::Bytes(value) => SimpleValue::Binary(value.into()),
        }
    }
}

/// Reads a value off the wire.
pub(crate) fn from_amqp(value: Value) -> PropertyValue {
    match value {
        Value::Null => PropertyValue::Null,
        Value::Bool(value) => PropertyValue::Bool(value),
        Value::Ubyte(value) => PropertyValue::Integer(value.into()),
        Value::Ushort(value) => PropertyValue::Integer(value.into()),
        Value::Uint(value) => PropertyValue::Integer(value.into()),
        Value::Ulong(value) => match i64::try_from(value) {
            Ok(value) => PropertyValue::Integer(value),
            Err(_) => PropertyValue::Other(value.to_string()),
        },
        Value::Byte(value) => PropertyValue::Integer(value.into()),
        Value::Short(value) => PropertyValue::Integer(value.into()),
        Value::Int(value) => PropertyValue::Integer(value.into()),
        Value::Long(value) => PropertyValue::Integer(value),
        Value::Float(value) => PropertyValue::Float(value.into_inner().into()),
        Value::Double(value) => PropertyValue::Float(value.into_inner()),
        Value::String(value) => PropertyValue::Text(value),
        Value::Symbol(value) => PropertyValue::Text(value.0),
        Value::Binary(value) => PropertyValue::Bytes(value.into_vec()),
        Value::Described(described) => {
            let name = match described.descriptor {
                Descriptor::Name(name) => name.0,
                Descriptor::Code(code) => format!("{code:#x}"),
            };
            PropertyValue::Other(format!("{name}({})", from_amqp(described.value)))
        }
        other => PropertyValue::Other(format!("{other:?}")),
    }
}

/// Reads an encoded value of any type.
pub(crate) fn from_encoded(bytes: &[u8]) -> PropertyValue {
    // Validated first, so that the decoder neither recurses nor allocates beyond what is there.
    let is_valid = Reader::new(bytes).validate().is_ok();
    let decoded = is_valid.then(|| serde_amqp::from_slice(bytes));
    match decoded {
        Some(Ok(value)) => from_amqp(value),
        _ => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            PropertyValue::Other(format!("0x{}", String::from_iter(digits)))
        }
    }
}

impl fmt::Display for PropertyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => write!(f, "{value:?}"),
            Self::Bytes(value) => write!(f, "{} bytes", value.len()),
            Self::Other(value) => f.write_str(value),
        }
    }
}

impl PartialEq<&str> for PropertyValue {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(*other)
    }
}

/// Lets values become those of application properties.
macro_rules! from {
    ($($value:ty => $kind:ident),+) => {$(
        impl From<$value> for PropertyValue {
            fn from(value: $value) -> Self {
                Self::$kind(value.into())
            }
        }
    )+};
}

from!(&str => Text, String => Text, bool => Bool, i32 => Integer, i64 => Integer, f64 => Float);
