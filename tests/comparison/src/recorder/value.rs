//! AMQP values as text that is the same for the same behaviour.
//!
//! Every value is rendered with its type, because clients fail on a wrong one. Ids and times are replaced by their kind;
//! maps are sorted, because their order means nothing.

use fe2o3_amqp::types::primitives::Value;
use serde_amqp::descriptor::Descriptor;
use servicebus_codec::{DecodeError, ElementBudget, Reader};

use super::message;

/// Ticks of 100 ns since the year 1, from about the year 1900 to 2100: a time that is written as a number.
const TICKS: std::ops::Range<i64> = 599_000_000_000_000_000..662_000_000_000_000_000;
/// Milliseconds around 1970 within which a timestamp is a time; beyond, it stands for never.
const TIMES: std::ops::Range<i64> = -4_000_000_000_000..4_000_000_000_000;
/// Under this name bodies of `$management` hold encoded messages.
const ENCODED: &str = "message";

/// Takes one value off the input.
pub(super) fn take(reader: &mut Reader<'_>) -> Result<Value, DecodeError> {
    // Once it is walked, no count in it can cost more than its bytes.
    let mut walked = *reader;
    walked.validate_within(&mut ElementBudget::for_serde_amqp())?;
    let bytes = reader.skip()?;
    serde_amqp::from_slice(bytes).map_err(|_error| DecodeError::CountMismatch)
}

/// Takes the fields of a composite off the input.
pub(super) fn take_fields(reader: &mut Reader<'_>) -> Result<Vec<Value>, DecodeError> {
    Ok(match take(reader)? {
        Value::List(fields) => fields,
        single => vec![single],
    })
}

/// Returns a field; null where it was left out.
pub(super) fn field(fields: &[Value], index: usize) -> &Value {
    fields.get(index).unwrap_or(&Value::Null)
}

/// Returns a whole number of any unsigned width.
pub(super) fn number(value: &Value) -> Option<u32> {
    match value {
        Value::Ubyte(number) => Some(u32::from(*number)),
        Value::Ushort(number) => Some(u32::from(*number)),
        Value::Uint(number) => Some(*number),
        Value::Ulong(number) => u32::try_from(*number).ok(),
        _ => None,
    }
}

/// Returns the text of a string or symbol.
pub(super) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Symbol(symbol) => Some(symbol.as_str()),
        _ => None,
    }
}

/// Returns the fields of a composite by its code; none for anything else.
pub(super) fn composite(value: &Value) -> Option<(u64, &[Value])> {
    match value {
        Value::Described(described) => match (&described.descriptor, &described.value) {
            (Descriptor::Code(code), Value::List(fields)) => Some((*code, fields)),
            _ => None,
        },
        _ => None,
    }
}

/// Tells the fields that are there by their names.
pub(super) fn named(names: &[&str], fields: &[Value]) -> String {
    let rendered = names.iter().zip(fields);
    let rendered = rendered.filter(|(_, value)| **value != Value::Null);
    joined(rendered.map(|(name, value)| format!("{name} {}", described(value))))
}

/// Tells a value.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Ubyte(number) => format!("ubyte {number}"),
        Value::Ushort(number) => format!("ushort {number}"),
        Value::Uint(number) => format!("uint {number}"),
        Value::Ulong(number) => format!("ulong {number}"),
        Value::Byte(number) => format!("byte {number}"),
        Value::Short(number) => format!("short {number}"),
        Value::Int(number) => format!("int {number}"),
        Value::Long(ticks) if TICKS.contains(ticks) => "long <time>".to_owned(),
        Value::Long(number) => format!("long {number}"),
        Value::Timestamp(time) if TIMES.contains(&time.milliseconds()) => "<time>".to_owned(),
        Value::Timestamp(time) => format!("time {}", time.milliseconds()),
        Value::Uuid(_) => "<id>".to_owned(),
        Value::Binary(bytes) => format!("binary of {}", bytes.len()),
        Value::String(text) => format!("{text:?}"),
        Value::Symbol(symbol) => format!("symbol {}", symbol.as_str()),
        Value::List(items) => format!("[{}]", joined(items.iter().map(described))),
        Value::Array(items) => format!("array [{}]", joined(items.iter().map(described))),
        Value::Map(entries) => {
            let mut rendered = Vec::from_iter(entries.iter().map(entry));
            rendered.sort();
            format!("{{{}}}", rendered.join(", "))
        }
        Value::Described(part) => {
            let name = match &part.descriptor {
                Descriptor::Code(code) => format!("{code:#x}"),
                Descriptor::Name(name) => name.as_str().to_owned(),
            };
            format!("{name}({})", described(&part.value))
        }
        other => format!("{other:?}"),
    }
}

fn entry((key, value): (&Value, &Value)) -> String {
    let name = text(key).map_or_else(|| described(key), str::to_owned);
    match value {
        Value::Binary(bytes) if name == ENCODED => {
            format!("{name}: {}", message::described(bytes))
        }
        value => format!("{name}: {}", described(value)),
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    Vec::from_iter(parts).join(", ")
}

#[cfg(test)]
mod tests {
    use fe2o3_amqp::types::primitives::{OrderedMap, Symbol, Timestamp};

    use super::*;

    #[test]
    fn types_are_rendered_and_ids_and_times_are_not() {
        let mut map = OrderedMap::new();
        map.insert(
            Value::from("z"),
            Value::Timestamp(Timestamp::from_milliseconds(1_800_000_000_000)),
        );
        map.insert(
            Value::Symbol(Symbol::from("a")),
            Value::Long(639_000_000_000_000_000),
        );
        map.insert(Value::from("n"), Value::Long(7));
        map.insert(
            Value::from("never"),
            Value::Timestamp(Timestamp::from_milliseconds(253_402_300_800_000)),
        );
        let list = Value::List(vec![Value::Map(map), Value::from("s"), Value::Int(7)]);
        assert_eq!(
            described(&list),
            "[{a: long <time>, n: long 7, never: time 253402300800000, z: <time>}, \"s\", int 7]"
        );
    }

    #[test]
    fn an_invalid_value_is_an_error() {
        // A list that says that it has 255 elements in two bytes.
        assert!(take(&mut Reader::new(&[0xc0, 2, 255, 0x40])).is_err());
        assert!(take(&mut Reader::new(&[])).is_err());
        let mut two = Reader::new(&[0x43, 0x41]);
        assert_eq!(take(&mut two), Ok(Value::Uint(0)));
        assert_eq!(take(&mut two), Ok(Value::Bool(true)));
    }
}
