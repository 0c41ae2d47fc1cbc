//! A session is one queue for one receiver: strictly in order, whatever happens to its messages.
//!
//! After the lock of a session has ended its link is detached, and deliveries under it cannot be settled.

use serde_json::json;

use crate::support::*;

/// The lock of its session was that of the message (wire.md §4.4).
#[test]
fn a_second_settlement_in_a_session_is_a_lost_session_lock() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("1", "s")]);
    let link = peer.accept("q", "s");
    let held = peer.receive_one(&link);
    peer.complete(&held);
    peer.assert_settle_refused(&held, accepted(), LOST);
    let node = peer.node("q/$management");
    let body = disposition("completed", &[held.token()]);
    refused_with(&peer.call(&node, "update-disposition", body), 410, LOST);
    // A receiver without a session on the same AMQP session has other locks.
    peer.receiver("q/$DeadLetterQueue");
    peer.assert_lock_lost(&held);
}

#[test]
fn a_dropped_connection_releases_its_sessions() {
    let (bus, mut gone) = Bus::with_sessions().with_client();
    send_all(&mut gone, "q", &[("1", "s")]);
    let link = gone.accept("q", "s");
    gone.receive_one(&link);
    drop(gone);
    let mut peer = bus.client();
    let attach = Attach::session("q", serde_amqp::Value::Null);
    let link = peer.attached(&attach);
    let again = peer.receive_one(&link);
    assert_eq!(
        (again.id().as_str(), &again.message.header(4)),
        ("1", &uint(0))
    );
}

#[test]
fn deferred_messages_need_a_receiver_that_holds_their_session() {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("1", "s"), ("2", "t")]);
    for session in ["s", "t"] {
        let link = peer.accept("q", session);
        let held = peer.receive_one(&link);
        peer.settle(&held, deferred());
        peer.detach(&link);
    }
    let node = peer.node("q/$management");
    let fetch = |session, number| in_session(session, [numbers(&[number]), receive_mode()]);
    let lost = "com.microsoft:session-lock-lost";
    let operation = "receive-by-sequence-number";
    refused_with(&peer.call(&node, operation, fetch("s", 1)), 410, lost);
    let link = peer.accept("q", "s");
    // The number of another session's message.
    let reply = peer.call(&node, operation, fetch("s", 2));
    refused_with(&reply, 404, "com.microsoft:message-not-found");
    // The retired SDK for Go requests them on another connection, and does not name the receiver.
    let (mut other, others) = bus.node("q/$management");
    let received = received(&other.call(&others, operation, fetch("s", 1)));
    let reply = other.update_disposition(&others, "completed", &[received[0].0]);
    assert_eq!(reply.status(), 200, "{}", reply.text());
    peer.detach(&link);
}

fn receive_mode() -> (serde_amqp::Value, serde_amqp::Value) {
    (text("receiver-settle-mode"), uint(1))
}

const LOST: &str = "com.microsoft:session-lock-lost";

/// A session that its reader has a message of.
fn holding() -> (Bus, Peer, Link, Delivery) {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("m", "s")]);
    let link = peer.accept("q", "s");
    let held = peer.receive_one(&link);
    (bus, peer, link, held)
}

/// What ends the lock of a session.
type End = fn(&Bus);

fn lose(bus: &Bus) {
    let session = json!({"entity": "q", "session": "s"});
    bus.http.post("~/sessions/lose", &session).ok();
}

fn change(bus: &Bus) {
    bus.http.put_queue("q", &json!({"MaxDeliveryCount": 5}));
}

fn remove(bus: &Bus) {
    bus.http.queue("DELETE", "q", None).ok();
}

#[test]
fn a_session_link_is_detached_when_its_lock_expires() {
    let (bus, mut peer, link, held) = holding();
    bus.http.advance(61.0);
    let detach = peer.detached(&link);
    assert!(detach.flag(1), "closed");
    let refusal = detach.refusal(2);
    assert_eq!(refusal.condition, LOST);
    assert_starts_with(refusal.words(), "The session lock has expired");
    // A settlement that crosses the detach is refused like the link.
    peer.assert_settle_refused(&held, accepted(), LOST);
    let (session, link) = peer.accept_next("q");
    assert_eq!(session, "s");
    let again = peer.receive_one(&link);
    assert_eq!(again.message.header(4), uint(1), "a failed delivery");
}

#[test]
fn ending_a_session_lock_detaches_and_refuses_settlements() {
    // Python shuts its receiver down when a settlement is not found (wire.md §4.4).
    let ends: [(&str, End, &str, &str); 4] = [
        ("a test", lose, LOST, LOST),
        ("a change", change, LOST, LOST),
        ("a reset", |bus| bus.http.reset(), LOST, LOST),
        ("a removal", remove, "amqp:not-found", LOST),
    ];
    for (what, end, detached, settled) in ends {
        let (bus, mut peer, link, held) = holding();
        end(&bus);
        assert_eq!(
            peer.detached(&link).refusal(2).condition,
            detached,
            "{what}"
        );
        peer.assert_settle_refused(&held, accepted(), settled);
    }
}

#[test]
fn disabling_a_queue_detaches_session_links_with_its_text() {
    let (bus, mut peer, link, held) = holding();
    bus.http.set_status("q", "ReceiveDisabled");
    let disabled = "com.microsoft:entity-disabled";
    assert_eq!(peer.detached(&link).refusal(2).condition, disabled);
    peer.assert_settle_refused(&held, accepted(), disabled);
    bus.http.set_status("q", "Active");
    let link = peer.accept("q", "s");
    assert_eq!(peer.receive_one(&link).message.header(4), uint(0));
}

#[test]
fn a_message_lock_in_a_session_cannot_be_renewed() {
    let (_bus, mut peer, _, held) = holding();
    let node = peer.node("q/$management");
    let reply = peer.call(&node, "renew-lock", map([tokens(&[held.token()])]));
    let words = refused_with(&reply, 400, "amqp:not-allowed");
    assert_contains(&words, "renew the session's lock");
}
