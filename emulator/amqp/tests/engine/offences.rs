//! What a peer may not do, and the error that it gets for it.

use serde_amqp::Value;
use servicebus_amqp::{Config, Event};

use crate::peer::*;

const FRAMING: &str = "amqp:connection:framing-error";

fn end_condition(peer: &mut Peer) -> String {
    let end = peer.only();
    assert_eq!(end.code, END);
    end.refusal(0).condition
}

#[test]
fn a_framing_error_closes_the_connection_at_once() {
    for bytes in [
        &[0, 0, 0, 7, 2, 0, 0, 0][..],
        &[0, 1, 0, 1, 2, 0, 0, 0],
        &[0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0],
        &[0, 0, 0, 8, 1, 0, 0, 0],
        &[0, 0, 0, 8, 3, 0, 0, 0],
        &[0, 0, 0, 8, 2, 1, 0, 0],
        &[0, 0, 0, 8, 2, 9, 0, 0],
    ] {
        let mut peer = Peer::new();
        let link = peer.link("a", 0, SENDER);
        peer.send(bytes);
        assert!(peer.connection.is_closed());
        assert!(matches!(peer.event(), Event::Detached { link: gone, .. } if gone == link));
        peer.assert_closed_with(FRAMING);
        peer.send(&performative(0, FLOW, &credit_flow(0, 0, 1), &[]));
        assert!(peer.output().is_empty() && peer.input.is_empty());
    }
}

#[test]
fn a_frame_may_have_the_maximum_size_and_no_more() {
    let mut peer = Peer::new();
    peer.link("a", 0, SENDER);
    let mut frame = performative(0, TRANSFER, &transfer(0, Some(0), false, false), &[]);
    frame.resize(65_536, 0);
    frame[..4].copy_from_slice(&65_536u32.to_be_bytes());
    peer.send(&frame);
    assert!(matches!(peer.event(), Event::TransferTooLarge { .. }));
    frame[..4].copy_from_slice(&65_537u32.to_be_bytes());
    peer.send(&frame);
    peer.assert_closed_with(FRAMING);
}

#[test]
fn an_extended_frame_header_is_skipped() {
    let mut peer = Peer::new();
    let mut frame = performative(0, ATTACH, &attach("a", 0, SENDER), &[]);
    frame.splice(8..8, [1, 2, 3, 4]);
    let size = frame.len() as u32;
    frame[..4].copy_from_slice(&size.to_be_bytes());
    frame[4] = 3;
    peer.send(&frame);
    assert!(matches!(peer.event(), Event::Attach { .. }));
}

#[test]
fn an_undecodable_performative_closes_the_connection() {
    let deep = [&[0x00, 0x53, 0x12][..], &[0x00, 0x53, 0x01].repeat(2000)].concat();
    let mut nested = vec![0x45];
    for _ in 0..40 {
        let size = (nested.len() + 4) as u32;
        let mut outer = vec![0xd0];
        outer.extend(size.to_be_bytes());
        outer.extend(1u32.to_be_bytes());
        outer.extend(nested);
        nested = outer;
    }
    let nested = [&[0x00, 0x53, 0x12][..], &nested].concat();
    for body in [
        &[0x00, 0x53, 0x12, 0xc0, 50, 3, 0xa1][..],
        &[0x00, 0x53, 0x14, 0x45],
        &[0x00, 0x53, 0x14, 0xc0, 3, 2, 0xa1, 9],
        &[0x00, 0x53, 0x13, 0xc0, 2, 1, 0x41],
        &[0x00, 0x53, 0x15, 0xc0, 1, 0],
        &[0x00, 0x53, 0x16, 0xd0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1],
        &[0x00, 0x53, 0x12, 0xc0, 5, 0xff, 0x40, 0x40, 0x40, 0x40],
        &[0x40],
        &[0x00, 0x53],
        &[0x00, 0xa3, 3, b'f', b'o', b'o', 0x45],
        &deep,
        &nested,
    ] {
        let mut peer = Peer::new();
        peer.send(&framed(0, 0, body));
        peer.assert_closed_with("amqp:decode-error");
        assert!(!peer.connection.is_closed(), "the frames are still in step");
        peer.frame(0, CLOSE, &[]);
        assert!(peer.connection.is_closed());
    }
}

