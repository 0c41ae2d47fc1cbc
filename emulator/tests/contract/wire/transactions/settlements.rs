//! A settlement in a transaction is answered twice: unsettled at once, settled with the commit (spec/observed.md 41).

use super::bus_with;
use crate::support::*;

#[test]
fn o41_a_settlement_is_answered_unsettled_and_then_settled_before_the_discharge() {
    let (_bus, mut peer, _, receiver) = bus_with(&["a", "b"]);
    let (coordinator, transaction) = peer.transaction();
    let deliveries = [1, 2].map(|_| peer.receive_one(&receiver));
    peer.settle_in(&deliveries[0], &transaction, accepted())
        .unwrap();
    peer.settle_in(&deliveries[1], &transaction, dead_lettered("why", "x"))
        .unwrap();
    let id = peer.demand(&coordinator, discharge(&transaction, false));
    let mut order = Vec::new();
    while order.last() != Some(&(true, id)) {
        let frame = peer.expect(DISPOSITION);
        assert!(frame.flag(3), "{frame:?}");
        order.push((frame.flag(0), frame.number(1)));
    }
    let [first, second] = deliveries.map(|delivery| (false, delivery.id));
    assert_eq!(order, [first, second, (true, id)]);
}

#[test]
fn o41_a_delivery_can_be_settled_again_after_a_rollback() {
    for again in ["plain", "released", "in another transaction"] {
        let (bus, mut peer, _, receiver) = bus_with(&["a"]);
        let (coordinator, transaction) = peer.transaction();
        let delivery = peer.receive_one(&receiver);
        peer.settle_in(&delivery, &transaction, accepted()).unwrap();
        peer.roll_back(&coordinator, &transaction);
        peer.assert_no_frame(|frame| frame.code == DISPOSITION);
        assert_eq!(bus.http.counts("q")["locked"], 1, "the lock runs on");
        match again {
            "plain" => peer.complete(&delivery),
            "released" => {
                assert_eq!(peer.settle(&delivery, released()), released());
                let back = peer.receive_one(&receiver);
                assert_eq!(back.message.header(4), uint(0));
                peer.complete(&back);
            }
            _ => {
                let second = peer.declare(&coordinator);
                peer.settle_in(&delivery, &second, accepted()).unwrap();
                assert_eq!(peer.commit(&coordinator, &second), Ok(()));
                peer.settled_with_commit(&delivery);
            }
        }
        assert_eq!(bus.http.held("q"), (0, 0), "{again}");
    }
}

/// Its transaction still has to settle it for the client.
#[test]
fn o41_a_second_settlement_of_an_enlisted_delivery_is_refused() {
    for commits in [true, false] {
        let (bus, mut peer, _, receiver) = bus_with(&["a"]);
        let (coordinator, transaction) = peer.transaction();
        let delivery = peer.receive_one(&receiver);
        peer.settle_in(&delivery, &transaction, accepted()).unwrap();
        let other = peer.declare(&coordinator);
        for again in [abandoned(), in_transaction(&other, accepted())] {
            peer.dispose(delivery.channel, delivery.id, delivery.id, false, again);
            let answer = peer.expect(DISPOSITION);
            assert!(!answer.flag(3), "{answer:?}");
            let refusal = refused(answer.field(4));
            assert_eq!(refusal.condition, "com.microsoft:message-lock-lost");
        }
        if commits {
            assert_eq!(peer.commit(&coordinator, &transaction), Ok(()));
            peer.settled_with_commit(&delivery);
        } else {
            peer.roll_back(&coordinator, &transaction);
            peer.complete(&delivery);
        }
        assert_eq!(bus.http.held("q"), (0, 0));
    }
}

#[test]
fn o41_a_failed_commit_settles_nothing() {
    let (bus, mut peer, _, receiver) = bus_with(&["a"]);
    let (coordinator, transaction) = peer.transaction();
    let delivery = peer.receive_one(&receiver);
    peer.settle_in(&delivery, &transaction, accepted()).unwrap();
    bus.http.advance(61.0);
    peer.commit(&coordinator, &transaction).unwrap_err();
    peer.assert_no_frame(|frame| frame.code == DISPOSITION);
    peer.assert_lock_lost(&delivery);
}

/// As qpid-jms settles: it forgets the delivery with its disposition.
#[test]
fn o41_a_presettled_delivery_is_available_after_a_rollback() {
    for ends_with_discharge in [true, false] {
        let (bus, mut peer, _, receiver) = bus_with(&["a"]);
        let (coordinator, transaction) = peer.transaction();
        let delivery = peer.receive_one(&receiver);
        let state = in_transaction(&transaction, accepted());
        peer.dispose(delivery.channel, delivery.id, delivery.id, true, state);
        peer.assert_no_frame(|frame| frame.code == DISPOSITION);
        match ends_with_discharge {
            true => peer.roll_back(&coordinator, &transaction),
            false => peer.detach(&coordinator),
        }
        assert_eq!(bus.http.counts("q")["locked"], 0);
        assert_eq!(peer.drain_ids(&receiver, 100), ["a"]);
    }
}

#[test]
fn o42_a_message_of_another_partition_is_returned() {
    let (_bus, mut peer, sender) = Bus::with_queue(r#""EnablePartitioning":true"#).with_sender("q");
    for key in ["one", "two"] {
        let message = Message::new(key).annotation("x-opt-partition-key", text(key));
        peer.send(&sender, &message);
    }
    let receiver = peer.receiver("q");
    let deliveries = [1, 2].map(|_| peer.receive_one(&receiver));
    let (coordinator, transaction) = peer.transaction();
    peer.settle_in(&deliveries[0], &transaction, accepted())
        .unwrap();
    let refusal = peer.settle_in(&deliveries[1], &transaction, accepted());
    let refusal = refusal.unwrap_err();
    assert_eq!(refusal.condition, "amqp:not-allowed");
    let back = peer.receive_one(&receiver);
    assert_eq!(back.message.id(), "two");
    assert_eq!(back.message.header(4), uint(1));
    let node = peer.node("q/$management");
    let reply = peer.update_disposition(&node, "completed", &[deliveries[1].token()]);
    assert_lock_lost(&reply);
    assert_eq!(peer.commit(&coordinator, &transaction), Ok(()));
}

/// As .NET does with `EnableCrossEntityTransactions`: all links on the session of the coordinator.
#[test]
fn o43_a_via_destination_cannot_be_received_from() {
    for fail in [false, true] {
        let (_bus, mut peer) = Bus::with_queues(&["a", "b"]).with_client();
        let coordinator = peer.attached(&Attach::coordinator());
        let transaction = peer.declare(&coordinator);
        for queue in ["b", "a"] {
            let sender = peer.sender(queue);
            let sent = peer.send_in(&sender, &transaction, &Message::new(queue));
            assert_eq!(sent, Ok(()));
        }
        match fail {
            true => peer.roll_back(&coordinator, &transaction),
            false => peer.commit(&coordinator, &transaction).unwrap(),
        }
        let refusal = peer.refused(&Attach::receiver("a"));
        assert_eq!(refusal.condition, "amqp:not-allowed");
        let words =
            "Local transactions cannot span multiple top-level entities such as queue or topic.";
        assert_starts_with(refusal.words(), words);
        let own = peer.receiver("b");
        assert_eq!(
            peer.drain_ids(&own, 100).len(),
            usize::from(!fail),
            "the first is received from"
        );
        peer.begin(1);
        peer.attached(&Attach::receiver("a").named("elsewhere").on(1));
    }
}
