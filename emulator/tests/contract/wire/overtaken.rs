//! A client that does not wait for its settlements, as Python's 7.14 does not, asks for an advance at once: what it wrote
//! before is seen first (spec/observed.md 18).

use crate::support::*;

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
