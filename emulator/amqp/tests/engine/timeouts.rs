//! Heartbeats and silence.
//!
//! What the engine refuses itself has an id by which log and peer mean the same thing.

use std::time::Duration;

use serde_amqp::Value;
use servicebus_amqp::{Config, Event};

use crate::peer::*;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn heartbeats_are_sent_at_half_the_idle_timeout_of_the_peer() {
    let mut peer = Peer::with(
        Config::default(),
        &[Value::Null, Value::Null, uint(30_000)],
        5000,
    );
    assert_eq!(peer.connection.next_timeout(), Some(seconds(15)));
    peer.connection.handle_timeout(seconds(14));
    assert!(peer.output().is_empty());
    peer.connection.handle_timeout(seconds(15));
    assert_eq!(peer.output(), [0, 0, 0, 8, 2, 0, 0, 0]);
    assert_eq!(peer.connection.next_timeout(), Some(seconds(30)));
    peer.connection.handle_timeout(seconds(31));
    peer.connection.handle_timeout(seconds(50));
    assert_eq!(peer.output().len(), 8, "they do not pile up");
}

#[test]
fn a_peer_without_an_idle_timeout_gets_no_heartbeats() {
    let peer = Peer::with(
        Config::default(),
        &[Value::Null, Value::Null, uint(0)],
        5000,
    );
    assert_eq!(peer.connection.next_timeout(), Some(seconds(240)));
}

#[test]
fn a_silent_peer_is_closed_after_the_idle_timeout() {
    let mut peer = Peer::new();
    peer.now = seconds(100);
    peer.send(&[0, 0, 0, 8, 2, 0, 0, 0]);
    assert_eq!(peer.connection.next_timeout(), Some(seconds(340)));
    peer.connection.handle_timeout(seconds(339));
    assert!(peer.output().is_empty());
    peer.connection.handle_timeout(seconds(340));
    peer.assert_closed_with("amqp:connection:forced");
    assert!(!peer.connection.is_closed(), "an answer may come");
    let timeout = peer.connection.next_timeout().unwrap();
    assert_eq!(timeout, seconds(345));
    peer.connection.handle_timeout(timeout);
    assert!(peer.connection.is_closed());
    assert_eq!(peer.connection.next_timeout(), None);
}

#[test]
fn a_peer_whose_input_waits_to_be_received_is_not_silent() {
    let mut peer = Peer::new();
    assert!(!peer.connection.is_silent(seconds(239)));
    assert!(peer.connection.is_silent(seconds(240)));
    peer.connection.record_input(seconds(240));
    peer.connection.handle_timeout(seconds(240));
    assert!(peer.output().is_empty());
    assert_eq!(peer.connection.next_timeout(), Some(seconds(480)));
}

#[test]
fn a_frame_that_stays_incomplete_ends_the_silence_once() {
    let mut peer = Peer::new();
    for (now, input, silent) in [
        (10, &[0, 0, 0, 8][..], 250),
        (20, &[], 250),
        (30, &[2], 270),
        (40, &[0, 0, 0], 280),
    ] {
        peer.now = seconds(now);
        peer.send(input);
        assert_eq!(peer.connection.next_timeout(), Some(seconds(silent)));
    }
}

#[test]
fn an_idle_timeout_before_the_open_closes_without_a_frame() {
    let mut peer = Peer::silent(Config::default());
    peer.connection.handle_timeout(seconds(240));
    assert!(peer.connection.is_closed());
    assert!(peer.output().is_empty());
    assert_eq!(peer.events().len(), 1);
}

#[test]
fn a_timeout_during_the_handshake_sends_open_and_close() {
    let mut peer = Peer::silent(Config::default());
    peer.send(AMQP_HEADER);
    peer.connection.handle_timeout(seconds(240));
    let output = peer.output();
    assert_eq!(codes(&split(&output)), [OPEN, CLOSE]);
}

fn tracked() -> Peer {
    let config = Config {
        tracking_id: "t-1".into(),
        ..Config::default()
    };
    Peer::with(config, &[], 5000)
}

#[test]
fn an_engine_error_has_a_tracking_id_and_is_reported_to_the_owner() {
    let mut peer = tracked();
    peer.transfer(&transfer(9, Some(1), false, false), b"x");
    let Some(Event::Refused(refused)) = peer.connection.poll_event() else {
        panic!("the owner is told");
    };
    assert_eq!(refused.condition, "amqp:session:unattached-handle");
    assert!(
        refused.description.ends_with(" TrackingId:t-1"),
        "{refused:?}"
    );
    let error = peer.only().refusal(0);
    assert_eq!(
        (error.condition, error.text),
        (refused.condition.into_owned(), refused.description)
    );
}

#[test]
fn the_error_for_an_unknown_delivery_has_a_tracking_id() {
    let mut peer = tracked();
    peer.receiver(1);
    peer.dispose(5, 5, false, accepted());
    let Some(Event::Refused(refused)) = peer.connection.poll_event() else {
        panic!("the owner is told");
    };
    assert!(
        refused.description.ends_with(" TrackingId:t-1"),
        "{refused:?}"
    );
}
