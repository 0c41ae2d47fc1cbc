//! The values of the language, and their conversion from and to AMQP types.
//!
//! The width of a number is dropped, since C# would promote it; its kind is kept: a string is never a number. Instants and
//! spans count ticks of 100 ns, like .NET's `com.microsoft:datetime-offset` and `com.microsoft:timespan`.
//!
//! IEEE 754 decimals with a binary integer significand in 32, 64 or 128 bits become the nearest double: constants of the
//! language are doubles, and C# has no operator between the two. So do those of 128 bits in the layout of Microsoft's library,
//! which all messages have ([`crate::message::sections`]).

use std::borrow::Cow;

use servicebus_codec::{DecodeError, Descriptor, Reader, Writer};
use uuid::Uuid;

use crate::message::sections::EXPONENTS;

/// Ticks in a millisecond.
pub(crate) const TICKS: i64 = 10_000;
/// The Unix epoch in ticks since the year 1, where .NET begins to count.
const EPOCH: i64 = 621_355_968_000_000_000;

pub(crate) const URI: &str = "com.microsoft:uri";
pub(crate) const INSTANT: &str = "com.microsoft:datetime-offset";
pub(crate) const SPAN: &str = "com.microsoft:timespan";

/// A value, borrowed from its message or rule where possible.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// Null, or a property that does not exist.
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed whole number of any width.
    Signed(i64),
    /// An unsigned whole number of any width.
    Unsigned(u64),
    /// A float or double; decimals too.
    Float(f64),
    /// A string, symbol, character or URI.
    Text(Cow<'a, str>),
    /// Ticks of 100 ns since the Unix epoch.
    Instant(i64),
    /// Ticks of 100 ns.
    Span(i64),
    /// A GUID.
    Guid(Uuid),
    /// Bytes.
    Binary(Cow<'a, [u8]>),
    /// A type for which the language has no operators, as encoded.
    Other(Cow<'a, [u8]>),
}

impl<'a> Value<'a> {
    /// Decodes an encoded AMQP value.
    pub fn decode(encoded: &'a [u8]) -> Result<Self, DecodeError> {
        Ok(match Reader::new(encoded).value()? {
            servicebus_codec::Value::Null => Self::Null,
            servicebus_codec::Value::Bool(flag) => Self::Bool(flag),
            servicebus_codec::Value::Unsigned(number) => Self::Unsigned(number),
            servicebus_codec::Value::Signed(number) => Self::Signed(number),
            servicebus_codec::Value::Float(number) => Self::Float(number),
            servicebus_codec::Value::Timestamp(milliseconds) => Self::instant(milliseconds),
            servicebus_codec::Value::Uuid(uuid) => Self::Guid(uuid),
            servicebus_codec::Value::Binary(bytes) => Self::Binary(bytes.into()),
            servicebus_codec::Value::String(text) | servicebus_codec::Value::Symbol(text) => {
                Self::Text(text.into())
            }
            servicebus_codec::Value::Other(bytes) => decode_described(bytes),
        })
    }

    /// Creates a text.
    pub fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// Creates an instant from milliseconds since the Unix epoch.
    pub fn instant(milliseconds: i64) -> Self {
        Self::Instant(milliseconds.saturating_mul(TICKS))
    }

    /// Returns whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub(crate) fn borrowed(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Signed(number) => Value::Signed(*number),
            Self::Unsigned(number) => Value::Unsigned(*number),
            Self::Float(number) => Value::Float(*number),
            Self::Text(text) => Value::Text(Cow::Borrowed(text)),
            Self::Instant(ticks) => Value::Instant(*ticks),
            Self::Span(ticks) => Value::Span(*ticks),
            Self::Guid(uuid) => Value::Guid(*uuid),
            Self::Binary(bytes) => Value::Binary(Cow::Borrowed(bytes)),
            Self::Other(bytes) => Value::Other(Cow::Borrowed(bytes)),
        }
    }

    /// Copies the value, so that nothing is borrowed.
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(flag),
            Self::Signed(number) => Value::Signed(number),
            Self::Unsigned(number) => Value::Unsigned(number),
            Self::Float(number) => Value::Float(number),
            Self::Text(text) => Value::Text(Cow::Owned(text.into_owned())),
            Self::Instant(ticks) => Value::Instant(ticks),
            Self::Span(ticks) => Value::Span(ticks),
            Self::Guid(uuid) => Value::Guid(uuid),
            Self::Binary(bytes) => Value::Binary(Cow::Owned(bytes.into_owned())),
            Self::Other(bytes) => Value::Other(Cow::Owned(bytes.into_owned())),
        }
    }

    /// Returns the name of its type in error messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Signed(_) | Self::Unsigned(_) => "a whole number",
            Self::Float(_) => "a floating-point number",
            Self::Text(_) => "a string",
            Self::Instant(_) => "an instant",
            Self::Span(_) => "a time span",
            Self::Guid(_) => "a GUID",
            Self::Binary(_) => "binary",
            Self::Other(_) => "a value of another type",
        }
    }

    /// Appends it as the AMQP type that .NET would write.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        match self {
            Self::Null => writer.null(),
            Self::Bool(flag) => writer.bool(*flag),
            Self::Signed(number) => writer.long(*number),
            Self::Unsigned(number) => writer.ulong(*number),
            Self::Float(number) => {
                writer.raw(&[0x82]);
                writer.raw(&number.to_be_bytes());
            }
            Self::Text(text) => writer.string(text),
            Self::Instant(ticks) => writer.timestamp(ticks.div_euclid(TICKS)),
            Self::Span(ticks) => {
                writer.raw(&[0x00]);
                writer.symbol(SPAN);
                writer.long(*ticks);
            }
            Self::Guid(uuid) => writer.uuid(*uuid),
            Self::Binary(bytes) => writer.binary(bytes),
            Self::Other(bytes) => writer.raw(bytes),
        }
    }
}

