//! Instants on the wire while the namespace's clock is ahead: in the client's frame, so that what is left of
//! a lock or a life is true for it (decision D20).

use serde_amqp::Value;
use serde_amqp::primitives::Array;

use crate::support::*;

/// Real time that may pass while a test talks, in milliseconds.
const SLACK: i64 = 20_000;
const HOUR: i64 = 3_600_000;

#[track_caller]
fn assert_about(instant: i64, expected: i64) {
    let off = instant - expected;
    assert!(off.abs() < SLACK, "{instant} is {off} ms off {expected}");
}

#[test]
fn a_client_sees_true_remaining_durations() {
    let bus = Bus::with_queues(&["q"]);
    bus.http.advance(10.0 * 3600.0);
    let mut peer = bus.client();
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("m").ttl(2 * HOUR as u32));
    bus.http.advance(3600.0);
    let receiver = peer.receiver("q");
    let delivery = peer.receive_one(&receiver);
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
fn the_control_api_shows_the_time_of_the_namespace() {
    let bus = Bus::with_queues(&["q"]);
    bus.http.advance(10.0 * 3600.0);
    let mut peer = bus.client();
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("m"));
    let event = bus.http.events("?message_id=m").pop().expect("it was sent");
    let at: jiff::Timestamp = event["at"]
        .as_str()
        .and_then(|at| at.parse().ok())
        .expect("a time");
    assert_about(at.as_millisecond(), client_now() + 10 * HOUR);
}

#[test]
fn tokens_are_judged_by_real_time_however_far_the_clock_is_ahead() {
    let bus = Bus::with_queues(&["q"]);
    let mut early = bus.client();
    bus.http.advance(365.0 * 86_400.0);
    early.sender("q");
    let mut late = bus.client();
    late.sender("q");
}
