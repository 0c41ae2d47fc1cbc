//! Links, sessions and connections that come and go as fast as some SDKs make them.

use serde_amqp::Value;
use servicebus_emulator::auth::{Key, sas};

use crate::support::*;

#[test]
fn a_session_for_every_token_costs_nothing_that_stays() {
    let (_bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let token = sas::sign("sb://localhost/q", &Key::well_known(), in_an_hour());
    for _ in 0..100 {
        // Go does this whenever it refreshes.
        peer.begin(7);
        let requests = peer.attached(&Attach::sender("$cbs").on(7));
        let replies = peer.attached(&Attach::receiver("$cbs").on(7));
        peer.credit(&replies, 1);
        let request = Message::request(text("id"), Value::Null, text(&token))
            .application("operation", text("put-token"))
            .application("name", text("sb://localhost/q"));
        peer.send(&requests, &request);
        assert_eq!(Reply::new(peer.receive(&replies)).cbs_status(), 202);
        peer.end(7);
    }
    peer.send(&sender, &Message::new("m"));
}

#[test]
fn a_link_that_is_to_be_resumed_begins_anew() {
    let (_bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    peer.send(&sender, &Message::new("m"));
    let receiver = peer.receiver("q");
    let held = peer.receive_one(&receiver);
    peer.frame(0, DETACH, &[uint(receiver.handle), Value::Bool(false)]);
    assert!(
        !peer.detached(&receiver).flag(1),
        "answered as it was asked"
    );
    // As fe2o3 recovers: the same name, with what it holds unsettled.
    let mut fields = Attach::receiver("q").fields(receiver.handle);
    fields[7] = map([(binary(&held.tag), accepted())]);
    peer.frame(0, ATTACH, &fields);
    let answer = peer.expect(ATTACH);
    assert_eq!((answer.field(7), answer.flag(8)), (&Value::Null, false));
    peer.send(&sender, &Message::new("n"));
    peer.arrived_anew(&receiver);
    assert_eq!(peer.receive_one(&receiver).id(), "n");
    let refused = peer.settle(&held, accepted());
    assert_eq!(
        described_list(&refused).0,
        0x25,
        "its old deliveries are not known"
    );
}

#[test]
fn hundreds_of_links_and_connections_come_and_go() {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    for number in 0..300 {
        let attach = Attach::receiver("q").named(&number.to_string());
        let link = peer.attached(&attach);
        peer.credit(&link, 1);
        if number % 2 == 0 {
            peer.detach(&link);
        }
    }
    for _ in 0..100 {
        let mut other = bus.stranger();
        other.refused(&Attach::sender("q"));
    }
    let sender = peer.sender("q");
    for _ in 0..150 {
        peer.send(&sender, &Message::new("m"));
    }
    let deliveries = peer
        .settle_down()
        .into_iter()
        .filter(|frame| frame.code == TRANSFER);
    assert_eq!(deliveries.count(), 150, "one for each link that is left");
}

#[test]
fn an_emulator_that_is_dropped_is_gone_at_once() {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let receiver = peer.receiver("q");
    peer.credit(&receiver, 1);
    let (amqp, http) = (bus.amqp, bus.http.0);
    drop(bus);
    peer.read_to_end();
    eventually("the end of the listeners", || {
        let accepts = |address| std::net::TcpStream::connect(address).is_ok();
        (!accepts(amqp) && !accepts(http)).then_some(())
    });
}
