//! Transactions over several entities, via one of them (semantics §12, wire.md §8).
//!
//! Microsoft's .NET library overwrites an outcome that arrives before its own write has returned. It alone authenticates
//! with `MSSBCBS`, and gets every outcome twice, back to back (spec/observed.md 44): the exchange as it was replayed.

use serde_amqp::Value;

use super::bus_with;
use crate::support::*;

#[test]
fn a_via_destination_must_exist_and_accept_sends() {
    let (bus, mut peer, ..) = bus_with(&[]);
    let refusal = peer.refused(&Attach::via("q", "missing"));
    assert_eq!(refusal.condition, "amqp:not-found");
    assert_contains(&refusal.text, "missing");
    let refusal = peer.refused(&Attach::via("q", "other/$DeadLetterQueue"));
    assert_eq!(refusal.condition, "amqp:not-allowed");
    let via = peer.attached(&Attach::via("q", "sb://localhost/other"));
    peer.send(&via, &Message::new("plain"));
    let other = peer.receiver("other");
    assert_eq!(peer.drain_ids(&other, 100), ["plain"]);
    bus.http.queue("DELETE", "other", None).ok();
    peer.send(&via, &Message::new("a"));
    let dead = peer.receive_from("q/$Transfer/$DeadLetterQueue").message;
    assert_eq!(
        dead.dead_letter_reason(),
        text("MessagingEntityNotFoundException")
    );
}

#[test]
fn only_the_first_entity_of_a_transaction_can_be_received_from() {
    let (_bus, mut peer, sender, receiver) = bus_with(&["a"]);
    let elsewhere = peer.sender("other");
    peer.send(&elsewhere, &Message::new("b"));
    let others = peer.receiver("other");
    let (coordinator, transaction) = peer.transaction();
    let (own, other) = (peer.receive_one(&receiver), peer.receive_one(&others));
    peer.settle_in(&own, &transaction, accepted()).unwrap();
    let refusal = peer.settle_in(&other, &transaction, accepted());
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal.condition, "amqp:not-allowed");
    assert_starts_with(
        refusal.words(),
        "Local transactions cannot span multiple top-level entities",
    );
    peer.enlist(&sender, &transaction, "c");
    peer.enlist(&elsewhere, &transaction, "d");
    assert_eq!(peer.commit(&coordinator, &transaction), Ok(()));
    assert_eq!(peer.drain_ids(&receiver, 100), ["c"]);
    assert_eq!(peer.drain_ids(&others, 100), ["d"]);
}

/// The dispositions about a delivery of this client, as whether they settle and with which state.
fn outcomes(peer: &mut Peer, id: u32) -> [(bool, Value); 2] {
    [1, 2].map(|_| {
        let frame = peer.take("an outcome", |frame| frame.code == DISPOSITION);
        assert!(frame.flag(0), "the emulator is the receiver: {frame:?}");
        assert_eq!((frame.number(1), frame.number(2)), (id, id), "back to back");
        (frame.flag(3), frame.field(4).clone())
    })
}

fn twice(state: Value) -> [(bool, Value); 2] {
    [(false, state.clone()), (true, state)]
}

#[test]
fn o44_every_outcome_is_sent_twice_to_mssbcbs_clients() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.client_by("MSSBCBS");
    let sender = peer.sender("q");
    let receiver = peer.receiver("q");

    let accepts = peer.transfer(&sender, 0, false, &Message::new("m").encode());
    assert_eq!(outcomes(&mut peer, accepts), twice(accepted()));
    // It settles the first of them itself, which changes nothing.
    let fields = [
        Value::Bool(false),
        uint(accepts),
        uint(accepts),
        Value::Bool(true),
        accepted(),
    ];
    peer.frame(0, DISPOSITION, &fields);

    let rejects = peer.transfer(&sender, 0, false, b"no message");
    let [first, second] = outcomes(&mut peer, rejects);
    assert_eq!((first.0, second.0), (false, true));
    assert_eq!(refused(&first.1).condition, "amqp:decode-error");
    assert_eq!(first.1, second.1);

    let coordinator = peer.attached(&Attach::coordinator());
    let declares = peer.demand(&coordinator, composite(0x31, []));
    let [first, second] = outcomes(&mut peer, declares);
    assert_eq!((first.0, second.0), (false, true));
    assert_eq!(first.1, second.1);
    let (0x33, [Value::Binary(transaction)]) = described_list(&first.1) else {
        panic!("not declared: {first:?}");
    };
    let commits = peer.demand(&coordinator, discharge(transaction, false));
    assert_eq!(outcomes(&mut peer, commits), twice(accepted()));
    let fails = peer.demand(&coordinator, discharge(transaction, false));
    let [first, second] = outcomes(&mut peer, fails);
    assert_eq!((first.0, second.0), (false, true));
    assert_eq!(refused(&second.1).condition, "amqp:transaction:unknown-id");

    // A settlement by the client itself is answered once.
    peer.complete_one(&receiver);
    peer.assert_no_frame(|frame| frame.code == DISPOSITION);
}

#[test]
fn o44_other_clients_get_each_outcome_once() {
    let bus = Bus::with_queues(&["q"]);
    for mechanism in ["ANONYMOUS", "EXTERNAL"] {
        let mut peer = bus.client_by(mechanism);
        peer.send_to("q", &Message::new("m"));
        peer.assert_no_frame(|frame| frame.code == DISPOSITION);
    }
}