/// Decodes described types of .NET, decimals and characters; returns anything else as encoded.
fn decode_described(bytes: &[u8]) -> Value<'_> {
    described(bytes)
        .or_else(|| decode(bytes).map(Value::Float))
        .or_else(|| character(bytes))
        .unwrap_or_else(|| Value::Other(bytes.into()))
}

fn described(bytes: &[u8]) -> Option<Value<'_>> {
    let mut reader = Reader::new(bytes);
    let Ok(Descriptor::Symbol(name)) = reader.descriptor() else {
        return None;
    };
    let value = reader.value().ok()?;
    match name {
        URI => value.as_text().map(Value::text),
        INSTANT => {
            let ticks = value.as_i64()?;
            Some(Value::Instant(ticks.saturating_sub(EPOCH)))
        }
        SPAN => value.as_i64().map(Value::Span),
        _ => None,
    }
}

fn character(bytes: &[u8]) -> Option<Value<'_>> {
    let &[0x73, a, b, c, d] = bytes else {
        return None;
    };
    let character = char::from_u32(u32::from_be_bytes([a, b, c, d]))?;
    Some(Value::Text(character.to_string().into()))
}

/// A value of a rule in the AMQP encoding of its client, so that the client reads back what it wrote.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Encoded {
    amqp: Box<[u8]>,
    /// Whether it is an instant that was written without a zone (observed 20).
    is_zoneless: bool,
}

impl Encoded {
    /// Creates a value from an encoded AMQP value, which must be one primitive.
    pub fn from_amqp(encoded: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(encoded);
        let primitive = reader.next_is_primitive();
        reader.validate()?;
        if !primitive || !reader.is_empty() {
            return Err(DecodeError::Unexpected {
                expected: "one primitive value",
                code: encoded.first().copied().unwrap_or_default(),
            });
        }
        Value::decode(encoded)?;
        Ok(Self::of(encoded.into()))
    }

    /// Creates an instant from ticks of 100 ns since the Unix epoch without loss: an AMQP timestamp for whole milliseconds,
    /// else a `com.microsoft:datetime-offset` (observed 46).
    pub fn instant(ticks: i64, is_zoneless: bool) -> Self {
        let mut encoded = Vec::new();
        let mut writer = Writer::new(&mut encoded);
        if ticks % TICKS == 0 {
            writer.timestamp(ticks / TICKS);
        } else {
            writer.raw(&[0x00]);
            writer.symbol(INSTANT);
            writer.long(ticks.saturating_add(EPOCH));
        }
        Self {
            is_zoneless,
            ..Self::of(encoded)
        }
    }

