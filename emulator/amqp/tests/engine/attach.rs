//! Attach, accepted and refused.

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use servicebus_amqp::{AttachReply, Config, Event, LinkRole, ReceiverSettleMode, SenderSettleMode};

use crate::peer::*;

const SESSION_FILTER: &str = "com.microsoft:session-filter";

#[test]
fn a_sender_is_echoed_and_gets_credit() {
    let mut peer = Peer::new();
    let (link, request) = peer.ask("name", 3, SENDER);
    assert_eq!(request.name(), "name");
    assert_eq!(request.role(), LinkRole::Sender);
    assert_eq!(request.address(), Some("to"));
    assert_eq!(request.source_address(), Some("from"));
    assert!(!request.is_coordinator());
    assert!(peer.frames().is_empty(), "the owner decides");
    peer.accept(link);
    let frames = peer.frames();
    assert_eq!(codes(&frames), [ATTACH, FLOW]);
    let fields = &frames[0].fields;
    assert_eq!(fields.len(), 14);
    assert_eq!(fields[..3], [text("name"), uint(3), Value::Bool(RECEIVER)]);
    assert_eq!(fields[3..5], [Value::Ubyte(0), Value::Ubyte(1)]);
    assert_eq!(fields[5..7], [source("from", None), target("to")]);
    assert_eq!(
        fields[7..10],
        [Value::Null, Value::Bool(false), Value::Null]
    );
    assert_eq!(fields[10], Value::Ulong(1000));
    assert_eq!(fields[13], map([]));
    let fields = &frames[1].fields;
    assert_eq!(fields[4..7], [uint(3), uint(0), uint(1000)]);
    assert_eq!(fields[8..10], [Value::Bool(false), Value::Bool(false)]);
}

#[test]
fn a_receiver_is_echoed_with_a_delivery_count() {
    let mut peer = Peer::new();
    let (link, request) = peer.ask("name", 0, RECEIVER);
    assert_eq!(request.role(), LinkRole::Receiver);
    assert_eq!(request.address(), Some("from"));
    let reply = AttachReply {
        properties: vec![(
            "com.microsoft:locked-until-utc".into(),
            Value::Long(1 << 60),
        )],
        ..AttachReply::default()
    };
    peer.connection.accept_attach(link, reply);
    let frame = peer.only();
    assert_eq!(frame.fields[2], Value::Bool(SENDER));
    assert_eq!(frame.fields[9], uint(0));
    // A limit is for the one that sends, which is us.
    assert_eq!(frame.fields[10], Value::Ulong(0));
    let expected = map([(
        symbol("com.microsoft:locked-until-utc"),
        Value::Long(1 << 60),
    )]);
    assert_eq!(frame.fields[13], expected);
}

#[test]
fn a_sender_never_learns_a_limit_of_zero() {
    let mut peer = Peer::new();
    let (link, _) = peer.ask("name", 0, SENDER);
    peer.connection.accept_attach(link, AttachReply::default());
    assert_eq!(peer.frames()[0].fields[10], Value::Ulong((1 << 53) - 1));
}

#[test]
fn settle_modes_are_echoed_as_asked() {
    let modes = [None, Some(0u8), Some(1), Some(2)];
    for snd in modes {
        for rcv in [None, Some(0u8), Some(1)] {
            for role in [SENDER, RECEIVER] {
                let mut peer = Peer::new();
                let mut fields = attach("name", 0, role);
                fields[3] = snd.map_or(Value::Null, Value::Ubyte);
                fields[4] = rcv.map_or(Value::Null, Value::Ubyte);
                peer.frame(0, ATTACH, &fields);
                let (link, attach) = peer.attached();
                assert_eq!(
                    attach.sender_settle_mode(),
                    match snd {
                        Some(0) => SenderSettleMode::Unsettled,
                        Some(1) => SenderSettleMode::Settled,
                        _ => SenderSettleMode::Mixed,
                    }
                );
                assert_eq!(
                    attach.receiver_settle_mode() == ReceiverSettleMode::Second,
                    rcv == Some(1)
                );
                peer.accept(link);
                let ours = &peer.frames()[0];
                assert_eq!(ours.fields[3], Value::Ubyte(snd.unwrap_or(2)));
                assert_eq!(ours.fields[4], Value::Ubyte(rcv.unwrap_or(0)));
            }
        }
    }
}

#[test]
fn a_refused_link_gets_an_attach_without_termini_and_a_closing_detach() {
    for role in [SENDER, RECEIVER] {
        let mut peer = Peer::new();
        let (link, _) = peer.ask("name", 0, role);
        peer.connection.refuse_attach(link, an_error());
        let frames = peer.frames();
        assert_eq!(codes(&frames), [ATTACH, DETACH]);
        assert_eq!(frames[0].fields.len(), 14);
        assert_eq!(frames[0].fields[5..7], [Value::Null, Value::Null]);
        assert_eq!(frames[1].fields[..2], [uint(0), Value::Bool(true)]);
        let error = frames[1].refusal(2);
        assert_eq!(error.condition, "amqp:not-found");
        assert_eq!(error.text, "no such thing");
        // The answer of those who give one is not answered again.
        peer.frame(0, TRANSFER, &transfer(0, Some(0), false, false));
        peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
        assert!(peer.frames().is_empty() && peer.events().is_empty());
    }
}

