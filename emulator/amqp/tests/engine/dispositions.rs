//! Outcomes, both ways.

use serde_amqp::Value;
use servicebus_amqp::{Config, DeliveryNumber, Error, Event, LinkId, Outcome, Settlement};

use crate::peer::*;

fn receiver_with(count: u8) -> (Peer, LinkId) {
    let mut peer = Peer::new();
    let link = peer.receiver(1000);
    for tag in 0..count {
        peer.deliver(link, tag, false).unwrap();
    }
    peer.frames();
    (peer, link)
}

fn settlements(peer: &mut Peer) -> Vec<Settlement> {
    let events = peer.events().into_iter();
    events
        .map(|event| {
            let Event::Settle(settlement) = event else {
                panic!("expected a settlement, got {event:?}");
            };
            settlement
        })
        .collect()
}

fn numbers(settlements: &[Settlement]) -> Vec<u32> {
    settlements.iter().map(|s| s.delivery.0).collect()
}

#[test]
fn sends_are_answered_in_ranges() {
    let mut peer = Peer::new();
    let one = peer.link("1", 0, SENDER);
    let two = peer.link("2", 1, SENDER);
    for id in 0..5 {
        peer.accept_send(one, id);
        // An owner that looks how much there is to write ends no range.
        assert_eq!(peer.connection.output_len(), 0);
    }
    peer.accept_send(two, 5);
    peer.accept_send(two, 7);
    let rejected = Outcome::from(an_error());
    peer.connection.outcome(two, DeliveryNumber(8), rejected);
    let frames = peer.frames();
    let ranges: Vec<_> = frames
        .iter()
        .map(|f| (f.fields[1].clone(), f.fields[2].clone()))
        .collect();
    let expected = [(0, 4), (5, 5), (7, 7), (8, 8)].map(|(a, b)| (uint(a), uint(b)));
    assert_eq!(ranges, expected);
    for frame in &frames {
        assert_eq!(frame.fields.len(), 6);
        assert_eq!(frame.fields[0], Value::Bool(RECEIVER));
        assert_eq!(frame.fields[3], Value::Bool(true));
    }
    assert_eq!(frames[0].fields[4], accepted());
    assert!(
        frames[0]
            .body
            .windows(4)
            .any(|w| w == [0x00, 0x53, 0x24, 0x45])
    );
    let (code, fields) = described_list(&frames[3].fields[4]);
    assert_eq!(code, 0x25);
    assert_eq!(refusal_of(&fields[0]).condition, "amqp:not-found");
}

#[test]
fn a_range_wraps_with_the_ids() {
    let mut peer = Peer::new();
    let link = peer.link("1", 0, SENDER);
    for id in [u32::MAX - 1, u32::MAX, 0, 1] {
        peer.accept_send(link, id);
    }
    assert_eq!(peer.only().fields[1..3], [uint(u32::MAX - 1), uint(1)]);
}

#[test]
fn a_transfer_flushes_the_outcomes_collected_before_it() {
    let mut peer = Peer::new();
    let receiver = peer.receiver(5);
    let sender = peer.link("s", 1, SENDER);
    peer.accept_send(sender, 0);
    peer.deliver(receiver, 1, true);
    peer.accept_send(sender, 1);
    assert_eq!(codes(&peer.frames()), [DISPOSITION, TRANSFER, DISPOSITION]);
}

#[test]
fn an_unsettled_disposition_is_answered_when_the_owner_settles() {
    let (mut peer, link) = receiver_with(3);
    peer.dispose(1, 1, false, accepted());
    let settled_by_peer = settlements(&mut peer);
    assert_eq!(numbers(&settled_by_peer), [1]);
    assert_eq!(
        (
            settled_by_peer[0].link,
            settled_by_peer[0].tag,
            settled_by_peer[0].settled
        ),
        (link, [1; 16], false)
    );
    assert_eq!(settled_by_peer[0].outcome, Outcome::Accepted);
    // Said again before the answer: one answer is enough.
    peer.dispose(1, 1, false, accepted());
    assert!(peer.events().is_empty() && peer.frames().is_empty());
    peer.accept_settlement(link, 1);
    let reply = peer.only();
    assert_eq!(
        reply.fields[..4],
        [Value::Bool(SENDER), uint(1), uint(1), Value::Bool(true)]
    );
    assert_eq!(reply.fields[4], accepted());
    peer.accept_settlement(link, 1);
    assert!(peer.frames().is_empty(), "it has been forgotten");
}

