//! Values of application properties, without AMQP's many widths.
//!
//! A test compares with a number, not with a `ulong`: every integer reads as one type, and so does every float. Types that
//! tests do not use are stored as text.

use std::fmt;

use bytes::Bytes;
use serde_amqp::{Value, descriptor::Descriptor};

/// The value of an application property.
#[derive(Debug, Clone)]
pub enum PropertyValue {
    /// A null value.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer of any width.
    Integer(i64),
    /// An integer that is sent as a `ulong`, or was received and exceeds the largest `long`; equal to an
    /// [`Integer`](Self::Integer) of the same value.
    Unsigned(u64),
    /// A float of any width.
    Float(f64),
    /// A string or symbol.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Any other value, as text: `com.microsoft:timespan(36000000000)`, or the bytes of an unknown one.
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
    /// Converts an AMQP value.
    pub fn of_amqp(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Ubyte(value) => Self::Integer(value.into()),
            Value::Ushort(value) => Self::Integer(value.into()),
            Value::Uint(value) => Self::Integer(value.into()),
            Value::Ulong(value) => match i64::try_from(value) {
                Ok(value) => Self::Integer(value),
                Err(_) => Self::Unsigned(value),
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

    /// Returns the value as the body of a message shows it: text and bytes unchanged, other values as text.
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
            Self::Unsigned(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => write!(f, "{value:?}"),
            Self::Bytes(value) => write!(f, "{} bytes", value.len()),
            Self::Other(value) => f.write_str(value),
        }
    }
}

/// Compares integers by value.
impl PartialEq for PropertyValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Integer(one), Self::Integer(other)) => one == other,
            (Self::Unsigned(one), Self::Unsigned(other)) => one == other,
            (Self::Integer(signed), Self::Unsigned(unsigned))
            | (Self::Unsigned(unsigned), Self::Integer(signed)) => {
                u64::try_from(*signed) == Ok(*unsigned)
            }
            (Self::Float(one), Self::Float(other)) => one == other,
            (Self::Text(one), Self::Text(other)) | (Self::Other(one), Self::Other(other)) => {
                one == other
            }
            (Self::Bytes(one), Self::Bytes(other)) => one == other,
            _ => false,
        }
    }
}

impl PartialEq<&str> for PropertyValue {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == Some(*other)
    }
}

/// Implements `From` for values of application properties.
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
from!(u64 => Unsigned);
from!(u8 => Integer, i8 => Integer, u16 => Integer, i16 => Integer, u32 => Integer, f32 => Float);

/// As a `u64`, because AMQP has no integer of the machine's width.
impl From<usize> for PropertyValue {
    fn from(value: usize) -> Self {
        Self::Unsigned(value as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_equal_by_value() {
        assert_eq!(PropertyValue::from(7_u64), PropertyValue::from(7));
        assert_eq!(
            PropertyValue::from(7_usize),
            PropertyValue::of_amqp(Value::Ulong(7))
        );
        assert_ne!(PropertyValue::from(u64::MAX), PropertyValue::from(-1));
        let largest = PropertyValue::of_amqp(Value::Ulong(u64::MAX));
        assert_eq!(largest, PropertyValue::from(u64::MAX));
        assert_eq!(largest.to_string(), "18446744073709551615");
    }
}
