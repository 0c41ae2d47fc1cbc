//! One conversation, every frame of it cut at every byte: what comes out must not depend on that.
//!
//! What clients do that the standard does not foresee, and that must work all the same.

use bytes::Bytes;
use serde_amqp::Value;
use servicebus_amqp::{Config, Delivery, DeliveryNumber, Event, LinkId, Outcome};

use crate::peer::*;

/// A client's whole side, from header to close, in the pieces between which the owner has its say.
fn script() -> Vec<Vec<u8>> {
    let mut all = vec![
        SASL_HEADER.to_vec(),
        framed(1, 0, &encoded_list(0x41, &[symbol("ANONYMOUS")])),
        AMQP_HEADER.to_vec(),
    ];
    let mut frame = |channel, code, fields: &[Value], payload: &[u8]| {
        all.push(performative(channel, code, fields, payload));
    };
    frame(0, OPEN, &[text("client"), text("host"), uint(512)], &[]);
    frame(1, BEGIN, &[Value::Null, uint(0), uint(100), uint(100)], &[]);
    frame(1, ATTACH, &attach("s", 0, SENDER), &[]);
    frame(1, ATTACH, &attach("r", 1, RECEIVER), &[]);
    frame(1, FLOW, &credit_flow(1, 0, 3), &[]);
    frame(1, TRANSFER, &transfer(0, Some(0), false, false), b"first");
    frame(1, TRANSFER, &transfer(0, Some(1), false, true), b"sec");
    frame(1, TRANSFER, &transfer(0, None, false, false), b"ond");
    frame(1, DISPOSITION, &disposition(0, 0, false, accepted()), &[]);
    frame(1, DETACH, &[uint(0), Value::Bool(true)], &[]);
    frame(1, END, &[], &[]);
    frame(0, CLOSE, &[], &[]);
    all
}

/// An owner that accepts everything and delivers one long message when asked.
fn serve(peer: &mut Peer, log: &mut Vec<String>) {
    while let Some(event) = peer.connection.poll_event() {
        match &event {
            Event::Sasl { .. } => peer.connection.sasl_outcome(true),
            Event::Attach { link, .. } => peer.accept(*link),
            Event::Transfer(transfer) => {
                peer.connection
                    .outcome(transfer.link, transfer.delivery, Outcome::Accepted);
            }
            Event::Credit { link, .. } => {
                let delivery = Delivery {
                    tag: [1; 16],
                    settled: false,
                    message_format: 0,
                    head: &[7; 700],
                    tail: Bytes::from_static(&[8; 400]),
                };
                peer.connection.deliver(*link, delivery);
            }
            Event::Settle(settlement) => {
                let outcome = settlement.outcome.clone();
                peer.connection
                    .settle(settlement.link, settlement.delivery, outcome);
            }
            Event::Opened(_)
            | Event::TransferTooLarge { .. }
            | Event::TransferDropped { .. }
            | Event::Detached { .. }
            | Event::Refused(_)
            | Event::Closed { .. } => {}
        }
        log.push(format!("{event:?}"));
    }
}

fn converse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, Vec<u8>) {
    let mut peer = Peer::silent(Config::default());
    let mut log = Vec::new();
    let mut output = Vec::new();
    for piece in pieces {
        peer.send(piece);
        serve(&mut peer, &mut log);
        output.extend(peer.output());
    }
    assert!(peer.connection.is_closed());
    assert!(peer.input.is_empty());
    (log, output)
}

#[test]
fn every_frame_in_two_and_byte_by_byte() {
    let script = script();
    let whole = converse(script.iter().map(Vec::as_slice));
    assert_eq!(whole.0.len(), 11, "{:#?}", whole.0);
    let frames = split(&whole.1);
    assert_eq!(frames.iter().filter(|f| f.code == TRANSFER).count(), 3);
    assert!(whole == converse(script.iter().flat_map(|piece| piece.chunks(1))));
    for (index, piece) in script.iter().enumerate() {
        for cut in 1..piece.len() {
            let pieces = script.iter().enumerate().flat_map(|(other, piece)| {
                let cut = if other == index { cut } else { 0 };
                <[&[u8]; 2]>::from(piece.split_at(cut))
            });
            assert!(whole == converse(pieces), "piece {index} cut at {cut}");
        }
    }
}