#[test]
fn a_settled_disposition_is_not_answered() {
    let (mut peer, link) = receiver_with(2);
    peer.dispose(0, 0, true, composite(0x26, vec![]));
    let settled_by_peer = settlements(&mut peer);
    assert!(settled_by_peer[0].settled);
    assert_eq!(settled_by_peer[0].outcome, Outcome::Released);
    peer.connection
        .settle(link, DeliveryNumber(0), Outcome::Released);
    peer.dispose(0, 0, true, accepted());
    assert!(peer.events().is_empty() && peer.frames().is_empty());
    // First an outcome, then its end, without waiting for ours.
    peer.dispose(1, 1, false, accepted());
    peer.dispose(1, 1, true, accepted());
    assert_eq!(numbers(&settlements(&mut peer)), [1]);
    peer.accept_settlement(link, 1);
    assert!(peer.frames().is_empty());
}

#[test]
fn every_outcome_of_a_disposition_is_decoded() {
    let info = map([(symbol("DeadLetterReason"), text("why"))]);
    let encoded: Box<[u8]> = serde_amqp::to_vec(&info).unwrap().into();
    let error = composite(
        0x1d,
        vec![symbol("com.microsoft:dead-letter"), text("d"), info.clone()],
    );
    let cases = [
        (composite(0x25, vec![]), Outcome::Rejected { error: None }),
        (
            composite(0x25, vec![error]),
            Outcome::from(Error {
                info: Some(encoded.clone()),
                ..Error::new("com.microsoft:dead-letter", "d")
            }),
        ),
        (
            composite(0x27, vec![]),
            Outcome::Modified {
                delivery_failed: false,
                undeliverable_here: false,
                annotations: None,
            },
        ),
        (
            composite(0x27, vec![Value::Bool(true), Value::Bool(true), info]),
            Outcome::Modified {
                delivery_failed: true,
                undeliverable_here: true,
                annotations: Some(encoded),
            },
        ),
    ];
    let (mut peer, _) = receiver_with(4);
    for (id, (state, outcome)) in cases.into_iter().enumerate() {
        peer.dispose(id as u32, id as u32, false, state);
        assert_eq!(settlements(&mut peer)[0].outcome, outcome);
    }
}

#[test]
fn a_disposition_without_an_outcome_has_no_effect() {
    let (mut peer, _) = receiver_with(2);
    let received = composite(0x23, vec![uint(0), Value::Ulong(0)]);
    peer.dispose(0, 0, false, received);
    peer.dispose(0, 0, false, Value::Null);
    assert!(peer.events().is_empty() && peer.frames().is_empty());
    peer.dispose(0, 0, true, Value::Null);
    assert_eq!(settlements(&mut peer)[0].outcome, Outcome::Released);
    let transactional = composite(0x34, vec![binary(b"tx"), accepted()]);
    peer.dispose(1, 1, false, transactional);
    let settled_by_peer = settlements(&mut peer);
    assert_eq!(settled_by_peer[0].transaction.as_deref(), Some(&b"tx"[..]));
    assert_eq!(settled_by_peer[0].outcome, Outcome::Accepted);
}

#[test]
fn a_range_over_half_of_all_ids_settles_the_unsettled_deliveries() {
    let (mut peer, link) = receiver_with(5);
    peer.accept_settlement(link, 2);
    peer.frames();
    peer.dispose(0, i32::MAX as u32, true, accepted());
    assert_eq!(numbers(&settlements(&mut peer)), [0, 1, 3, 4]);
    assert!(peer.frames().is_empty());
}

#[test]
fn a_range_that_ends_before_it_begins_ends_the_session_and_settles_nothing() {
    for (first, last) in [(1, 0), (0, u32::MAX), (0, 1 << 31)] {
        let (mut peer, link) = receiver_with(2);
        peer.dispose(first, last, true, accepted());
        let end = peer.only();
        assert_eq!(end.code, END);
        let refusal = end.refusal(0);
        assert_eq!(refusal.condition, "amqp:invalid-field");
        let numbers = format!("has last {last}, which precedes first {first};");
        assert!(refusal.text.contains(&numbers), "{refusal:?}");
        assert!(matches!(peer.event(), Event::Detached { link: gone, .. } if gone == link));
    }
}

#[test]
fn a_disposition_for_an_unknown_delivery_is_a_lost_lock() {
    let (mut peer, link) = receiver_with(5);
    peer.accept_settlement(link, 2);
    peer.frames();
    peer.dispose(0, 7, false, accepted());
    assert_eq!(numbers(&settlements(&mut peer)), [0, 1, 3, 4]);
    let frames = peer.frames();
    let ranges: Vec<_> = frames.iter().map(|f| f.fields[1..3].to_vec()).collect();
    assert_eq!(ranges, [vec![uint(2), uint(2)], vec![uint(5), uint(7)]]);
    for frame in frames {
        assert_eq!(frame.fields[0], Value::Bool(SENDER));
        assert_eq!(frame.fields[3], Value::Bool(true));
        let (code, fields) = described_list(&frame.fields[4]);
        assert_eq!(code, 0x25);
        assert_eq!(
            refusal_of(&fields[0]).condition,
            "com.microsoft:message-lock-lost"
        );
    }
}

