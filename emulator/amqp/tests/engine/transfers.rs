//! Deliveries from the peer.

use serde_amqp::Value;
use servicebus_amqp::{Config, DeliveryNumber, Event, LinkId};

use crate::peer::*;

fn sender() -> (Peer, LinkId) {
    let mut peer = Peer::new();
    let link = peer.link("sender", 0, SENDER);
    (peer, link)
}

#[test]
fn a_message_in_one_transfer_is_received() {
    let (mut peer, link) = sender();
    let mut fields = transfer(0, Some(41), true, false);
    fields[3] = uint(0x8001_3700);
    peer.transfer(&fields, b"message");
    let transfer = peer.received();
    assert_eq!(transfer.link, link);
    assert_eq!(transfer.delivery, DeliveryNumber(41));
    assert!(transfer.settled);
    assert_eq!(transfer.message_format, 0x8001_3700);
    assert_eq!(transfer.payload, b"message"[..]);
    assert_eq!(transfer.transaction, None);
    assert!(peer.frames().is_empty());
}

#[test]
fn payloads_are_slices_of_the_block() {
    let (mut peer, _) = sender();
    let mut block = Vec::new();
    for id in 1..4 {
        block.extend(performative(
            0,
            TRANSFER,
            &transfer(0, Some(id), false, false),
            b"message",
        ));
    }
    peer.send(&block);
    let payloads: Vec<_> = (0..3).map(|_| peer.received().payload).collect();
    let distance = payloads[1].as_ptr() as usize - payloads[0].as_ptr() as usize;
    assert_eq!(distance, block.len() / 3);
}

#[test]
fn a_message_in_many_transfers_is_received() {
    let (mut peer, _) = sender();
    peer.transfer(&transfer(0, Some(5), false, true), b"one ");
    // Python repeats the id, others leave it out.
    peer.transfer(&transfer(0, Some(5), false, true), b"two ");
    peer.transfer(&transfer(0, None, true, false), b"three");
    let transfer = peer.received();
    assert_eq!(transfer.payload, b"one two three"[..]);
    assert_eq!(transfer.delivery, DeliveryNumber(5));
    assert!(transfer.settled, "the last word counts");
    assert!(peer.events().is_empty());
}

#[test]
fn frames_of_two_links_interleave() {
    let (mut peer, _) = sender();
    peer.link("other", 1, SENDER);
    peer.transfer(&transfer(0, Some(1), false, true), b"a");
    peer.transfer(&transfer(1, Some(2), false, true), b"x");
    peer.transfer(&transfer(0, None, false, false), b"b");
    peer.transfer(&transfer(1, None, false, false), b"y");
    assert_eq!(peer.received().payload, b"ab"[..]);
    assert_eq!(peer.received().payload, b"xy"[..]);
}

#[test]
fn an_aborted_transfer_is_discarded() {
    let (mut peer, _) = sender();
    peer.transfer(&transfer(0, Some(1), false, true), b"a");
    let mut abort = transfer(0, Some(1), false, true);
    abort.resize(9, Value::Null);
    abort.push(Value::Bool(true));
    peer.transfer(&abort, b"b");
    peer.transfer(&transfer(0, Some(2), false, false), b"c");
    assert_eq!(peer.received().payload, b"c"[..]);
    assert!(peer.events().is_empty());
}

/// go-amqp leaves a delivery unfinished if its send is cancelled, and counts it as no delivery.
#[test]
fn the_next_delivery_replaces_an_unfinished_one() {
    let (mut peer, _) = sender();
    peer.transfer(&transfer(0, Some(1), false, true), b"a");
    peer.transfer(&transfer(0, Some(2), false, true), b"b");
    peer.transfer(&transfer(0, None, false, false), b"c");
    peer.transfer(&transfer(0, Some(3), false, true), b"d");
    peer.transfer(&transfer(0, Some(4), false, false), b"e");
    for (number, payload) in [(2, &b"bc"[..]), (4, b"e")] {
        let received = peer.received();
        assert_eq!(
            (received.delivery.0, &received.payload[..]),
            (number, payload)
        );
    }
    assert!(peer.events().is_empty() && peer.frames().is_empty());
}

