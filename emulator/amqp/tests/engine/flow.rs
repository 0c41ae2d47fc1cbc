//! Credit, drain and echo.

use serde_amqp::Value;
use servicebus_amqp::{Config, Event};

use crate::peer::*;

#[test]
fn link_credit_is_relative_to_the_delivery_count_of_the_peer() {
    let mut peer = Peer::new();
    let link = peer.receiver(10);
    for tag in 0..4 {
        peer.deliver(link, tag, true).unwrap();
    }
    // Sent before three of the four had arrived.
    peer.frame(0, FLOW, &credit_flow(0, 1, 10));
    assert_eq!(peer.credited(), (7, false));
    assert_eq!(peer.connection.credit(link), 7);
    peer.frame(0, FLOW, &credit_flow(0, 4, 0));
    assert!(matches!(peer.event(), Event::Credit { credit: 0, .. }));
    assert_eq!(peer.connection.credit(link), 0);
    peer.frame(0, FLOW, &credit_flow(0, 1, 2));
    assert_eq!(
        peer.connection.credit(link),
        0,
        "what is in flight exceeds it"
    );
}

#[test]
fn credit_events_do_not_pile_up() {
    let mut peer = Peer::new();
    peer.link("r", 0, RECEIVER);
    for credit in 0..100 {
        peer.frame(0, FLOW, &credit_flow(0, 0, credit));
    }
    let events = peer.events();
    assert!(
        matches!(events[..], [Event::Credit { credit: 99, .. }]),
        "{events:?}"
    );
}

#[test]
fn a_drain_is_answered_with_the_remaining_credit_used_up() {
    let mut peer = Peer::new();
    let link = peer.receiver(10);
    peer.connection.drained(link);
    assert!(peer.frames().is_empty(), "no flow was asked for");
    peer.frame(0, FLOW, &drain_flow(0, 0, 10));
    assert_eq!(peer.credited(), (10, true));
    assert!(peer.frames().is_empty(), "the owner first");
    peer.deliver(link, 1, true).unwrap();
    peer.connection.drained(link);
    peer.connection.drained(link);
    let frames = peer.frames();
    assert_eq!(codes(&frames), [TRANSFER, FLOW]);
    let flow = &frames[1].fields;
    assert_eq!(flow[4..8], [uint(0), uint(10), uint(0), uint(0)]);
    assert_eq!(flow[8..10], [Value::Bool(true), Value::Bool(false)]);
    assert_eq!(peer.connection.credit(link), 0);
    peer.frame(0, FLOW, &credit_flow(0, 10, 3));
    assert_eq!(peer.connection.credit(link), 3, "the link is not wedged");
}

#[test]
fn a_drain_without_credit_is_answered() {
    let mut peer = Peer::new();
    let link = peer.link("r", 0, RECEIVER);
    peer.frame(0, FLOW, &drain_flow(0, 0, 0));
    assert_eq!(peer.credited(), (0, true));
    peer.connection.drained(link);
    let flow = peer.only();
    assert_eq!(flow.fields[5..7], [uint(0), uint(0)]);
    assert_eq!(flow.fields[8], Value::Bool(true));
}

#[test]
fn a_flow_with_echo_is_answered_once_and_without_echo() {
    let mut peer = Peer::new();
    peer.link("s", 0, SENDER);
    peer.link("r", 1, RECEIVER);
    let echo = |handle: Option<u32>| {
        let mut fields = match handle {
            Some(handle) => credit_flow(handle, 0, 5),
            None => vec![uint(0), uint(5000), uint(0), uint(5000)],
        };
        fields.resize(9, Value::Null);
        fields.push(Value::Bool(true));
        fields
    };
    peer.frame(0, FLOW, &echo(None));
    let flow = peer.only();
    assert_eq!(
        (&flow.fields[4], &flow.fields[9]),
        (&Value::Null, &Value::Bool(false))
    );
    peer.frame(0, FLOW, &echo(Some(0)));
    assert_eq!(peer.only().fields[4..7], [uint(0), uint(0), uint(1000)]);
    peer.frame(0, FLOW, &echo(Some(1)));
    peer.frame(0, FLOW, &echo(Some(1)));
    let flow = peer.only();
    assert_eq!(flow.fields[4..7], [uint(1), uint(0), uint(5)]);
    assert_eq!(flow.fields[9], Value::Bool(false));
}

