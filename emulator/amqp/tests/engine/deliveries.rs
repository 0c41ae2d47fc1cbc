//! Deliveries to the peer.

use bytes::Bytes;
use serde_amqp::Value;
use servicebus_amqp::{Config, DeliveryNumber, Event};

use crate::peer::*;

#[test]
fn a_delivery_in_one_frame() {
    let mut peer = Peer::new();
    let link = peer.receiver(2);
    assert_eq!(peer.connection.credit(link), 2);
    assert_eq!(peer.deliver(link, 9, false), Some(DeliveryNumber(0)));
    assert_eq!(peer.deliver(link, 8, true), Some(DeliveryNumber(1)));
    assert_eq!(peer.deliver(link, 7, false), None, "credit is used up");
    let frames = peer.frames();
    assert_eq!(frames.len(), 2);
    let fields = &frames[0].fields;
    assert_eq!(fields.len(), 11);
    assert_eq!(fields[..3], [uint(0), uint(0), binary(&[9; 16])]);
    assert_eq!(
        fields[3..6],
        [uint(0), Value::Bool(false), Value::Bool(false)]
    );
    assert_eq!(frames[0].payload, b"headtail");
    assert_eq!(frames[1].fields[4], Value::Bool(true));
}

#[test]
fn a_large_message_is_cut_at_the_smaller_frame_size() {
    for (peers, ours, frame) in [(600, 65_536, 600), (u32::MAX, 512, 512)] {
        let config = Config {
            max_frame_size: ours,
            ..Config::default()
        };
        let mut peer = Peer::with(config, &[uint(peers)], 5000);
        let link = peer.receiver(5);
        let message: Vec<u8> = (0..50_000u32).map(|n| n as u8).collect();
        for head in [0, 100, 1000] {
            let tail = Bytes::copy_from_slice(&message[head..]);
            peer.deliver_bytes(link, 1, false, &message[..head], tail)
                .unwrap();
            let frames = peer.frames();
            let (last, others) = frames.split_last().unwrap();
            assert!(others.iter().all(|f| f.fields[5] == Value::Bool(true)));
            assert!(others.iter().all(|f| f.body.len() + 8 == frame));
            assert_eq!(last.fields[5], Value::Bool(false));
            let joined: Vec<u8> = frames.iter().flat_map(|f| f.payload.clone()).collect();
            assert_eq!(joined, message);
            assert!(
                frames
                    .iter()
                    .all(|f| f.fields[1..4] == frames[0].fields[1..4])
            );
        }
    }
}

#[test]
fn a_frame_may_be_filled_to_the_last_byte() {
    let mut peer = Peer::with(Config::default(), &[uint(512)], 5000);
    let link = peer.receiver(5);
    for (size, count) in [(457, 1), (458, 1), (459, 2), (916, 2), (917, 3)] {
        peer.deliver_bytes(link, 1, false, &[], vec![7; size].into())
            .unwrap();
        let frames = peer.frames();
        assert_eq!(frames.len(), count, "{size}");
        assert!(frames.iter().all(|f| f.body.len() + 8 <= 512));
    }
}

#[test]
fn large_payloads_are_shared_and_small_ones_copied() {
    let mut peer = Peer::new();
    let link = peer.receiver(5);
    let small = Bytes::from(vec![1; 16 * 1024]);
    peer.deliver_bytes(link, 1, false, b"h", small.clone());
    assert!(small.is_unique());
    let large = Bytes::from(vec![2; 16 * 1024 + 1]);
    peer.deliver_bytes(link, 1, false, b"h", large.clone());
    assert!(!large.is_unique());
    let frames = peer.frames();
    assert_eq!(frames[1].payload.len(), 16 * 1024 + 2);
    assert!(large.is_unique());
}

#[test]
fn deliveries_wait_for_the_session_window_to_open() {
    let mut peer = Peer::with(Config::default(), &[], 2);
    let link = peer.link("r", 0, RECEIVER);
    peer.frame(0, FLOW, &window_flow(0, 2, 0, 10));
    assert!(matches!(peer.event(), Event::Credit { credit: 10, .. }));
    assert_eq!(peer.connection.credit(link), 2);
    peer.deliver(link, 1, true).unwrap();
    peer.deliver(link, 2, true).unwrap();
    assert_eq!(peer.connection.credit(link), 0);
    assert_eq!(peer.connection.link_credit(link), 8);
    assert!(peer.deliver(link, 3, true).is_none());
    peer.frame(0, FLOW, &[uint(1), uint(1), uint(0), uint(0)]);
    assert!(peer.events().is_empty(), "nothing more than is in flight");
    peer.frame(0, FLOW, &[uint(2), uint(2), uint(0), uint(0)]);
    assert!(matches!(peer.event(), Event::Credit { credit: 8, .. }));
    assert_eq!(peer.connection.credit(link), 2);
}

