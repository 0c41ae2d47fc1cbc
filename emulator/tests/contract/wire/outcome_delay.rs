//! fe2o3-amqp 0.14 loses an outcome that comes back within microseconds: to peers that look like it, outcomes
//! wait a millisecond (decision D31).
//!
//! A client that does not wait for its settlements, as Python's 7.14 does not, asks for an advance at once: what it wrote
//! before is seen first (spec/observed.md 18).

use std::time::{Duration, Instant};

use serde_amqp::Value;
use servicebus_emulator::Options;

use crate::support::*;

const DELAY: Duration = Duration::from_millis(1);

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

/// Sends a message and returns how long its outcome took.
fn timed_send(peer: &mut Peer, sender: &Link) -> Duration {
    let start = Instant::now();
    peer.send(sender, &Message::new("m"));
    start.elapsed()
}

#[test]
fn outcomes_to_an_old_fe2o3_wait_a_millisecond() {
    let bus = bus(true);
    let mut peer = bus.client_as(&old_fe2o3());
    let sender = peer.sender("q");
    for _ in 0..30 {
        let took = timed_send(&mut peer, &sender);
        assert!(took >= DELAY, "an outcome came after {took:?}");
    }
    let start = Instant::now();
    let refusal = peer.send_in_vain(&sender, b"no message");
    assert_eq!(refusal.condition, "amqp:decode-error");
    assert!(start.elapsed() >= DELAY, "a rejection did not wait");
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
        let first = peer.take("an answer", |frame| {
            matches!(frame.code, DISPOSITION | TRANSFER)
        });
        assert_eq!((first.code, first.number(1)), (DISPOSITION, id));
        peer.receive(&node.replies);
    }
}

#[test]
fn an_outcome_that_waits_for_a_link_that_goes_is_forgotten() {
    let bus = bus(true);
    let mut peer = bus.client_as(&old_fe2o3());
    for number in 0..20 {
        let sender = peer.attached(&Attach::sender("q").named(&number.to_string()));
        peer.transfer(&sender, 0, false, &Message::new("m").encode());
        peer.detach(&sender);
    }
    peer.send_to("q", &Message::new("m"));
    assert_eq!(bus.http.held("q"), (21, 0));
}

#[test]
fn nobody_else_waits() {
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
        // One that is faster than any that waits is proof enough, however busy the machine.
        eventually("an outcome that did not wait", || {
            (timed_send(&mut peer, &sender) < DELAY).then_some(())
        });
    }
}

/// Spec/observed.md: the official client for Rust announces no idle time-out; a change of `channel-max` is known by the
/// windows of its sessions.
#[test]
fn the_library_is_known_by_either_frame() {
    let bus = bus(true);
    let official = Open {
        rest: vec![uint(65_536), Value::Ushort(255)],
        ..Open::default()
    };
    let mut peer = bus.client_as(&official);
    let sender = peer.sender("q");
    assert!((0..30).all(|_| timed_send(&mut peer, &sender) >= DELAY));
    let mut peer = bus.client_as(&Open::default());
    let windows = [Value::Null, uint(0), uint(2048), uint(2048)];
    peer.frame(1, BEGIN, &windows);
    peer.take("a session", |frame| {
        frame.code == BEGIN && frame.channel == 1
    });
    let sender = peer.attached(&Attach::sender("q").on(1));
    assert!((0..30).all(|_| timed_send(&mut peer, &sender) >= DELAY));
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
fn o18_no_completion_is_overtaken_in_a_thousand_tries() {
    let bus = Bus::with_queues(&["q"]);
    complete_and_advance(&bus, Stream::plain(bus.amqp), 1000);
}

#[test]
fn o18_nor_over_tls_and_websocket() {
    let bus = Bus::with_queues(&["q"]);
    let ca = bus.ca();
    let secured = || Stream::secured(bus.amqp, "localhost", &ca).expect("TLS begins");
    let websocket = |stream: Stream| stream.websocket("/$servicebus/websocket", "amqp");
    complete_and_advance(&bus, secured(), 100);
    complete_and_advance(&bus, websocket(Stream::plain(bus.amqp)), 100);
    complete_and_advance(&bus, websocket(secured()), 100);
}
