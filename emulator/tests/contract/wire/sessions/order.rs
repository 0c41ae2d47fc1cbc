//! A session is one queue for one reader: strictly in order, whatever becomes of its messages.
//!
//! The lock of a session is over: its link is detached, and what was received under it cannot be settled.

use serde_json::json;

use crate::support::*;

fn ids_of(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(Delivery::id).collect()
}

#[test]
fn a_reader_gets_its_own_session_and_nothing_else() {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    let sent = [("1", "a"), ("2", "b"), ("3", "a"), ("4", "b"), ("5", "a")];
    send_all(&mut peer, "q", &sent);
    for (session, expected) in [("a", vec!["1", "3", "5"]), ("b", vec!["2", "4"])] {
        let link = peer.accept("q", session);
        let got = peer.drain(&link, 10);
        assert_eq!(ids_of(&got), expected);
        for held in &got {
            assert_eq!(held.message.property(10), text(session));
            peer.complete(held);
        }
    }
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn what_is_abandoned_or_released_is_next_again() {
    for (outcome, failures) in [(abandoned(), 1), (released(), 0)] {
        let (_bus, mut peer) = Bus::with_sessions().with_client();
        send_all(&mut peer, "q", &[("1", "s"), ("2", "s")]);
        let link = peer.accept("q", "s");
        let first = peer.receive_one(&link);
        peer.settle(&first, outcome);
        let again = peer.receive_one(&link);
        assert_eq!(again.id(), "1");
        assert_eq!(again.message.header(4), uint(failures));
        peer.complete(&again);
        assert_eq!(peer.receive_one(&link).id(), "2");
    }
}

#[test]
fn a_reader_who_goes_leaves_everything_at_its_place() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("1", "s"), ("2", "s"), ("3", "s")]);
    let link = peer.accept("q", "s");
    let got = peer.drain(&link, 2);
    peer.complete(&got[0]);
    peer.detach(&link);
    // Free at once, and nothing counts as a failure.
    let (session, link) = peer.accept_next("q");
    assert_eq!(session, "s");
    let rest = peer.drain(&link, 10);
    assert_eq!(ids_of(&rest), ["2", "3"]);
    assert!(rest.iter().all(|held| held.message.header(4) == uint(0)));
}

#[test]
fn a_connection_that_breaks_frees_its_sessions() {
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
fn what_is_deferred_waits_outside_of_the_order() {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("1", "s"), ("2", "s")]);
    let link = peer.accept("q", "s");
    let first = peer.receive_one(&link);
    peer.settle(&first, deferred());
    let second = peer.receive_one(&link);
    assert_eq!(second.id(), "2");
    peer.complete(&second);
    let node = peer.node("q/$management");
    let body = in_session("s", [numbers(&[1]), receive_mode()]);
    let fetched = received(&peer.call(&node, "receive-by-sequence-number", body));
    assert_eq!(fetched[0].1.id(), "1");
    let body = in_session(
        "s",
        [
            (text("disposition-status"), text("completed")),
            tokens(&[fetched[0].0]),
        ],
    );
    assert_eq!(peer.call(&node, "update-disposition", body).status(), 200);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn deferred_messages_are_for_who_holds_their_session() {
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
    let (mut other, others) = bus.node("q/$management");
    refused_with(&other.call(&others, operation, fetch("s", 1)), 410, lost);
    // The number of another session's message.
    let reply = peer.call(&node, operation, fetch("s", 2));
    refused_with(&reply, 404, "com.microsoft:message-not-found");
    assert_eq!(
        received(&peer.call(&node, operation, fetch("s", 1))).len(),
        1
    );
    peer.detach(&link);
}

fn receive_mode() -> (serde_amqp::Value, serde_amqp::Value) {
    (text("receiver-settle-mode"), uint(1))
}

#[test]
fn the_session_to_answer_to_goes_with_the_message() {
    let (_bus, mut peer, sender) = Bus::with_sessions().with_sender("q");
    // reply-to-group-id.
    let message = Message::new("m").session("s").property(12, text("answers"));
    peer.send(&sender, &message);
    let link = peer.accept("q", "s");
    let got = peer.receive_one(&link).message;
    assert_eq!(got.property(12), text("answers"));
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

fn lose(bus: &Bus, session: &str) -> Answer {
    let path = "~/sessions/lose";
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
    let path = "~/reset";
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
