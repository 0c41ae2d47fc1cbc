//! Begin and end.
//!
//! Detach, by either side.

use serde_amqp::Value;
use servicebus_amqp::{AttachReply, Event, Outcome};

use crate::peer::*;

fn begin() -> Vec<Value> {
    vec![Value::Null, uint(7), uint(100), uint(100)]
}

#[test]
fn begin_answers_on_the_same_channel_with_every_field() {
    let mut peer = Peer::new();
    peer.frame(300, BEGIN, &begin());
    let frame = peer.only();
    assert_eq!((frame.channel, frame.code), (300, BEGIN));
    assert_eq!(frame.fields.len(), 8);
    assert_eq!(frame.fields[0], Value::Ushort(300));
    assert_eq!(frame.fields[1], uint(0));
    assert_eq!(frame.fields[2], uint(5000));
    assert_eq!(frame.fields[4], uint(255));
}

#[test]
fn a_channel_can_be_reused_for_another_session() {
    let mut peer = Peer::new();
    let mut seen = Vec::new();
    for _ in 0..3 {
        peer.frame(5, BEGIN, &begin());
        peer.frame(5, ATTACH, &attach("link", 0, SENDER));
        let (link, attach) = peer.attached();
        assert!(!seen.contains(&(link, attach.session())));
        seen.push((link, attach.session()));
        peer.accept(link);
        peer.frame(5, END, &[]);
        assert!(matches!(peer.event(), Event::Detached { link: gone, .. } if gone == link));
        assert_eq!(codes(&peer.frames()), [BEGIN, ATTACH, FLOW, END]);
    }
}

#[test]
fn links_of_one_session_have_the_same_session_id() {
    let mut peer = Peer::new();
    peer.frame(1, BEGIN, &begin());
    let (_, first) = peer.ask("a", 0, SENDER);
    let (_, second) = peer.ask("b", 1, RECEIVER);
    peer.frame(1, ATTACH, &attach("c", 0, SENDER));
    let (_, third) = peer.attached();
    assert_eq!(first.session(), second.session());
    assert_ne!(first.session(), third.session());
}

#[test]
fn after_a_sent_end_the_channel_ignores_frames_until_the_peers_end() {
    let mut peer = Peer::new();
    peer.frame(0, FLOW, &credit_flow(9, 0, 1));
    let end = peer.only();
    assert_eq!(end.code, END);
    let text = "The link handle '9' cannot be found in session '0'.";
    let condition = "amqp:session:unattached-handle";
    let error = end.refusal(0);
    assert_eq!((&*error.condition, &*error.text), (condition, text));
    peer.frame(0, ATTACH, &attach("late", 0, SENDER));
    peer.frame(0, TRANSFER, &transfer(0, Some(0), false, false));
    peer.frame(0, FLOW, &credit_flow(0, 0, 1));
    peer.dispose(0, 0, false, accepted());
    peer.frame(0, END, &[]);
    assert!(peer.frames().is_empty());
    assert!(peer.events().is_empty());
    peer.frame(0, BEGIN, &begin());
    assert_eq!(peer.only().code, BEGIN);
}

#[test]
fn close_ends_links_first_and_is_answered() {
    let mut peer = Peer::new();
    let link = peer.link("a", 0, SENDER);
    let error = composite(0x1d, vec![symbol("amqp:connection:forced"), text("bye")]);
    peer.frame(0, CLOSE, &[error]);
    assert_eq!(peer.only().code, CLOSE);
    let events = peer.events();
    assert!(matches!(events[0], Event::Detached { link: gone, .. } if gone == link));
    let Event::Closed { error: Some(error) } = &events[1] else {
        panic!("{events:?}");
    };
    assert_eq!(error.condition, "amqp:connection:forced");
    assert_eq!(error.description, "bye");
    assert!(peer.connection.is_closed());
}

#[test]
fn a_sent_close_waits_for_the_close_of_the_peer() {
    let mut peer = Peer::new();
    let link = peer.link("a", 0, RECEIVER);
    peer.connection.close(Some(an_error()));
    let events = peer.events();
    assert!(matches!(events[0], Event::Detached { link: gone, .. } if gone == link));
    assert!(matches!(events[1], Event::Closed { error: Some(_) }));
    assert_eq!(peer.only().refusal(0).condition, "amqp:not-found");
    peer.frame(0, FLOW, &credit_flow(0, 0, 1));
    peer.connection.detach(link, None);
    peer.connection.close(None);
    assert!(peer.frames().is_empty() && peer.events().is_empty());
    assert!(!peer.connection.is_closed());
    peer.frame(0, CLOSE, &[]);
    assert!(peer.connection.is_closed());
    assert!(peer.frames().is_empty() && peer.events().is_empty());
}

#[test]
fn a_lost_socket_ends_everything_without_events() {
    let mut peer = Peer::new();
    peer.link("a", 0, SENDER);
    peer.connection.lost();
    let events = peer.events();
    assert!(matches!(
        events[..],
        [Event::Detached { .. }, Event::Closed { error: None }]
    ));
    assert!(peer.output().is_empty() && peer.connection.is_closed());
    peer.connection.lost();
    assert!(peer.events().is_empty());
}

#[test]
fn the_highest_channel_has_a_session_and_one_above_it_ends_the_connection() {
    let mut peer = Peer::new();
    peer.frame(4_999, BEGIN, &begin());
    assert_eq!(codes(&peer.frames()), [BEGIN]);
    peer.frame(5_000, BEGIN, &begin());
    peer.assert_closed_with("amqp:connection:framing-error");
}

