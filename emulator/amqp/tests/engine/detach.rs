//! Detach, by either side.

use serde_amqp::Value;
use servicebus_amqp::{AttachReply, Event, Outcome};

use crate::peer::*;

#[test]
fn a_peers_detach_is_answered_in_kind() {
    for closed in [true, false] {
        let mut peer = Peer::new();
        let link = peer.link("a", 4, SENDER);
        peer.frame(0, DETACH, &[uint(4), Value::Bool(closed)]);
        assert!(matches!(peer.event(), Event::Detached { link: gone } if gone == link));
        let detach = peer.only();
        assert_eq!(detach.fields, [uint(4), Value::Bool(closed), Value::Null]);
        let again = peer.link("a", 4, SENDER);
        assert_ne!(link, again);
    }
}

#[test]
fn our_detach_closes_and_is_said_once() {
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
fn a_detach_without_a_reason_has_three_fields() {
    let mut peer = Peer::new();
    let link = peer.link("a", 0, SENDER);
    peer.connection.detach(link, None);
    assert_eq!(
        peer.only().fields,
        [uint(0), Value::Bool(true), Value::Null]
    );
}

#[test]
fn cancelling_an_unanswered_attach_gets_both_answers() {
    let mut peer = Peer::new();
    let (link, _) = peer.ask("a", 0, RECEIVER);
    peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
    assert!(matches!(peer.event(), Event::Detached { link: gone } if gone == link));
    let frames = peer.frames();
    assert_eq!(codes(&frames), [ATTACH, DETACH]);
    assert_eq!(frames[0].fields[5], Value::Null);
    peer.connection.accept_attach(link, AttachReply::default());
    assert!(peer.frames().is_empty());
}

#[test]
fn what_was_delivered_on_a_gone_link_is_unknown() {
    let mut peer = Peer::new();
    let link = peer.receiver(5);
    let delivery = peer.deliver(link, 1, false).unwrap();
    peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
    peer.events();
    peer.frames();
    peer.connection.settle(link, delivery, Outcome::Accepted);
    assert!(peer.frames().is_empty());
    peer.frame(0, DISPOSITION, &disposition(0, 0, false, accepted()));
    assert!(peer.events().is_empty());
    assert_eq!(peer.only().code, DISPOSITION);
}

#[test]
fn outcomes_for_a_gone_link_are_dropped() {
    let mut peer = Peer::new();
    let link = peer.link("a", 0, SENDER);
    peer.frame(0, TRANSFER, &transfer(0, Some(0), false, false));
    let Event::Transfer(transfer) = peer.event() else {
        panic!("no transfer");
    };
    peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
    peer.frames();
    peer.connection
        .outcome(link, transfer.delivery, Outcome::Accepted);
    assert!(peer.frames().is_empty());
}
