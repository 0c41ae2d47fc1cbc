//! Limits on lengths and types of the parts of a message.

use super::*;

const HEADERS: usize = 64 * 1024;
const VALUE: usize = 32 * 1024;

fn annotated(code: u64, value: &[u8]) -> Vec<u8> {
    section(code, &map(&[&symbol("name"), value]))
}

fn text(length: usize) -> Vec<u8> {
    string(&"x".repeat(length))
}

/// Sections before the body of exactly this size.
fn headers(size: usize) -> Vec<u8> {
    let with = |filler: usize| {
        let fill = text(filler);
        let half = text(VALUE);
        let application = application(&[&string("a"), &half, &string("b"), &fill]);
        [properties("id"), application].concat()
    };
    let rest = with(1_000).len() - 1_000;
    with(size - rest)
}

#[test]
fn a_property_or_annotation_has_at_most_32_kib() {
    for code in [
        sections::DELIVERY_ANNOTATIONS,
        sections::MESSAGE_ANNOTATIONS,
        sections::APPLICATION_PROPERTIES,
    ] {
        parse(annotated(code, &text(VALUE))).unwrap();
        let refused = parse(annotated(code, &text(VALUE + 1))).unwrap_err();
        let size = VALUE + 1 + 5;
        let name = "name".to_owned();
        assert_eq!(refused, MessageError::PropertyTooLarge { name, size });
    }
    let footer = annotated(0x78, &text(VALUE + 1));
    parse(footer).expect("the footer is not a header");
}

#[test]
fn the_sections_before_the_body_have_at_most_64_kib() {
    let body = data(&[1; 100_000]);
    let message = parse([headers(HEADERS), body.clone()].concat()).unwrap();
    assert!(!message.exceeds_header_limit());
    let refused = parse([headers(HEADERS + 1), body].concat()).unwrap_err();
    let size = HEADERS + 1;
    assert_eq!(refused, MessageError::HeadersTooLarge { size });
}

#[test]
fn an_accepted_message_may_exceed_the_header_limits_later() {
    let grown = |sent: Vec<u8>, added: usize| {
        let mut message = parse(sent).unwrap();
        let value = text(added);
        let changes = changes(&[&string("new"), &value]);
        message.change_properties(&changes).unwrap();
        message.exceeds_header_limit()
    };
    assert!(!grown(properties("id"), VALUE));
    assert!(grown(properties("id"), VALUE + 1));
    assert!(!grown(headers(HEADERS - 200), 150));
    assert!(grown(headers(HEADERS - 200), 250));

    let mut message = parse(headers(HEADERS)).unwrap();
    message.set_dead_letter_source("q");
    assert!(message.exceeds_header_limit());
}

#[test]
fn replaced_properties_do_not_count_towards_the_header_limit() {
    let mut message = parse(headers(HEADERS)).unwrap();
    let shorter: [&[u8]; 4] = [&string("a"), &text(1), &string("c"), &text(1_000)];
    message.change_properties(&changes(&shorter)).unwrap();
    assert!(!message.exceeds_header_limit());
}

#[test]
fn ids_have_at_most_128_utf_16_units() {
    let null = null();
    let session = |id: &[u8]| {
        let mut fields = vec![null.as_slice(); 11];
        fields[10] = id;
        section(sections::PROPERTIES, &list(&fields))
    };
    let message = |id: &[u8]| section(sections::PROPERTIES, &list(&[id]));
    let annotated = |name: &str, id: &[u8]| {
        let entries = map(&[&symbol(name), id]);
        section(sections::MESSAGE_ANNOTATIONS, &entries)
    };
    let key = |id: &[u8]| annotated("x-opt-partition-key", id);
    let via_key = |id: &[u8]| annotated("x-opt-via-partition-key", id);
    type Form<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;
    let forms: [(&str, Form<'_>); 4] = [
        ("session id", &session),
        ("message id", &message),
        ("partition key", &key),
        ("via partition key", &via_key),
    ];
    for (what, form) in forms {
        for (text, most, length) in [("x", 128, 129), ("ü", 128, 129), ("😀", 64, 130)] {
            let fits = string(&text.repeat(most));
            parse(form(&fits)).unwrap_or_else(|error| panic!("{what}: {error}"));
            let refused = parse(form(&string(&text.repeat(most + 1)))).unwrap_err();
            assert_eq!(refused, MessageError::TooLong { what, length });
        }
    }
    let binary = |length: usize| message(&encoded(|out| out.binary(&vec![1; length])));
    parse(binary(128)).unwrap();
    parse(binary(129)).unwrap_err();
}

#[test]
fn application_properties_are_primitives_or_described_primitives() {
    let described = |value: &[u8]| {
        encoded(|out| {
            out.raw(&[0]);
            out.symbol("com.microsoft:timespan");
            out.raw(value);
        })
    };
    let legal = [
        null(),
        text(3),
        vec![0x73, 0, 0, 0, b'c'],
        vec![0x74, 1, 2, 3, 4],
        [&[0x94][..], &[7; 16]].concat(),
        described(&encoded(|out| out.long(7))),
        described(&described(&null())),
    ];
    for value in legal {
        let sent = application(&[&string("k"), &value]);
        let message = parse(sent.clone()).unwrap();
        assert_eq!(Delivered::of(&message, &plain()).application(), sent);
    }
    let illegal = [
        list(&[]),
        vec![0x45],
        vec![0xc0, 1, 0],
        map(&[]),
        encoded(|out| out.long_array([1].into_iter())),
        described(&list(&[])),
        described(&described(&map(&[]))),
    ];
    for value in illegal {
        let refused = parse(application(&[&string("k"), &value])).unwrap_err();
        let name = "k".to_owned();
        assert_eq!(refused, MessageError::IllegalProperty { name });
    }
}

#[test]
fn names_of_application_properties_are_text() {
    parse(application(&[&symbol("k"), &null()])).expect("symbols are borne");
    for name in [null(), encoded(|out| out.uint(1)), list(&[])] {
        let refused = parse(application(&[&name, &null()])).unwrap_err();
        assert_eq!(refused, MessageError::PropertyName);
    }
}

#[test]
fn a_message_struct_has_72_bytes() {
    assert_eq!(size_of::<Message>(), 72);
}