#[test]
fn pipelined_input_is_processed_up_to_the_next_decision_of_the_owner() {
    let script = script().concat();
    let mut peer = Peer::silent(Config::default());
    peer.send(&script);
    let mut log = Vec::new();
    serve(&mut peer, &mut log);
    assert_eq!(log.len(), 1, "SASL");
    peer.send(&[]);
    serve(&mut peer, &mut log);
    // The detach waits for the outcomes of what precedes it.
    while peer.connection.has_more() {
        peer.send(&[]);
        serve(&mut peer, &mut log);
    }
    assert!(log.last().unwrap().contains("Closed"), "{log:#?}");
    split(&peer.output());
}

fn drained(peer: &mut Peer, link: LinkId) {
    assert!(matches!(peer.event(), Event::Credit { drain: true, .. }));
    peer.connection.drained(link);
    peer.output();
}

/// fe2o3-amqp gives credit again before it has seen the answer to its drain.
#[test]
fn credit_crossing_a_drain_answer_counts_from_the_count_after_it() {
    let mut peer = Peer::new();
    peer.connection.allow_credit_while_draining();
    let link = peer.receiver(1);
    peer.frame(0, FLOW, &drain_flow(0, 0, 1));
    drained(&mut peer, link);
    peer.frame(0, FLOW, &credit_flow(0, 0, 1));
    assert_eq!(peer.credited(), (1, false));
    assert!(peer.deliver(link, 1, false).is_some());
}

#[test]
fn credit_crossing_a_drain_answer_is_not_granted_twice() {
    let mut peer = Peer::new();
    let link = peer.receiver(10);
    peer.frame(0, FLOW, &drain_flow(0, 0, 10));
    drained(&mut peer, link);
    peer.frame(0, FLOW, &credit_flow(0, 0, 12));
    assert_eq!(peer.credited(), (2, false));
}

#[test]
fn after_a_seen_drain_answer_credit_counts_from_the_peers_count() {
    let mut peer = Peer::new();
    peer.connection.allow_credit_while_draining();
    let link = peer.receiver(3);
    peer.frame(0, FLOW, &drain_flow(0, 0, 3));
    drained(&mut peer, link);
    peer.frame(0, FLOW, &credit_flow(0, 3, 2));
    assert!(matches!(peer.event(), Event::Credit { credit: 2, .. }));
    peer.frame(0, FLOW, &credit_flow(0, 0, 3));
    assert!(matches!(peer.event(), Event::Credit { credit: 0, .. }));
}

/// fe2o3-amqp cuts what is above the link's limit into transfers with ids of their own and one tag.
#[test]
fn a_continuation_transfer_may_have_another_id_with_the_same_tag() {
    let mut peer = Peer::new();
    let (link, _) = peer.ask("s", 0, SENDER);
    peer.accept(link);
    peer.output();
    let mut again = transfer(0, Some(8), false, false);
    again[2] = binary(&7u32.to_be_bytes());
    peer.transfer(&transfer(0, Some(7), false, true), &[1; 600]);
    peer.transfer(&again, &[2; 600]);
    let Event::TransferTooLarge { delivery, size, .. } = peer.event() else {
        panic!("the delivery is too large");
    };
    assert_eq!((delivery, size), (DeliveryNumber(7), 1200));
    assert!(peer.events().is_empty(), "the link stays");
}

/// fe2o3-amqp answers a refusal with two detaches.
#[test]
fn a_link_may_be_detached_twice() {
    let mut peer = Peer::new();
    let (link, _) = peer.ask("r", 0, RECEIVER);
    peer.connection.refuse_attach(link, an_error());
    peer.output();
    for _ in 0..2 {
        peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
    }
    assert!(peer.frames().is_empty(), "the session stays");
    peer.link("again", 0, RECEIVER);
}

#[test]
fn a_performative_may_be_named_by_its_symbol() {
    let mut peer = Peer::new();
    let named = |name: &str| {
        let body = [&[0x00, 0xa3, name.len() as u8], name.as_bytes(), &[0x45]].concat();
        framed(0, 0, &body)
    };
    peer.send(&named("amqp:end:list"));
    assert_eq!(codes(&peer.frames()), [END]);
    peer.send(&named("amqp:close:list"));
    assert_eq!(codes(&peer.frames()), [CLOSE]);
}
