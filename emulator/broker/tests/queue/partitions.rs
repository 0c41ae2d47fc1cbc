//! Sequence numbers with a partition (semantics §15, §17.1; decision D18).

use servicebus_broker::{CancelError, ReceiveDeferredError, SendError, SequenceNumber, SubQueue};

use crate::bus::{Bus, MessageBuilder, START, ids, message, rules, secs};

fn bus() -> Bus {
    rules().partitioned().bus()
}

fn partition(number: SequenceNumber) -> u64 {
    number.0 >> 48
}

fn place(number: SequenceNumber) -> u64 {
    number.0 & ((1 << 48) - 1)
}

#[test]
fn sequence_numbers_have_the_partition_in_their_upper_bits() {
    let mut bus = bus();
    let messages: Vec<MessageBuilder> = (0..64).map(|n| message(&n.to_string())).collect();
    let numbers: Vec<_> = messages.iter().map(|l| bus.post(l).unwrap()).collect();
    assert!(numbers.iter().copied().map(place).eq(1..=64));
    let mut partitions: Vec<_> = numbers.into_iter().map(partition).collect();
    assert!(partitions[..16].iter().eq(&partitions[16..32]), "in turn");
    partitions.sort_unstable();
    partitions.dedup();
    assert_eq!(partitions, (0..16).collect::<Vec<_>>());
}

#[test]
fn sequence_numbers_of_a_plain_queue_have_no_partition() {
    let mut bus = crate::bus::bus();
    let number = bus.post(&message("a").partition_key("k")).unwrap();
    assert_eq!(number, SequenceNumber(1));
}

#[test]
fn equal_partition_keys_and_session_ids_share_a_partition() {
    let mut bus = bus();
    let messages = [
        message("a").partition_key("k"),
        message("b").session("k"),
        message("c").session("k").partition_key("k"),
    ];
    let partitions = messages.map(|message| partition(bus.post(&message).unwrap()));
    assert!(partitions.iter().all(|p| *p == partitions[0]));
    let keys = (0..50).map(|key| message("d").partition_key(&key.to_string()));
    let others: Vec<_> = keys.map(|l| partition(bus.post(&l).unwrap())).collect();
    assert!(others.iter().any(|p| *p != partitions[0]));
}

#[test]
fn the_message_id_is_the_partition_key_with_duplicate_detection() {
    let mut bus = rules().partitioned().duplicate_detection(secs(20)).bus();
    let first = bus.send("a");
    bus.advance(secs(20));
    let second = bus.send("a");
    assert_eq!(partition(first), partition(second));
}

#[test]
fn session_and_partition_key_must_not_differ() {
    for mut bus in [bus(), crate::bus::bus()] {
        let torn = message("a").session("s").partition_key("k");
        let refused = bus.post(&torn).unwrap_err();
        assert!(matches!(refused, SendError::KeysDiffer { .. }));
        assert!(bus.post_all(&[message("b"), torn]).is_err());
        assert!(bus.queued().is_empty());
    }
}

#[test]
fn a_batch_has_one_partition_key_and_one_partition() {
    let mut bus = bus();
    let mixed = [
        message("a").partition_key("x"),
        message("b").partition_key("y"),
    ];
    let refused = bus.post_all(&mixed).unwrap_err();
    let expected = SendError::BatchKeysDiffer("x".into(), "y".into());
    assert_eq!(refused, expected);
    let mut detecting = rules().partitioned().duplicate_detection(secs(20)).bus();
    let refused = detecting.post_all(&["a", "b"].map(message)).unwrap_err();
    let text = refused.to_string();
    assert!(
        text.starts_with("Batching brokered messages with distinct SessionId, PartitionKey or"),
        "{text}"
    );
    assert!(bus.queued().is_empty());
    for messages in [
        ["a", "b", "c"].map(message),
        ["a", "b", "c"].map(|id| message(id).partition_key("x")),
        ["a", "b", "c"].map(|id| message(id).session("x")),
    ] {
        let numbers = bus.post_all(&messages).unwrap();
        assert!(
            numbers
                .iter()
                .all(|n| partition(*n) == partition(numbers[0]))
        );
    }
}