#[test]
fn an_unknown_delivery_is_refused_with_the_error_of_the_owner() {
    let (mut peer, link) = receiver_with(1);
    peer.connection
        .refuse_unknown(link, "x:lost", "It is lost.");
    peer.dispose(7, 7, false, accepted());
    let answer = peer.only();
    let (_, fields) = described_list(&answer.fields[4]);
    let refusal = refusal_of(&fields[0]);
    assert_eq!(refusal.condition, "x:lost");
    assert!(refusal.text.starts_with("It is lost."), "{}", refusal.text);
}

#[test]
fn an_unknown_delivery_of_links_with_different_errors_is_a_lost_lock() {
    for errors in [["x:lost", "x:other"], ["x:other", "x:lost"]] {
        let (mut peer, link) = receiver_with(1);
        for error in errors {
            peer.connection.refuse_unknown(link, error, "It is lost.");
        }
        peer.dispose(7, 7, false, accepted());
        let answer = peer.only();
        let (_, fields) = described_list(&answer.fields[4]);
        assert_eq!(
            refusal_of(&fields[0]).condition,
            "com.microsoft:message-lock-lost"
        );
    }
}

#[test]
fn a_transactional_state_without_an_outcome_is_reported() {
    let (mut peer, _) = receiver_with(1);
    let state = composite(0x34, vec![binary(b"tx")]);
    peer.dispose(0, 1, false, state);
    let settled = settlements(&mut peer).remove(0);
    assert_eq!(settled.transaction.as_deref(), Some(&b"tx"[..]));
    assert_eq!(settled.outcome, Outcome::Released);
    assert!(!settled.settled);
    let refused = peer.only();
    assert_eq!(refused.fields[1..3], [uint(1), uint(1)]);
}

#[test]
fn answers_for_unknown_deliveries_are_bounded() {
    let (mut peer, link) = receiver_with(100);
    for id in (0..100).step_by(2) {
        peer.accept_settlement(link, id);
    }
    peer.frames();
    peer.dispose(0, 99, false, accepted());
    assert_eq!(settlements(&mut peer).len(), 50);
    assert_eq!(peer.frames().len(), 8);
}

#[test]
fn a_disposition_in_the_sender_role_is_ignored() {
    let (mut peer, _) = receiver_with(1);
    let mut fields = disposition(0, 0, true, accepted());
    fields[0] = Value::Bool(SENDER);
    peer.frame(0, DISPOSITION, &fields);
    assert!(peer.events().is_empty() && peer.frames().is_empty());
}

#[test]
fn settlements_are_answered_in_ranges_of_one_outcome() {
    let (mut peer, link) = receiver_with(6);
    peer.dispose(0, 5, false, accepted());
    let settled_by_peer = settlements(&mut peer);
    for settlement in &settled_by_peer {
        let outcome = match settlement.delivery.0 {
            3 => Outcome::Rejected { error: None },
            _ => Outcome::Accepted,
        };
        peer.connection.settle(link, settlement.delivery, outcome);
    }
    let frames = peer.frames();
    let ranges: Vec<_> = frames.iter().map(|f| f.fields[1..3].to_vec()).collect();
    assert_eq!(
        ranges,
        [[uint(0), uint(2)], [uint(3), uint(3)], [uint(4), uint(5)]]
    );
    assert_eq!(frames[1].fields[4], composite(0x25, vec![Value::Null]));
}

#[test]
fn a_delivery_of_another_link_cannot_be_settled() {
    let (mut peer, _) = receiver_with(1);
    let other = peer.link("other", 1, RECEIVER);
    peer.accept_settlement(other, 0);
    assert!(peer.frames().is_empty());
}

/// Python uses the handle of a refused link again without having answered its detach.
#[test]
fn deliveries_are_dropped_when_the_handle_of_their_link_is_reused() {
    let (mut peer, link) = receiver_with(1);
    peer.connection.detach(link, None);
    peer.frames();
    peer.ask("again", 0, RECEIVER);
    let accepted = composite(0x24, vec![]);
    peer.dispose(0, 0, true, accepted);
    assert_eq!(settlements(&mut peer), []);
}

/// go-amqp ends the session for an outcome of a link that is gone.
#[test]
fn settlements_on_a_detached_link_are_not_answered_while_another_is_attached() {
    let (mut peer, gone) = receiver_with(3);
    let other = peer.link("other", 1, RECEIVER);
    assert!(peer.connection.shares_session(gone));
    peer.connection.detach(gone, None);
    peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
    peer.frames();
    peer.dispose(0, 2, false, accepted());
    assert!(peer.frames().is_empty() && peer.events().is_empty());
    peer.dispose(1, 4, false, accepted());
    assert_eq!(peer.only().fields[1..3], [uint(3), uint(4)]);
    peer.events();
    peer.connection.detach(other, None);
    peer.frames();
    assert!(!peer.connection.shares_session(gone));
    peer.dispose(0, 2, false, accepted());
    assert_eq!(peer.only().fields[1..3], [uint(0), uint(2)]);
}