#[test]
fn a_message_larger_than_the_window_is_completed_when_it_opens() {
    let mut peer = Peer::with(Config::default(), &[uint(512)], 2);
    let link = peer.link("r", 0, RECEIVER);
    peer.frame(0, FLOW, &window_flow(0, 2, 0, 10));
    peer.event();
    let message: Vec<u8> = (0..2000u32).map(|n| n as u8).collect();
    for (sent, head) in [(0, 0), (5, 1500)] {
        peer.frame(0, FLOW, &[uint(sent), uint(2), uint(0), uint(0)]);
        let tail = Bytes::copy_from_slice(&message[head..]);
        peer.deliver_bytes(link, 1, false, &message[..head], tail)
            .unwrap();
        assert_eq!(peer.connection.credit(link), 0);
        assert!(peer.deliver(link, 2, false).is_none());
        peer.connection.drained(link);
        let mut frames = peer.frames();
        assert_eq!(frames.len(), 2);
        for expected in [4, 5] {
            assert!(peer.events().is_empty());
            let next = sent + frames.len() as u32;
            peer.frame(0, FLOW, &[uint(next), uint(2), uint(0), uint(0)]);
            frames.extend(peer.frames());
            assert_eq!(frames.len(), expected);
        }
        assert!(matches!(peer.event(), Event::Credit { .. }));
        let joined: Vec<u8> = frames.iter().flat_map(|f| f.payload.clone()).collect();
        assert_eq!(joined, message);
        assert_eq!(peer.connection.credit(link), 1);
    }
}

#[test]
fn a_partially_sent_message_is_dropped_when_its_link_is_detached() {
    let mut peer = Peer::with(Config::default(), &[uint(512)], 1);
    let link = peer.link("r", 0, RECEIVER);
    let other = peer.link("r2", 1, RECEIVER);
    peer.frame(0, FLOW, &window_flow(0, 1, 0, 10));
    peer.frame(0, FLOW, &window_flow(0, 1, 1, 10));
    peer.events();
    peer.deliver_bytes(link, 1, false, &[0; 1000], Bytes::new())
        .unwrap();
    peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
    peer.frames();
    peer.events();
    peer.frame(0, FLOW, &[uint(1), uint(5), uint(0), uint(0)]);
    assert!(peer.frames().is_empty());
    assert!(matches!(peer.event(), Event::Credit { link, .. } if link == other));
    assert!(peer.deliver(other, 1, false).is_some());
}

#[test]
fn the_room_of_a_link_reserves_two_frames_per_delivery() {
    let mut peer = Peer::with(Config::default(), &[uint(1054)], 5000);
    let link = peer.receiver(100);
    assert_eq!(peer.connection.room(link, 4), 4992 * 1000);
    assert_eq!(peer.connection.room(link, 5000), 0);
}

#[test]
fn deliveries_that_fit_the_room_are_sent_with_their_annotations() {
    const ADDED: usize = 400;
    for (window, deliveries) in [(2, 1), (20, 2), (20, 5), (20, 9), (100, 30)] {
        let mut peer = Peer::with(Config::default(), &[uint(512)], window);
        let link = peer.receiver(deliveries);
        peer.frame(0, FLOW, &[uint(0), uint(window), uint(0), uint(0)]);
        let size = peer.connection.room(link, deliveries) / deliveries as usize;
        for _ in 0..deliveries {
            let delivered = peer.deliver_bytes(link, 1, true, &vec![0; size + ADDED], Bytes::new());
            assert!(delivered.is_some(), "{deliveries} in {window} frames");
        }
    }
}

/// A flow by one who has received `next` frames, takes `window` more and wants `credit`.
fn window_flow(next: u32, window: u32, handle: u32, credit: u32) -> Vec<Value> {
    vec![
        uint(next),
        uint(window),
        uint(0),
        uint(0),
        uint(handle),
        uint(0),
        uint(credit),
    ]
}
