//! What validation lets pass and what it refuses. That whatever passes is read by every other method of a reader is the
//! fuzz target `codec` (`tests/fuzz`).

use servicebus_codec::{
    DecodeError, ElementBudget, MAX_DEPTH, MAX_ELEMENTS, MAX_WIDTHLESS, Reader, Value,
};

/// Constructors of a fixed width.
const FIXED: [u8; 27] = [
    0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x60, 0x61, 0x70,
    0x71, 0x72, 0x73, 0x74, 0x80, 0x81, 0x82, 0x83, 0x84, 0x94, 0x98,
];

/// The width of a value of such a constructor: 0, 1, 2, 4, 8 or 16 bytes, by its upper half (AMQP 1.0, 1.2).
const fn width(code: u8) -> usize {
    (1 << (code >> 4)) >> 5
}

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

fn compound(code: u8, items: Vec<Vec<u8>>) -> Vec<u8> {
    sized(code, Some(items.len() as u32), &items.concat())
}

#[test]
fn every_fixed_width_constructor_is_valid() {
    for code in FIXED {
        // The only text in them is a character: `a`.
        let value = [
            &[code],
            &[0, 0, 0, b'a', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..width(code)],
        ]
        .concat();
        assert_eq!(Reader::new(&value).validate(), Ok(()), "{code:x}");
        let array = sized(0xf0, Some(1), &value);
        assert_eq!(Reader::new(&array).validate(), Ok(()), "{code:x}");
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
fn zero_width_array_elements_are_counted_without_reading() {
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
fn the_number_of_elements_of_a_message_is_limited() {
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
fn undefined_constructors_are_refused() {
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