#[test]
fn partitioned_sequence_numbers_appear_in_peeks_and_deliveries() {
    let mut bus = bus();
    let number = bus.post(&message("a").partition_key("key")).unwrap();
    assert_ne!(partition(number), 0, "otherwise this shows nothing");
    let (peeked, _) = bus.peek(SubQueue::Active).remove(0);
    assert_eq!(peeked.sequence_number, number);
    assert_eq!(peeked.enqueued_sequence_number, None);
    let (_, delivery) = bus.receive_first();
    assert_eq!(delivery.broker_properties.sequence_number, number);
    bus.dead_letter(&delivery).unwrap();
    let (properties, ..) = bus.the_dead_letter();
    assert_eq!(partition(properties.sequence_number), partition(number));
    assert_eq!(properties.enqueued_sequence_number, Some(number));
}

#[test]
fn deferred_messages_need_sequence_numbers_with_the_partition() {
    let mut bus = bus();
    bus.post(&message("a").partition_key("key").time_to_live(secs(10)))
        .unwrap();
    let number = bus.defer_next();
    let bare = SequenceNumber(place(number));
    assert_ne!(bare, number);
    assert!(bus.receive_deferred(&[bare]).is_err());
    let taken = bus.receive_deferred(&[number]).unwrap();
    assert_eq!(ids(&taken), ["a"]);
    bus.abandon(&taken[0]).unwrap();
    bus.advance(secs(20));
    assert!(bus.receive_deferred(&[bare]).is_err());
    assert_eq!(bus.queued(), ["a"], "no client has asked for it");
}

#[test]
fn deferred_messages_of_one_request_share_a_partition() {
    let mut bus = bus();
    for (id, key) in [("a", "one"), ("b", "one"), ("c", "two")] {
        bus.post(&message(id).partition_key(key)).unwrap();
    }
    let [a, b, c] = [(); 3].map(|()| bus.defer_next());
    assert_ne!(partition(a), partition(c), "otherwise this shows nothing");
    let refused = bus.receive_deferred(&[a, b, c]).unwrap_err();
    assert_eq!(refused, ReceiveDeferredError::DifferentPartitions);
    assert_eq!(ids(&bus.receive_deferred(&[a, b]).unwrap()), ["a", "b"]);
}

#[test]
fn cancelling_needs_sequence_numbers_with_the_partition() {
    let mut bus = bus();
    let at = START + secs(60);
    let number = bus
        .post(&message("a").partition_key("key").scheduled_at(at))
        .unwrap();
    let bare = SequenceNumber(place(number));
    let refused = bus.cancel(&[bare]);
    assert_eq!(refused, Err(CancelError::NotFound(vec![bare])));
    assert_eq!(bus.cancel(&[number]), Ok(()));
}

#[test]
fn a_scheduled_message_stays_in_its_partition() {
    let mut bus = bus();
    let at = START + secs(60);
    let number = bus
        .post(&message("a").partition_key("key").scheduled_at(at))
        .unwrap();
    bus.advance(secs(60));
    let (properties, _) = bus.peek(SubQueue::Active).remove(0);
    assert_ne!(properties.sequence_number, number);
    assert_eq!(partition(properties.sequence_number), partition(number));
}

#[test]
fn a_peek_continues_after_the_last_sequence_number() {
    let mut bus = bus();
    for id in ["a", "b", "c"] {
        bus.send(id);
    }
    let mut seen = Vec::new();
    let mut from = 0;
    while let Some((properties, message)) = bus.peek_from(SubQueue::Active, from, 1).pop() {
        seen.push(message.id().into_owned());
        from = properties.sequence_number.0 + 1;
    }
    assert_eq!(seen, ["a", "b", "c"]);
}

#[test]
fn a_forwarded_message_gets_a_partition_of_its_target() {
    let mut world = crate::world::World::new();
    world.declare("b", rules().partitioned());
    world.declare("a", rules().forward_to("b"));
    let keyed = message("1").partition_key("key");
    let number = world.post("a", &keyed).unwrap();
    assert_eq!(partition(number), 0);
    let (properties, _) = world.the_only("b", SubQueue::Active);
    assert_ne!(partition(properties.sequence_number), 0);
    assert_eq!(properties.enqueued_sequence_number, Some(number));
}
