//! What the broker reads from an accepted message.

use uuid::Uuid;

use super::*;
use crate::message::COPY_LIMIT;

const ALL_SECTIONS: [(u64, &str); 6] = [
    (sections::HEADER, "amqp:header:list"),
    (
        sections::DELIVERY_ANNOTATIONS,
        "amqp:delivery-annotations:map",
    ),
    (
        sections::MESSAGE_ANNOTATIONS,
        "amqp:message-annotations:map",
    ),
    (sections::PROPERTIES, "amqp:properties:list"),
    (
        sections::APPLICATION_PROPERTIES,
        "amqp:application-properties:map",
    ),
    (sections::DATA, "amqp:data:binary"),
];

/// A value for each section, in order.
fn contents() -> [Vec<u8>; 6] {
    [
        list(&[]),
        map(&[&symbol("d"), &string("1")]),
        map(&[&symbol("m"), &string("2")]),
        list(&[&string("id")]),
        map(&[&string("a"), &string("3")]),
        encoded(|out| out.binary(b"body")),
    ]
}

#[test]
fn sections_are_recognized_by_every_form_of_their_descriptor() {
    let whole = |write: fn(&mut Writer<'_>, u64, &str)| {
        let contents = contents();
        let sections = ALL_SECTIONS.iter().zip(&contents);
        let sections = sections.map(|(&(code, name), content)| {
            encoded(|out| {
                write(out, code, name);
                out.raw(content);
            })
        });
        sections.collect::<Vec<_>>().concat()
    };
    let forms: [fn(&mut Writer<'_>, u64, &str); 3] = [
        |out, code, _| out.descriptor(code as u8),
        |out, code, _| out.long_descriptor(code),
        |out, _, name| {
            out.raw(&[0]);
            out.symbol(name);
        },
    ];
    for form in forms {
        let message = parse(whole(form)).unwrap();
        assert_eq!(message.id(), "id");
        let delivered = Delivered::of(&message, &plain());
        assert_eq!(
            delivered.body(),
            data(b"body"),
            "with a descriptor that Python reads"
        );
        assert!(delivered.properties().starts_with(&[0, 0x53, 0x73]));
        assert!(delivered.application().starts_with(&[0, 0x53, 0x74]));
        assert_eq!(delivered.delivery_annotations()[0].1, string("1"));
        assert_eq!(delivered.message_annotations()[0].1, string("2"));
        assert_eq!(entries(delivered.application())[0].1, string("3"));
    }
}

#[test]
fn value_and_sequence_bodies_and_footers_are_recognized_by_symbol() {
    let named = |name: &str, content: &[u8]| {
        encoded(|out| {
            out.raw(&[0]);
            out.symbol(name);
            out.raw(content);
        })
    };
    let footer = named("amqp:footer:map", &map(&[&symbol("f"), &null()]));
    for (name, code, content) in [
        ("amqp:amqp-sequence:list", sections::SEQUENCE, list(&[])),
        ("amqp:amqp-value:*", sections::VALUE, string("body")),
    ] {
        let message = parse([named(name, &content), footer.clone()].concat()).unwrap();
        let delivered = Delivered::of(&message, &plain());
        let footer = section(sections::FOOTER, &map(&[&symbol("f"), &null()]));
        assert_eq!(delivered.body(), [section(code, &content), footer].concat());
    }
}

#[test]
fn every_section_may_be_missing() {
    let contents = contents();
    for chosen in 0..1 << ALL_SECTIONS.len() {
        let sections = ALL_SECTIONS.iter().zip(&contents).enumerate();
        let sections = sections.filter(|(at, _)| chosen & (1 << at) != 0);
        let sections: Vec<_> = sections
            .map(|(_, (&(code, _), content))| section(code, content))
            .collect();
        let message = parse(sections.concat()).unwrap();
        let delivered = Delivered::of(&message, &plain());
        assert!(
            !delivered.properties().is_empty(),
            "clients need properties (wire.md §7.1)"
        );
        assert_eq!(delivered.application().is_empty(), chosen & 0b01_0000 == 0);
        assert_eq!(delivered.body().is_empty(), chosen & 0b10_0000 == 0);
    }
}

#[test]
fn every_kind_of_body_passes_bit_for_bit() {
    let items = list(&[&string("x"), &null(), &list(&[])]);
    let described = encoded(|out| {
        out.raw(&[0]);
        out.symbol("com.microsoft:timespan");
        out.long(7);
    });
    let value = |content: &[u8]| section(sections::VALUE, content);
    let footer = section(0x78, &map(&[&symbol("f"), &null()]));
    let bodies = [
        vec![],
        data(b""),
        data(&[7; 300]),
        [data(b"one"), data(b"two"), data(b"three")].concat(),
        section(sections::SEQUENCE, &items),
        [
            section(sections::SEQUENCE, &items),
            section(sections::SEQUENCE, &list(&[])),
        ]
        .concat(),
        value(&null()),
        value(&string("text")),
        value(&items),
        value(&map(&[&null(), &items])),
        value(&described),
        value(&encoded(|out| out.long_array([1, 2, 3].into_iter()))),
        [data(b"body"), footer.clone()].concat(),
        footer,
    ];
    for body in bodies {
        let message = parse([properties("id"), body.clone()].concat()).unwrap();
        assert_eq!(Delivered::of(&message, &plain()).body(), body);
    }
}

#[test]
fn message_ids_are_formatted_as_text_and_delivered_as_sent() {
    let uuid = Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    let ids = [
        (string("order-1"), "order-1"),
        (string(""), ""),
        (symbol("s"), "s"),
        (encoded(|out| out.ulong(u64::MAX)), "18446744073709551615"),
        (encoded(|out| out.int(-1)), "-1"),
        (
            encoded(|out| out.uuid(uuid)),
            "01234567-89ab-cdef-0123-456789abcdef",
        ),
        (encoded(|out| out.binary(&[0, 0xab])), "00ab"),
    ];
    for (id, text) in ids {
        let sent = section(sections::PROPERTIES, &list(&[&id]));
        let message = parse(sent.clone()).unwrap();
        assert_eq!(message.id(), text);
        assert_eq!(Delivered::of(&message, &plain()).properties(), sent);
    }
}

#[test]
fn a_message_without_id_gets_a_generated_id() {
    const GIVEN: &str = "00000000000000010000000000000002";
    let user = encoded(|out| out.binary(b"user"));
    let without = [
        vec![],
        section(sections::PROPERTIES, &[0x45]),
        section(sections::PROPERTIES, &list(&[])),
        section(sections::PROPERTIES, &list(&[&null()])),
        section(
            sections::PROPERTIES,
            &list(&[&null(), &user, &string("to")]),
        ),
    ];
    for sent in without {
        let message = parse([sent.clone(), data(b"body")].concat()).unwrap();
        assert_eq!(message.id(), GIVEN);
        let delivered = Delivered::of(&message, &plain());
        assert_eq!(raw_fields(delivered.properties(), 1)[0], string(GIVEN));
        assert_eq!(delivered.body(), data(b"body"));
        if !sent.is_empty() {
            let (before, after) = (raw_fields(&sent, 4), raw_fields(delivered.properties(), 4));
            assert_eq!(before[1..], after[1..], "the other fields stay");
        }
    }
}

#[test]
fn a_generated_id_is_inserted_between_sections_and_in_large_messages() {
    let body = data(&[9; 2 * COPY_LIMIT]);
    let application = application(&[&string("k"), &string("v")]);
    let sent = [header(5), application, body.clone()].concat();
    let mut message = parse(sent.clone()).unwrap();
    assert_eq!(message.id().len(), 32);
    assert_eq!(message.time_to_live(), Some(5));
    let given = Delivered::of(&message, &plain()).properties().to_vec();
    assert_eq!(message.size() as usize, sent.len() + given.len());
    let expiring = BrokerProperties {
        time_to_live: Some(4),
        ..plain()
    };
    let new = changes(&[&string("k"), &string("new")]);
    for changed in [false, true] {
        if changed {
            message.change_properties(&new).unwrap();
        }
        for broker_properties in [plain(), expiring] {
            let delivered = Delivered::of(&message, &broker_properties);
            assert_eq!(raw_fields(delivered.properties(), 1), raw_fields(&given, 1));
            let value = if changed { string("new") } else { string("v") };
            assert_eq!(entries(delivered.application()), [(&*string("k"), &*value)]);
            assert_eq!(delivered.body(), body);
        }
    }
}

#[test]
fn generating_an_id_does_not_copy_a_large_payload() {
    let user = encoded(|out| out.binary(b"user"));
    let without = section(sections::PROPERTIES, &list(&[&null(), &user]));
    let payload = Bytes::from([without, data(&[9; 2 * COPY_LIMIT])].concat());
    let message = parse(payload.clone()).unwrap();
    let rest = message.encode(&plain(), 0, &mut Vec::new()).unwrap();
    assert!(payload.as_ptr_range().contains(&rest.as_ptr()));
    let delivered = Delivered::of(&message, &plain());
    assert_eq!(raw_fields(delivered.properties(), 2)[1], user);
    assert!(!message.id().is_empty());
}

#[test]
fn small_payloads_are_copied_and_large_ones_shared() {
    for (length, shared) in [(100, false), (17 * 1024, false), (2 * COPY_LIMIT, true)] {
        let payload = Bytes::from([properties("id"), data(&vec![1; length])].concat());
        let message = parse(payload.clone()).unwrap();
        let rest = message.encode(&plain(), 0, &mut Vec::new()).unwrap();
        assert_eq!(
            payload.as_ptr_range().contains(&rest.as_ptr()),
            shared,
            "{length}"
        );
        assert_eq!(message.size(), payload.len() as u64);
    }
}

#[test]
fn the_time_to_live_is_read_from_the_header() {
    let parse = |sections: &[Vec<u8>]| parse(sections.concat()).unwrap().time_to_live();
    assert_eq!(parse(&[properties("id")]), None);
    assert_eq!(
        parse(&[section(sections::HEADER, &list(&[])), properties("id")]),
        None
    );
    assert_eq!(parse(&[header(1), properties("id")]), Some(1));
    assert_eq!(
        parse(&[lifetime(0, 5_000)]),
        None,
        "creation and expiry alone are informational"
    );
    assert_eq!(parse(&[header(7), lifetime(0, 5_000)]), Some(7));
}

#[test]
fn a_time_to_live_beyond_32_bits_follows_from_creation_and_expiry() {
    const MOST: u64 = u32::MAX as u64;
    let parse = |sections: &[Vec<u8>]| parse(sections.concat()).unwrap().time_to_live();
    let year = 365 * 24 * 3600 * 1000;
    assert_eq!(
        parse(&[header(u32::MAX), lifetime(1_000, 1_000 + year)]),
        Some(year as u64)
    );
    assert_eq!(parse(&[header(u32::MAX), properties("id")]), Some(MOST));
    assert_eq!(
        parse(&[header(u32::MAX), lifetime(9, 3)]),
        Some(MOST),
        "backwards"
    );
    assert_eq!(
        parse(&[header(u32::MAX), lifetime(0, 5)]),
        Some(MOST),
        "too short"
    );
    assert_eq!(
        parse(&[header(u32::MAX), lifetime(i64::MIN, i64::MAX)]),
        Some(MOST),
        "overflow"
    );
}
