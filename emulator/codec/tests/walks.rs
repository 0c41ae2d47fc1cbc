//! What passes validation can be walked through by every other method of a reader.

use proptest::collection;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use servicebus_codec::{
    DecodeError, ElementBudget, MAX_DEPTH, MAX_ELEMENTS, MAX_WIDTHLESS, Reader, Value,
};

/// Constructors with a fixed width, and that width.
const FIXED: [(u8, usize); 27] = [
    (0x40, 0),
    (0x41, 0),
    (0x42, 0),
    (0x43, 0),
    (0x44, 0),
    (0x45, 0),
    (0x50, 1),
    (0x51, 1),
    (0x52, 1),
    (0x53, 1),
    (0x54, 1),
    (0x55, 1),
    (0x56, 1),
    (0x60, 2),
    (0x61, 2),
    (0x70, 4),
    (0x71, 4),
    (0x72, 4),
    (0x73, 4),
    (0x74, 4),
    (0x80, 8),
    (0x81, 8),
    (0x82, 8),
    (0x83, 8),
    (0x84, 8),
    (0x94, 16),
    (0x98, 16),
];

/// A constructor with `content` behind a size of one or four bytes; `count` is written where there is one.
fn sized(code: u8, count: Option<u32>, content: &[u8]) -> Vec<u8> {
    let is_short = matches!(code >> 4, 0xa | 0xc | 0xe);
    let number = |number: u32| match is_short {
        true => vec![number as u8],
        false => number.to_be_bytes().to_vec(),
    };
    let count = count.map(number).unwrap_or_default();
    let size = number((count.len() + content.len()) as u32);
    [&[code], &*size, &*count, content].concat()
}

/// Any value, in every form that AMQP has for it, descriptors that are described included.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let fixed = (select(&FIXED[..]), any::<[u8; 16]>())
        .prop_map(|((code, width), bits)| [&[code], &bits[..width]].concat());
    let text = (select(vec![0xa1, 0xa3, 0xb1, 0xb3]), ".{0,8}")
        .prop_map(|(code, text)| sized(code, None, text.as_bytes()));
    let binary = (select(vec![0xa0, 0xb0]), collection::vec(any::<u8>(), 0..8))
        .prop_map(|(code, bytes)| sized(code, None, &bytes));
    let leaf = prop_oneof![4 => fixed, 1 => text, 1 => binary, 2 => array()];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let items = || collection::vec(inner.clone(), 0..4);
        prop_oneof![
            items().prop_map(|items| compound(0xd0, items)),
            items().prop_map(|mut items| {
                items.truncate(items.len() / 2 * 2);
                compound(0xd1, items)
            }),
            (inner.clone(), inner.clone())
                .prop_map(|(descriptor, value)| { [&[0], &*descriptor, &*value].concat() }),
        ]
    })
}

fn compound(code: u8, items: Vec<Vec<u8>>) -> Vec<u8> {
    sized(code, Some(items.len() as u32), &items.concat())
}

fn array() -> impl Strategy<Value = Vec<u8>> {
    let constructor = (select(&FIXED[..]), any::<bool>());
    (constructor, 0..5u32, any::<[u8; 16]>()).prop_map(
        |(((code, width), described), count, bits)| {
            let descriptor: &[u8] = if described { &[0, 0x53, 7] } else { &[] };
            let elements = bits[..width].repeat(count as usize);
            let content = [descriptor, &[code], &elements].concat();
            sized(0xf0, Some(count), &content)
        },
    )
}

