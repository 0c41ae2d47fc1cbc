//! One decoded value, borrowed from its input, and the errors of encoded values.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `any other` is what is meant"
)]

use thiserror::Error;
use uuid::Uuid;

/// A primitive by kind instead of width, or the bytes of anything else.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// `boolean`.
    Bool(bool),
    /// `ubyte`, `ushort`, `uint` and `ulong`.
    Unsigned(u64),
    /// `byte`, `short`, `int` and `long`.
    Signed(i64),
    /// `float` and `double`.
    Float(f64),
    /// `timestamp`, milliseconds since the Unix epoch.
    Timestamp(i64),
    /// `uuid`.
    Uuid(Uuid),
    /// `binary`.
    Binary(&'a [u8]),
    /// `string`.
    String(&'a str),
    /// `symbol`.
    Symbol(&'a str),
    /// Anything else (compound, described, decimal, char) as encoded, with its constructor.
    Other(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Returns the text of a string or symbol.
    pub fn as_text(&self) -> Option<&'a str> {
        match *self {
            Value::String(text) | Value::Symbol(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a whole number of any width that fits an `i64`.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Value::Signed(number) => Some(number),
            Value::Unsigned(number) => i64::try_from(number).ok(),
            _ => None,
        }
    }
}

/// Why bytes are not the expected AMQP value. Always the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The input ends inside a value.
    #[error("value is truncated")]
    Truncated,
    /// A composite type lacks a mandatory field.
    #[error("the mandatory field '{field}' is missing")]
    Missing {
        /// The name of the field.
        field: &'static str,
    },
    /// The constructor is of another type, or AMQP does not define it.
    #[error("expected {expected}, found constructor 0x{code:02x}")]
    Unexpected {
        /// The expected type.
        expected: &'static str,
        /// The constructor found.
        code: u8,
    },
    /// Lists, maps, arrays or descriptors are nested beyond [`crate::MAX_DEPTH`].
    #[error("value is nested deeper than {} levels", crate::MAX_DEPTH)]
    TooDeep,
    /// The element count of a compound does not fit its size.
    #[error("compound claims more elements than it has bytes")]
    CountMismatch,
    /// The elements of lists, maps and arrays exceed [`crate::MAX_ELEMENTS`].
    #[error(
        "value has {count} more elements; at most {} are allowed in all values of a message together",
        crate::MAX_ELEMENTS
    )]
    TooManyElements {
        /// Elements of the list, map or array that exceeds the limit.
        count: u32,
    },
    /// The elements without width in arrays exceed [`crate::MAX_WIDTHLESS`].
    #[error(
        "array has {count} elements without width; at most {} are allowed in all arrays together",
        crate::MAX_WIDTHLESS
    )]
    TooManyWidthless {
        /// Elements of the array that exceeds the limit.
        count: u32,
    },
    /// A string or symbol has invalid characters.
    #[error("string is not valid UTF-8")]
    InvalidText,
}