#[test]
fn the_handle_of_a_refused_link_may_be_used_again_at_once() {
    let mut peer = Peer::new();
    let (link, _) = peer.ask("first", 0, SENDER);
    peer.connection.refuse_attach(link, an_error());
    peer.frames();
    let second = peer.link("second", 0, SENDER);
    assert_ne!(link, second);
    peer.connection.accept_attach(link, AttachReply::default());
    peer.connection.refuse_attach(link, an_error());
    peer.connection.detach(link, None);
    assert!(peer.frames().is_empty(), "the old id means nothing now");
    peer.connection.refuse_attach(second, an_error());
    assert!(peer.frames().is_empty(), "it has been accepted");
}

#[test]
fn a_late_answer_loses_neither_transfers_nor_credit() {
    let mut peer = Peer::new();
    let (sender, _) = peer.ask("s", 0, SENDER);
    let (receiver, _) = peer.ask("r", 1, RECEIVER);
    peer.transfer(&transfer(0, Some(0), false, false), b"early");
    peer.frame(0, FLOW, &credit_flow(1, 0, 7));
    let events = peer.events();
    assert!(matches!(&events[..], [Event::Transfer(early)] if early.payload == b"early"[..]));
    assert!(peer.frames().is_empty());
    assert_eq!(peer.connection.credit(receiver), 0);
    assert!(peer.deliver(receiver, 1, false).is_none());
    peer.accept(receiver);
    assert!(
        matches!(peer.event(), Event::Credit { link, credit: 7, drain: false } if link == receiver)
    );
    assert_eq!(peer.connection.credit(receiver), 7);
    peer.accept(sender);
    assert_eq!(codes(&peer.frames()), [ATTACH, ATTACH, FLOW]);
}

#[test]
fn an_attach_steals_a_link_of_the_same_name_and_direction_only() {
    let mut peer = Peer::new();
    let first = peer.link("name", 0, SENDER);
    peer.link("name", 1, RECEIVER);
    assert!(peer.events().is_empty(), "two directions are two links");
    peer.frame(0, ATTACH, &attach("name", 2, SENDER));
    let events = peer.events();
    assert!(
        matches!(events[..], [Event::Detached { link, .. }, Event::Attach { .. }] if link == first),
        "{events:?}"
    );
    let detach = peer.only();
    assert_eq!(detach.fields[..2], [uint(0), Value::Bool(true)]);
    assert_eq!(detach.refusal(2).condition, "amqp:link:stolen");
}

#[test]
fn a_link_whose_attach_is_unanswered_can_be_stolen() {
    let mut peer = Peer::new();
    let (first, _) = peer.ask("name", 0, SENDER);
    peer.frame(0, ATTACH, &attach("name", 1, SENDER));
    let events = peer.events();
    assert!(
        matches!(events[..], [Event::Detached { link, .. }, Event::Attach { .. }] if link == first)
    );
    let frames = peer.frames();
    assert_eq!(codes(&frames), [ATTACH, DETACH]);
    assert_eq!(frames[0].fields[6], Value::Null);
    assert_eq!(frames[1].refusal(2).condition, "amqp:link:stolen");
    peer.accept(first);
    assert!(peer.frames().is_empty());
}

#[test]
fn only_the_session_filter_is_rewritten_in_an_answer() {
    let descriptor = Descriptor::Code(0x0013_7000_000C);
    let shaped = |value: Value| {
        let descriptor = descriptor.clone();
        Value::Described(Box::new(Described { descriptor, value }))
    };
    for (requested, granted) in [
        (Value::Null, text("s1")),
        (text("s1"), text("s1")),
        (shaped(Value::Null), shaped(text("s1"))),
        (shaped(text("s1")), shaped(text("s1"))),
    ] {
        let mut peer = Peer::new();
        let filter = map([
            (symbol("other"), Value::Int(5)),
            (symbol(SESSION_FILTER), requested.clone()),
        ]);
        let from = source("amqps://host/q", Some(filter));
        peer.frame(
            0,
            ATTACH,
            &attach_between("n", 0, RECEIVER, from, target("t")),
        );
        let (link, attach) = peer.attached();
        assert_eq!(attach.filter(SESSION_FILTER), Some(&requested));
        assert_eq!(attach.filter("none"), None);
        let reply = AttachReply {
            filter: vec![(SESSION_FILTER.into(), granted.clone())],
            ..AttachReply::default()
        };
        peer.connection.accept_attach(link, reply);
        let attach = peer.only();
        let (code, fields) = described_list(&attach.fields[5]);
        assert_eq!(code, 0x28);
        assert_eq!(fields[0], text("amqps://host/q"));
        let Value::Map(filter) = &fields[7] else {
            panic!("{fields:?}");
        };
        assert_eq!(filter.get(&symbol("other")), Some(&Value::Int(5)));
        assert_eq!(filter.get(&symbol(SESSION_FILTER)), Some(&granted));
    }
}

