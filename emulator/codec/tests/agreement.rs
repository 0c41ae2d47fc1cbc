//! The reader and the writer against each other, and both against `serde_amqp`.

use proptest::collection;
use proptest::prelude::*;
use serde_amqp::Value as Other;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor as OtherDescriptor;
use serde_amqp::primitives::{Array, Binary, OrderedMap, Symbol, Timestamp, Uuid as OtherUuid};
use servicebus_codec::{DecodeError, Descriptor, ElementBudget, MAX_DEPTH, Reader, Value, Writer};
use uuid::Uuid;

/// Values that both sides can build.
#[derive(Debug, Clone)]
enum Model {
    Null,
    Bool(bool),
    Ubyte(u8),
    Ushort(u16),
    Uint(u32),
    Ulong(u64),
    Int(i32),
    Long(i64),
    Timestamp(i64),
    Uuid([u8; 16]),
    Binary(Vec<u8>),
    String(String),
    Symbol(String),
    List(Vec<Self>),
    Map(Vec<(Self, Self)>),
    Described(u64, Box<Self>),
    Longs(Vec<i64>),
}

fn model() -> impl Strategy<Value = Model> {
    let leaf = prop_oneof![
        Just(Model::Null),
        any::<bool>().prop_map(Model::Bool),
        any::<u8>().prop_map(Model::Ubyte),
        any::<u16>().prop_map(Model::Ushort),
        prop_oneof![0u32..300, any::<u32>()].prop_map(Model::Uint),
        prop_oneof![0u64..300, any::<u64>()].prop_map(Model::Ulong),
        any::<i32>().prop_map(Model::Int),
        any::<i64>().prop_map(Model::Long),
        any::<i64>().prop_map(Model::Timestamp),
        any::<[u8; 16]>().prop_map(Model::Uuid),
        collection::vec(any::<u8>(), 0..300).prop_map(Model::Binary),
        ".{0,200}".prop_map(Model::String),
        "[!-~]{0,300}".prop_map(Model::Symbol),
        collection::vec(any::<i64>(), 1..40).prop_map(Model::Longs),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..6).prop_map(Model::List),
            collection::vec((inner.clone(), inner.clone()), 0..4).prop_map(Model::Map),
            (any::<u64>(), inner).prop_map(|(code, value)| Model::Described(code, Box::new(value))),
        ]
    })
}

fn write(writer: &mut Writer<'_>, model: &Model) {
    match model {
        Model::Null => writer.null(),
        Model::Bool(flag) => writer.bool(*flag),
        Model::Ubyte(number) => writer.ubyte(*number),
        Model::Ushort(number) => writer.ushort(*number),
        Model::Uint(number) => writer.uint(*number),
        Model::Ulong(number) => writer.ulong(*number),
        Model::Int(number) => writer.int(*number),
        Model::Long(number) => writer.long(*number),
        Model::Timestamp(instant) => writer.timestamp(*instant),
        Model::Uuid(bytes) => writer.uuid(Uuid::from_bytes(*bytes)),
        Model::Binary(bytes) => writer.binary(bytes),
        Model::String(text) => writer.string(text),
        Model::Symbol(name) => writer.symbol(name),
        Model::Longs(numbers) => writer.long_array(numbers.iter().copied()),
        Model::List(items) => {
            let mark = writer.begin_list();
            items.iter().for_each(|item| write(writer, item));
            writer.end(mark, items.len() as u32);
        }
        Model::Map(entries) => {
            let mark = writer.begin_map();
            for (key, value) in entries {
                write(writer, key);
                write(writer, value);
            }
            writer.end(mark, 2 * entries.len() as u32);
        }
        Model::Described(code, value) => {
            match u8::try_from(*code) {
                Ok(code) => writer.descriptor(code),
                Err(_) => writer.long_descriptor(*code),
            }
            write(writer, value);
        }
    }
}

fn other(model: &Model) -> Other {
    match model {
        Model::Null => Other::Null,
        Model::Bool(flag) => Other::Bool(*flag),
        Model::Ubyte(number) => Other::Ubyte(*number),
        Model::Ushort(number) => Other::Ushort(*number),
        Model::Uint(number) => Other::Uint(*number),
        Model::Ulong(number) => Other::Ulong(*number),
        Model::Int(number) => Other::Int(*number),
        Model::Long(number) => Other::Long(*number),
        Model::Timestamp(instant) => Other::Timestamp(Timestamp::from_milliseconds(*instant)),
        Model::Uuid(bytes) => Other::Uuid(OtherUuid::from(*bytes)),
        Model::Binary(bytes) => Other::Binary(Binary::from(bytes.clone())),
        Model::String(text) => Other::String(text.clone()),
        Model::Symbol(name) => Other::Symbol(Symbol::from(name.as_str())),
        Model::Longs(numbers) => {
            let numbers: Vec<Other> = numbers.iter().copied().map(Other::Long).collect();
            Other::Array(Array::from(numbers))
        }
        Model::List(items) => Other::List(items.iter().map(other).collect()),
        Model::Map(entries) => Other::Map(
            entries
                .iter()
                .map(|(key, value)| (other(key), other(value)))
                .collect::<OrderedMap<_, _>>(),
        ),
        Model::Described(code, value) => Other::Described(Box::new(Described {
            descriptor: OtherDescriptor::Code(*code),
            value: other(value),
        })),
    }
}

