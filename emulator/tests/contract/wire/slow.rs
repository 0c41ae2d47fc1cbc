//! A client that grants credit for everything and reads nothing: it uses a bounded amount of memory, and delays no other
//! client.
//!
//! Links, sessions and connections that are opened and closed as fast as some SDKs do.

use std::time::Instant;

use serde_amqp::Value;
use servicebus_emulator::auth::{Key, sas};

use crate::support::*;

/// Fills a queue with this many messages of 100 kB.
fn fill(peer: &mut Peer, queue: &str, count: usize) {
    let sender = peer.sender(queue);
    let message = Message::new("large").body(vec![b'x'; 100_000]);
    peer.send_without_waiting(&sender, (0..count).map(|_| message.clone()));
}

#[test]
fn other_receivers_get_messages_that_a_slow_reader_cannot_take() {
    let bus = Bus::with_queues(&["q"]);
    let mut slow = bus.client_as(&Open::named("slow"));
    slow.receiver_with_credit("q", 5000);
    slow.settle_down();
    let mut peer = bus.client();
    fill(&mut peer, "q", 300);
    let receiver = peer.receiver_with_credit("q", 20);
    for _ in 0..20 {
        let delivery = peer.receive(&receiver);
        peer.complete(&delivery);
    }
    let locked = bus.http.counts("q")["locked"].as_u64();
    assert!(
        locked.is_some_and(|locked| locked < 200),
        "the slow reader holds {locked:?}"
    );
}

#[test]
fn an_advance_does_not_wait_for_a_slow_reader_at_every_deadline() {
    let (bus, mut slow) = Bus::with_queues(&["q", "other"]).with_client();
    slow.receiver_with_credit("q", 5000);
    slow.settle_down();
    let mut peer = bus.client();
    fill(&mut peer, "q", 100);
    let sender = peer.sender("other");
    for number in 1..=100 {
        peer.send(&sender, &Message::new("short").ttl(number * 250));
    }
    let start = Instant::now();
    // It waits for two seconds, once.
    bus.http.advance(30.0);
    let took = start.elapsed();
    assert!(
        took.as_secs() < 30,
        "an advance over a hundred deadlines took {took:?}"
    );
    assert_eq!(bus.http.held("other"), (0, 0));
}

#[test]
fn an_advance_ends_with_the_client_that_asked_for_it() {
    let (bus, mut slow) = Bus::with_queues(&["q"]).with_client();
    slow.receiver_with_credit("q", 5000);
    slow.settle_down();
    fill(&mut bus.client(), "q", 100);
    let body = r#"{"seconds":60}"#;
    let request = format!(
        "POST /$emulator/v1/clock/advance HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let ask = || {
        let mut asking = Peer::connect(bus.http.0);
        asking.write(request.as_bytes());
        asking
    };
    let clock = || bus.http.get("/$emulator/v1/clock").ok();
    let mut asking = ask();
    let mut offset = 60.0;
    // Until the timeout for the slow reader. An advance that was not seen in progress is followed by another.
    eventually("the advance to begin", || {
        let clock = clock();
        if clock["offset_seconds"] == offset {
            asking = ask();
            offset += 60.0;
        }
        (clock["frozen"] == true).then_some(())
    });
    drop(asking);
    until("the advance to end", || clock()["frozen"] == false);
    let came = clock()["offset_seconds"].as_f64().expect("a number");
    assert!(came < offset, "it went on alone: {came} of {offset} s");
    bus.http.advance(1.0);
}

/// A request for everything in the queue.
fn peek_all(node: &Node) -> Vec<u8> {
    let body = peek_from(1, Value::Int(100));
    Message::request(text("id"), text(&node.reply_to), body)
        .application("operation", text("com.microsoft:peek-message"))
        .encode()
}

#[test]
fn the_output_for_a_slow_reader_is_limited() {
    // The last one looks like a client to which outcomes are repeated.
    let fe2o3 = vec![uint(65_536), Value::Ushort(255), uint(30_000)];
    for rest in [vec![], fe2o3] {
        let process = Process::start(&[]);
        let mut peer = process.client();
        fill(&mut peer, "queue.1", 30);
        let before = process.resident_bytes();
        let mut slow = process.client_as(&Open {
            rest,
            ..Open::default()
        });
        let node = slow.node("queue.1/$management");
        // A gigabyte of replies, if all were rendered.
        let requests: Vec<u8> = (0..1000)
            .flat_map(|_| slow.transfer_frame(&node.requests, true, &peek_all(&node)))
            .collect();
        slow.write(&requests);
        let sender = peer.sender("queue.1");
        for _ in 0..50 {
            peer.send(&sender, &Message::new("small"));
        }
        let after = process.resident_bytes();
        assert!(
            after < before + (48 << 20),
            "memory grew from {before} to {after}"
        );
        // Once it reads it gets them all.
        for _ in 0..30 {
            assert_eq!(Reply::new(slow.receive(&node.replies)).status(), 200);
        }
    }
}

#[test]
fn replies_waiting_for_credit_are_limited_in_bytes() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    fill(&mut peer, "q", 11);
    let node = peer.node_without_credit("q/$management", "never");
    for _ in 0..20 {
        peer.transfer(&node.requests, 0, true, &peek_all(&node));
    }
    let refusal = peer.detached(&node.replies).refusal(2);
    assert_eq!(refusal.condition, "amqp:resource-limit-exceeded");
}

#[test]
fn a_session_and_link_per_token_leave_no_memory() {
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
fn a_resumed_link_is_attached_as_a_new_link() {
    let (_bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    peer.send(&sender, &Message::new("m"));
    let receiver = peer.receiver("q");
    let held = peer.receive_one(&receiver);
    peer.frame(0, DETACH, &[uint(receiver.handle), Value::Bool(false)]);
    assert!(
        !peer.detached(&receiver).flag(1),
        "answered as it was asked"
    );
    // As fe2o3 recovers: the same name, with its unsettled deliveries.
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
fn hundreds_of_links_and_connections_can_be_opened_and_closed() {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    for number in 0..200 {
        let attach = Attach::receiver("q").named(&number.to_string());
        let link = peer.attached(&attach);
        peer.credit(&link, 1);
        if number % 2 == 0 {
            peer.detach(&link);
        }
    }
    for _ in 0..100 {
        let mut other = bus.unauthenticated_client();
        other.refused(&Attach::sender("q"));
    }
    let sender = peer.sender("q");
    for _ in 0..100 {
        peer.send(&sender, &Message::new("m"));
    }
    let deliveries = peer
        .settle_down()
        .into_iter()
        .filter(|frame| frame.code == TRANSFER);
    assert_eq!(deliveries.count(), 100, "one for each link that is left");
}

#[test]
fn a_dropped_emulator_closes_connections_and_listeners() {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    peer.receiver_with_credit("q", 1);
    let (amqp, http) = (bus.amqp, bus.http.0);
    drop(bus);
    peer.read_to_end();
    eventually("the end of the listeners", || {
        let accepts = |address| std::net::TcpStream::connect(address).is_ok();
        (!accepts(amqp) && !accepts(http)).then_some(())
    });
}
