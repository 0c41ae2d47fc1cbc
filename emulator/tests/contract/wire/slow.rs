//! A client that asks for everything and reads nothing: it costs a bounded amount of memory, and nobody waits
//! for it.

use serde_amqp::Value;
use std::time::Instant;

use crate::support::*;

/// Fills a queue with this many messages of 100 kB.
fn fill(peer: &mut Peer, queue: &str, count: usize) {
    let sender = peer.sender(queue);
    let message = Message::new("large").body(vec![b'x'; 100_000]).encode();
    let ids: Vec<u32> = (0..count)
        .map(|_| peer.transfer(&sender, 0, false, &message))
        .collect();
    for id in ids {
        assert_eq!(peer.outcome(&sender, id), Ok(()));
    }
}

#[test]
fn others_receive_from_the_same_queue_what_it_has_no_room_for() {
    let bus = Bus::with_queues(&["q"]);
    let mut slow = bus.client_as(&Open::named("slow"));
    let receiver = slow.receiver("q");
    slow.credit(&receiver, 5000);
    slow.settle_down();
    let mut peer = bus.client();
    fill(&mut peer, "q", 300);
    let receiver = peer.receiver("q");
    peer.credit(&receiver, 20);
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
fn time_does_not_wait_for_it_at_every_deadline() {
    let bus = Bus::with_queues(&["q", "other"]);
    let mut slow = bus.client();
    let receiver = slow.receiver("q");
    slow.credit(&receiver, 5000);
    slow.settle_down();
    let mut peer = bus.client();
    fill(&mut peer, "q", 100);
    let sender = peer.sender("other");
    for second in 1..20 {
        peer.send(&sender, &Message::new("short").ttl(second * 1000));
    }
    let start = Instant::now();
    bus.http.advance(30.0);
    let took = start.elapsed();
    assert!(
        took.as_secs() < 8,
        "an advance over twenty deadlines took {took:?}"
    );
    assert_eq!(bus.http.held("other"), (0, 0));
}

#[test]
fn its_output_is_bounded() {
    let process = Process::start(&[]);
    let mut peer = process.client();
    fill(&mut peer, "queue.1", 30);
    let before = process.resident_bytes();
    let mut slow = process.client();
    let node = slow.node("queue.1/$management");
    let body = map([
        (text("from-sequence-number"), long(1)),
        (text("message-count"), Value::Int(100)),
    ]);
    let request = Message::request(text("id"), text(&node.reply_to), body)
        .application("operation", text("com.microsoft:peek-message"));
    // Two gigabytes of replies, if all were made.
    for _ in 0..2000 {
        slow.transfer(&node.requests, 0, true, &request.encode());
    }
    for _ in 0..20 {
        let sender = peer.sender("queue.1");
        peer.send(&sender, &Message::new("small"));
        peer.detach(&sender);
    }
    let after = process.resident_bytes();
    assert!(
        after < before + (64 << 20),
        "memory grew from {before} to {after}"
    );
}