    /// Returns whether it is an instant that was written without a zone.
    pub fn is_zoneless(&self) -> bool {
        self.is_zoneless
    }

    /// Creates a value from an encoded AMQP value that is known to be valid.
    pub(crate) fn of(amqp: Vec<u8>) -> Self {
        Self {
            amqp: amqp.into(),
            is_zoneless: false,
        }
    }

    /// Returns the encoded value.
    pub fn as_amqp(&self) -> &[u8] {
        &self.amqp
    }

    /// Returns the value.
    pub fn value(&self) -> Value<'_> {
        Value::decode(&self.amqp).unwrap_or(Value::Null)
    }
}

impl From<&Value<'_>> for Encoded {
    fn from(value: &Value<'_>) -> Self {
        let mut encoded = Vec::new();
        value.encode(&mut encoded);
        Self::of(encoded)
    }
}

impl From<&str> for Encoded {
    fn from(text: &str) -> Self {
        Self::from(&Value::text(text))
    }
}

impl From<i32> for Encoded {
    fn from(number: i32) -> Self {
        let mut encoded = Vec::with_capacity(5);
        Writer::new(&mut encoded).int(number);
        Self::of(encoded)
    }
}

/// Returns the nearest double to an encoded decimal; `None` for any other value, infinities and NaN.
pub(crate) fn decode(encoded: &[u8]) -> Option<f64> {
    let (&code, bits) = encoded.split_first()?;
    let (width, exponent_bits, bias) = match code {
        0x74 => (32, 8, 101),
        0x84 => (64, 10, 398),
        0x94 => (128, 14, 6176),
        _ => return None,
    };
    if bits.len() * 8 != width {
        return None;
    }
    let bits = bits
        .iter()
        .fold(0_u128, |bits, &byte| bits << 8 | u128::from(byte));
    let exponent_place = width - 1 - exponent_bits;
    let combination = bits >> (width - 3) & 0b11;
    if combination == 0b11 {
        // The other form has only significands out of range, infinities and NaN.
        return None;
    }
    let mut exponent = (bits >> exponent_place & ((1 << exponent_bits) - 1)) as i32 - bias;
    if bits >> 120 & 0x7f == u128::from(EXPONENTS.1) {
        // IEEE 754 would have less than the smallest double there.
        exponent += i32::from(EXPONENTS.0 - EXPONENTS.1) << 7;
    }
    let significand = bits & ((1 << exponent_place) - 1);
    let sign = if bits >> (width - 1) == 1 { "-" } else { "" };
    // Converted through text, because scaling by powers of ten in binary would round twice.
    format!("{sign}{significand}e{exponent}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decimals_of_every_width_become_doubles() {
        let decimal32 = [&[0x74][..], &(99_u32 << 23 | 1050).to_be_bytes()].concat();
        assert_eq!(decode(&decimal32), Some(10.5));
        let decimal64 = [&[0x84][..], &(1_u64 << 63 | 397 << 53 | 25).to_be_bytes()].concat();
        assert_eq!(decode(&decimal64), Some(-2.5));
        let decimal128 = [&[0x94][..], &(6174_u128 << 113 | 1999).to_be_bytes()].concat();
        assert_eq!(decode(&decimal128), Some(19.99));
    }

    /// 12.5, -1 and 10⁻²⁸, as .NET writes them.
    #[test]
    fn decimals_of_microsofts_layout_become_doubles() {
        let decimal = |first: [u8; 2], last: u8| {
            let significand = u128::from(last).to_be_bytes();
            decode(&[&[0x94][..], &first, &significand[2..]].concat())
        };
        assert_eq!(decimal([0x0c, 0x3e], 125), Some(12.5));
        assert_eq!(decimal([0x8c, 0x40], 1), Some(-1.0));
        assert_eq!(decimal([0x0c, 0x08], 1), Some(1e-28));
        assert_eq!(decimal([0x0c, 0x40], 0), Some(0.0));
    }

    #[test]
    fn infinite_and_malformed_decimals_are_not_decoded() {
        assert_eq!(decode(&[0x74, 0x78, 0, 0, 0]), None);
        assert_eq!(decode(&[0x74, 0]), None);
        assert_eq!(decode(&[0x71, 0, 0, 0, 1]), None);
        assert_eq!(decode(&[]), None);
    }
}