#[test]
fn unusual_attach_encodings_are_decoded() {
    let mut peer = Peer::new();
    let long = "n".repeat(300);
    let mut fields = attach(&long, 0, RECEIVER);
    fields[5] = composite(0x28, vec![]);
    fields.resize(13, Value::Null);
    fields.push(map([
        (text("string key"), uint(1)),
        (symbol("com.microsoft:timeout"), uint(5000)),
        (Value::Int(3), uint(2)),
    ]));
    peer.frame(0, ATTACH, &fields);
    let (link, attach) = peer.attached();
    assert_eq!(attach.name(), long);
    assert_eq!(attach.address(), None);
    assert_eq!(attach.property("com.microsoft:timeout"), Some(&uint(5000)));
    assert_eq!(attach.property("string key"), Some(&uint(1)));
    peer.accept(link);
    assert_eq!(peer.only().fields[5], composite(0x28, vec![]));
}

#[test]
fn an_attach_with_an_empty_list_and_a_null_terminus_is_decoded() {
    let mut peer = Peer::new();
    let body = [
        &[
            0x00, 0x53, 0x12, 0xc0, 13, 7, 0xa1, 1, b'n', 0x43, 0x41, 0x40, 0x40,
        ][..],
        &[0x00, 0x53, 0x28, 0x45, 0x40],
    ]
    .concat();
    peer.send(&framed(0, 0, &body));
    let (link, attach) = peer.attached();
    assert_eq!(
        (attach.source_address(), attach.target_address()),
        (None, None)
    );
    peer.accept(link);
    let output = peer.output();
    assert!(
        output
            .windows(4)
            .any(|window| window == [0x00, 0x53, 0x28, 0x45])
    );
    assert_eq!(split(&output)[0].fields[6], Value::Null);
}

#[test]
fn a_coordinator_target_is_recognized_and_echoed() {
    let mut peer = Peer::new();
    let coordinator = composite(0x30, vec![]);
    let fields = attach_between("tx", 0, SENDER, source("s", None), coordinator.clone());
    peer.frame(0, ATTACH, &fields);
    let (link, attach) = peer.attached();
    assert!(attach.is_coordinator());
    assert_eq!(attach.address(), None);
    peer.accept(link);
    assert_eq!(peer.frames()[0].fields[6], coordinator);
}

#[test]
fn a_link_name_longer_than_4096_bytes_is_refused() {
    let mut peer = Peer::new();
    peer.link(&"n".repeat(4_096), 0, SENDER);
    peer.frame(0, ATTACH, &attach(&"n".repeat(4_097), 1, SENDER));
    assert!(peer.events().is_empty());
    assert_eq!(codes(&peer.frames()), [ATTACH, DETACH]);
}

fn begin(peer: &mut Peer, channel: u16) {
    let fields = [Value::Null, uint(0), uint(10), uint(10)];
    peer.frame(channel, BEGIN, &fields);
}

/// Whether an attach comes to the owner; else it is refused.
fn is_asked_for(peer: &mut Peer, channel: u16, handle: u32) -> bool {
    let name = format!("{channel}-{handle}");
    peer.frame(channel, ATTACH, &attach(&name, handle, SENDER));
    let is_asked_for = matches!(peer.events()[..], [Event::Attach { .. }]);
    let is_refused = codes(&peer.frames()) == [ATTACH, DETACH];
    assert_ne!(is_asked_for, is_refused, "{name}");
    is_asked_for
}

#[test]
fn a_connection_has_20000_links_and_a_detach_allows_one_more() {
    let config = Config {
        handle_max: 4_999,
        ..Config::default()
    };
    let mut peer = Peer::with(config, &[], 5000);
    let detach = |peer: &mut Peer, channel, handle| {
        peer.frame(channel, DETACH, &[uint(handle), true.into()]);
        peer.events();
        peer.output();
    };
    (1..=4).for_each(|channel| begin(&mut peer, channel));
    peer.output();
    for (channel, handle) in (0..4).flat_map(|channel| (0..5_000).map(move |h| (channel, h))) {
        assert!(is_asked_for(&mut peer, channel, handle));
    }
    for _ in 0..3 {
        // The handle of a refused link may be used again without an answer to its detach.
        assert!(!is_asked_for(&mut peer, 4, 0));
    }
    detach(&mut peer, 4, 0);

    detach(&mut peer, 0, 0);
    assert!(is_asked_for(&mut peer, 4, 0));
    assert!(!is_asked_for(&mut peer, 4, 1));
    detach(&mut peer, 4, 1);

    peer.frame(3, END, &[]);
    peer.events();
    begin(&mut peer, 3);
    peer.output();
    for handle in 0..5_000 {
        assert!(is_asked_for(&mut peer, 3, handle));
    }
    assert!(!is_asked_for(&mut peer, 4, 1));
}
