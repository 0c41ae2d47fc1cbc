//! A message that was sent before is accepted and dropped (semantics §9).

use crate::support::*;

fn detecting(properties: &str) -> (Bus, Peer, Link) {
    let properties = format!(r#""RequiresDuplicateDetection":true{properties}"#);
    let (bus, peer, sender) = Bus::configured(&queues("", &[("q", &properties)])).with_sender("q");
    (bus, peer, sender)
}

#[test]
fn a_duplicate_is_accepted_and_dropped() {
    let (bus, mut peer, sender) = detecting("");
    peer.send(&sender, &Message::new("a"));
    peer.send(&sender, &Message::new("a").body("another body"));
    let two = batch(&["b", "b", "a"].map(|id| Message::new(id).encode()));
    let id = peer.transfer(&sender, BATCH, false, &two);
    assert_eq!(peer.outcome(&sender, id), Ok(()));
    // Letters have their case, and who has no id is like nobody else.
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

#[test]
fn an_id_is_remembered_for_its_window_even_when_its_message_has_gone() {
    let window = r#","DuplicateDetectionHistoryTimeWindow":"PT1M""#;
    let (bus, mut peer, sender) = detecting(window);
    bus.http.freeze();
    peer.send(&sender, &Message::new("a"));
    let delivery = peer.receive_from("q");
    peer.complete(&delivery);
    bus.http.advance(58.0);
    peer.send(&sender, &Message::new("a"));
    assert_eq!(bus.http.held("q"), (0, 0));
    bus.http.advance(3.0);
    peer.send(&sender, &Message::new("a"));
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn what_is_scheduled_takes_part() {
    let (bus, mut peer, sender) = detecting("");
    let node = peer.node("q/$management");
    let later = |id| Message::new(id).scheduled_at(client_now() + 3_600_000);
    peer.send(&sender, &Message::new("a"));
    let reply = peer.call(
        &node,
        "schedule-message",
        schedule(&[later("a"), later("b")]),
    );
    assert_eq!(scheduled(&reply).len(), 2);
    peer.send(&sender, &Message::new("b"));
    assert_eq!(bus.http.numbers("q", ["active", "scheduled"]), [1, 1]);
    bus.http.advance(3601.0);
    assert_eq!(ids(&peer.peek_all(&node)), ["a", "b"]);
}
