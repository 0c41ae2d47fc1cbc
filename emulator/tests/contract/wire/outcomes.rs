//! fe2o3-amqp before 0.18.2 loses an outcome that arrives before it has entered the delivery among the unsettled ones: outcomes to
//! such clients are repeated until they have proved that it is there (decision D31).
//!
//! A client that does not wait for its settlements, such as Python's 7.14, asks for an advance at once: what it wrote before
//! is handled first (spec/observed.md 18).

use serde_amqp::Value;
use servicebus_emulator::Options;

use crate::support::*;

/// As `azservicebus` opens.
fn old_fe2o3() -> Open {
    Open {
        rest: vec![uint(65_536), Value::Ushort(255), uint(30_000)],
        ..Open::default()
    }
}

fn bus(outcome_delay: bool) -> Bus {
    let config = parse(&queues("", &[("q", "")]));
    Bus::started(Options {
        config,
        outcome_delay,
        ..Options::default()
    })
}

fn transfer(peer: &mut Peer, sender: &Link) -> u32 {
    peer.transfer(sender, 0, false, &Message::new("m").encode())
}

/// The next outcome of a delivery from this one on: of which deliveries, whether settled, and the code of the state.
fn next_outcome(peer: &mut Peer, id: u32) -> ((u32, u32), bool, u64) {
    let frame = peer.take("an outcome", |frame| {
        frame.code == DISPOSITION && frame.number(1) >= id
    });
    let first = frame.number(1);
    let last = match frame.field(2) {
        Value::Null => first,
        _ => frame.number(2),
    };
    let (code, _) = described_list(frame.field(4));
    ((first, last), frame.flag(3), code)
}

const ACCEPTED: u64 = 0x24;
const REJECTED: u64 = 0x25;

#[test]
fn an_outcome_for_old_fe2o3_is_settled_with_the_next_transfer() {
    let bus = bus(true);
    let mut peer = bus.client_as(&old_fe2o3());
    let sender = peer.sender("q");
    let first = transfer(&mut peer, &sender);
    assert_eq!(
        next_outcome(&mut peer, first),
        ((first, first), false, ACCEPTED),
        "told before the client has proved anything"
    );
    let second = transfer(&mut peer, &sender);
    let is_settled = |frame: &Frame| frame.is_about(first) && frame.flag(3);
    peer.take("the outcome that settles the first", is_settled);
    let is_told = |frame: &Frame| frame.is_about(second) && !frame.flag(3);
    peer.take("the outcome of the second", is_told);
}

