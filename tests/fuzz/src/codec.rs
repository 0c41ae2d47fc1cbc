//! The codec: what passes [`Reader::validate`] is stepped over, read and decoded by all others, `serde_amqp` included, and
//! written the same.

use servicebus_codec::{DecodeError, Reader, Value, Writer};

use crate::{Input, value};

/// A value that the input describes, or the input itself.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    let bytes = match input.one_in(4) {
        true => input.rest().to_vec(),
        false => {
            let mut bytes = Vec::new();
            value::value(&mut input, 4, &mut bytes);
            if input.one_in(4) && !bytes.is_empty() {
                let at = input.below(bytes.len());
                bytes[at] = input.byte();
            }
            bytes
        }
    };
    walk(&bytes);
    let mut reader = Reader::new(&bytes);
    if reader.validate().is_ok() {
        let end = reader.position();
        assert!(end <= bytes.len());
        agree(&bytes[..end]);
        let _ = servicebus_amqp::decode(&bytes[..end]);
        for cut in 0..end.min(64) {
            assert!(
                Reader::new(&bytes[..cut]).validate().is_err(),
                "cut at {cut} of {end}"
            );
        }
    }
}

/// No way of reading panics, and none ends behind the bytes.
fn walk(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let before = reader.position();
        if reader.value().is_err() {
            break;
        }
        assert!(reader.position() > before);
    }
    let _ = Reader::new(bytes).descriptor();
    let _ = Reader::new(bytes).binary();
    let _ = Reader::new(bytes).next_is_primitive();
    if let Ok(map) = Reader::new(bytes).map() {
        assert!(map.raw_entries().count() <= bytes.len());
    }
    if let Ok(mut fields) = Reader::new(bytes).fields() {
        let _ = (
            fields.u32(),
            fields.bool(),
            fields.binary(),
            fields.text(),
            fields.raw(),
        );
    }
}

/// All readers agree about one whole value.
fn agree(encoded: &[u8]) {
    let mut reader = Reader::new(encoded);
    assert_eq!(reader.skip(), Ok(encoded));
    let mut reader = Reader::new(encoded);
    let read = reader.value().expect("what passes is read");
    assert!(reader.is_empty());
    assert!(!matches!(read, Value::Other([])));
    let mut out = Vec::new();
    write(&read, &mut out);
    let again = Reader::new(&out).value();
    match (read, again) {
        (Value::Float(float), Ok(Value::Float(again))) => {
            assert_eq!(float.to_bits(), again.to_bits())
        }
        (read, again) => assert_eq!(Ok(read), again),
    }
    if encoded[0] == 0x00 {
        let mut parts = Reader::new(&encoded[1..]);
        agree(parts.skip().expect("the descriptor of what passed"));
        agree(parts.rest());
    }
    if let Ok(list) = Reader::new(encoded).list() {
        let mut fields = Reader::new(encoded).fields().expect("a list has fields");
        let mut items = list.items;
        for _ in 0..list.count {
            let field = fields.raw().expect("a field of what passed");
            assert_eq!(Ok(field.unwrap_or(&[0x40])), items.skip());
        }
        each(list.items, list.count);
    }
    if let Ok(mut elements) = Reader::new(encoded).elements() {
        let mut element = Vec::new();
        // Those without width are all the same.
        for _ in 0..100 {
            match elements.next_into(&mut element) {
                Ok(true) => agree(&element),
                Ok(false) => break,
                Err(error) => panic!("an element of what passed: {error}"),
            }
        }
    }
    if let Ok(map) = Reader::new(encoded).map() {
        let whole: Result<Vec<_>, DecodeError> = map.raw_entries().collect();
        assert_eq!(
            whole.map(|entries| entries.len()),
            Ok(map.count as usize / 2)
        );
        each(map.items, map.count);
    }
}

/// The elements of a compound are whole values, and nothing is left behind them.
fn each(mut items: Reader<'_>, count: u32) {
    for _ in 0..count {
        agree(items.skip().expect("an element of what passed"));
    }
    assert!(items.is_empty(), "bytes behind the last element");
}

fn write(value: &Value<'_>, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    match *value {
        Value::Null => writer.null(),
        Value::Bool(flag) => writer.bool(flag),
        Value::Unsigned(number) => writer.ulong(number),
        Value::Signed(number) => writer.long(number),
        Value::Float(number) => writer.double(number),
        Value::Timestamp(instant) => writer.timestamp(instant),
        Value::Uuid(uuid) => writer.uuid(uuid),
        Value::Binary(bytes) => writer.binary(bytes),
        Value::String(text) => writer.string(text),
        Value::Symbol(text) => writer.symbol(text),
        Value::Other(bytes) => writer.raw(bytes),
    }
}
