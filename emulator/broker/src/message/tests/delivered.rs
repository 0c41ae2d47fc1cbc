//! What the broker writes on a delivered message, and what it does not touch.

use servicebus_codec::Value;
use uuid::Uuid;

use super::*;

fn annotation(name: &str, write: impl FnOnce(&mut Writer<'_>)) -> (Vec<u8>, Vec<u8>) {
    (symbol(name), encoded(write))
}

fn as_owned(entries: Vec<(&[u8], &[u8])>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let owned = |(key, value): (&[u8], &[u8])| (key.to_vec(), value.to_vec());
    entries.into_iter().map(owned).collect()
}

#[test]
fn a_delivered_header_has_time_to_live_and_delivery_count() {
    let message = parse(properties("id")).unwrap();
    let broker_properties = BrokerProperties {
        delivery_count: 300,
        time_to_live: Some(60_000),
        ..plain()
    };
    let delivered = Delivered::of(&message, &broker_properties);
    let mut header = delivered.header();
    assert_eq!(header.bool().unwrap(), None, "durable");
    assert_eq!(header.value().unwrap(), Value::Null, "priority");
    assert_eq!(header.u32().unwrap(), Some(60_000), "time to live");
    assert_eq!(header.bool().unwrap(), None, "first acquirer");
    assert_eq!(header.u32().unwrap(), Some(300), "delivery count");
}

#[test]
fn a_delivered_header_keeps_the_senders_other_fields() {
    let sent = encoded(|out| {
        let mark = out.begin_list();
        out.bool(false);
        out.ubyte(9);
        out.uint(70_000);
        out.bool(true);
        out.uint(12);
        out.end(mark, 5);
    });
    let message = parse(section(sections::HEADER, &sent)).unwrap();
    let delivered = Delivered::of(&message, &plain());
    let mut header = delivered.header();
    assert_eq!(header.bool().unwrap(), Some(false));
    assert_eq!(header.value().unwrap(), Value::Unsigned(9));
    assert_eq!(header.u32().unwrap(), None, "as stamped");
    assert_eq!(header.bool().unwrap(), Some(true));
    assert_eq!(header.u32().unwrap(), Some(0), "as stamped");
}

#[test]
fn a_delivered_time_to_live_is_capped_at_32_bits() {
    let message = parse(properties("id")).unwrap();
    let broker_properties = BrokerProperties {
        time_to_live: Some(u64::from(u32::MAX) + 1),
        ..plain()
    };
    let delivered = Delivered::of(&message, &broker_properties);
    let header = delivered.sections.header(&delivered.bytes);
    assert_eq!(raw_fields(header, 3)[2], encoded(|out| out.uint(u32::MAX)));
}

#[test]
fn annotations_have_the_types_that_clients_cast_to() {
    let message = parse(properties("id")).unwrap();
    let token = Uuid::from_u128(77);
    let broker_properties = BrokerProperties {
        lock: Some((token, Timestamp::from_millis(61_000))),
        state: Some(0),
        ..plain()
    };
    let delivered = Delivered::of(&message, &broker_properties);
    assert_eq!(
        as_owned(delivered.message_annotations()),
        [
            annotation("x-opt-enqueued-time", |out| out.timestamp(1_000)),
            annotation("x-opt-sequence-number", |out| out.long(5)),
            annotation("x-opt-enqueue-sequence-number", |out| out.long(3)),
            annotation("x-opt-locked-until", |out| out.timestamp(61_000)),
            annotation("x-opt-message-state", |out| out.int(0)),
        ]
    );
    assert_eq!(
        as_owned(delivered.delivery_annotations()),
        [annotation("x-opt-lock-token", |out| out.uuid(token))]
    );
    let unlocked = Delivered::of(&message, &plain());
    assert!(
        unlocked
            .sections
            .delivery_annotations(&unlocked.bytes)
            .is_empty()
    );
    assert_eq!(unlocked.message_annotations().len(), 3);
}

/// Observed 3 and 4.
#[test]
fn a_receive_and_delete_delivery_has_only_two_annotations() {
    let message = parse(properties("id")).unwrap();
    let broker_properties = BrokerProperties {
        enqueued_sequence_number: None,
        is_removed: true,
        ..plain()
    };
    let delivered = Delivered::of(&message, &broker_properties);
    let section = delivered.sections.delivery_annotations(&delivered.bytes);
    assert_eq!(
        section,
        self::section(sections::DELIVERY_ANNOTATIONS, &map(&[]))
    );
    let names: Vec<_> = as_owned(delivered.message_annotations());
    assert_eq!(
        names,
        [
            annotation("x-opt-enqueued-time", |out| out.timestamp(1_000)),
            annotation("x-opt-sequence-number", |out| out.long(5)),
        ]
    );
}

#[test]
fn annotations_of_the_broker_are_replaced_and_others_keep_their_order() {
    let sent = map(&[
        &symbol("x-opt-partition-key"),
        &string("p"),
        &symbol("x-opt-sequence-number"),
        &string("forged"),
        &symbol("mine"),
        &list(&[&string("deep")]),
        &symbol("x-opt-deadletter-source"),
        &string("forged"),
        &encoded(|out| out.ulong(7)),
        &string("keys may be numbers"),
        &symbol("x-opt-locked-until"),
        &string("forged"),
    ]);
    for code in [
        sections::MESSAGE_ANNOTATIONS,
        sections::DELIVERY_ANNOTATIONS,
    ] {
        let message = parse(section(code, &sent)).unwrap();
        let delivered = Delivered::of(&message, &plain());
        let entries = match code {
            sections::MESSAGE_ANNOTATIONS => delivered.message_annotations(),
            _ => delivered.delivery_annotations(),
        };
        assert_eq!(
            as_owned(entries)[..3],
            [
                (symbol("x-opt-partition-key"), string("p")),
                (symbol("mine"), list(&[&string("deep")])),
                (encoded(|out| out.ulong(7)), string("keys may be numbers")),
            ]
        );
        assert!(!delivered.bytes.windows(6).any(|bytes| bytes == b"forged"));
    }
}

#[test]
fn annotations_of_service_bus_without_value_are_left_out() {
    let sent = map(&[
        &symbol("x-opt-partition-key"),
        &null(),
        &symbol("a"),
        &null(),
        &symbol("x-opt-mine"),
        &null(),
    ]);
    let message = parse(section(sections::MESSAGE_ANNOTATIONS, &sent)).unwrap();
    let entries = as_owned(Delivered::of(&message, &plain()).message_annotations());
    let kept = [(symbol("a"), null()), (symbol("x-opt-mine"), null())];
    assert_eq!(entries[..2], kept);
    assert_eq!(entries.len(), 5);
}

#[test]
fn a_delivery_shares_the_payload_from_the_properties_on() {
    let sections = [
        properties("id"),
        application(&[&string("k"), &string("v")]),
        data(b"body"),
    ];
    let message = parse([header(5), sections.concat()].concat()).unwrap();
    let mut fresh = Vec::new();
    let rest = message.encode(&plain(), 0, &mut fresh).unwrap();
    assert_eq!(*rest, *sections.concat());
    assert_eq!(rest.as_ptr_range().end, message.payload.as_ptr_range().end);
}

#[test]
fn a_changed_time_to_live_changes_only_the_absolute_expiry_time() {
    let user = encoded(|out| out.binary(b"user"));
    let (group, odd) = (string("group"), list(&[&null()]));
    let null = null();
    let mut all = vec![null.as_slice(); 13];
    let id = string("id");
    let expiry = encoded(|out| out.timestamp(1));
    let creation = encoded(|out| out.timestamp(2));
    all[0] = &id;
    all[1] = &user;
    all[6] = &odd;
    all[8] = &expiry;
    all[9] = &creation;
    all[10] = &group;
    for count in [10, 11, 13] {
        let sent = section(sections::PROPERTIES, &list(&all[..count]));
        let application = application(&[]);
        let message = parse([sent.clone(), application.clone(), data(b"x")].concat()).unwrap();
        let broker_properties = BrokerProperties {
            time_to_live: Some(97),
            ..plain()
        };
        let delivered = Delivered::of(&message, &broker_properties);
        let mut expected = raw_fields(&sent, 13);
        let expiry = encoded(|out| out.timestamp(99));
        expected[8] = &expiry;
        assert_eq!(
            raw_fields(delivered.properties(), 13),
            expected,
            "{count} fields"
        );
        let list = sections::content(delivered.properties())
            .unwrap()
            .list()
            .unwrap();
        assert_eq!(list.count as usize, count);
        assert_eq!(delivered.application(), application);
        assert_eq!(delivered.body(), data(b"x"));
    }
}

#[test]
fn delivered_instants_are_converted_to_client_time() {
    let sent = map(&[
        &symbol("x-opt-scheduled-enqueue-time"),
        &encoded(|out| out.timestamp(4)),
    ]);
    let annotations = section(sections::MESSAGE_ANNOTATIONS, &sent);
    let message = parse([annotations, lifetime(123, 456)].concat()).unwrap();
    let at = Timestamp::from_millis;
    let broker_properties = BrokerProperties {
        lock: Some((Uuid::nil(), at(61_000))),
        ..plain()
    };
    let delivered = Delivered::ahead(&message, &broker_properties, 500);
    let entries = as_owned(delivered.message_annotations());
    let expected = [
        annotation("x-opt-scheduled-enqueue-time", |out| out.timestamp(-496)),
        annotation("x-opt-enqueued-time", |out| out.timestamp(500)),
        annotation("x-opt-locked-until", |out| out.timestamp(60_500)),
    ];
    assert!(
        expected.iter().all(|entry| entries.contains(entry)),
        "{entries:?}"
    );
    let properties = delivered.properties();
    assert_eq!(properties, lifetime(123, 456), "the sender's own times");
}

/// Observed 5: a receiver subtracts the creation time from it to get the time to live.
#[test]
fn the_absolute_expiry_time_is_the_senders_or_is_computed() {
    let expiry = |message: &Message, time_to_live| {
        let broker_properties = BrokerProperties {
            time_to_live,
            ..plain()
        };
        raw_fields(Delivered::of(message, &broker_properties).properties(), 9)[8].to_vec()
    };
    let at = |instant| encoded(|out| out.timestamp(instant));
    let sent = parse([header(500), lifetime(1_000, 1_600)].concat()).unwrap();
    assert_eq!(expiry(&sent, Some(500)), at(1_600), "its own time to live");
    assert_eq!(expiry(&sent, None), at(1_600));
    assert_eq!(expiry(&sent, Some(400)), at(1_400), "that of its entity");
    let without = parse([header(500), properties("id")].concat()).unwrap();
    assert_eq!(expiry(&without, Some(400)), [0; 0], "none is invented");
}

#[test]
fn the_absolute_expiry_time_is_at_most_the_year_9999() {
    let message = parse(lifetime(0, 1)).unwrap();
    let end = encoded(|out| out.timestamp(253_402_300_799_999));
    for time_to_live in [u64::MAX, 253_402_300_800_000] {
        let broker_properties = BrokerProperties {
            time_to_live: Some(time_to_live),
            ..plain()
        };
        let delivered = Delivered::of(&message, &broker_properties);
        assert_eq!(raw_fields(delivered.properties(), 9)[8], end);
    }
}

/// A decimal of 7…7 × 10⁻² in the layouts of IEEE 754 and of Microsoft's library (observed 8).
fn decimals() -> [Vec<u8>; 2] {
    [[0x30, 0x3c], [0x0c, 0x3c]].map(|first| [&[0x94][..], &first, &[7; 14]].concat())
}

#[test]
fn decimals_are_rewritten_as_properties_and_as_the_body() {
    let of_body = |decimal: &[u8]| [properties("id"), section(sections::VALUE, decimal)].concat();
    let of_property = |decimal: &[u8]| {
        let entries = [&string("price"), decimal, &string("n"), &string("x")];
        [properties("id"), application(&entries), data(b"b")].concat()
    };
    let [sent, delivered] = decimals();
    for form in [&of_body as &dyn Fn(&[u8]) -> Vec<u8>, &of_property] {
        for payload in [&sent, &delivered].map(|decimal| form(decimal)) {
            assert_eq!(*parse(payload).unwrap().payload, *form(&delivered));
        }
    }
}

#[test]
fn text_keys_of_annotations_become_symbols() {
    let annotated = |key: &[u8]| {
        let of = |code| section(code, &map(&[key, &string("v")]));
        [
            of(sections::MESSAGE_ANNOTATIONS),
            properties("id"),
            data(b"b"),
            of(sections::FOOTER),
        ]
        .concat()
    };
    let message = parse(annotated(&string("key"))).unwrap();
    assert_eq!(*message.payload, *annotated(&symbol("key")));
    let other = annotated(&string("schlüssel"));
    assert_eq!(*parse(other.clone()).unwrap().payload, *other);
}

#[test]
fn a_message_encoded_as_sent_has_its_original_bytes() {
    let annotations = |code| section(code, &map(&[&symbol("k"), &string("v")]));
    let payload = [
        header(5),
        annotations(sections::DELIVERY_ANNOTATIONS),
        annotations(sections::MESSAGE_ANNOTATIONS),
        properties("id"),
        application(&[&string("a"), &string("1")]),
        data(b"body"),
    ];
    let payload = payload.concat();
    let mut again = Vec::new();
    parse(payload.clone()).unwrap().encode_as_sent(&mut again);
    assert_eq!(again, payload);
}
