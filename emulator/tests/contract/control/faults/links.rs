//! Links and connections that end before an operation or after it, that do not open, or are slow.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{details, hits};
use crate::support::*;

const FORCED: &str = "amqp:link:detach-forced";

fn sending(effect: &Value) -> (Bus, Peer, Link, Value) {
    let bus = Bus::with_queues(&["q"]);
    let id = bus.script(&json!({"operation": "send", "nth": 2, "effect": effect}));
    let (mut peer, sender) = bus.sender("q");
    peer.send(&sender, &Message::new("before"));
    (bus, peer, sender, id)
}

/// Sends two messages in one write; the fate of the first is that of the second, too.
fn send_two(peer: &mut Peer, sender: &Link) {
    let frames =
        ["1", "2"].map(|id| peer.transfer_frame(sender, false, &Message::new(id).encode()));
    peer.try_write(&frames.concat());
}

#[test]
fn a_fault_detaches_a_link_before_or_after_a_send() {
    for (when, stored) in [("before", 1), ("after", 2)] {
        let words = json!({"condition": FORCED, "description": "gone", "when": when});
        let (bus, mut peer, sender, id) = sending(&json!({ "detach": words }));
        send_two(&mut peer, &sender);
        let refusal = peer.detached(&sender).refusal(2);
        assert_eq!(
            (refusal.condition.as_str(), refusal.words()),
            (FORCED, "gone")
        );
        peer.assert_no_frame(|frame| frame.code == DISPOSITION);
        assert_eq!(bus.http.held("q"), (stored, 0), "{when}");
        assert_eq!(hits(&bus, &id), 1);
        let expected = format!("the link was detached with {FORCED} {when} the send");
        assert_eq!(details(&bus, "q"), [expected]);
        let again = peer.attached(&Attach::sender("q").named("again"));
        peer.send(&again, &Message::new("again"));
    }
}

#[test]
fn a_fault_detaches_both_links_of_a_request() {
    let bus = Bus::with_queues(&["q"]);
    for when in ["before", "after"] {
        let effect = json!({"detach": {"when": when}});
        bus.script(&json!({"operation": "management", "nth": 2, "effect": effect}));
        let (mut peer, node) = bus.node("q/$management");
        let other = peer.node("q/$management");
        let peek = || peek_from(0, serde_amqp::Value::Int(1));
        assert_eq!(peer.call(&node, "peek-message", peek()).status(), 204);
        let request = Message::request(text("lost"), text(&node.reply_to), peek())
            .application("operation", text("com.microsoft:peek-message"));
        let frame = peer.transfer_frame(&node.requests, true, &request.encode());
        peer.write(&frame);
        for link in [&node.requests, &node.replies] {
            assert_eq!(peer.detached(link).refusal(2).condition, FORCED, "{when}");
        }
        assert_eq!(peer.call(&other, "peek-message", peek()).status(), 204);
    }
}

#[test]
fn a_fault_closes_a_connection_before_or_after_a_send() {
    for (when, stored) in [("before", 1), ("after", 2)] {
        let (bus, mut peer, sender, _) = sending(&json!({ "close": { "when": when } }));
        send_two(&mut peer, &sender);
        assert_eq!(peer.closed().condition, "amqp:connection:forced");
        assert_eq!(bus.http.held("q"), (stored, 0), "{when}");
    }
}

#[test]
fn a_fault_drops_a_connection_before_or_after_a_send() {
    for (when, stored) in [("before", 1), ("after", 2)] {
        let (bus, mut peer, sender, _) = sending(&json!({ "drop": { "when": when } }));
        send_two(&mut peer, &sender);
        peer.read_to_end();
        let held = bus.http.held("q");
        assert_eq!(held, (stored, 0), "{when}");
    }
}

#[test]
fn a_fault_refuses_one_attach_and_not_the_next() {
    let bus = Bus::with_queues(&["q"]);
    let fault = json!({
        "operation": "attach", "entity": "q", "effect": {"reject": {"condition": "com.microsoft:server-busy"}},
    });
    bus.script(&fault);
    let mut peer = bus.client();
    let refusal = peer.refused(&Attach::receiver("q"));
    assert_eq!(refusal.condition, "com.microsoft:server-busy");
    peer.attached(&Attach::receiver("q").named("again"));
}

