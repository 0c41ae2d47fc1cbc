//! Deferred messages, received by sequence number (semantics §7, wire.md §6.2).

use serde_amqp::Value;

use crate::support::*;

const NOT_FOUND: &str = "com.microsoft:message-not-found";

/// A queue with these messages, the first of them deferred over a link.
fn deferring(ids: &[&str]) -> (Bus, Peer, Node) {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    for id in ids {
        peer.send(&sender, &Message::new(id));
    }
    let receiver = peer.receiver("q");
    let delivery = peer.receive_one(&receiver);
    let answer = peer.settle(&delivery, deferred());
    let (code, fields) = described_list(&answer);
    assert_eq!(
        (code, &fields[1]),
        (0x27, &Value::Bool(true)),
        "the same outcome"
    );
    peer.detach(&receiver);
    let node = peer.node("q/$management");
    (bus, peer, node)
}

fn fetch(peer: &mut Peer, node: &Node, wanted: &[i64], mode: u32) -> Reply {
    let body = receive_by(wanted, mode);
    peer.call(node, "receive-by-sequence-number", body)
}

#[test]
fn a_deferred_message_is_fetched_by_sequence_number_under_a_lock() {
    let (bus, mut peer, node) = deferring(&["a", "b"]);
    let fetched = received(&fetch(&mut peer, &node, &[1], 1));
    let [(token, message)] = fetched.as_slice() else {
        panic!("{fetched:?}");
    };
    assert_eq!(message.id(), "a");
    assert_eq!(message.lock_token(), Some(*token), "Go reads it from there");
    assert_eq!(message.annotation("x-opt-message-state"), Value::Int(1));
    assert_eq!(message.annotation("x-opt-sequence-number"), long(1));
    assert_eq!(message.header(4), uint(1), "observed 10");
    let until = message.instant("x-opt-locked-until");
    assert!((until - client_now() - 60_000).abs() < 20_000, "{until}");
    assert_eq!(bus.http.counts("q")["locked"], 1);
    // Locked, not deferred, unknown, named twice: all or none.
    peer.settle_by_token(&node, "defered", *token);
    for wanted in [vec![2], vec![1, 2], vec![1, 99], vec![1, 1]] {
        for mode in [0, 1] {
            let reply = fetch(&mut peer, &node, &wanted, mode);
            let words = refused_with(&reply, 404, NOT_FOUND);
            assert_eq!(
                words,
                "Failed to lock one or more specified messages. Either the message is already locked or \
                 does not exist."
            );
        }
    }
    received(&fetch(&mut peer, &node, &[1], 1));
    refused_with(&fetch(&mut peer, &node, &[1], 1), 404, NOT_FOUND);
    bus.http.advance(61.0);
    let again = received(&fetch(&mut peer, &node, &[1], 1));
    assert_eq!(
        again[0].1.header(4),
        uint(3),
        "the lock ended, it stayed deferred"
    );
    assert_ne!(again[0].0, *token);
}

#[test]
fn a_deferred_message_can_be_received_and_deleted() {
    let (bus, mut peer, node) = deferring(&["a"]);
    let fetched = received(&fetch(&mut peer, &node, &[1], 0));
    assert_eq!(fetched[0].1.id(), "a");
    assert_eq!(bus.http.held("q"), (0, 0));
    let body = disposition("completed", &[fetched[0].0]);
    assert_lock_lost(&peer.call(&node, "update-disposition", body));
}

#[test]
fn a_deferral_by_lock_token_may_change_properties() {
    let (_bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    peer.send(
        &sender,
        &Message::new("a").application("step", Value::Int(1)),
    );
    let receiver = peer.receiver("q");
    let held = peer.receive_one(&receiver);
    let node = peer.node("q/$management");
    let changes = map([(text("step"), Value::Int(2))]);
    let body = map([
        (text("disposition-status"), text("defered")),
        tokens(&[held.token()]),
        (text("properties-to-modify"), changes),
    ]);
    assert_eq!(peer.call(&node, "update-disposition", body).status(), 200);
    let fetched = received(&fetch(&mut peer, &node, &[1], 1));
    assert_eq!(fetched[0].1.application("step"), Value::Int(2));
    // And over a link, in the annotations of the outcome.
    peer.settle_by_token(&node, "completed", fetched[0].0);
    peer.send(&sender, &Message::new("b"));
    let held = peer.receive_one(&receiver);
    let changes = map([(symbol("step"), Value::Int(3))]);
    let outcome = composite(0x27, [Value::Bool(true), Value::Bool(true), changes]);
    let answer = peer.settle(&held, outcome);
    assert!(
        described_list(&answer)
            .1
            .get(2)
            .is_none_or(|own| own == &Value::Null),
        "{answer:?}"
    );
    let fetched = received(&fetch(&mut peer, &node, &[2], 1));
    assert_eq!(fetched[0].1.application("step"), Value::Int(3));
}

#[test]
fn dead_letters_can_be_deferred() {
    let (bus, mut peer, node) = deferring(&["a"]);
    let fetched = received(&fetch(&mut peer, &node, &[1], 1));
    peer.settle_by_token(&node, "suspended", fetched[0].0);
    let dead = peer.receive_from("q/$DeadLetterQueue");
    peer.settle(&dead, deferred());
    refused_with(&fetch(&mut peer, &node, &[1], 1), 404, NOT_FOUND);
    let node = peer.node("q/$DeadLetterQueue/$management");
    let fetched = received(&fetch(&mut peer, &node, &[1], 1));
    peer.settle_by_token(&node, "completed", fetched[0].0);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn receiving_deferred_messages_needs_numbers_and_a_settle_mode() {
    let (_bus, mut peer, node) = deferring(&["a"]);
    let mode = |mode: Value| (text("receiver-settle-mode"), mode);
    for body in [
        map([numbers(&[1])]),
        map([mode(uint(1))]),
        map([numbers(&[]), mode(uint(1))]),
        map([numbers(&[1]), mode(uint(2))]),
        map([numbers(&[1]), mode(text("1"))]),
    ] {
        let reply = peer.call(&node, "receive-by-sequence-number", body);
        refused_with(&reply, 400, "com.microsoft:argument-error");
    }
}

/// All SDKs name the link for which they ask (wire.md §6.2).
#[test]
fn deferred_messages_fetched_for_a_link_are_released_with_its_locks() {
    for (setting, locked) in [("keep", 1), ("release", 0)] {
        let setting = format!(r#""LocksOnDetach":"{setting}""#);
        let (bus, mut peer) = Bus::configured(&queues(&setting, &[("q", "")])).with_client();
        peer.send_to("q", &Message::new("a"));
        let receiver = peer.attached(&Attach::receiver("q").named("r"));
        let delivery = peer.receive_one(&receiver);
        peer.settle(&delivery, deferred());
        let node = peer.node("q/$management");
        let request = Message::request(text("r"), text(&node.reply_to), receive_by(&[1], 1))
            .application(
                "operation",
                text("com.microsoft:receive-by-sequence-number"),
            )
            .application("associated-link-name", text("r"));
        assert_eq!(received(&peer.ask(&node, &request)).len(), 1);
        peer.detach(&receiver);
        assert_eq!(bus.http.counts("q")["locked"], locked, "{setting}");
        assert_eq!(bus.http.counts("q")["deferred"], 1, "{setting}");
    }
}
