//! Decodes values of a peer, and writes the owner's values into link properties and filters.
//!
//! The writer is our own, although they are `serde_amqp` values: its serializer panics on some maps (binary behind a timestamp
//! that is a key) and miscounts text in arrays, and a filter value may be the peer's own.

use serde_amqp::Value;
use serde_amqp::descriptor::Descriptor;
use serde_amqp::primitives::Array;
use servicebus_codec::{ElementBudget, Reader, Writer};

/// Decodes a value of a peer; `None` if it is not one, or not one that `serde_amqp` can read.
pub fn decode(encoded: &[u8]) -> Option<Value> {
    if let Ok(array) = Reader::new(encoded).elements()
        && array.is_empty()
    {
        return Some(Value::Array(Array::from(Vec::new())));
    }
    let mut budget = ElementBudget::for_serde_amqp();
    Reader::new(encoded).validate_within(&mut budget).ok()?;
    serde_amqp::from_slice(encoded).ok()
}

/// Appends a value. An array whose elements differ in type is written as null.
pub(crate) fn write(writer: &mut Writer<'_>, value: &Value) {
    match value {
        Value::Described(described) => {
            match &described.descriptor {
                Descriptor::Code(code) => match u8::try_from(*code) {
                    Ok(code) => writer.descriptor(code),
                    Err(_) => writer.long_descriptor(*code),
                },
                Descriptor::Name(name) => {
                    writer.raw(&[0x00]);
                    writer.symbol(name.as_str());
                }
            }
            write(writer, &described.value);
        }
        Value::List(items) => {
            let mark = writer.begin_list();
            items.iter().for_each(|item| write(writer, item));
            writer.end(mark, items.len() as u32);
        }
        Value::Map(entries) => {
            let mark = writer.begin_map();
            for (key, value) in entries {
                write(writer, key);
                write(writer, value);
            }
            writer.end(mark, 2 * entries.len() as u32);
        }
        Value::Array(elements) => array(writer, &elements.0),
        Value::Null => writer.null(),
        Value::Bool(flag) => writer.bool(*flag),
        Value::Ubyte(number) => writer.ubyte(*number),
        Value::Ushort(number) => writer.ushort(*number),
        Value::Uint(number) => writer.uint(*number),
        Value::Ulong(number) => writer.ulong(*number),
        Value::Int(number) => writer.int(*number),
        Value::Long(number) => writer.long(*number),
        Value::Timestamp(instant) => writer.timestamp(instant.milliseconds()),
        Value::Binary(bytes) => writer.binary(bytes),
        Value::String(text) => writer.string(text),
        Value::Symbol(name) => writer.symbol(name.as_str()),
        Value::Uuid(_)
        | Value::Byte(_)
        | Value::Short(_)
        | Value::Float(_)
        | Value::Double(_)
        | Value::Char(_)
        | Value::Decimal32(_)
        | Value::Decimal64(_)
        | Value::Decimal128(_) => fixed(writer, value),
    }
}

/// Appends a value of a type that the writer has no method for.
fn fixed(writer: &mut Writer<'_>, value: &Value) {
    if let Some((code, content)) = wide(value) {
        writer.raw(&[code]);
        writer.raw(&content);
    }
}

/// Appends an array: size, count, one constructor, then the elements without theirs.
fn array(writer: &mut Writer<'_>, elements: &[Value]) {
    let mut constructor = None;
    let mut content = Vec::new();
    for element in elements {
        match wide(element) {
            Some((code, bytes)) if constructor.is_none_or(|first| first == code) => {
                constructor = Some(code);
                content.extend(bytes);
            }
            _ => return writer.null(),
        }
    }
    let size = (content.len() + 5) as u32;
    writer.raw(&[0xf0]);
    writer.raw(&size.to_be_bytes());
    writer.raw(&(elements.len() as u32).to_be_bytes());
    writer.raw(&[constructor.unwrap_or(0x40)]);
    writer.raw(&content);
}