#[test]
fn a_fault_leaves_an_attach_unanswered() {
    let bus = Bus::with_queues(&["q"]);
    bus.script(&json!({"operation": "attach", "effect": "lose-reply"}));
    let mut peer = bus.client();
    peer.ask_to_attach(&Attach::receiver("q"));
    peer.assert_no_frame(|frame| frame.code == ATTACH);
    peer.attached(&Attach::receiver("q").named("again"));
}

#[test]
fn a_fault_detaches_a_link_after_its_attach() {
    let bus = Bus::with_queues(&["q"]);
    bus.script(&json!({"operation": "attach", "effect": {"detach": {"when": "after"}}}));
    let (mut peer, sender) = bus.sender("q");
    assert_eq!(peer.detached(&sender).refusal(2).condition, FORCED);
}

#[test]
fn a_fault_that_detaches_before_a_delivery_keeps_the_message() {
    let bus = Bus::with_queues(&["q"]);
    bus.script(&json!({"operation": "receive", "entity": "q", "nth": 2, "effect": "detach"}));
    let (mut peer, sender) = bus.sender("q");
    for id in ["1", "2", "3"] {
        peer.send(&sender, &Message::new(id));
    }
    let deleting = peer.attached(&Attach::deleting("q"));
    peer.credit(&deleting, 10);
    assert_eq!(peer.receive(&deleting).id(), "1");
    assert_eq!(peer.detached(&deleting).refusal(2).condition, FORCED);
    assert_eq!(bus.http.held("q"), (2, 0));
    assert_eq!(
        details(&bus, "q"),
        [format!(
            "the link was detached with {FORCED} before the delivery"
        )]
    );
}

#[test]
fn a_fault_that_drops_after_a_delivery_keeps_the_lock() {
    let bus = Bus::with_queues(&["q"]);
    bus.script(&json!({"operation": "receive", "effect": {"drop": {"when": "after"}}}));
    let mut peer = bus.client();
    peer.send_to("q", &Message::new("1"));
    let receiver = peer.receiver("q");
    assert_eq!(peer.receive_one(&receiver).id(), "1");
    peer.read_to_end();
    assert_eq!(bus.http.counts("q")["locked"], 1);
}

#[test]
fn a_service_update_ends_all_locks_and_links() {
    let (bus, mut peer) = Bus::with_queues(&["q", "other"]).with_client();
    let (sender, receiver) = (peer.sender("other"), peer.receiver("q"));
    let elsewhere = peer.sender("q");
    peer.send(&elsewhere, &Message::new("1"));
    let held = peer.receive_one(&receiver);
    let (mut other, node) = bus.node("q/$management");
    let path = "~/service-update";
    assert_eq!(bus.http.request("POST", path, None).status, 204);
    for link in [&sender, &receiver, &elsewhere] {
        assert_eq!(peer.detached(link).refusal(2).condition, FORCED);
    }
    for link in [&node.requests, &node.replies] {
        assert_eq!(other.detached(link).refusal(2).condition, FORCED);
    }
    // A settlement that crosses the detach has lost its lock.
    peer.assert_settle_refused(&held, accepted(), "com.microsoft:message-lock-lost");
    assert_eq!(bus.http.counts("q")["locked"], 0);
    let again = peer.attached(&Attach::receiver("q").named("again"));
    let delivery = peer.receive_one(&again);
    assert_eq!(delivery.message.header(4), uint(1), "a failed delivery");
}

#[test]
fn an_attach_during_a_service_update_is_detached() {
    for when in ["before", "after"] {
        let bus = Bus::with_queues(&["q", "other"]);
        let (mut peer, other) = bus.sender("other");
        bus.script(&json!({"operation": "attach", "effect": {"failover": {"when": when}}}));
        let refusal = peer.refused(&Attach::receiver("q"));
        assert_eq!(refusal.condition, FORCED, "{when}");
        assert_eq!(peer.detached(&other).refusal(2).condition, FORCED);
        peer.attached(&Attach::receiver("q").named("again"));
    }
}