#[test]
fn an_oversized_message_is_reported_with_its_size() {
    let (mut peer, link) = sender();
    peer.transfer(&transfer(0, Some(1), false, false), &[0; 1000]);
    assert_eq!(peer.received().payload.len(), 1000);
    peer.transfer(&transfer(0, Some(2), true, false), &[0; 1001]);
    for _ in 0..9 {
        peer.transfer(&transfer(0, Some(3), false, true), &[0; 300]);
    }
    peer.transfer(&transfer(0, None, false, false), &[0; 300]);
    for (number, pre, bytes) in [(2, true, 1001), (3, false, 3000)] {
        let Event::TransferTooLarge {
            link: on,
            delivery,
            settled,
            size,
            limit,
            head,
            transaction: None,
        } = peer.event()
        else {
            panic!("no such event");
        };
        assert_eq!(on, link);
        assert_eq!(
            (delivery.0, settled, size, limit),
            (number, pre, bytes, 1000)
        );
        assert_eq!(*head, vec![0; bytes as usize]);
    }
    assert!(peer.frames().is_empty());
}

#[test]
fn a_transfer_with_a_transactional_state_has_its_transaction() {
    let (mut peer, _) = sender();
    let mut fields = transfer(0, Some(1), false, false);
    fields.push(Value::Null);
    fields.push(composite(0x34, vec![binary(b"tx")]));
    peer.transfer(&fields, b"x");
    assert_eq!(peer.received().transaction.as_deref(), Some(&b"tx"[..]));
}

#[test]
fn link_credit_is_replenished_at_half() {
    let (mut peer, _) = sender();
    for id in 0..499 {
        peer.transfer(&transfer(0, Some(id), true, false), b"x");
    }
    assert!(peer.frames().is_empty());
    peer.transfer(&transfer(0, Some(499), true, false), b"x");
    let flow = peer.only();
    assert_eq!(flow.code, FLOW);
    assert_eq!(flow.fields[0], uint(500));
    assert_eq!(flow.fields[4..7], [uint(0), uint(500), uint(1000)]);
    assert_eq!(flow.fields[9], Value::Bool(false));
    assert!(peer.frames().is_empty());
}

#[test]
fn the_delivery_count_starts_at_the_initial_count_and_wraps() {
    let mut peer = Peer::new();
    let mut fields = attach("s", 0, SENDER);
    fields[9] = uint(u32::MAX);
    peer.frame(0, ATTACH, &fields);
    let (link, _) = peer.attached();
    peer.accept(link);
    assert_eq!(peer.frames()[1].fields[5], uint(u32::MAX));
    for id in 0..500u32 {
        peer.transfer(&transfer(0, Some(id.wrapping_sub(250)), true, false), b"x");
    }
    assert_eq!(peer.only().fields[5], uint(499));
}

#[test]
fn the_session_window_is_announced_again_at_half() {
    let config = Config {
        session_window: 10,
        ..Config::default()
    };
    let mut peer = Peer::with(config, &[], 5000);
    peer.link("s", 0, SENDER);
    for _ in 0..4 {
        peer.transfer(&transfer(0, Some(7), false, true), b"x");
    }
    assert!(peer.frames().is_empty());
    peer.transfer(&transfer(0, Some(7), false, true), b"x");
    let flow = peer.only();
    assert_eq!(flow.fields[..2], [uint(5), uint(10)]);
    assert_eq!(flow.fields[4..7], [Value::Null, Value::Null, Value::Null]);
}

#[test]
fn credit_window_and_ids_of_a_peer_are_not_enforced() {
    let config = Config {
        session_window: 2,
        incoming_credit: 2,
        ..Config::default()
    };
    let mut peer = Peer::with(config, &[], 5000);
    peer.link("s", 0, SENDER);
    for id in [7, 3, 9, 9, 1, 0] {
        peer.transfer(&transfer(0, Some(id), true, false), b"x");
    }
    assert_eq!(peer.events().len(), 6);
}
