//! Transactions, frame by frame (semantics §12, wire.md §8).

mod crossing;
mod refusals;
mod settlements;

use crate::support::*;

/// A queue with these messages, a client, and links to send and to receive.
fn bus_with(ids: &[&str]) -> (Bus, Peer, Link, Link) {
    let (bus, mut peer, sender) = Bus::with_queues(&["q", "other"]).with_sender("q");
    for id in ids {
        peer.send(&sender, &Message::new(id));
    }
    let receiver = peer.receiver("q");
    (bus, peer, sender, receiver)
}

#[test]
fn the_coordinator_is_echoed_and_gives_credit() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let attach = Attach::coordinator();
    let coordinator = peer.attached(&attach);
    assert_eq!(coordinator.answer.field(6), &attach.target);
    let flow = peer.take("credit", |frame| {
        frame.code == FLOW && frame.field(4) == &uint(coordinator.handle)
    });
    assert!(flow.number(6) > 0, "{flow:?}");
    let first = peer.declare(&coordinator);
    let second = peer.declare(&coordinator);
    assert_ne!(first, second);
    peer.roll_back(&coordinator, &first);
    assert_eq!(peer.commit(&coordinator, &second), Ok(()));
}

#[test]
fn transactional_sends_in_one_read_are_answered_in_one_range() {
    let (_bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let (coordinator, transaction) = peer.transaction();
    let transfers = ["a", "b", "c"]
        .map(|id| peer.transfer_frame_in(&sender, &transaction, 0, &Message::new(id).encode()));
    peer.write(&transfers.each_ref().map(|(_, frame)| &**frame).concat());
    let (first, last) = (transfers[0].0, transfers[2].0);
    let outcome = peer.take("an outcome", |frame| {
        frame.code == DISPOSITION && frame.is_about(first)
    });
    assert_eq!((outcome.number(1), outcome.number(2)), (first, last));
    assert_eq!(peer.commit(&coordinator, &transaction), Ok(()));
}

#[test]
fn management_requests_take_part_in_transactions() {
    let (bus, mut peer, _, receiver) = bus_with(&["a", "b"]);
    let node = peer.node("q/$management");
    let (coordinator, transaction) = peer.transaction();
    let held = [1, 2].map(|_| peer.receive_one(&receiver).token());
    let settle = disposition("completed", &held);
    let reply = peer.call_in(&node, &transaction, "update-disposition", settle.clone());
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let again = peer.call_in(&node, &transaction, "update-disposition", settle);
    assert_lock_lost(&again);
    let later = Message::new("c").scheduled_at(client_now() + 60_000);
    let body = schedule(&[later]);
    let reply = peer.call_in(&node, &transaction, "schedule-message", body);
    assert_eq!(scheduled(&reply), [3]);
    let reply = peer.call_in(
        &node,
        &transaction,
        "cancel-scheduled-message",
        map([numbers(&[3])]),
    );
    refused_with(&reply, 400, "amqp:not-allowed");
    // Operations outside a transaction take effect at once.
    let reply = peer.call_in(&node, &transaction, "renew-lock", map([tokens(&held)]));
    assert_eq!(reply.status(), 200);
    assert_eq!(bus.http.counts("q")["scheduled"], 0);
    assert_eq!(bus.http.counts("q")["locked"], 2);
    assert_eq!(peer.commit(&coordinator, &transaction), Ok(()));
    assert_eq!(bus.http.counts("q")["scheduled"], 1);
    assert_eq!(bus.http.counts("q")["locked"], 0);
    let reply = peer.cancel_scheduled(&node, &[3]);
    assert_eq!(reply.status(), 200, "the number holds");
}

#[test]
fn a_detached_coordinator_or_lost_connection_rolls_back() {
    for with_connection in [false, true] {
        let (bus, mut peer, sender, receiver) = bus_with(&["a"]);
        let (coordinator, transaction) = peer.replace_in_transaction(&receiver, &sender, "b");
        match with_connection {
            true => drop(peer),
            false => {
                peer.detach(&coordinator);
                let late = peer.send_in(&sender, &transaction, &Message::new("c"));
                assert_eq!(late.unwrap_err().condition, "amqp:transaction:unknown-id");
            }
        }
        eventually("the rollback", || {
            let events = bus.http.events("?entity=q");
            let rolled_back = events
                .iter()
                .any(|event| event["kind"] == "transaction-rolled-back");
            rolled_back.then_some(())
        });
        assert_eq!(bus.http.counts("q")["locked"], 1);
        bus.http.advance(61.0);
        let (mut other, receiver) = bus.receiver("q");
        let again = other.drain(&receiver, 10);
        assert_eq!(again.iter().map(Delivery::id).collect::<Vec<_>>(), ["a"]);
        assert_eq!(again[0].message.header(4), uint(1));
    }
}

#[test]
fn transactional_work_may_be_on_other_amqp_sessions() {
    let (_bus, mut peer, sender, receiver) = bus_with(&["a"]);
    peer.begin(1);
    let coordinator = peer.attached(&Attach::coordinator().on(1));
    let transaction = peer.declare(&coordinator);
    let delivery = peer.receive_one(&receiver);
    peer.settle_in(&delivery, &transaction, accepted()).unwrap();
    let batch = batch(&["b", "c"].map(|id| Message::new(id).encode()));
    peer.post_in(&sender, &transaction, BATCH, &batch).unwrap();
    assert_eq!(peer.commit(&coordinator, &transaction), Ok(()));
    assert_eq!(peer.drain_ids(&receiver, 100), ["b", "c"]);
}

#[test]
fn the_timeline_shows_the_events_of_a_transaction() {
    let (bus, mut peer, sender, receiver) = bus_with(&["a"]);
    let (coordinator, transaction) = peer.replace_in_transaction(&receiver, &sender, "b");
    peer.commit(&coordinator, &transaction).unwrap();
    let name: String = transaction
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let events = bus.http.events("?entity=q");
    let kinds: Vec<_> = events
        .iter()
        .filter(|event| event["detail"] == format!("transaction {name}"))
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    let expected = [
        "settlement-enlisted",
        "send-enlisted",
        "transaction-committed",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_presettled_transactional_send_is_committed_without_an_answer() {
    let (_bus, mut peer, sender, receiver) = bus_with(&[]);
    let (coordinator, transaction) = peer.transaction();
    let state = composite(0x34, [binary(&transaction)]);
    peer.transfer_with(&sender, 0, true, state, &Message::new("a").encode());
    peer.assert_no_frame(|frame| frame.code == DISPOSITION);
    assert_eq!(peer.commit(&coordinator, &transaction), Ok(()));
    assert_eq!(peer.drain_ids(&receiver, 100), ["a"]);
}
