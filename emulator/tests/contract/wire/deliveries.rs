//! The contents of a delivery (wire.md §4.2, §7.1).

use serde_amqp::Value;

use crate::support::*;

#[test]
fn the_lock_token_is_the_delivery_tag_and_an_annotation() {
    let (_bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    for number in 0..20 {
        peer.send(&sender, &Message::new(&number.to_string()));
    }
    let receiver = peer.receiver("q");
    let mut tokens = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let delivery = peer.receive_one(&receiver);
        assert!(!delivery.settled);
        // The tag in the order of .NET, the annotation in network order.
        assert_eq!(delivery.message.lock_token(), Some(delivery.token()));
        assert!(tokens.insert(delivery.token()), "a token came twice");
    }
}

#[test]
fn a_receive_and_delete_delivery_has_a_tag_and_no_lock() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    peer.send(&sender, &Message::new("a"));
    peer.send(&sender, &Message::new("b"));
    let receiver = peer.attached(&Attach::deleting("q"));
    for id in ["a", "b"] {
        let delivery = peer.receive_one(&receiver);
        assert_eq!(
            (delivery.id().as_str(), delivery.settled, delivery.tag.len()),
            (id, true, 16)
        );
        assert_eq!(delivery.message.lock_token(), None);
        assert_eq!(
            delivery.message.annotation("x-opt-locked-until"),
            Value::Null
        );
        // Rust, .NET and Java settle it all the same, which must be harmless.
        peer.dispose(0, delivery.id, delivery.id, true, accepted());
    }
    peer.assert_no_frame(|frame| frame.code == DETACH);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_delivery_has_the_header_and_annotations_that_sdks_read() {
    let (_bus, mut peer, sender) =
        Bus::with_queue(r#""DefaultMessageTimeToLive":"PT1H""#).with_sender("q");
    let sent = Message::new("m")
        .ttl(600_000)
        .property(9, timestamp(1_000))
        .application("kept", text("as it was"))
        .body(*b"\x00\xffbody");
    peer.send(&sender, &sent);
    let message = peer.receive_from("q").message;
    assert_eq!(message.header(0), Value::Null, "durable");
    assert_eq!(message.header(2), uint(600_000), "ttl");
    assert_eq!(message.header(4), uint(0), "delivery-count");
    assert_eq!(message.annotation("x-opt-sequence-number"), long(1));
    let enqueued = message.instant("x-opt-enqueued-time");
    assert_eq!(
        message.instant("x-opt-locked-until"),
        enqueued_lock(&message, enqueued)
    );
    assert_eq!(message.property(8), Value::Null, "absolute-expiry-time");
    assert_eq!(message.property(9), timestamp(1_000), "creation-time");
    assert_eq!(message.application("kept"), text("as it was"));
    assert_eq!(message.data(), b"\x00\xffbody");
}

/// The annotations of a delivery, by name, and the number of its delivery annotations, if it has such a section.
fn annotations(message: &Received) -> (Vec<String>, Option<usize>) {
    let map = |code| match message.section(code) {
        Some(Value::Map(map)) => Some(map.clone()),
        _ => None,
    };
    let names = map(0x72).into_iter().flatten().map(|(name, _)| match name {
        Value::Symbol(name) => name.to_string(),
        other => panic!("{other:?} is not a symbol"),
    });
    (names.collect(), map(0x71).map(|map| map.len()))
}

#[test]
fn o3_o4_a_message_at_its_first_entity_has_exactly_these_annotations() {
    let (_bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let keyed = |id: &str| Message::new(id).annotation("x-opt-partition-key", text("key"));
    for id in ["locked", "removed"] {
        peer.send(&sender, &keyed(id));
    }
    let expected = |names: &[&str]| {
        let names = names.iter().map(|name| format!("x-opt-{name}"));
        names.collect::<Vec<_>>()
    };
    let receiver = peer.receiver("q");
    let (names, tokens) = annotations(&peer.receive_one(&receiver).message);
    let locked = [
        "partition-key",
        "enqueued-time",
        "sequence-number",
        "locked-until",
    ];
    assert_eq!((names, tokens), (expected(&locked), Some(1)));
    let receiver = peer.attached(&Attach::deleting("q"));
    let (names, tokens) = annotations(&peer.receive_one(&receiver).message);
    let removed = ["partition-key", "enqueued-time", "sequence-number"];
    assert_eq!((names, tokens), (expected(&removed), Some(0)));
}

/// The lock begins when the message is taken, some milliseconds after it was enqueued.
fn enqueued_lock(message: &Received, enqueued: i64) -> i64 {
    let until = message.instant("x-opt-locked-until");
    let taken = until - 60_000;
    assert!(
        (enqueued..enqueued + 30_000).contains(&taken),
        "{taken} is long after {enqueued}"
    );
    until
}

#[test]
fn large_messages_are_split_by_the_frame_size_of_the_receiver() {
    let bus = Bus::with_queues(&["q"]);
    let body: Vec<u8> = (0..200_000_u32).map(|number| number as u8).collect();
    let (mut sender, link) = bus.sender("q");
    for max_frame_size in [512, 4096, 65_536, 1_048_576] {
        sender.send(&link, &Message::new("large").body(body.clone()));
        let mut peer = bus.client_as(&Open {
            rest: vec![uint(max_frame_size)],
            ..Open::default()
        });
        let delivery = peer.receive_from("q");
        assert_eq!(delivery.message.data(), body);
        assert!(delivery.frame_size <= max_frame_size as usize);
        assert!(delivery.frame_size <= 65_536);
        peer.complete(&delivery);
    }
}