#[test]
fn an_outcome_for_old_fe2o3_is_repeated_until_settled() {
    let bus = bus(true);
    let mut peer = bus.client_as(&old_fe2o3());
    let sender = peer.sender("q");
    for (message, code) in [
        (Message::new("m").encode(), ACCEPTED),
        (b"none".into(), REJECTED),
    ] {
        let id = peer.transfer(&sender, 0, false, &message);
        for _ in 0..6 {
            assert_eq!(next_outcome(&mut peer, id), ((id, id), false, code));
        }
        assert_eq!(next_outcome(&mut peer, id), ((id, id), true, code));
    }
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn only_the_outcome_of_the_last_transfer_is_repeated() {
    let bus = bus(true);
    let mut peer = bus.client_as(&old_fe2o3());
    let sender = peer.sender("q");
    let payload = Message::new("m").encode();
    let first = transfer(&mut peer, &sender);
    let frames: Vec<u8> = (0..9)
        .flat_map(|_| peer.transfer_frame(&sender, false, &payload))
        .collect();
    peer.write(&frames);
    let mut settled = 0;
    loop {
        let ((from, to), is_settled, _) = next_outcome(&mut peer, first);
        match is_settled {
            true => settled += to - from + 1,
            // In however many turns they were read.
            false if to == first + 9 => break,
            false => {}
        }
    }
    assert_eq!(settled, 9);
}

#[test]
fn the_order_of_outcomes_and_replies_is_kept() {
    let bus = bus(true);
    let mut peer = bus.client_as(&old_fe2o3());
    let node = peer.node("q/$management");
    let body = peek_from(1, Value::Int(1));
    let request = Message::request(text("id"), text(&node.reply_to), body)
        .application("operation", text("com.microsoft:peek-message"));
    for _ in 0..20 {
        let id = peer.transfer(&node.requests, 0, false, &request.encode());
        let first = peer.take("an answer", |frame| match frame.code {
            DISPOSITION => frame.is_about(id),
            code => code == TRANSFER,
        });
        assert_eq!(first.code, DISPOSITION);
        peer.receive(&node.replies);
    }
}

#[test]
fn an_outcome_of_a_detached_link_is_not_repeated() {
    let bus = bus(true);
    let mut peer = bus.client_as(&old_fe2o3());
    for number in 0..20 {
        let sender = peer.attached(&Attach::sender("q").named(&number.to_string()));
        peer.transfer(&sender, 0, false, &Message::new("m").encode());
        peer.detach(&sender);
    }
    let sender = peer.sender("q");
    let last = transfer(&mut peer, &sender);
    let is_settled = |frame: &Frame| frame.is_about(last) && frame.flag(3);
    peer.take("the outcome that settles the last", is_settled);
    assert_eq!(bus.http.held("q"), (21, 0));
}

/// In a transaction, a client that loses outcomes ignores one that does not settle the delivery.
#[test]
fn an_outcome_in_a_transaction_settles() {
    let bus = bus(true);
    let mut peer = bus.client_as(&old_fe2o3());
    let coordinator = peer.attached(&Attach::coordinator());
    let id = peer.demand(&coordinator, composite(0x31, []));
    let declared = peer.take("a transaction", |frame| frame.is_about(id));
    let (_, [Value::Binary(transaction)]) = described_list(declared.field(4)) else {
        panic!("not declared: {declared:?}");
    };
    let sender = peer.sender("q");
    let id = peer.transfer_in(&sender, transaction, 0, &Message::new("m").encode());
    let outcome = peer.take("the outcome", |frame| frame.is_about(id));
    assert!(outcome.flag(3), "{outcome:?}");
}

#[test]
fn other_clients_get_each_outcome_once() {
    let with_properties = Open {
        rest: [
            vec![uint(65_536), Value::Ushort(8191), uint(30_000)],
            vec![Value::Null; 4],
            vec![map([(symbol("product"), text("another"))])],
        ]
        .concat(),
        ..Open::default()
    };
    let others = [
        (bus(false), old_fe2o3()),
        (bus(true), Open::default()),
        (bus(true), with_properties),
    ];
    for (bus, open) in others {
        let mut peer = bus.client_as(&open);
        let sender = peer.sender("q");
        for _ in 0..2 {
            let id = transfer(&mut peer, &sender);
            assert_eq!(next_outcome(&mut peer, id), ((id, id), true, ACCEPTED));
        }
    }
}

/// Spec/observed.md: the official client for Rust announces no idle time-out; the windows of its sessions reveal it if it
/// changes its `channel-max`.
#[test]
fn the_fe2o3_library_is_recognized_by_open_or_begin() {
    let bus = bus(true);
    let official = Open {
        rest: vec![uint(65_536), Value::Ushort(255)],
        ..Open::default()
    };
    let mut peer = bus.client_as(&official);
    let sender = peer.sender("q");
    let id = transfer(&mut peer, &sender);
    assert_eq!(next_outcome(&mut peer, id), ((id, id), false, ACCEPTED));
    let mut peer = bus.client_as(&Open::default());
    let windows = [Value::Null, uint(0), uint(2048), uint(2048)];
    peer.frame(1, BEGIN, &windows);
    peer.take("a session", |frame| {
        frame.code == BEGIN && frame.channel == 1
    });
    let sender = peer.attached(&Attach::sender("q").on(1));
    let id = transfer(&mut peer, &sender);
    assert_eq!(next_outcome(&mut peer, id), ((id, id), false, ACCEPTED));
}

/// Completes messages without waiting, each directly before an advance that goes past the end of its lock.
fn complete_and_advance(bus: &Bus, stream: Stream, tries: u32) {
    let mut peer = Peer::open_over(stream, &Open::default());
    peer.let_in();
    let sender = peer.sender("q");
    let receiver = peer.receiver("q");
    for _ in 0..tries {
        peer.send(&sender, &Message::new("m"));
        let delivery = peer.receive_one(&receiver);
        let (channel, id) = (delivery.channel, delivery.id);
        peer.dispose(channel, id, id, true, accepted());
        bus.http.advance(61.0);
    }
    assert_eq!(bus.http.held("q"), (0, 0), "a completion was overtaken");
    let events = bus.http.events("?entity=q");
    let expired = events
        .iter()
        .filter(|event| event["kind"] == "lock-expired");
    assert_eq!(expired.count(), 0);
}

#[test]
fn o18_a_completion_precedes_an_advance_in_a_thousand_tries() {
    let bus = Bus::with_queues(&["q"]);
    complete_and_advance(&bus, Stream::plain(bus.amqp), 1000);
}

#[test]
fn o18_a_completion_precedes_an_advance_over_tls_and_websocket() {
    let bus = Bus::with_queues(&["q"]);
    let ca = bus.ca();
    let secured = || Stream::secured(bus.amqp, "localhost", &ca).expect("TLS begins");
    let websocket = |stream: Stream| stream.websocket("/$servicebus/websocket", "amqp");
    complete_and_advance(&bus, secured(), 100);
    complete_and_advance(&bus, websocket(Stream::plain(bus.amqp)), 100);
    complete_and_advance(&bus, websocket(secured()), 100);
}

/// As Microsoft's JavaScript library does, if sends are not awaited before their sender is closed.
#[test]
fn the_outcome_of_a_send_precedes_the_answer_to_a_detach_in_the_same_write() {
    let bus = Bus::with_queues(&["q"]);
    let (mut peer, sender) = bus.sender("q");
    let mut frames = peer.transfer_frame(&sender, false, &Message::new("m").encode());
    let detach = [uint(sender.handle), Value::Bool(true)];
    frames.extend(performative(sender.channel, DETACH, &detach, &[]));
    peer.write(&frames);
    let answer = |frame: &Frame| [DISPOSITION, DETACH].contains(&frame.code);
    assert_eq!(peer.take("the outcome", answer).code, DISPOSITION);
    assert_eq!(peer.take("the detach", answer).code, DETACH);
}