#[test]
fn a_token_during_a_service_update_is_answered() {
    for when in ["before", "after"] {
        let bus = Bus::with_queues(&["q"]);
        let (mut peer, sender) = bus.sender("q");
        let id = bus.script(&json!({"operation": "token", "effect": {"failover": {"when": when}}}));
        let token = root_token("sb://localhost/");
        let reply = peer.put_token("sb://localhost/", &token);
        assert_eq!((reply.cbs_status(), hits(&bus, &id)), (202, 1), "{when}");
        assert_eq!(peer.detached(&sender).refusal(2).condition, FORCED);
    }
}

#[test]
fn a_fault_closes_a_connection_after_its_open() {
    let bus = Bus::with_queues(&["q"]);
    let id = bus
        .script(&json!({"operation": "connect", "effect": {"close": {"description": "not now"}}}));
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
fn a_fault_drops_a_connection_before_its_open_is_answered() {
    let bus = Bus::with_queues(&["q"]);
    bus.script(&json!({"operation": "connect", "client": "unlucky", "effect": "drop"}));
    bus.client_as(&Open::named("lucky"));
    let mut peer = Peer::connect(bus.amqp);
    assert_eq!(peer.sasl("ANONYMOUS", b""), 0);
    peer.write(AMQP_HEADER);
    peer.frame(0, OPEN, &[text("unlucky")]);
    peer.read_to_end();
}

#[test]
fn a_delayed_open_is_answered_when_the_clock_advances() {
    let bus = Bus::with_queues(&["q"]);
    let fault = json!({"operation": "connect", "effect": {"delay": {"seconds": 30}}});
    let id = bus.script(&fault);
    let mut peer = Peer::connect(bus.amqp);
    assert_eq!(peer.sasl("ANONYMOUS", b""), 0);
    peer.write(AMQP_HEADER);
    peer.read_header();
    peer.frame(0, OPEN, &[text("patient")]);
    until("the connection is seen", || hits(&bus, &id) == 1);
    bus.http.advance(30.0);
    peer.expect(OPEN);
}

#[test]
fn network_latency_delays_round_trips_and_loses_no_message() {
    let bus = Bus::with_queues(&["q"]);
    let trip = Duration::from_millis(200);
    let effect = json!({"round-trip": {"seconds": trip.as_secs_f64()}});
    bus.script(&json!({"operation": "connect", "every": 1, "effect": effect}));
    let (mut peer, sender) = bus.sender("q");
    let begun = Instant::now();
    peer.send(&sender, &Message::new("1"));
    assert!(begun.elapsed() >= trip);
    let frames: Vec<u8> = (0..200)
        .flat_map(|id| peer.transfer_frame(&sender, true, &Message::new(&id.to_string()).encode()))
        .collect();
    peer.write(&frames);
    peer.send(&sender, &Message::new("last"));
    assert_eq!(bus.http.held("q"), (202, 0));
    let receiver = peer.receiver_with_credit("q", 202);
    for _ in 0..202 {
        let delivery = peer.receive(&receiver);
        peer.dispose(0, delivery.id, delivery.id, true, accepted());
    }
    peer.close();
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_stalled_connection_is_not_read_until_the_clock_advances() {
    let bus = Bus::with_queues(&["q"]);
    let effect = json!({"stall": {"seconds": 30, "clock": "virtual"}});
    bus.script(&json!({"operation": "send", "effect": effect}));
    let (mut peer, sender) = bus.sender("q");
    peer.send(&sender, &Message::new("1"));
    let id = peer.transfer(&sender, 0, false, &Message::new("2").encode());
    let mut other = bus.client();
    other.send_to("q", &Message::new("3"));
    assert_eq!(bus.http.held("q"), (2, 0));
    bus.http.advance(30.0);
    peer.outcome(&sender, id).unwrap();
    assert_eq!(bus.http.held("q"), (3, 0));
}
