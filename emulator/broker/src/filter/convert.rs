//! Implicit conversions of `SET`: to the width of the replaced number, or to the type of a system property.

use std::borrow::Cow;

use servicebus_codec::Writer;

use super::error::Fault;
use super::operators::{Number, typed};
use super::system::{SystemProperty, SystemType};
use super::text;
use super::value::{Encoded, Value};

/// Maximum characters of a message id, session id or partition key (semantics §1).
const ID: usize = 128;

/// Encodes a number as the AMQP type of this constructor, if that is numeric and holds it without loss.
pub(crate) fn encode_as(code: u8, value: &Value<'_>) -> Option<Encoded> {
    let number = Number::of(value)?;
    let (whole, float) = (number.whole(), number.as_float());
    let mut encoded = Vec::with_capacity(9);
    let mut out = Writer::new(&mut encoded);
    match code {
        0x50 => out.ubyte(whole?.try_into().ok()?),
        0x60 => out.ushort(whole?.try_into().ok()?),
        0x70 | 0x52 | 0x43 => out.uint(whole?.try_into().ok()?),
        0x80 | 0x53 | 0x44 => out.ulong(whole?.try_into().ok()?),
        0x51 => out.raw(&[0x51, i8::try_from(whole?).ok()?.cast_unsigned()]),
        0x61 => {
            let [high, low] = i16::try_from(whole?).ok()?.to_be_bytes();
            out.raw(&[0x61, high, low]);
        }
        0x71 | 0x54 => out.int(whole?.try_into().ok()?),
        0x81 | 0x55 => out.long(whole?.try_into().ok()?),
        0x72 => {
            let narrow = float as f32;
            if f64::from(narrow) != float {
                return None;
            }
            out.raw(&[0x72]);
            out.raw(&narrow.to_be_bytes());
        }
        0x82 => Value::Float(float).encode(&mut encoded),
        _ => return None,
    }
    Encoded::from_amqp(&encoded).ok()
}

/// Converts a value to the type of a system property; null stays null.
pub(crate) fn to_system<'v>(
    property: SystemProperty,
    value: Value<'v>,
) -> Result<Value<'v>, Fault> {
    let expected = match property.value_type() {
        SystemType::Text => "a string",
        SystemType::Symbol => "a string of ASCII characters",
        SystemType::Id => "a string of at most 128 characters",
        SystemType::Number => "a number",
        SystemType::Instant => "an instant",
        SystemType::Span => "a positive time span",
        SystemType::Flag => "a boolean",
        SystemType::Guid => "a GUID",
    };
    let converted = match (property.value_type(), &value) {
        (_, Value::Null) => Some(Value::Null),
        (SystemType::Text, _) => text_of(&value),
        (SystemType::Symbol, _) => text_of(&value).filter(is_ascii),
        (SystemType::Id, _) => text_of(&value).filter(is_id),
        (SystemType::Instant, Value::Instant(ticks)) => Some(Value::Instant(*ticks)),
        (SystemType::Span, Value::Span(ticks)) => Some(Value::Span(*ticks)),
        (SystemType::Span, Value::Text(text)) => text::parse_span(text).map(Value::Span),
        (SystemType::Flag, Value::Bool(flag)) => Some(Value::Bool(*flag)),
        // The other system properties include numbers and GUIDs, which no action can set.
        _ => None,
    };
    converted
        .filter(|converted| !matches!(converted, Value::Span(ticks) if *ticks <= 0))
        .map(Value::into_owned)
        .ok_or_else(|| Fault::Conversion {
            value: typed(&value),
            property: property.name(),
            expected,
        })
}

/// Returns the text of a string or of a value that an id may consist of: a GUID or a number.
fn text_of<'v>(value: &Value<'v>) -> Option<Value<'v>> {
    match value {
        Value::Text(_)
        | Value::Guid(_)
        | Value::Signed(_)
        | Value::Unsigned(_)
        | Value::Float(_) => value.concatenated().map(Cow::Owned).map(Value::Text),
        Value::Null
        | Value::Bool(_)
        | Value::Instant(_)
        | Value::Span(_)
        | Value::Binary(_)
        | Value::Other(_) => None,
    }
}

fn is_ascii(value: &Value<'_>) -> bool {
    matches!(value, Value::Text(text) if text.is_ascii())
}

fn is_id(value: &Value<'_>) -> bool {
    matches!(value, Value::Text(text) if text.encode_utf16().count() <= ID)
}
