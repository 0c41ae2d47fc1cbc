//! The lock of a session is over: its link is detached, and what was received under it cannot be settled.

use serde_json::json;

use crate::support::*;

const LOST: &str = "com.microsoft:session-lock-lost";

/// A session that its reader has a message of.
fn holding() -> (Bus, Peer, Link, Delivery) {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("m", "s")]);
    let link = peer.accept("q", "s");
    let held = peer.receive_one(&link);
    (bus, peer, link, held)
}

fn lose(bus: &Bus, session: &str) -> Answer {
    let path = "/$emulator/v1/namespaces/sbemulatorns/sessions/lose";
    bus.http
        .post(path, &json!({"entity": "q", "session": session}))
}

#[test]
fn the_link_is_closed_when_the_time_is_over() {
    let (bus, mut peer, link, held) = holding();
    bus.http.advance(61.0);
    let detach = peer.detached(&link);
    assert!(detach.flag(1), "closed");
    let refusal = detach.refusal(2);
    assert_eq!(refusal.condition, LOST);
    assert_starts_with(refusal.words(), "The session lock has expired");
    // What crosses the detach is refused like the link.
    let answer = refused(&peer.settle(&held, accepted()));
    assert_eq!(answer.condition, LOST);
    let (session, link) = peer.accept_next("q");
    assert_eq!(session, "s");
    let again = peer.receive_one(&link);
    assert_eq!(again.message.header(4), uint(1), "a failed delivery");
}

#[test]
fn a_renewed_lock_lives_on() {
    let (bus, mut peer, link, held) = holding();
    let node = peer.node("q/$management");
    bus.http.advance(40.0);
    let reply = peer.call(&node, "renew-session-lock", in_session("s", []));
    assert_eq!(reply.status(), 200, "{}", reply.text());
    bus.http.advance(40.0);
    peer.complete(&held);
    bus.http.advance(40.0);
    assert_eq!(peer.detached(&link).refusal(2).condition, LOST);
}

#[test]
fn a_test_can_take_the_lock_away() {
    let (bus, mut peer, link, held) = holding();
    assert_eq!(lose(&bus, "s").status, 204);
    assert_eq!(peer.detached(&link).refusal(2).condition, LOST);
    assert_eq!(refused(&peer.settle(&held, accepted())).condition, LOST);
    let answer = lose(&bus, "s");
    assert_eq!(answer.error(404).0, "not-found");
}

#[test]
fn a_change_of_the_queue_takes_the_locks_away() {
    let (bus, mut peer, link, held) = holding();
    bus.http.put_queue("q", &json!({"MaxDeliveryCount": 5}));
    assert_eq!(peer.detached(&link).refusal(2).condition, LOST);
    assert_eq!(refused(&peer.settle(&held, accepted())).condition, LOST);
}

#[test]
fn a_reset_takes_sessions_and_their_states_away() {
    let (bus, mut peer, link, _) = holding();
    let node = peer.node("q/$management");
    let state = (text("session-state"), binary(b"state"));
    let body = in_session("s", [state]);
    assert_eq!(peer.call(&node, "set-session-state", body).status(), 200);
    let path = "/$emulator/v1/namespaces/sbemulatorns/reset";
    assert_eq!(bus.http.request("POST", path, None).status, 204);
    assert_eq!(peer.detached(&link).refusal(2).condition, LOST);
    peer.accept("q", "s");
    let reply = peer.call(&node, "get-session-state", in_session("s", []));
    assert_eq!(reply.field("session-state"), &serde_amqp::Value::Null);
}

#[test]
fn a_disabled_queue_detaches_in_its_own_words() {
    let (bus, mut peer, link, held) = holding();
    bus.http.set_status("q", "ReceiveDisabled");
    let disabled = "com.microsoft:entity-disabled";
    assert_eq!(peer.detached(&link).refusal(2).condition, disabled);
    assert_eq!(refused(&peer.settle(&held, accepted())).condition, disabled);
    bus.http.set_status("q", "Active");
    let link = peer.accept("q", "s");
    assert_eq!(peer.receive_one(&link).message.header(4), uint(0));
}

#[test]
fn a_deleted_queue_detaches_and_its_messages_are_lost() {
    let (bus, mut peer, link, held) = holding();
    assert_eq!(bus.http.queue("DELETE", "q", None).status, 204);
    assert_eq!(peer.detached(&link).refusal(2).condition, "amqp:not-found");
    // Python shuts its receiver down on not-found (wire.md §4.4).
    assert_eq!(refused(&peer.settle(&held, accepted())).condition, LOST);
}

#[test]
fn a_message_that_was_settled_cannot_be_settled_again() {
    let (_bus, mut peer, _, held) = holding();
    peer.complete(&held);
    let node = peer.node("q/$management");
    let body = disposition("completed", &[held.token()]);
    refused_with(&peer.call(&node, "update-disposition", body), 410, LOST);
}

#[test]
fn a_message_of_a_session_has_no_lock_of_its_own_to_renew() {
    let (_bus, mut peer, _, held) = holding();
    let node = peer.node("q/$management");
    let reply = peer.call(&node, "renew-lock", map([tokens(&[held.token()])]));
    let words = refused_with(&reply, 400, "amqp:not-allowed");
    assert!(words.contains("renew the session's lock"), "{words}");
}