/// Reads a value that has passed down to its leaves; every step must succeed.
fn walk(encoded: &[u8]) -> Result<(), DecodeError> {
    let mut reader = Reader::new(encoded);
    assert_eq!(reader.skip()?, encoded);
    assert!(reader.is_empty());
    let read = Reader::new(encoded).value()?;
    assert!(!matches!(read, Value::Other([])));
    let _ = Reader::new(encoded).next_is_primitive();
    match encoded[0] {
        0x00 => {
            let mut reader = Reader::new(&encoded[1..]);
            walk(reader.skip()?)?;
            walk(reader.rest())
        }
        0x45 | 0xc0 | 0xd0 => {
            let list = Reader::new(encoded).list()?;
            let mut fields = Reader::new(encoded).fields()?;
            let mut items = list.items;
            for _ in 0..list.count {
                let item = items.skip()?;
                assert_eq!(fields.raw()?.unwrap_or(&[0x40]), item);
                walk(item)?;
            }
            assert!(items.is_empty());
            Ok(())
        }
        0xc1 | 0xd1 => {
            let map = Reader::new(encoded).map()?;
            assert!(map.entries().all(|entry| entry.is_ok()));
            for entry in map.raw_entries() {
                let (key, value) = entry?;
                walk(key)?;
                walk(value)?;
            }
            Ok(())
        }
        0xe0 | 0xf0 => {
            let mut elements = Reader::new(encoded).elements()?;
            let mut element = Vec::new();
            // Those without width are all the same.
            for _ in 0..100 {
                if !elements.next_into(&mut element)? {
                    break;
                }
                walk(&element)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_value_passes_and_is_walked(value in value()) {
        let mut reader = Reader::new(&value);
        prop_assert_eq!(reader.validate(), Ok(()));
        prop_assert!(reader.is_empty());
        prop_assert_eq!(walk(&value), Ok(()));
    }

    #[test]
    fn what_passes_is_walked(
        value in value(),
        damage in collection::vec((any::<Index>(), any::<u8>()), 0..4),
    ) {
        let mut value = value;
        for (at, byte) in damage {
            let at = at.index(value.len());
            value[at] = byte;
        }
        let mut reader = Reader::new(&value);
        if reader.validate().is_ok() {
            let end = reader.position();
            prop_assert_eq!(walk(&value[..end]), Ok(()));
        }
    }
}

#[test]
fn a_descriptor_may_be_described() {
    let value = [0x00, 0x00, 0x53, 0x01, 0x53, 0x02, 0x40];
    assert_eq!(Reader::new(&value).validate(), Ok(()));
    assert_eq!(Reader::new(&value).skip(), Ok(&value[..]));
    assert_eq!(Reader::new(&value).value(), Ok(Value::Other(&value)));
    assert!(Reader::new(&value).next_is_primitive());
    // It names no type that anything here knows.
    assert!(Reader::new(&value).descriptor().is_err());
}

#[test]
fn elements_without_width_are_counted_and_not_walked() {
    let four = [0xe0, 2, 4, 0x41];
    assert_eq!(Reader::new(&four).validate(), Ok(()));
    let mut elements = Reader::new(&four).elements().unwrap();
    let mut element = Vec::new();
    for _ in 0..4 {
        assert_eq!(elements.next_into(&mut element), Ok(true));
        assert_eq!(element, [0x41]);
    }
    assert_eq!(elements.next_into(&mut element), Ok(false));

    let many = |count| sized(0xf0, Some(count), &[0x40]);
    assert_eq!(Reader::new(&many(MAX_WIDTHLESS)).validate(), Ok(()));
    let count = MAX_WIDTHLESS + 1;
    let too_many = Err(DecodeError::TooManyWidthless { count });
    assert_eq!(Reader::new(&many(count)).validate(), too_many);
    let error = Reader::new(&many(count)).elements().err();
    assert_eq!(error, too_many.err());
    // All arrays of a value count together, and all values that are read together.
    let count = MAX_WIDTHLESS / 2 + 1;
    let two = compound(0xd0, vec![many(count), many(count)]);
    let too_many = Err(DecodeError::TooManyWidthless { count });
    assert_eq!(Reader::new(&two).validate(), too_many);
    let mut left = ElementBudget::default();
    let one = many(count);
    assert_eq!(Reader::new(&one).validate_within(&mut left), Ok(()));
    assert_eq!(Reader::new(&one).validate_within(&mut left), too_many);
}

#[test]
fn the_elements_of_a_message_are_bounded() {
    let nulls = |count: u32| sized(0xd0, Some(count), &vec![0x40; count as usize]);
    // The list is one itself.
    assert_eq!(Reader::new(&nulls(MAX_ELEMENTS - 1)).validate(), Ok(()));
    let count = MAX_ELEMENTS;
    let too_many = Err(DecodeError::TooManyElements { count });
    assert_eq!(Reader::new(&nulls(count)).validate(), too_many);
    let texts = sized(
        0xf0,
        Some(count),
        &[&[0xa1], &*vec![0; count as usize]].concat(),
    );
    assert_eq!(Reader::new(&texts).validate(), too_many);
    // What has one width is not walked.
    let integers = |bytes: usize| sized(0xf0, Some(count), &[&[0x71], &*vec![7; bytes]].concat());
    let whole = 4 * count as usize;
    assert_eq!(Reader::new(&integers(whole)).validate(), Ok(()));
    let truncated = Err(DecodeError::Truncated);
    assert_eq!(Reader::new(&integers(whole - 1)).validate(), truncated);
    let mismatch = Err(DecodeError::CountMismatch);
    assert_eq!(Reader::new(&integers(whole + 1)).validate(), mismatch);
    // All values that are read together.
    let mut left = ElementBudget::default();
    let half = nulls(MAX_ELEMENTS / 2);
    let count = MAX_ELEMENTS / 2;
    let too_many = Err(DecodeError::TooManyElements { count });
    assert_eq!(Reader::new(&half).validate_within(&mut left), Ok(()));
    assert_eq!(Reader::new(&half).validate_within(&mut left), too_many);
}

#[test]
fn what_amqp_does_not_define_is_refused() {
    for code in [
        0x46, 0x57, 0x62, 0x75, 0x85, 0x90, 0xa2, 0xb2, 0xc2, 0xd2, 0xe1, 0xf1, 0x01,
    ] {
        let value = [&[code], &[0u8; 20][..]].concat();
        assert!(Reader::new(&value).validate().is_err(), "{code:x}");
        let array = sized(0xf0, Some(1), &value);
        assert!(Reader::new(&array).validate().is_err(), "{code:x}");
    }
    // Text in arrays is text.
    let array = sized(0xf0, Some(1), &[0xa1, 1, 0xff]);
    assert_eq!(
        Reader::new(&array).validate(),
        Err(DecodeError::InvalidText)
    );
    let descriptors = [0x00, 0x53, 0x01].repeat(MAX_DEPTH + 1);
    let array = sized(0xf0, Some(1), &[&*descriptors, &[0x40]].concat());
    assert_eq!(Reader::new(&array).validate(), Err(DecodeError::TooDeep));
}
