//! Values of application properties, without AMQP's many widths.
//!
//! A test compares with a number, not with a `ulong`: every integer reads as one kind, and so does every
//! float. Kinds that tests do not use are kept as text.

use std::fmt;

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