/// Asserts that the reader finds the model, down to the leaves.
fn check(reader: &mut Reader<'_>, model: &Model) {
    match model {
        Model::List(items) => {
            let mut list = reader.list().unwrap();
            assert_eq!(list.count as usize, items.len());
            items.iter().for_each(|item| check(&mut list.items, item));
            assert!(list.items.is_empty());
        }
        Model::Map(entries) => {
            let mut map = reader.map().unwrap();
            assert_eq!(map.count as usize, 2 * entries.len());
            assert_eq!(map.entries().count(), entries.len());
            for (key, value) in entries {
                check(&mut map.items, key);
                check(&mut map.items, value);
            }
        }
        Model::Described(code, value) => {
            assert_eq!(reader.descriptor().unwrap(), Descriptor::Code(*code));
            check(reader, value);
        }
        Model::Longs(_) => assert!(matches!(reader.value().unwrap(), Value::Other(_))),
        Model::Null
        | Model::Bool(_)
        | Model::Ubyte(_)
        | Model::Ushort(_)
        | Model::Uint(_)
        | Model::Ulong(_)
        | Model::Int(_)
        | Model::Long(_)
        | Model::Timestamp(_)
        | Model::Uuid(_)
        | Model::Binary(_)
        | Model::String(_)
        | Model::Symbol(_) => assert_eq!(reader.value().unwrap(), primitive(model)),
    }
}

fn primitive(model: &Model) -> Value<'_> {
    match model {
        Model::Bool(flag) => Value::Bool(*flag),
        Model::Ubyte(number) => Value::Unsigned(u64::from(*number)),
        Model::Ushort(number) => Value::Unsigned(u64::from(*number)),
        Model::Uint(number) => Value::Unsigned(u64::from(*number)),
        Model::Ulong(number) => Value::Unsigned(*number),
        Model::Int(number) => Value::Signed(i64::from(*number)),
        Model::Long(number) => Value::Signed(*number),
        Model::Timestamp(instant) => Value::Timestamp(*instant),
        Model::Uuid(bytes) => Value::Uuid(Uuid::from_bytes(*bytes)),
        Model::Binary(bytes) => Value::Binary(bytes),
        Model::String(text) => Value::String(text),
        Model::Symbol(name) => Value::Symbol(name),
        Model::Null | Model::List(_) | Model::Map(_) | Model::Described(..) | Model::Longs(_) => {
            Value::Null
        }
    }
}

/// Whether the other side can be trusted with it: it drops duplicate keys, which AMQP forbids, and
/// its serializer panics on binary behind a timestamp that is a key.
fn keys_are_plain(model: &Model) -> bool {
    match model {
        Model::List(items) => items.iter().all(keys_are_plain),
        Model::Described(_, value) => keys_are_plain(value),
        Model::Map(entries) => {
            let keys: Vec<Other> = entries.iter().map(|(key, _)| other(key)).collect();
            (1..keys.len()).all(|index| !keys[..index].contains(&keys[index]))
                && entries.iter().all(|(key, value)| {
                    matches!(key, Model::String(_) | Model::Symbol(_) | Model::Ulong(_))
                        && keys_are_plain(value)
                })
        }
        Model::Null
        | Model::Bool(_)
        | Model::Ubyte(_)
        | Model::Ushort(_)
        | Model::Uint(_)
        | Model::Ulong(_)
        | Model::Int(_)
        | Model::Long(_)
        | Model::Timestamp(_)
        | Model::Uuid(_)
        | Model::Binary(_)
        | Model::String(_)
        | Model::Symbol(_)
        | Model::Longs(_) => true,
    }
}

