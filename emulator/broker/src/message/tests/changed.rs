//! Application properties that are set while a message is in the broker.

use servicebus_codec::DecodeError;

use super::*;

fn with(items: &[&[u8]]) -> Message {
    parse([properties("id"), application(items), data(b"body")].concat()).unwrap()
}

fn after(message: &mut Message, items: &[&[u8]]) -> Vec<(Vec<u8>, Vec<u8>)> {
    message.change_properties(&changes(items)).unwrap();
    let delivered = Delivered::of(message, &plain());
    assert_eq!(delivered.body(), data(b"body"), "the body is never touched");
    assert_eq!(
        delivered.properties(),
        properties("id"),
        "nor are the properties"
    );
    assert_eq!(delivered.application(), message.application_properties());
    let owned = |(key, value): (&[u8], &[u8])| (key.to_vec(), value.to_vec());
    entries(delivered.application())
        .into_iter()
        .map(owned)
        .collect()
}

#[test]
fn changed_properties_leave_order_and_bytes_of_the_others() {
    // An encoding that our writers do not use: four-byte lengths and widths.
    let long_text = [&[0xb1, 0, 0, 0, 1][..], b"v"].concat();
    let wide_number = [0x80, 0, 0, 0, 0, 0, 0, 0, 1];
    let described = encoded(|out| {
        out.raw(&[0]);
        out.symbol("com.microsoft:datetime-offset");
        out.long(1);
    });
    let mut message = with(&[
        &string("z"),
        &long_text,
        &string("replaced"),
        &string("old"),
        &string("a"),
        &wide_number,
        &string("m"),
        &described,
    ]);
    assert_eq!(
        after(
            &mut message,
            &[
                &string("new"),
                &string("2"),
                &string("replaced"),
                &described
            ]
        ),
        [
            (string("z"), long_text),
            (string("a"), wide_number.to_vec()),
            (string("m"), described.clone()),
            (string("new"), string("2")),
            (string("replaced"), described),
        ]
    );
}

#[test]
fn keys_may_be_symbols_and_become_strings() {
    let mut message = with(&[&symbol("s"), &string("old"), &string("k"), &string("v")]);
    assert_eq!(
        after(&mut message, &[&symbol("s"), &string("new")]),
        [(string("k"), string("v")), (string("s"), string("new"))]
    );
}

#[test]
fn property_changes_have_primitive_values() {
    for illegal in [
        list(&[]),
        map(&[]),
        encoded(|out| out.long_array([1].into_iter())),
    ] {
        let refused = PropertyChanges::from_map(&map(&[&string("k"), &illegal])).unwrap_err();
        let name = "k".to_owned();
        assert_eq!(refused, MessageError::IllegalProperty { name });
    }
}

#[test]
fn a_property_can_be_changed_to_null() {
    let mut message = with(&[&string("k"), &string("v")]);
    assert_eq!(
        after(&mut message, &[&string("k"), &null()]),
        [(string("k"), null())]
    );
}

#[test]
fn the_last_of_two_changes_of_one_property_applies() {
    let mut message = with(&[&string("k"), &string("1"), &string("k"), &string("2")]);
    let twice: [&[u8]; 4] = [&string("k"), &string("3"), &string("k"), &string("4")];
    assert_eq!(after(&mut message, &twice), [(string("k"), string("4"))]);
}

#[test]
fn a_message_without_application_properties_gets_the_section() {
    let mut message = parse([properties("id"), data(b"body")].concat()).unwrap();
    assert!(message.application_properties().is_empty());
    let expected = [(string("k"), string("v"))];
    assert_eq!(after(&mut message, &[&string("k"), &string("v")]), expected);
}

#[test]
fn successive_property_changes_accumulate() {
    let mut message = with(&[&string("a"), &string("0")]);
    after(&mut message, &[&string("b"), &string("1")]);
    after(&mut message, &[&string("c"), &string("2")]);
    assert_eq!(
        after(&mut message, &[&string("b"), &string("3")]),
        [
            (string("a"), string("0")),
            (string("c"), string("2")),
            (string("b"), string("3")),
        ]
    );
}

#[test]
fn empty_property_changes_leave_the_payload_unchanged() {
    let mut message = with(&[&string("a"), &string("0")]);
    let size = message.size();
    message.change_properties(&PropertyChanges::new()).unwrap();
    assert!(message.overlay.is_none());
    assert_eq!(message.size(), size);
}

#[test]
fn changes_work_together_with_the_expiry_instant() {
    let application = application(&[&string("k"), &string("old")]);
    let mut message = parse([lifetime(5, 100), application, data(b"body")].concat()).unwrap();
    message
        .change_properties(&changes(&[&string("k"), &string("new")]))
        .unwrap();
    let broker_properties = BrokerProperties {
        time_to_live: Some(4),
        ..plain()
    };
    let delivered = Delivered::of(&message, &broker_properties);
    assert_eq!(entries(delivered.application())[0].1, string("new"));
    assert_eq!(
        raw_fields(delivered.properties(), 9)[8],
        encoded(|out| out.timestamp(9))
    );
    assert_eq!(delivered.body(), data(b"body"));
}

#[test]
fn a_replaced_section_does_not_count_towards_the_size() {
    let sized = |value: &str| {
        let mut message = with(&[&string("k"), &string(&"v".repeat(500))]);
        let new = changes(&[&string("k"), &string(value)]);
        message.change_properties(&new).unwrap();
        message.size()
    };
    let sent = with(&[&string("k"), &string(&"v".repeat(500))]).size();
    assert_eq!(sized(&"w".repeat(500)), sent);
    // The value, and three bytes of its length.
    assert_eq!(sized(""), sent - 503);
}

#[test]
fn only_maps_of_named_values_are_changes() {
    let refused = |encoded: &[u8]| match PropertyChanges::from_map(encoded) {
        Err(MessageError::Malformed(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&[]), DecodeError::Truncated);
    for other in [null(), string("k"), list(&[]), map(&[&null(), &null()])] {
        assert!(matches!(refused(&other), DecodeError::Unexpected { .. }));
    }
    let odd = map(&[&string("k"), &null(), &string("l")]);
    assert_eq!(refused(&odd), DecodeError::CountMismatch);
    let deep = (0..40).fold(null(), |inner, _| list(&[&inner]));
    assert_eq!(refused(&map(&[&string("k"), &deep])), DecodeError::TooDeep);
    assert!(PropertyChanges::from_map(&map(&[])).unwrap().is_empty());
}

#[test]
fn take_text_removes_a_text_from_property_changes() {
    let encoded = map(&[
        &symbol("DeadLetterReason"),
        &string("because"),
        &string("none"),
        &null(),
        &string("number"),
        &encoded(|out| out.uint(1)),
        &string("list"),
        &list(&[]),
        &string("kept"),
        &string("v"),
    ]);
    let names = ["DeadLetterReason", "none", "number", "list", "absent"];
    let (changes, texts) = PropertyChanges::with_texts(&encoded, names).unwrap();
    let texts = texts.map(|text| text.unwrap_or_default());
    assert_eq!(texts, ["because", "", "", "", ""]);
    let mut message = with(&[]);
    message.change_properties(&changes).unwrap();
    assert_eq!(
        entries(message.application_properties()),
        [(&*string("kept"), &*string("v"))]
    );
}
