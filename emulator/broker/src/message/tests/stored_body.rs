//! Messages with stored bodies.

use std::num::NonZeroU64;

use servicebus_codec::DecodeError;

use super::*;
use crate::changes::BodyId;

fn kept(body: &[u8]) -> Message {
    let sent = [properties("id"), application(&[]), data(body)].concat();
    let mut message = parse(sent).unwrap();
    message.set_body_id(BodyId(NonZeroU64::MIN));
    message
}

#[test]
fn a_body_dropped_from_memory_is_restored() {
    let mut message = kept(&[7; 1000]);
    let (size, payload) = (message.size(), message.payload().unwrap().clone());
    let before = Delivered::of(&message, &plain()).bytes;
    message.drop_body();
    assert_eq!(message.missing(), Some(BodyId(NonZeroU64::MIN)));
    assert_eq!((message.size(), message.payload()), (size, None));
    assert_eq!((&*message.id(), message.content().len()), ("id", 0));
    let encoded = message.encode(&plain(), 0, &mut Vec::new());
    assert_eq!(encoded, Err(DecodeError::Truncated));
    let mut without_body = Vec::new();
    let written = message.encode_without_body(&plain(), 0, &mut without_body);
    assert_eq!((written, before.starts_with(&without_body)), (Ok(()), true));
    assert!(!message.fill(payload.slice(1..)), "these are other bytes");
    assert!(message.fill(payload));
    assert_eq!(message.missing(), None);
    assert_eq!(Delivered::of(&message, &plain()).bytes, before);
}

#[test]
fn a_small_body_stays_in_memory() {
    let mut message = kept(b"body");
    message.drop_body();
    assert_eq!(message.missing(), None);
}

#[test]
fn a_stored_row_has_the_sections_before_the_body() {
    for (body, is_missing) in [(&[7; 1000][..], true), (b"body", false)] {
        let mut message = kept(body);
        let (size, payload) = (message.size(), message.payload().unwrap().clone());
        for _ in 0..2 {
            let beginning = message.beginning().expect("it is short");
            let mut restored = Message::restore_beginning(&beginning).unwrap();
            let rest = restored.restore_rest(BodyId(NonZeroU64::MIN), None, None);
            assert_eq!((rest, restored.size()), (Some(()), size));
            assert_eq!(restored.missing().is_some(), is_missing);
            assert!(restored.fill(payload.clone()));
            assert_eq!(
                Delivered::of(&restored, &plain()).bytes,
                Delivered::of(&kept(body), &plain()).bytes
            );
            message.drop_body();
        }
    }
    let long = application(&[&string("key"), &string(&"v".repeat(5000))]);
    let long = parse([properties("id"), long, data(b"body")].concat());
    assert!(long.unwrap().beginning().is_none());
}