#[test]
fn a_decode_error_names_the_performative_the_field_and_the_constructor() {
    for (body, text) in [
        (
            &[0x00, 0x53, 0x12, 0x45][..],
            "the attach cannot be decoded: the mandatory field 'name' is missing",
        ),
        (
            &[0x00, 0x53, 0x13, 0x45],
            "the flow cannot be decoded: the mandatory field 'incoming-window' is missing",
        ),
        (
            &[0x00, 0x53, 0x14, 0x45],
            "the transfer cannot be decoded: the mandatory field 'handle' is missing",
        ),
        (
            &[0x00, 0x53, 0x15, 0x45],
            "the disposition cannot be decoded: the mandatory field 'role' is missing",
        ),
        (
            &[0x00, 0x53, 0x16, 0x45],
            "the detach cannot be decoded: the mandatory field 'handle' is missing",
        ),
        (
            &[0x00, 0x53, 0x12, 0xc0, 3, 1, 0x52, 7],
            "the attach cannot be decoded: expected string, found constructor 0x52",
        ),
        (
            &[0x00, 0x53, 0x13, 0xc0, 2, 1, 0x41],
            "the flow cannot be decoded: expected uint, found constructor 0x41",
        ),
        (
            &[0x00, 0x41, 0x45],
            "expected a numeric or symbolic descriptor, found constructor 0x41",
        ),
    ] {
        let mut peer = Peer::new();
        peer.send(&framed(0, 0, body));
        assert_eq!(peer.only().refusal(0).text, text);
    }
}

#[test]
fn an_undecodable_open_is_answered_with_open_and_close() {
    let mut peer = Peer::silent(Config::default());
    peer.send(AMQP_HEADER);
    peer.frame(0, OPEN, &[uint(1)]);
    let output = peer.output();
    let frames = split(&output);
    assert_eq!(codes(&frames), [OPEN, CLOSE]);
    assert_eq!(frames[1].refusal(0).condition, "amqp:decode-error");
}

#[test]
fn open_comes_first_and_once() {
    let mut peer = Peer::silent(Config::default());
    peer.send(AMQP_HEADER);
    peer.frame(0, BEGIN, &[Value::Null, uint(0), uint(1), uint(1)]);
    let output = peer.output();
    assert_eq!(split(&output)[1].refusal(0).condition, "amqp:illegal-state");

    let mut peer = Peer::new();
    peer.frame(0, OPEN, &[text("again")]);
    peer.assert_closed_with("amqp:illegal-state");
}

#[test]
fn channels_above_the_maximum_or_without_a_session_are_errors() {
    let begin = [Value::Null, uint(0), uint(1), uint(1)];
    let mut peer = Peer::new();
    peer.frame(5000, BEGIN, &begin);
    peer.assert_closed_with(FRAMING);

    // The peer's own limit counts as well: our answer would exceed it.
    let mut peer = Peer::with(Config::default(), &[Value::Null, Value::Ushort(3)], 1);
    peer.frame(4, BEGIN, &begin);
    peer.assert_closed_with(FRAMING);

    let mut peer = Peer::new();
    peer.frame(0, BEGIN, &begin);
    peer.assert_closed_with("amqp:not-allowed");

    let mut peer = Peer::new();
    peer.frame(1, BEGIN, &[Value::Ushort(0), uint(0), uint(1), uint(1)]);
    peer.assert_closed_with("amqp:not-allowed");

    for code in [ATTACH, FLOW, TRANSFER, DISPOSITION] {
        let mut peer = Peer::new();
        let fields = match code {
            ATTACH => attach("a", 0, SENDER),
            FLOW => credit_flow(0, 0, 1),
            TRANSFER => transfer(0, Some(0), false, false),
            _ => disposition(0, 0, true, accepted()),
        };
        peer.frame(17, code, &fields);
        let close = peer.only().refusal(0);
        let text = "The session channel '17' cannot be found in connection 'servicebus-emulator'.";
        assert_eq!((&*close.condition, &*close.text), ("amqp:not-found", text));
    }
}

