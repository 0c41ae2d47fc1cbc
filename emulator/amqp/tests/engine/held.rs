//! What a peer makes this side keep is counted, and nothing of it once it is over.

use bytes::Bytes;
use serde_amqp::Value;
use servicebus_amqp::{Config, DeliveryNumber, LinkId, Outcome};

use crate::peer::*;

/// What it is with nothing but an open connection and one session.
fn idle(peer: &mut Peer) -> usize {
    peer.output();
    assert!(peer.events().is_empty());
    peer.connection.held()
}

#[test]
fn links_with_long_names_are_counted_as_held_memory() {
    let mut peer = Peer::new();
    let before = idle(&mut peer);
    for handle in 0..100 {
        peer.link(&format!("{handle:4000}"), handle, SENDER);
    }
    let held = idle(&mut peer) - before;
    assert!((400_000..600_000).contains(&held), "{held} bytes");
    for handle in 0..100 {
        peer.frame(0, DETACH, &[uint(handle), true.into()]);
    }
    peer.events();
    assert_eq!(idle(&mut peer), before);
}

#[test]
fn sessions_and_their_links_are_counted_as_held_memory() {
    let mut peer = Peer::new();
    let before = idle(&mut peer);
    let begin = [Value::Null, uint(0), uint(10), uint(10)];
    for channel in 1..=100 {
        peer.frame(channel, BEGIN, &begin);
        let name = format!("{channel:1000}");
        peer.frame(channel, ATTACH, &attach(&name, 0, SENDER));
    }
    peer.events();
    let held = idle(&mut peer) - before;
    assert!((100_000..300_000).contains(&held), "{held} bytes");
    for channel in 1..=100 {
        peer.frame(channel, END, &[]);
    }
    peer.events();
    // The table of channels stays as long as it was.
    assert!(idle(&mut peer) < before + 4_000);
}

#[test]
fn an_incomplete_delivery_and_its_tag_are_counted_as_held_memory() {
    let mut peer = Peer::new();
    peer.link("sender", 0, SENDER);
    let before = idle(&mut peer);
    let part = transfer(0, Some(1), false, true);
    peer.transfer(&part, &[7; 900]);
    let held = idle(&mut peer) - before;
    assert!((900..1_200).contains(&held), "{held} bytes");
    let mut aborted = transfer(0, Some(1), false, true);
    aborted.resize(9, Value::Null);
    aborted.push(true.into());
    peer.transfer(&aborted, &[]);
    assert_eq!(idle(&mut peer), before);
}

#[test]
fn an_incomplete_delivery_is_freed_with_its_link_or_session() {
    let ends: [fn(&mut Peer, LinkId); 3] = [
        |peer, _| peer.frame(0, DETACH, &[uint(0), true.into()]),
        |peer, link| {
            peer.connection.detach(link, None);
            peer.frame(0, DETACH, &[uint(0), true.into()]);
        },
        |peer, _| {
            peer.frame(0, END, &[]);
            peer.frame(0, BEGIN, &[Value::Null, uint(0), uint(5000), uint(5000)]);
        },
    ];
    for end in ends {
        let mut peer = Peer::new();
        let before = idle(&mut peer);
        let link = peer.link("sender", 0, SENDER);
        let part = transfer(0, Some(1), false, true);
        peer.transfer(&part, &[7; 900]);
        assert!(idle(&mut peer) > before + 900);
        end(&mut peer, link);
        peer.events();
        // The tables of links and sessions stay as long as they were.
        assert!(idle(&mut peer) < before + 300);
    }
}

#[test]
fn unread_transfer_events_are_counted_as_held_memory() {
    let mut peer = Peer::new();
    peer.link("sender", 0, SENDER);
    let before = idle(&mut peer);
    for id in 0..10 {
        let whole = transfer(0, Some(id), true, false);
        peer.transfer(&whole, &[7; 900]);
    }
    let held = peer.connection.held() - before;
    assert!((9_000..11_000).contains(&held), "{held} bytes");
    assert_eq!(peer.events().len(), 10);
    assert_eq!(idle(&mut peer), before);
}

#[test]
fn unread_output_is_counted_as_held_memory() {
    let mut peer = Peer::new();
    let before = idle(&mut peer);
    let echo = credit_flow(0, 0, 0);
    let mut ask: Vec<_> = echo[..4].to_vec();
    ask.resize(9, Value::Null);
    ask.push(true.into());
    for _ in 0..100 {
        peer.frame(0, FLOW, &ask);
        peer.connection.flush();
    }
    let held = peer.connection.held() - before;
    assert_eq!(held, peer.output().len());
    assert!(held > 2_000, "{held} bytes");
    assert_eq!(idle(&mut peer), before);
}

#[test]
fn unsettled_deliveries_and_a_backlog_are_counted_as_held_memory() {
    let mut peer = Peer::with(Config::default(), &[uint(512)], 20);
    let link = peer.receiver(1_000);
    peer.frame(0, FLOW, &[uint(0), uint(20), uint(0), uint(0)]);
    let before = idle(&mut peer);
    let mut numbers: Vec<DeliveryNumber> = Vec::new();
    for _ in 0..10 {
        numbers.extend(peer.deliver(link, 1, false));
    }
    let held = idle(&mut peer) - before;
    assert!((10 * 30..10 * 60).contains(&held), "{held} bytes");
    // Ten frames of 512 bytes are all that the window lets through.
    let large = Bytes::from(vec![7; 100_000]);
    assert!(peer.deliver_bytes(link, 2, true, b"", large).is_some());
    let held = idle(&mut peer) - before;
    assert!((90_000..100_000).contains(&held), "{held} bytes");
    for number in numbers {
        peer.dispose(number.0, number.0, true, accepted());
    }
    for event in peer.events() {
        let servicebus_amqp::Event::Settle(settlement) = event else {
            continue;
        };
        assert_eq!(settlement.outcome, Outcome::Accepted);
    }
    peer.frame(0, DETACH, &[uint(0), true.into()]);
    peer.events();
    // Of the receiver itself nothing is left either.
    assert!(idle(&mut peer) < before);
}
