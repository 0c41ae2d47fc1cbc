//! A session is one queue for one reader: strictly in order, whatever becomes of its messages.

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
    let mut other = bus.client();
    let others = other.node("q/$management");
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