/// Row 70 of spec/observed.md.
#[test]
fn an_end_or_detach_of_an_unknown_session_or_link_is_ignored() {
    let mut peer = Peer::new();
    peer.frame(17, END, &[]);
    peer.frame(17, DETACH, &[uint(0)]);
    peer.frame(0, DETACH, &[uint(8)]);
    assert!(peer.frames().is_empty());
    peer.link("a", 8, SENDER);
}

#[test]
fn handles_above_the_maximum_or_without_a_link_are_errors() {
    let mut peer = Peer::new();
    peer.frame(0, ATTACH, &attach("a", 256, SENDER));
    assert_eq!(end_condition(&mut peer), "amqp:resource-limit-exceeded");

    let mut peer = Peer::new();
    let link = peer.link("a", 255, SENDER);
    peer.frame(0, ATTACH, &attach("b", 255, SENDER));
    assert_eq!(end_condition(&mut peer), "amqp:session:handle-in-use");
    assert!(matches!(peer.event(), Event::Detached { link: gone, .. } if gone == link));

    for code in [FLOW, TRANSFER] {
        let mut peer = Peer::new();
        let fields = match code {
            FLOW => credit_flow(8, 0, 1),
            _ => transfer(8, Some(0), false, false),
        };
        peer.frame(0, code, &fields);
        assert_eq!(end_condition(&mut peer), "amqp:session:unattached-handle");
    }
}

#[test]
fn an_invalid_transfer_detaches_its_link() {
    for (role, frame, condition) in [
        (
            RECEIVER,
            transfer(0, Some(0), false, false),
            "amqp:not-allowed",
        ),
        (
            SENDER,
            transfer(0, None, false, false),
            "amqp:invalid-field",
        ),
        (SENDER, transfer(0, None, false, true), "amqp:invalid-field"),
    ] {
        let mut peer = Peer::new();
        let link = peer.link("a", 0, role);
        peer.frame(0, TRANSFER, &frame);
        let detach = peer.only();
        assert_eq!(detach.code, DETACH);
        assert_eq!(detach.fields[1], Value::Bool(true));
        assert_eq!(detach.refusal(2).condition, condition);
        assert!(matches!(peer.event(), Event::Detached { link: gone, .. } if gone == link));
        peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
        assert!(peer.frames().is_empty() && peer.events().is_empty());
        peer.link("b", 0, role);
    }
}

#[test]
fn an_undefined_settle_mode_ends_the_session() {
    let mut peer = Peer::new();
    let mut fields = attach("a", 0, SENDER);
    fields[3] = Value::Ubyte(7);
    peer.frame(0, ATTACH, &fields);
    assert_eq!(end_condition(&mut peer), "amqp:invalid-field");
}

#[test]
fn an_unknown_performative_closes_the_connection() {
    let mut peer = Peer::new();
    peer.frame(0, 0x77, &[]);
    peer.assert_closed_with("amqp:not-implemented");
}

#[test]
fn long_and_symbolic_descriptors_are_decoded() {
    let mut peer = Peer::new();
    let short = encoded_list(ATTACH, &attach("a", 0, SENDER));
    let long = [&[0x00, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x12][..], &short[3..]].concat();
    peer.send(&framed(0, 0, &long));
    assert!(matches!(peer.event(), Event::Attach { .. }));
    let short = encoded_list(DETACH, &[uint(0), Value::Bool(true)]);
    let named = [&[0x00, 0xa3, 16][..], b"amqp:detach:list", &short[3..]].concat();
    peer.send(&framed(0, 0, &named));
    assert!(matches!(peer.event(), Event::Detached { .. }));
}

#[test]
fn an_attach_beyond_the_maximum_of_links_is_refused() {
    let config = Config {
        handle_max: 4_999,
        ..Config::default()
    };
    let mut peer = Peer::with(config, &[], 5000);
    for channel in 1..5 {
        peer.frame(channel, BEGIN, &[Value::Null, uint(0), uint(1), uint(1)]);
    }
    let mut attached = 0;
    for channel in 0..5 {
        for handle in 0..4100 {
            peer.frame(
                channel,
                ATTACH,
                &attach(&handle.to_string(), handle, SENDER),
            );
            attached += peer.events().len();
        }
        peer.output();
    }
    assert_eq!(attached, 20_000);
    assert!(!peer.connection.is_closed());
}