proptest! {
    #[test]
    fn a_written_value_decodes_to_itself(model in model()) {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out), &model);
        let mut reader = Reader::new(&out);
        reader.validate().unwrap();
        prop_assert!(reader.is_empty());
        let mut reader = Reader::new(&out);
        prop_assert_eq!(reader.skip().unwrap(), &out[..]);
        check(&mut Reader::new(&out), &model);
    }

    #[test]
    fn serde_amqp_decodes_written_values(model in model().prop_filter("plain keys", keys_are_plain)) {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out), &model);
        let read: Other = serde_amqp::from_slice(&out).unwrap();
        prop_assert_eq!(read, other(&model));
    }

    #[test]
    fn values_encoded_by_serde_amqp_are_decoded(model in model().prop_filter("plain keys", keys_are_plain)) {
        let out = serde_amqp::to_vec(&other(&model)).unwrap();
        let mut reader = Reader::new(&out);
        reader.validate().unwrap();
        prop_assert!(reader.is_empty());
        check(&mut Reader::new(&out), &model);
    }

    #[test]
    fn a_truncated_value_is_an_error(model in model(), cut in any::<prop::sample::Index>()) {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out), &model);
        out.truncate(cut.index(out.len()));
        prop_assert!(Reader::new(&out).validate().is_err());
        prop_assert!(Reader::new(&out).skip().is_err());
        prop_assert!(Reader::new(&out).value().is_err());
    }

    #[test]
    fn mutated_values_never_panic(model in model(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out), &model);
        let index = at.index(out.len());
        out[index] = byte;
        let mut reader = Reader::new(&out);
        if reader.validate().is_ok() {
            let end = reader.position();
            let mut budget = ElementBudget::for_serde_amqp();
            if Reader::new(&out).validate_within(&mut budget).is_ok() {
                // What passes is safe for a decoder that recurses and allocates by count.
                let _ = serde_amqp::from_slice::<Other>(&out[..end]);
            }
            prop_assert_eq!(Reader::new(&out).skip().map(<[u8]>::len), Ok(end));
        }
    }
}

#[test]
fn list_fields_may_be_missing_null_or_wide() {
    let list = [
        0xc0, 14, 6, 0x43, 0x52, 7, 0x70, 0, 0, 1, 0, 0x40, 0x60, 0, 9, 0x41,
    ];
    let mut fields = Reader::new(&list).fields().unwrap();
    assert_eq!(fields.u32(), Ok(Some(0)));
    assert_eq!(fields.u32(), Ok(Some(7)));
    assert_eq!(fields.u32(), Ok(Some(256)));
    assert_eq!(fields.u32(), Ok(None));
    assert_eq!(fields.u32(), Ok(Some(9)));
    assert!(fields.u32().is_err());
    assert_eq!(fields.u32(), Ok(None));
    assert_eq!(fields.bool(), Ok(None));
    assert_eq!(fields.binary(), Ok(None));
    assert_eq!(fields.text(), Ok(None));
    assert_eq!(fields.raw(), Ok(None));
}

#[test]
fn booleans_have_two_forms() {
    let list = [0xc0, 7, 5, 0x41, 0x42, 0x56, 1, 0x40, 0x43];
    let mut fields = Reader::new(&list).fields().unwrap();
    assert_eq!(fields.bool(), Ok(Some(true)));
    assert_eq!(fields.bool(), Ok(Some(false)));
    assert_eq!(fields.bool(), Ok(Some(true)));
    assert_eq!(fields.bool(), Ok(None));
    assert!(fields.bool().is_err());
}

#[test]
fn a_truncated_field_is_an_error() {
    for list in [
        [0xc0, 3, 1, 0x70, 0],
        [0xc0, 2, 1, 0x52, 0],
        [0xc0, 2, 1, 0x56, 0],
    ] {
        let list = &list[..2 + usize::from(list[1])];
        assert!(Reader::new(list).fields().unwrap().u32().is_err());
        assert!(Reader::new(list).fields().unwrap().bool().is_err());
        assert!(Reader::new(list).fields().unwrap().binary().is_err());
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        let mut value = vec![0x40];
        for _ in 1..depth {
            let mut outer = vec![0xd0];
            outer.extend((value.len() as u32 + 4).to_be_bytes());
            outer.extend(1u32.to_be_bytes());
            outer.extend(value);
            value = outer;
        }
        value
    };
    assert!(Reader::new(&nested(MAX_DEPTH)).validate().is_ok());
    let too_deep = nested(MAX_DEPTH + 1);
    assert_eq!(Reader::new(&too_deep).validate(), Err(DecodeError::TooDeep));
    // By its lengths alone it can be stepped over all the same.
    assert!(Reader::new(&too_deep).skip().is_ok());
    let descriptors = [0x00, 0x53, 0x01].repeat(100_000);
    assert!(Reader::new(&descriptors).validate().is_err());
    assert!(Reader::new(&descriptors).skip().is_err());
}

#[test]
fn counts_are_bounded_by_bytes() {
    let bomb = [0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40];
    assert_eq!(
        Reader::new(&bomb).validate(),
        Err(DecodeError::TooManyWidthless { count: u32::MAX })
    );
    let list = [0xd0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40];
    assert_eq!(
        Reader::new(&list).validate(),
        Err(DecodeError::CountMismatch)
    );
    assert_eq!(
        Reader::new(&[0xc1, 2, 1, 0x40]).map().err(),
        Some(DecodeError::CountMismatch)
    );
}
