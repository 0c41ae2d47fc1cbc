//! One decoded value, borrowed from its input.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `any other` is what is meant"
)]

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
