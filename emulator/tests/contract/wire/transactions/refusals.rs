//! Operations that transactions refuse without a change.

use serde_amqp::Value;

use super::bus_with;
use crate::support::*;

const UNKNOWN: &str = "amqp:transaction:unknown-id";
const TIMEOUT: &str = "amqp:transaction:timeout";
const ROLLBACK: &str = "amqp:transaction:rollback";

fn condition(result: Result<(), ServiceError>) -> String {
    let refusal = result.expect_err("it is refused");
    refusal.tracking_id();
    refusal.condition
}

#[test]
fn unknown_discharged_and_foreign_transactions_are_refused() {
    let (bus, mut peer, sender, receiver) = bus_with(&["a"]);
    let mut other = bus.client();
    let (_, foreign) = other.transaction();
    let (coordinator, discharged) = peer.transaction();
    peer.commit(&coordinator, &discharged).unwrap();
    let node = peer.node("q/$management");
    let delivery = peer.receive_one(&receiver);
    for id in [&[][..], &[0; 8], &[1; 32], &discharged, &foreign] {
        let result = peer.send_in(&sender, id, &Message::new("b"));
        assert_eq!(condition(result), UNKNOWN, "{id:?}");
        assert_eq!(condition(peer.commit(&coordinator, id)), UNKNOWN);
        let later = schedule(&[Message::new("c").scheduled_at(client_now() + 60_000)]);
        let reply = peer.call_in(&node, id, "schedule-message", later);
        refused_with(&reply, 404, UNKNOWN);
    }
    let refusal = peer.settle_in(&delivery, &foreign, accepted());
    let words = "Transaction hasn't been declared yet, or has already been discharged";
    let refusal = refusal.unwrap_err();
    assert_starts_with(refusal.words(), words);
    assert_eq!(bus.http.counts("q")["locked"], 1);
    bus.http.advance(61.0);
    assert_eq!(peer.drain_ids(&receiver, 100), ["a"]);
}

#[test]
fn a_discharge_after_two_minutes_is_refused() {
    let (bus, mut peer, sender, receiver) = bus_with(&[]);
    let (coordinator, transaction) = peer.transaction();
    bus.http.advance(600.0);
    peer.enlist(&sender, &transaction, "a");
    bus.http.advance(121.0);
    let late = peer.send_in(&sender, &transaction, &Message::new("b"));
    assert_eq!(condition(late), TIMEOUT);
    assert_eq!(condition(peer.commit(&coordinator, &transaction)), TIMEOUT);
    assert_eq!(condition(peer.commit(&coordinator, &transaction)), UNKNOWN);
    assert!(peer.drain_ids(&receiver, 100).is_empty());
    let events = bus.http.events("");
    let operations = events.iter().map(|event| &event["operation"]);
    let refused = operations.filter(|operation| !operation.is_null());
    assert_eq!(Vec::from_iter(refused), ["send", "discharge", "discharge"]);
}

#[test]
fn the_next_declaration_drops_the_work_of_a_transaction_that_timed_out() {
    let (bus, mut peer, sender, receiver) = bus_with(&["a"]);
    let (coordinator, transaction) = peer.transaction();
    let delivery = peer.receive_one(&receiver);
    peer.settle_in(&delivery, &transaction, accepted()).unwrap();
    let size = || {
        let shown = bus.admin().get("/q").expect(200);
        shown.value("SizeInBytes").to_owned()
    };
    let before = size();
    peer.enlist(&sender, &transaction, "b");
    assert_ne!(size(), before, "what it will send counts");
    bus.http.advance(121.0);
    peer.declare(&coordinator);
    assert_eq!(size(), before);
    // A settlement in it changes nothing, and its discharge has the reason.
    assert_eq!(condition(peer.commit(&coordinator, &transaction)), TIMEOUT);
    assert_eq!(peer.drain_ids(&receiver, 100), ["a"]);
}

#[test]
fn a_transaction_refuses_the_released_outcome() {
    let (bus, mut peer, _, receiver) = bus_with(&["a"]);
    let (_, transaction) = peer.transaction();
    let delivery = peer.receive_one(&receiver);
    let refused = peer.settle_in(&delivery, &transaction, released());
    assert_eq!(condition(refused), "amqp:not-allowed");
    assert_eq!(bus.http.counts("q")["locked"], 1);
}

#[test]
fn a_deleted_entity_fails_the_discharge() {
    let (bus, mut peer, sender, _) = bus_with(&[]);
    let (coordinator, transaction) = peer.transaction();
    peer.enlist(&sender, &transaction, "a");
    bus.http.queue("DELETE", "q", None).ok();
    let refused = peer.commit(&coordinator, &transaction);
    assert_eq!(condition(refused), ROLLBACK);
}

#[test]
fn an_invalid_coordinator_request_is_rejected_and_keeps_the_link() {
    let (_bus, mut peer, ..) = bus_with(&[]);
    let coordinator = peer.attached(&Attach::coordinator());
    for body in [Value::Null, text("declare"), composite(0x30, [])] {
        let id = peer.demand(&coordinator, body);
        let refused = peer.outcome(&coordinator, id);
        assert_eq!(condition(refused), "amqp:not-implemented");
    }
    let id = peer.demand(&coordinator, composite(0x32, []));
    let refused = peer.outcome(&coordinator, id);
    assert_eq!(condition(refused), UNKNOWN);
    peer.declare(&coordinator);
}

#[test]
fn a_connection_has_at_most_1000_open_transactions() {
    let (bus, mut peer, sender, receiver) = bus_with(&[]);
    let (coordinator, first) = peer.transaction();
    peer.enlist(&sender, &first, "a");
    for _ in 1..1000 {
        peer.declare(&coordinator);
    }
    let id = peer.demand(&coordinator, composite(0x31, []));
    let refused = peer.outcome(&coordinator, id);
    assert_eq!(condition(refused), "amqp:resource-limit-exceeded");
    // A transaction whose time is over makes room.
    bus.http.advance(121.0);
    let last = peer.declare(&coordinator);
    assert_eq!(condition(peer.commit(&coordinator, &first)), UNKNOWN);
    peer.enlist(&sender, &last, "b");
    peer.commit(&coordinator, &last).unwrap();
    assert_eq!(peer.drain_ids(&receiver, 100), ["b"]);
}

#[test]
fn the_basic_tier_has_no_transactions() {
    let (_bus, mut peer) =
        Bus::configured(&queues(r#""Tier":"basic""#, &[("q", "")])).with_client();
    let coordinator = peer.attached(&Attach::coordinator());
    let refusal = condition_of_declare(&mut peer, &coordinator);
    assert_eq!(refusal.condition, "amqp:not-allowed");
    let text = "Transaction is unsupported because the namespace sbemulatorns is of 'Basic' tier.";
    assert_starts_with(refusal.words(), text);
}

fn condition_of_declare(peer: &mut Peer, coordinator: &Link) -> ServiceError {
    let id = peer.demand(coordinator, composite(0x31, []));
    let state = peer.state_of(coordinator, id);
    let (_, fields) = described_list(&state);
    refusal_of(&fields[0])
}

#[test]
fn a_coordinator_target_on_a_receiver_link_is_ignored() {
    let (_bus, mut peer, ..) = bus_with(&["a"]);
    let odd = Attach {
        target: composite(0x30, []),
        ..Attach::receiver("q").named("odd")
    };
    let link = peer.attached(&odd);
    assert_eq!(peer.receive_one(&link).id(), "a");
}
