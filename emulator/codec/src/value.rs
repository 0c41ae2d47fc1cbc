//! One decoded value, borrowed from its input.
//!
//! What can be wrong with an encoded value.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `any other` is what is meant"
)]

use thiserror::Error;
use uuid::Uuid;

/// A primitive by kind rather than by width, or the bytes of anything else.
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
    /// Anything else (compound, described, decimal, char) with its constructor, as encoded.
    Other(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The text of a string or symbol.
    pub fn as_text(&self) -> Option<&'a str> {
        match *self {
            Value::String(text) | Value::Symbol(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number of any width that fits an `i64`.
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Value::Signed(number) => Some(number),
            Value::Unsigned(number) => i64::try_from(number).ok(),
            _ => None,
        }
    }
}

/// Why bytes are not the AMQP value that was due. Always the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The input ends inside a value.
    #[error("value is truncated")]
    Truncated,
    /// A constructor of another type, or one that AMQP does not define.
    #[error("expected {expected}, found constructor 0x{code:02x}")]
    Unexpected {
        /// The type that was due.
        expected: &'static str,
        /// The constructor found.
        code: u8,
    },
    /// Lists, maps, arrays or descriptors inside each other past [`crate::MAX_DEPTH`].
    #[error("value is nested deeper than {} levels", crate::MAX_DEPTH)]
    TooDeep,
    /// A compound whose element count cannot fit into its size.
    #[error("compound claims more elements than it has bytes")]
    CountMismatch,
    /// Elements of lists, maps and arrays, beyond [`crate::MAX_ELEMENTS`].
    #[error(
        "value has {count} more elements; at most {} are allowed in all values of a message together",
        crate::MAX_ELEMENTS
    )]
    TooManyElements {
        /// Elements of the list, map or array that exceeds it.
        count: u32,
    },
    /// Elements without width in arrays, beyond [`crate::MAX_WIDTHLESS`].
    #[error(
        "array has {count} elements without width; at most {} are allowed in all arrays together",
        crate::MAX_WIDTHLESS
    )]
    TooManyWidthless {
        /// Elements of the array that exceeds it.
        count: u32,
    },
    /// A string or symbol that is not text.
    #[error("string is not valid UTF-8")]
    InvalidText,
}
