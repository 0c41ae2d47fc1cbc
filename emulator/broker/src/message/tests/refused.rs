//! Bytes that are not a message.

use servicebus_codec::{DecodeError, MAX_DEPTH};

use super::*;

const FOOTER: u64 = 0x78;

fn refusal(payload: impl Into<Bytes>) -> MessageError {
    parse(payload).expect_err("this is not a message")
}

fn value() -> Vec<u8> {
    section(sections::VALUE, &null())
}

fn sequence() -> Vec<u8> {
    section(sections::SEQUENCE, &list(&[]))
}

#[test]
fn a_repeated_section_is_refused() {
    let annotations = |code| (section(code, &map(&[])), code);
    for (twice, found) in [
        (header(1), sections::HEADER),
        annotations(sections::DELIVERY_ANNOTATIONS),
        annotations(sections::MESSAGE_ANNOTATIONS),
        (properties("id"), sections::PROPERTIES),
        (application(&[]), sections::APPLICATION_PROPERTIES),
        (value(), sections::VALUE),
        annotations(FOOTER),
    ] {
        assert_eq!(refusal(twice.repeat(2)), MessageError::Section(found));
        let apart = [&*twice, &properties("id"), &application(&[]), &twice].concat();
        assert!(matches!(refusal(apart), MessageError::Section(_)));
    }
}

#[test]
fn two_kinds_of_body_are_refused() {
    for (first, second, found) in [
        (data(b""), sequence(), sections::SEQUENCE),
        (data(b""), value(), sections::VALUE),
        (sequence(), data(b""), sections::DATA),
        (value(), sequence(), sections::SEQUENCE),
    ] {
        assert_eq!(
            refusal([first, second].concat()),
            MessageError::Section(found)
        );
    }
}

#[test]
fn an_unknown_section_is_refused() {
    assert_eq!(
        refusal(section(0x79, &map(&[]))),
        MessageError::Section(0x79)
    );
    let symbolic = encoded(|out| {
        out.raw(&[0]);
        out.symbol("amqp:unheard-of:map");
        out.null();
    });
    assert_eq!(refusal(symbolic), MessageError::Section(0));
    let bare = string("not a section");
    assert!(matches!(refusal(bare), MessageError::Malformed(_)));
}

#[test]
fn a_section_of_the_wrong_type_is_refused() {
    for (code, content) in [
        (sections::HEADER, map(&[])),
        (sections::HEADER, list(&[&string("durable")])),
        (sections::DELIVERY_ANNOTATIONS, list(&[])),
        (sections::MESSAGE_ANNOTATIONS, null()),
        (sections::PROPERTIES, map(&[])),
        (sections::APPLICATION_PROPERTIES, string("text")),
        (sections::APPLICATION_PROPERTIES, list(&[])),
        (sections::DATA, string("text")),
        (sections::SEQUENCE, map(&[])),
        (FOOTER, list(&[])),
    ] {
        let refusal = refusal(section(code, &content));
        assert!(
            matches!(refusal, MessageError::Malformed(_)),
            "0x{code:x}: {refusal}"
        );
    }
}

#[test]
fn an_array_of_too_many_zero_width_elements_is_refused() {
    let array = |count: u32| {
        let value = [&[0xf0, 0, 0, 0, 5][..], &count.to_be_bytes(), &[0x41]].concat();
        section(sections::SEQUENCE, &list(&[&value]))
    };
    parse(array(200_000)).unwrap();
    let refusal = refusal([array(200_000), array(200_000)].concat());
    assert_eq!(
        refusal.to_string(),
        "the message cannot be decoded: array has 200000 elements without width; at most 262144 are allowed in all \
         arrays together"
    );
}

#[test]
fn a_time_to_live_of_zero_is_refused() {
    assert_eq!(refusal(header(0)), MessageError::ZeroTimeToLive);
}

#[test]
fn a_truncated_message_is_refused() {
    let sections = [
        header(60_000),
        properties("id"),
        application(&[&string("k"), &string("v")]),
        data(b"body"),
    ];
    let whole = sections.concat();
    let mut complete = vec![0];
    for section in &sections {
        complete.push(complete.last().unwrap() + section.len());
    }
    for length in 0..=whole.len() {
        let accepted = parse(whole[..length].to_vec()).is_ok();
        assert_eq!(
            accepted,
            complete.contains(&length),
            "{length} of {} bytes",
            whole.len()
        );
    }
}

#[test]
fn values_nested_too_deep_are_refused() {
    let nested = |depth: usize| (0..depth).fold(null(), |inner, _| list(&[&inner]));
    let value = |depth| section(sections::VALUE, &nested(depth));
    assert!(parse(value(MAX_DEPTH - 1)).is_ok());
    let too_deep = MessageError::Malformed(DecodeError::TooDeep);
    assert_eq!(refusal(value(MAX_DEPTH)), too_deep);
    assert_eq!(refusal(value(50 * MAX_DEPTH)), too_deep);
    let described = [0, 0x53, 1].repeat(10_000);
    let described = section(sections::VALUE, &[described, null()].concat());
    assert_eq!(refusal(described), too_deep);
    let deep = application(&[&string("k"), &nested(MAX_DEPTH)]);
    assert_eq!(refusal(deep), too_deep);
}

#[test]
fn a_count_beyond_the_bytes_of_a_list_is_refused() {
    // A list of four billion elements in eight bytes.
    let list = [0xd0, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff];
    for code in [sections::HEADER, sections::PROPERTIES, sections::VALUE] {
        assert_eq!(
            refusal(section(code, &list)),
            MessageError::Malformed(DecodeError::CountMismatch)
        );
    }
}