#[test]
fn a_detach_is_answered_with_the_same_closed_flag() {
    for closed in [true, false] {
        let mut peer = Peer::new();
        let link = peer.link("a", 4, SENDER);
        peer.frame(0, DETACH, &[uint(4), Value::Bool(closed)]);
        assert!(matches!(peer.event(), Event::Detached { link: gone, .. } if gone == link));
        let detach = peer.only();
        assert_eq!(detach.fields, [uint(4), Value::Bool(closed), Value::Null]);
        let again = peer.link("a", 4, SENDER);
        assert_ne!(link, again);
    }
}

#[test]
fn a_detach_by_the_owner_is_sent_once_and_closes() {
    let mut peer = Peer::new();
    let link = peer.receiver(5);
    peer.deliver(link, 1, false);
    peer.frames();
    peer.connection.detach(link, Some(an_error()));
    peer.connection.detach(link, None);
    let detach = peer.only();
    assert_eq!(detach.fields[1], Value::Bool(true));
    assert_eq!(detach.refusal(2).condition, "amqp:not-found");
    assert_eq!(peer.connection.credit(link), 0);
    assert!(peer.deliver(link, 2, false).is_none());
    peer.frame(0, FLOW, &credit_flow(0, 0, 9));
    peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
    assert!(peer.frames().is_empty() && peer.events().is_empty());
}

#[test]
fn transfers_in_transactions_on_a_detached_link_are_reported() {
    let mut peer = Peer::new();
    let link = peer.link("a", 0, SENDER);
    peer.connection.detach(link, Some(an_error()));
    peer.frame(0, TRANSFER, &transfer(0, Some(0), false, false));
    assert!(peer.events().is_empty());
    let mut enlisted = transfer(0, Some(1), true, false);
    enlisted.extend([Value::Null, composite(0x34, vec![binary(b"tx")])]);
    peer.frame(0, TRANSFER, &enlisted);
    let Event::TransferDropped {
        link: on,
        settled: true,
        transaction,
    } = peer.event()
    else {
        panic!("it is not reported");
    };
    assert_eq!((on, &*transaction), (link, &b"tx"[..]));
}

#[test]
fn a_detach_without_an_error_has_three_fields() {
    let mut peer = Peer::new();
    let link = peer.link("a", 0, SENDER);
    peer.connection.detach(link, None);
    assert_eq!(
        peer.only().fields,
        [uint(0), Value::Bool(true), Value::Null]
    );
}

#[test]
fn detaching_an_unanswered_attach_sends_attach_and_detach() {
    let mut peer = Peer::new();
    let (link, _) = peer.ask("a", 0, RECEIVER);
    peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
    assert!(matches!(peer.event(), Event::Detached { link: gone, .. } if gone == link));
    let frames = peer.frames();
    assert_eq!(codes(&frames), [ATTACH, DETACH]);
    assert_eq!(frames[0].fields[5], Value::Null);
    peer.connection.accept_attach(link, AttachReply::default());
    assert!(peer.frames().is_empty());
}

#[test]
fn deliveries_of_a_detached_link_are_unknown() {
    let mut peer = Peer::new();
    let link = peer.receiver(5);
    let delivery = peer.deliver(link, 1, false).unwrap();
    peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
    peer.events();
    peer.frames();
    peer.connection.settle(link, delivery, Outcome::Accepted);
    assert!(peer.frames().is_empty());
    peer.dispose(0, 0, false, accepted());
    assert!(peer.events().is_empty());
    assert_eq!(peer.only().code, DISPOSITION);
}

/// A peer may send all of this at once, and waits for the outcomes.
#[test]
fn outcomes_precede_the_answers_to_a_detach_an_end_and_a_close_after_the_work() {
    let detach = |handle| performative(0, DETACH, &[uint(handle), Value::Bool(true)], &[]);
    let end = performative(0, END, &[], &[]);
    let close = performative(0, CLOSE, &[], &[]);
    for last in [[detach(0), detach(1)].concat(), end, close] {
        let mut peer = Peer::new();
        let sender = peer.link("a", 1, SENDER);
        let receiver = peer.receiver(1);
        let delivery = peer.deliver(receiver, 1, false).expect("there is credit");
        peer.frames();
        let message = performative(0, TRANSFER, &transfer(1, Some(0), false, false), &[]);
        let settlement = disposition(delivery.0, delivery.0, false, accepted());
        let settlement = performative(0, DISPOSITION, &settlement, &[]);
        peer.send(&[message, settlement, last].concat());
        assert!(peer.connection.has_more());
        let sent = peer.received();
        let settled = peer.event();
        assert!(matches!(settled, Event::Settle(_)), "{settled:?}");
        peer.connection
            .outcome(sender, sent.delivery, Outcome::Accepted);
        peer.connection
            .settle(receiver, delivery, Outcome::Accepted);
        peer.send(&[]);
        assert!(!peer.connection.has_more());
        let codes = codes(&peer.frames());
        let (outcomes, ends) = codes.split_at(2);
        assert_eq!(outcomes, [DISPOSITION, DISPOSITION]);
        assert!(ends == [DETACH, DETACH] || ends == [END] || ends == [CLOSE]);
    }
}

#[test]
fn outcomes_for_a_detached_link_are_dropped() {
    let mut peer = Peer::new();
    let link = peer.link("a", 0, SENDER);
    peer.frame(0, TRANSFER, &transfer(0, Some(0), false, false));
    let transfer = peer.received();
    peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
    peer.frames();
    peer.connection
        .outcome(link, transfer.delivery, Outcome::Accepted);
    assert!(peer.frames().is_empty());
}
