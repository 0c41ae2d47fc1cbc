//! A clock that steps to the next deadline by itself when nothing moves.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::*;

const CLOCK: &str = "/$emulator/v1/namespaces/sbemulatorns/clock";
const FAULTS: &str = "/$emulator/v1/namespaces/sbemulatorns/faults";

fn automate(bus: &Bus) {
    let clock = bus.http.post(&format!("{CLOCK}/auto"), &Value::Null).ok();
    assert_eq!(
        (&clock["auto"], &clock["frozen"]),
        (&json!(true), &json!(true))
    );
}

fn offset(bus: &Bus) -> f64 {
    let clock = bus.http.get(CLOCK).ok();
    clock["offset_seconds"].as_f64().expect("a number")
}

#[test]
fn a_message_whose_receiver_is_gone_comes_again_at_once() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    peer.send(&sender, &Message::new("a"));
    peer.receive_one(&receiver);
    peer.detach(&receiver);
    automate(&bus);
    let again = peer.receiver("q");
    assert_eq!(peer.receive_one(&again).id(), "a");
    assert!((50.0..=60.0).contains(&offset(&bus)), "{}", offset(&bus));
}

#[test]
fn a_lock_whose_holder_is_attached_waits_for_a_second() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    peer.send(&sender, &Message::new("a"));
    automate(&bus);
    peer.receive_one(&receiver);
    let begun = Instant::now();
    assert_eq!(peer.receive_one(&receiver).id(), "a");
    assert!(
        begun.elapsed() > Duration::from_millis(900),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn a_hold_keeps_the_clock_and_ends() {
    let bus = Bus::with_queues(&["q"]);
    automate(&bus);
    let hold = bus
        .http
        .post(&format!("{CLOCK}/hold"), &json!({"seconds": 60}));
    let id = hold.ok()["id"].clone();
    let fault = json!({"operation": "send", "effect": {"delay": {"seconds": 3600}}});
    bus.http.post(FAULTS, &fault).ok();
    let mut peer = bus.client();
    let sender = peer.sender("q");
    let late = peer.transfer(&sender, 0, false, &Message::new("a").encode());
    peer.settle_down();
    assert!(offset(&bus) < 1.0, "it stood");
    let released = bus
        .http
        .request("DELETE", &format!("{CLOCK}/hold/{id}"), None);
    assert_eq!(released.status, 204);
    peer.outcome(&sender, late).expect("it is accepted");
    assert!(offset(&bus) > 3500.0);
    // What was postponed is released when nothing else can happen.
    bus.http
        .post(FAULTS, &json!({"operation": "send", "effect": "postpone"}))
        .ok();
    peer.send(&sender, &Message::new("b"));
}

#[test]
fn messages_do_not_expire_by_themselves() {
    let bus = Bus::configured(&queues(
        "",
        &[("q", r#""DefaultMessageTimeToLive":"PT1M""#)],
    ));
    automate(&bus);
    let mut peer = bus.client();
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("a"));
    let fault = json!({"operation": "send", "effect": {"delay": {"seconds": 30}}});
    bus.http.post(FAULTS, &fault).ok();
    // It has stepped to the delay, and not to the expiry behind it.
    peer.send(&sender, &Message::new("b"));
    peer.settle_down();
    assert_eq!(bus.http.counts("q")["active"], 2);
    bus.http.post(&format!("{CLOCK}/freeze"), &Value::Null).ok();
    let clock = bus.http.get(CLOCK).ok();
    assert_eq!(
        (&clock["auto"], &clock["frozen"]),
        (&json!(false), &json!(true))
    );
}