#[test]
fn the_credit_in_a_flow_of_a_sender_grants_none() {
    let mut peer = Peer::new();
    let link = peer.link("s", 0, SENDER);
    peer.frame(0, FLOW, &credit_flow(0, 0, 10_000));
    assert!(peer.events().is_empty() && peer.frames().is_empty());
    assert_eq!(peer.connection.credit(link), 0);
    // A sender that gave up 600 of its credit gets a new one.
    peer.frame(0, FLOW, &credit_flow(0, 600, 10_000));
    assert_eq!(peer.only().fields[4..7], [uint(0), uint(600), uint(1000)]);
}

#[test]
fn a_flow_without_link_credit_leaves_the_credit_unchanged() {
    let mut peer = Peer::new();
    let link = peer.receiver(4);
    let mut fields = credit_flow(0, 0, 0);
    fields[6] = Value::Null;
    peer.frame(0, FLOW, &fields);
    assert_eq!(peer.connection.credit(link), 4);
}

#[test]
fn the_largest_window_and_credit_are_just_large() {
    let mut peer = Peer::new();
    let link = peer.link("r", 0, RECEIVER);
    let mut fields = credit_flow(0, 0, u32::MAX);
    fields[1] = uint(u32::MAX);
    peer.frame(0, FLOW, &fields);
    assert_eq!(peer.connection.credit(link), u32::MAX);
    peer.deliver(link, 1, true).unwrap();
    assert_eq!(peer.connection.credit(link), u32::MAX - 1);
}

#[test]
fn credit_not_crossing_a_drain_answer_counts_from_the_peers_count() {
    let mut peer = Peer::new();
    let link = peer.receiver(10);
    peer.frame(0, FLOW, &drain_flow(0, 0, 10));
    peer.connection.drained(link);
    // From a count between those before and after the answer.
    peer.frame(0, FLOW, &credit_flow(0, 5, 10));
    assert_eq!(peer.connection.credit(link), 5);
    peer.frame(0, FLOW, &drain_flow(0, 10, 4));
    peer.connection.drained(link);
    peer.frame(0, FLOW, &drain_flow(0, 10, 4));
    assert_eq!(peer.connection.credit(link), 0, "a drain crosses nothing");
}

#[test]
fn an_opened_session_window_notifies_the_links_with_credit() {
    let mut peer = Peer::with(Config::default(), &[uint(512)], 1);
    let receivers = [("a", 0), ("b", 1), ("c", 2)];
    let [first, _, third] = receivers.map(|(name, handle)| peer.link(name, handle, RECEIVER));
    let flow = |next: u32, window: u32, handle: u32, credit: u32| {
        let part = [uint(handle), uint(0), uint(credit)];
        [&[uint(next), uint(window), uint(0), uint(5000)][..], &part].concat()
    };
    peer.frame(0, FLOW, &flow(0, 1, 0, 10));
    peer.frame(0, FLOW, &flow(0, 1, 2, 10));
    peer.events();
    // Three frames, of which the window takes one.
    peer.deliver_bytes(first, 1, true, &[], vec![7; 1000].into());
    assert_eq!(peer.frames().len(), 1);
    let opened = |next, window| [uint(next), uint(window), uint(0), uint(5000)];
    peer.frame(0, FLOW, &opened(1, 2));
    assert_eq!(peer.frames().len(), 2);
    assert!(peer.events().is_empty(), "the delivery has used it up");
    peer.frame(0, FLOW, &opened(3, 5));
    let links = peer.events().into_iter().map(|event| {
        let Event::Credit { link, .. } = event else {
            panic!("expected credit, got {event:?}");
        };
        link
    });
    assert_eq!(Vec::from_iter(links), [first, third], "one has no credit");
}
