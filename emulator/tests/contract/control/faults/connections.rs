//! Connections that do not open, or are slow.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{hits, script};
use crate::support::*;

#[test]
fn a_connection_is_closed_as_soon_as_it_opens() {
    let bus = Bus::with_queues(&["q"]);
    let id = script(
        &bus,
        &json!({"operation": "connect", "effect": {"close": {"description": "not now"}}}),
    );
    let mut peer = Peer::connect(bus.amqp);
    assert_eq!(peer.sasl("ANONYMOUS", b""), 0);
    peer.write(AMQP_HEADER);
    peer.frame(0, OPEN, &[text("a client")]);
    peer.read_header();
    let refusal = peer.closed();
    assert_eq!(
        (refusal.condition.as_str(), refusal.words()),
        ("amqp:connection:forced", "not now")
    );
    assert_eq!(hits(&bus, &id), 1);
    bus.client();
}

#[test]
fn a_connection_is_dropped_without_an_answer() {
    let bus = Bus::with_queues(&["q"]);
    script(
        &bus,
        &json!({"operation": "connect", "client": "unlucky", "effect": "drop"}),
    );
    bus.client_as(&Open::named("lucky"));
    let mut peer = Peer::connect(bus.amqp);
    assert_eq!(peer.sasl("ANONYMOUS", b""), 0);
    peer.write(AMQP_HEADER);
    peer.frame(0, OPEN, &[text("unlucky")]);
    peer.read_to_end();
}

#[test]
fn a_connection_opens_when_the_clock_has_gone_on() {
    let bus = Bus::with_queues(&["q"]);
    let fault = json!({"operation": "connect", "effect": {"delay": {"seconds": 30}}});
    let id = script(&bus, &fault);
    let mut peer = Peer::connect(bus.amqp);
    assert_eq!(peer.sasl("ANONYMOUS", b""), 0);
    peer.write(AMQP_HEADER);
    peer.read_header();
    peer.frame(0, OPEN, &[text("patient")]);
    eventually("the connection is seen", || {
        (hits(&bus, &id) == 1).then_some(())
    });
    bus.http.advance(30.0);
    peer.expect(OPEN);
}

#[test]
fn round_trips_take_their_time_and_lose_nothing() {
    let bus = Bus::with_queues(&["q"]);
    let trip = Duration::from_millis(200);
    let effect = json!({"round-trip": {"seconds": trip.as_secs_f64()}});
    script(
        &bus,
        &json!({"operation": "connect", "every": 1, "effect": effect}),
    );
    let mut peer = bus.client();
    let sender = peer.sender("q");
    let begun = Instant::now();
    peer.send(&sender, &Message::new("1"));
    assert!(begun.elapsed() >= trip);
    let frames: Vec<u8> = (0..200)
        .flat_map(|id| peer.transfer_frame(&sender, true, &Message::new(&id.to_string()).encode()))
        .collect();
    peer.write(&frames);
    peer.send(&sender, &Message::new("last"));
    assert_eq!(bus.http.held("q"), (202, 0));
    let receiver = peer.receiver("q");
    peer.credit(&receiver, 202);
    for _ in 0..202 {
        let delivery = peer.receive(&receiver);
        peer.dispose(0, delivery.id, delivery.id, true, accepted());
    }
    peer.close();
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn nothing_is_read_for_a_while() {
    let bus = Bus::with_queues(&["q"]);
    let effect = json!({"stall": {"seconds": 30, "clock": "virtual"}});
    script(&bus, &json!({"operation": "send", "effect": effect}));
    let mut peer = bus.client();
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("1"));
    let id = peer.transfer(&sender, 0, false, &Message::new("2").encode());
    let mut other = bus.client();
    let elsewhere = other.sender("q");
    other.send(&elsewhere, &Message::new("3"));
    assert_eq!(bus.http.held("q"), (2, 0));
    bus.http.advance(30.0);
    peer.outcome(&sender, id).unwrap();
    assert_eq!(bus.http.held("q"), (3, 0));
}
