//! Message format 0x80013700: several messages in one transfer.

use super::*;
use crate::message::COPY_LIMIT;

fn batch(payload: Vec<u8>) -> Result<Vec<Message>, MessageError> {
    Message::parse_batch(&payload.into(), &mut Counting::default())
}

#[test]
fn each_data_section_of_a_batch_is_a_message() {
    let messages = [
        [properties("a"), data(b"1")].concat(),
        [header(9), properties("b"), data(b"2")].concat(),
        [properties("c"), section(sections::VALUE, &string("3"))].concat(),
    ];
    let sections = messages.each_ref().map(|message| data(message));
    let parsed = batch(sections.concat()).unwrap();
    assert_eq!(parsed.len(), 3);
    for (message, sent) in parsed.iter().zip(&messages) {
        assert_eq!(*message.payload, **sent);
    }
    assert_eq!(parsed[1].time_to_live(), Some(9));
}

#[test]
fn the_sections_of_a_batch_envelope_are_ignored() {
    let inner = [properties("inner"), data(b"1")].concat();
    let envelope = [
        header(0),
        section(
            sections::MESSAGE_ANNOTATIONS,
            &map(&[&symbol("x"), &null()]),
        ),
        properties("outer"),
        application(&[&string("k"), &string("v")]),
        data(&inner),
        section(0x78, &map(&[])),
    ];
    let parsed = batch(envelope.concat()).unwrap();
    assert_eq!(parsed.len(), 1);
    assert_eq!(parsed[0].id(), "inner");
    assert_eq!(parsed[0].time_to_live(), None);
    assert!(parsed[0].application_properties().is_empty());
}

#[test]
fn each_message_of_a_batch_without_id_gets_its_own_id() {
    let without = data(&data(b"body"));
    let parsed = batch(without.repeat(3)).unwrap();
    let ids: Vec<_> = parsed.iter().map(Message::id).collect();
    assert_eq!(
        ids,
        [
            "00000000000000010000000000000002",
            "00000000000000030000000000000004",
            "00000000000000050000000000000006",
        ]
    );
}

#[test]
fn data_sections_of_a_batch_are_recognized_by_symbol() {
    let named = encoded(|out| {
        out.raw(&[0]);
        out.symbol("amqp:data:binary");
        out.binary(&properties("a"));
    });
    assert_eq!(batch(named).unwrap().len(), 1);
}

#[test]
fn one_invalid_message_refuses_its_batch() {
    let good = data(&properties("a"));
    let bad = [
        data(b"garbage"),
        data(&[header(0), data(b"")].concat()),
        data(&[properties("a"), properties("a")].concat()),
    ];
    for bad in bad {
        assert!(batch([good.clone(), bad.clone()].concat()).is_err());
        assert!(batch([bad, good.clone()].concat()).is_err());
    }
}

#[test]
fn a_batch_with_a_value_or_sequence_body_is_refused() {
    let value = section(sections::VALUE, &string("a"));
    assert_eq!(
        batch(value).unwrap_err(),
        MessageError::Section(sections::VALUE)
    );
    let sequence = section(sections::SEQUENCE, &list(&[]));
    assert_eq!(
        batch(sequence).unwrap_err(),
        MessageError::Section(sections::SEQUENCE)
    );
}

#[test]
fn a_small_message_does_not_keep_its_batch_in_memory() {
    let small = [properties("a"), data(b"1")].concat();
    let large = [properties("b"), data(&vec![0; 2 * COPY_LIMIT])].concat();
    let payload = Bytes::from([data(&small), data(&large)].concat());
    let parsed = Message::parse_batch(&payload, &mut Counting::default()).unwrap();
    let shares = |message: &Message| payload.as_ptr_range().contains(&message.payload.as_ptr());
    assert!(!shares(&parsed[0]));
    assert!(shares(&parsed[1]));
}

#[test]
fn a_message_that_is_less_than_half_of_its_batch_does_not_keep_it() {
    let one = [properties("a"), data(&vec![0; 2 * COPY_LIMIT])].concat();
    for (count, shared) in [(1, true), (3, false)] {
        let payload = Bytes::from(data(&one).repeat(count));
        let parsed = Message::parse_batch(&payload, &mut Counting::default()).unwrap();
        let shares = |message: &Message| payload.as_ptr_range().contains(&message.payload.as_ptr());
        assert!(
            parsed.iter().all(|message| shares(message) == shared),
            "{count}"
        );
    }
}
