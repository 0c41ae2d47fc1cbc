//! Values of application properties, without AMQP's many widths.
//!
//! A test compares with a number, not with a `ulong`: every integer reads as one kind, and so does every
//! float. Kinds that tests do not use are kept as text.

use std::fmt;

use bytes::Bytes;
use serde_amqp::{Value, descriptor::Descriptor};

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
}

impl PropertyValue {
    /// Reads a value off the wire.
    pub fn of_amqp(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Ubyte(value) => Self::Integer(value.into()),
            Value::Ushort(value) => Self::Integer(value.into()),
            Value::Uint(value) => Self::Integer(value.into()),
            Value::Ulong(value) => match i64::try_from(value) {
                Ok(value) => Self::Integer(value),
                Err(_) => Self::Other(value.to_string()),
            },
            Value::Byte(value) => Self::Integer(value.into()),
            Value::Short(value) => Self::Integer(value.into()),
            Value::Int(value) => Self::Integer(value.into()),
            Value::Long(value) => Self::Integer(value),
            Value::Float(value) => Self::Float(value.into_inner().into()),
            Value::Double(value) => Self::Float(value.into_inner()),
            Value::String(value) => Self::Text(value),
            Value::Symbol(value) => Self::Text(value.0),
            Value::Binary(value) => Self::Bytes(value.into_vec()),
            Value::Described(described) => {
                let name = match described.descriptor {
                    Descriptor::Name(name) => name.0,
                    Descriptor::Code(code) => format!("{code:#x}"),
                };
                Self::Other(format!("{name}({})", Self::of_amqp(described.value)))
            }
            other => Self::Other(format!("{other:?}")),
        }
    }

    /// Returns the value as the body of a message shows it: texts and bytes as they are, anything else as text.
    pub fn into_body(self) -> Bytes {
        match self {
            Self::Null => Bytes::new(),
            Self::Text(text) => Bytes::from(text),
            Self::Bytes(bytes) => Bytes::from(bytes),
            other => Bytes::from(other.to_string()),
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
from!(u8 => Integer, i8 => Integer, u16 => Integer, i16 => Integer, u32 => Integer, f32 => Float);