#[test]
fn a_delivery_confirmed_unsettled_may_be_settled_again() {
    let (mut peer, link) = receiver_with(2);
    peer.dispose(0, 1, false, accepted());
    assert_eq!(numbers(&settlements(&mut peer)), [0, 1]);
    for id in 0..2 {
        peer.connection
            .confirm_unsettled(link, DeliveryNumber(id), Outcome::Accepted);
    }
    let range = [Value::Bool(SENDER), uint(0), uint(1)];
    let answer = peer.only();
    assert_eq!(answer.fields[..3], range);
    assert_eq!(answer.fields[3], Value::Bool(false));
    peer.accept_settlement(link, 0);
    assert_eq!(peer.only().fields[3], Value::Bool(true));
    // The one that is settled is gone, the other one can be stated anew.
    peer.dispose(1, 1, true, accepted());
    assert_eq!(numbers(&settlements(&mut peer)), [1]);
    peer.connection
        .confirm_unsettled(link, DeliveryNumber(1), Outcome::Accepted);
    assert!(peer.frames().is_empty());
}

#[test]
fn outcomes_are_sent_twice_to_clients_that_need_it() {
    let mut peer = Peer::new();
    let sender = peer.link("s", 0, SENDER);
    peer.connection.repeat_outcomes();
    for id in 0..2 {
        peer.accept_send(sender, id);
    }
    let frames = peer.frames();
    let settled_by_peer: Vec<_> = frames.iter().map(|frame| &frame.fields[1..]).collect();
    let state = |settled| [uint(0), uint(1), Value::Bool(settled), accepted()];
    assert_eq!(settled_by_peer.len(), 2);
    for (settled_by_peer, settled) in settled_by_peer.into_iter().zip([false, true]) {
        assert_eq!(settled_by_peer[..4], state(settled));
    }
}

#[test]
fn repeated_dispositions_over_large_ranges_are_processed_in_several_calls() {
    const DELIVERIES: u32 = 2_000;
    const REPEATED: usize = 100;
    let mut peer = Peer::with(Config::default(), &[], DELIVERIES);
    let link = peer.receiver(DELIVERIES);
    for _ in 0..DELIVERIES {
        peer.deliver(link, 1, false).expect("there is room");
    }
    peer.frames();
    let all = performative(
        0,
        DISPOSITION,
        &disposition(0, DELIVERIES - 1, false, accepted()),
        &[],
    );
    // Nothing is said of them, so that nothing has to be looked at.
    let nothing = disposition(0, DELIVERIES - 1, false, Value::Null);
    let nothing = performative(0, DISPOSITION, &nothing, &[]);
    peer.send(&nothing.repeat(REPEATED));
    assert!(!peer.connection.has_more() && peer.input.is_empty());
    peer.send(&all.repeat(REPEATED));
    let mut calls = 1;
    while peer.connection.has_more() {
        assert!(!peer.input.is_empty());
        calls += 1;
        peer.send(&[]);
    }
    assert!((4..=8).contains(&calls), "{calls}");
    assert!(peer.input.is_empty());
    assert_eq!(settlements(&mut peer).len(), DELIVERIES as usize);
}

#[test]
fn an_unsettled_outcome_can_be_sent_again_settled() {
    let mut peer = Peer::new();
    let link = peer.link("s", 0, SENDER);
    let number = DeliveryNumber(3);
    peer.connection
        .outcome_unsettled(link, number, Outcome::Accepted);
    let first = peer.only();
    peer.connection.outcome(link, number, Outcome::Accepted);
    let second = peer.only();
    for (frame, settled) in [(first, false), (second, true)] {
        let expected = [
            RECEIVER.into(),
            uint(3),
            uint(3),
            settled.into(),
            accepted(),
        ];
        assert_eq!(frame.fields[..5], expected);
    }
}

#[test]
fn outcomes_are_sent_only_on_attached_sender_links() {
    let mut peer = Peer::new();
    let sender = peer.link("s", 1, SENDER);
    let receiver = peer.receiver(5);
    peer.accept_send(receiver, 0);
    assert!(peer.frames().is_empty());
    peer.connection.detach(sender, Some(an_error()));
    peer.frames();
    peer.accept_send(sender, 0);
    assert!(peer.frames().is_empty());
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a sender gets accepted or rejected")]
fn released_is_an_invalid_outcome_for_a_sender() {
    let mut peer = Peer::new();
    let link = peer.link("s", 0, SENDER);
    peer.connection
        .outcome(link, DeliveryNumber(0), Outcome::Released);
}