/// Returns the constructor and the content of a primitive in its widest form, which all elements of an array can share (AMQP
/// 1.0 §1.6).
fn wide(value: &Value) -> Option<(u8, Vec<u8>)> {
    Some(match value {
        Value::Bool(flag) => (0x56, vec![u8::from(*flag)]),
        Value::Ubyte(number) => (0x50, vec![*number]),
        Value::Byte(number) => (0x51, number.to_be_bytes().to_vec()),
        Value::Ushort(number) => (0x60, number.to_be_bytes().to_vec()),
        Value::Short(number) => (0x61, number.to_be_bytes().to_vec()),
        Value::Uint(number) => (0x70, number.to_be_bytes().to_vec()),
        Value::Int(number) => (0x71, number.to_be_bytes().to_vec()),
        Value::Float(number) => (0x72, number.to_be_bytes().to_vec()),
        Value::Char(message) => (0x73, u32::from(*message).to_be_bytes().to_vec()),
        Value::Decimal32(number) => (0x74, number.as_inner().to_vec()),
        Value::Ulong(number) => (0x80, number.to_be_bytes().to_vec()),
        Value::Long(number) => (0x81, number.to_be_bytes().to_vec()),
        Value::Double(number) => (0x82, number.to_be_bytes().to_vec()),
        Value::Timestamp(instant) => (0x83, instant.milliseconds().to_be_bytes().to_vec()),
        Value::Decimal64(number) => (0x84, number.as_inner().to_vec()),
        Value::Decimal128(number) => (0x94, number.as_inner().to_vec()),
        Value::Uuid(uuid) => (0x98, uuid.as_inner().to_vec()),
        Value::Binary(bytes) => (0xb0, sized(bytes)),
        Value::String(text) => (0xb1, sized(text.as_bytes())),
        Value::Symbol(name) => (0xb3, sized(name.as_str().as_bytes())),
        Value::Null | Value::Described(_) | Value::List(_) | Value::Map(_) | Value::Array(_) => {
            return None;
        }
    })
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

#[cfg(test)]
mod tests {
    use serde_amqp::described::Described;
    use serde_amqp::primitives::{Binary, OrderedMap, Symbol, Timestamp};

    use super::*;

    fn round_trip(value: &Value) -> Value {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out), value);
        let mut reader = Reader::new(&out);
        reader.validate().unwrap();
        assert!(reader.is_empty(), "{value:?}");
        decode(&out).unwrap()
    }

    fn primitives() -> Vec<Value> {
        vec![
            Value::Bool(true),
            Value::Ubyte(200),
            Value::Byte(-2),
            Value::Ushort(500),
            Value::Short(-500),
            Value::Uint(70_000),
            Value::Int(-70_000),
            Value::from(1.5f32),
            Value::from(-2.5f64),
            Value::Char('é'),
            Value::Ulong(1 << 40),
            Value::Long(-1),
            Value::Timestamp(Timestamp::from_milliseconds(253_402_300_800_000)),
            Value::Uuid([7; 16].into()),
            Value::Decimal32([1; 4].into()),
            Value::Decimal64([2; 8].into()),
            Value::Decimal128([3; 16].into()),
            Value::Binary(Binary::from(vec![1, 2])),
            Value::String("é".repeat(200)),
            Value::Symbol(Symbol::from("name")),
        ]
    }

    #[test]
    fn every_primitive_value_decodes_to_itself() {
        for value in primitives().into_iter().chain([Value::Null]) {
            assert_eq!(round_trip(&value), value);
        }
    }

    #[test]
    fn every_primitive_value_decodes_to_itself_in_an_array() {
        for value in primitives() {
            let array = Value::Array(Array::from(vec![value.clone(), value]));
            assert_eq!(round_trip(&array), array);
        }
        let mixed = Value::Array(Array::from(vec![Value::Int(1), Value::Long(1)]));
        assert_eq!(round_trip(&mixed), Value::Null);
    }

    /// `serde_amqp` takes the bytes of the inner map for further maps, and overflows the stack.
    #[test]
    fn arrays_that_are_misread_are_not_decoded() {
        let content = [1, 2].repeat(100);
        let element = [
            &[(content.len() + 5) as u8, 2, 0xa0, content.len() as u8],
            &content[..],
            &[0x50, 2],
        ];
        let elements = element.concat().repeat(400);
        let size = (elements.len() + 5) as u32;
        let array = [
            &[0xf0][..],
            &size.to_be_bytes(),
            &400_u32.to_be_bytes(),
            &[0xc1],
            &elements,
        ]
        .concat();
        Reader::new(&array).validate().unwrap();
        assert_eq!(decode(&array), None);
        let in_a_list = [
            &[0xd0][..],
            &(array.len() as u32 + 4).to_be_bytes(),
            &[0, 0, 0, 1],
            &array,
        ]
        .concat();
        Reader::new(&in_a_list).validate().unwrap();
        assert_eq!(decode(&in_a_list), None);
        let empty = [0xe0, 2, 0, 0x70];
        assert_eq!(decode(&empty), Some(Value::Array(Array::from(Vec::new()))));
        let in_a_list = [&[0xc0, 6, 2][..], &empty, &[0x43]].concat();
        Reader::new(&in_a_list).validate().unwrap();
        assert_eq!(
            decode(&in_a_list),
            None,
            "its constructor is kept for the next value"
        );
    }

    #[test]
    fn lists_maps_and_described_values_decode_to_themselves() {
        let list = Value::List(primitives());
        let timestamp = Value::Timestamp(Timestamp::from_milliseconds(1));
        let map: OrderedMap<Value, Value> = [
            (timestamp, Value::Binary(Binary::from(vec![1]))),
            (Value::from("list"), list),
        ]
        .into_iter()
        .collect();
        for descriptor in [
            Descriptor::Code(0x53),
            Descriptor::Code(0x0013_7000_000C),
            Descriptor::Name(Symbol::from("com.microsoft:timespan")),
        ] {
            let value = Value::Described(Box::new(Described {
                descriptor,
                value: Value::Map(map.clone()),
            }));
            assert_eq!(round_trip(&value), value);
        }
    }
}
