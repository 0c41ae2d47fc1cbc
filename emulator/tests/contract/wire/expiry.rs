//! When an expired message is removed (decision D1).
//!
//! Instants on the wire while the namespace's clock is ahead: in the client's time, so that the remaining time of a lock or
//! a message is right (decision D20).
//!
//! A message that was sent before is accepted and dropped (semantics §9).

use serde_amqp::Value;
use serde_amqp::primitives::Array;

use crate::support::*;

#[test]
fn the_earliest_expiry_takes_place_at_its_instant() {
    let properties = r#""DeadLetteringOnMessageExpiration":true"#;
    let config = queues("", &[("q", properties), ("other", "")]);
    let (bus, mut peer) = Bus::configured(&config).with_client();
    bus.http.freeze();
    // The first entity with deadlines is checked each time, and its stale deadline corrected.
    peer.send_to("other", &Message::new("between").ttl(30_000));
    let receiver = peer.receiver("q/$DeadLetterQueue");
    peer.credit(&receiver, 2);
    peer.send_to("q", &Message::new("later").ttl(60_000));
    peer.send_to("q", &Message::new("sooner").ttl(10_000));
    // No request looks at the queue before it is dead-lettered.
    bus.http.advance(10.0);
    assert_eq!(peer.receive(&receiver).message.id(), "sooner");
}

/// Real time that may pass while a test talks, in milliseconds.
const SLACK: i64 = 20_000;
const HOUR: i64 = 3_600_000;

#[track_caller]
fn assert_about(instant: i64, expected: i64) {
    let off = instant - expected;
    assert!(off.abs() < SLACK, "{instant} is {off} ms off {expected}");
}

#[test]
fn clients_see_correct_remaining_durations_after_an_advance() {
    let bus = Bus::with_queues(&["q"]);
    bus.http.advance(10.0 * 3600.0);
    let mut peer = bus.client();
    peer.send_to("q", &Message::new("m").ttl(2 * HOUR as u32));
    bus.http.advance(3600.0);
    let delivery = peer.receive_from("q");
    let message = &delivery.message;
    let now = client_now();
    assert_about(message.instant("x-opt-enqueued-time"), now - HOUR);
    assert_about(message.instant("x-opt-locked-until"), now + 60_000);
    assert_eq!(
        message.header(2),
        uint(2 * HOUR as u32),
        "since it was enqueued"
    );

    let node = peer.node("q/$management");
    let tokens = Value::Array(Array(vec![uuid(delivery.token())]));
    let reply = peer.call(&node, "renew-lock", map([(text("lock-tokens"), tokens)]));
    let Value::Array(Array(ends)) = reply.field("expirations") else {
        panic!("no expirations: {reply:?}");
    };
    let Value::Timestamp(end) = &ends[0] else {
        panic!("no instant: {ends:?}");
    };
    assert_about(end.milliseconds(), now + 60_000);
}

#[test]
fn tokens_are_validated_in_real_time_after_an_advance() {
    let (bus, mut early) = Bus::with_queues(&["q"]).with_client();
    bus.http.advance(365.0 * 86_400.0);
    early.sender("q");
    let mut late = bus.client();
    late.sender("q");
}

fn detecting(properties: &str) -> (Bus, Peer, Link) {
    let properties = format!(r#""RequiresDuplicateDetection":true{properties}"#);
    let (bus, peer, sender) = Bus::with_queue(&properties).with_sender("q");
    (bus, peer, sender)
}

#[test]
fn a_duplicate_is_accepted_and_dropped() {
    let (bus, mut peer, sender) = detecting("");
    peer.send(&sender, &Message::new("a"));
    peer.send(&sender, &Message::new("a").body("another body"));
    let two = batch(&["b", "b", "a"].map(|id| Message::new(id).encode()));
    assert_eq!(peer.post(&sender, BATCH, &two), Ok(()));
    // Ids are case-sensitive, and a message without one is not a duplicate.
    peer.send(&sender, &Message::new("A"));
    peer.send(&sender, &Message::default().body("x"));
    peer.send(&sender, &Message::default().body("x"));
    assert_eq!(bus.http.held("q"), (5, 0));
    let node = peer.node("q/$management");
    assert_eq!(ids(&peer.peek_all(&node))[..3], ["a", "b", "A"]);
    let dropped = bus.http.timeline("?entity=q")["counters"]["duplicate-dropped"].clone();
    assert_eq!(dropped, 3);
    // Nothing else in the record is taken for one of them.
    peer.send_in_vain(&sender, b"no message");
    let named = |kind: &str| -> Vec<String> {
        let events = bus.http.events("?entity=q");
        let of_kind = events.iter().filter(|event| event["kind"] == kind);
        of_kind
            .map(|event| event["message_id"].as_str().unwrap_or("none").to_owned())
            .collect()
    };
    assert_eq!(named("duplicate-dropped"), ["a", "b", "a"]);
    assert_eq!(named("refused"), ["none"]);
}
