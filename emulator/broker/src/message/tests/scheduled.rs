//! Keys that determine the partition of a message, and its scheduled time.

use servicebus_codec::Value;

use super::*;

const NAME: &str = "x-opt-scheduled-enqueue-time";
const NOT_SET: i64 = -62_135_596_800_000;

fn annotated(items: &[&[u8]]) -> Vec<u8> {
    let annotations = section(sections::MESSAGE_ANNOTATIONS, &map(items));
    [annotations, properties("id"), data(b"body")].concat()
}

fn timestamp(milliseconds: i64) -> Vec<u8> {
    encoded(|out| out.timestamp(milliseconds))
}

fn scheduled(milliseconds: i64) -> Vec<u8> {
    let (before, after) = (symbol("before"), symbol("after"));
    let entries: [&[u8]; 6] = [
        &before,
        &list(&[&string("x")]),
        &symbol(NAME),
        &timestamp(milliseconds),
        &after,
        &encoded(|out| out.uint(3)),
    ];
    annotated(&entries)
}

fn at(milliseconds: i64) -> Option<Timestamp> {
    Some(Timestamp::from_millis(milliseconds))
}

#[test]
fn the_session_id_is_the_group_id() {
    let with = |group: &[u8]| {
        let null = null();
        let mut fields = vec![null.as_slice(); 11];
        fields[10] = group;
        parse(section(sections::PROPERTIES, &list(&fields))).unwrap()
    };
    assert_eq!(with(&string("s-1")).session_id().as_deref(), Some("s-1"));
    assert_eq!(with(&string("")).session_id().as_deref(), Some(""));
    assert_eq!(with(&null()).session_id(), None);
    assert_eq!(parse(properties("id")).unwrap().session_id(), None);
    let message = parse(data(b"no properties were sent")).unwrap();
    assert_eq!(message.session_id(), None);
}

#[test]
fn the_partition_key_is_an_annotation() {
    let with = |key: &[u8]| parse(annotated(&[&symbol("x-opt-partition-key"), key])).unwrap();
    assert_eq!(with(&string("p")).partition_key().as_deref(), Some("p"));
    assert_eq!(with(&null()).partition_key(), None);
    assert_eq!(parse(properties("id")).unwrap().partition_key(), None);
}

#[test]
fn a_partition_key_is_a_string() {
    for name in ["x-opt-partition-key", "x-opt-via-partition-key"] {
        for other in [encoded(|out| out.long(5)), symbol("p"), list(&[])] {
            let refused = parse(annotated(&[&symbol(name), &other])).unwrap_err();
            assert_eq!(refused, MessageError::PartitionKey(name));
        }
    }
}

#[test]
fn the_scheduled_time_is_an_annotation() {
    assert_eq!(parse(scheduled(5)).unwrap().scheduled_at(), at(5));
    assert_eq!(parse(scheduled(NOT_SET)).unwrap().scheduled_at(), None);
    let null = parse(annotated(&[&symbol(NAME), &null()])).unwrap();
    assert_eq!(null.scheduled_at(), None);
    assert_eq!(parse(properties("id")).unwrap().scheduled_at(), None);
}

#[test]
fn a_scheduled_time_is_a_timestamp() {
    for other in [string("2026"), encoded(|out| out.long(5)), list(&[])] {
        let refused = parse(annotated(&[&symbol(NAME), &other])).unwrap_err();
        assert_eq!(refused, MessageError::ScheduledTime);
    }
}

#[test]
fn scheduled_times_are_converted_to_namespace_time_and_back() {
    let mut message = parse(scheduled(5_000)).unwrap();
    let size = message.size();
    message.shift_to_namespace_time(100);
    assert_eq!(message.scheduled_at(), at(5_100));
    assert_eq!(*message.payload, *scheduled(5_100), "nothing else changed");
    assert_eq!(message.size(), size);
    for (ahead, seen) in [(0, 5_100), (100, 5_000), (300, 4_800)] {
        let delivered = Delivered::ahead(&message, &plain(), ahead);
        let entries = delivered.message_annotations();
        assert_eq!(entries[1], (&*symbol(NAME), &*timestamp(seen)));
        assert_eq!(entries[0].1, list(&[&string("x")]));
        assert_eq!(entries[2].1, encoded(|out| out.uint(3)));
    }
}

#[test]
fn an_unset_scheduled_time_is_not_converted() {
    let mut message = parse(scheduled(NOT_SET)).unwrap();
    message.shift_to_namespace_time(100);
    assert_eq!(*message.payload, *scheduled(NOT_SET));
    let delivered = Delivered::ahead(&message, &plain(), 100);
    assert_eq!(delivered.message_annotations()[1].1, timestamp(NOT_SET));
}

#[test]
fn converting_extreme_scheduled_times_does_not_overflow() {
    for (instant, ahead, entered) in [(i64::MAX, 5, i64::MAX), (i64::MIN, -5, i64::MIN)] {
        let mut message = parse(scheduled(instant)).unwrap();
        message.shift_to_namespace_time(ahead);
        assert_eq!(message.scheduled_at(), at(entered));
        Delivered::ahead(&message, &plain(), ahead);
    }
}

#[test]
fn converting_a_scheduled_time_leaves_shared_bytes_unchanged() {
    let payload = Bytes::from([scheduled(5), vec![]].concat());
    let mut message = parse(payload.clone()).unwrap();
    let copy = message.clone();
    message.shift_to_namespace_time(1);
    assert_eq!(
        (message.scheduled_at(), copy.scheduled_at()),
        (at(6), at(5))
    );
    assert_eq!(*payload, *scheduled(5));
}

#[test]
fn a_dead_letter_has_the_path_of_its_source_as_annotation() {
    let forged = annotated(&[&symbol("x-opt-deadletter-source"), &string("forged")]);
    let mut message = parse(forged).unwrap();
    let size = message.size();
    for source in ["first", "topic/Subscriptions/sub"] {
        message.set_dead_letter_source(source);
        assert_eq!(message.size(), size + source.len() as u64);
        let delivered = Delivered::of(&message, &plain());
        let sources: Vec<_> = delivered
            .message_annotations()
            .into_iter()
            .filter(|(key, _)| *key == symbol("x-opt-deadletter-source"))
            .map(|(_, value)| Reader::new(value).value().unwrap())
            .collect();
        assert_eq!(sources, [Value::String(source)]);
        assert_eq!(delivered.message_annotations().len(), 4);
    }
}

#[test]
fn jms_schedules_by_its_delivery_time_alone() {
    let name = symbol("x-opt-delivery-time");
    let long = encoded(|out| out.long(1 << 40));
    let message = parse(annotated(&[&name, &long])).unwrap();
    assert_eq!(message.scheduled_at(), at(1 << 40));
    for (key, value) in [
        (symbol("x-opt-other"), long),
        (symbol("x-opt-other"), timestamp(5)),
        (name.clone(), encoded(|out| out.int(1 << 30))),
        (name, timestamp(5)),
    ] {
        let message = parse(annotated(&[&key, &value])).unwrap();
        assert_eq!(message.scheduled_at(), None, "{key:?} {value:?}");
    }
}
