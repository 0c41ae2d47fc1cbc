//! Partitioned queues: numbers that carry the partition, keys that decide about it (semantics §15, decision D18).

use serde_amqp::Value;

use crate::support::*;

fn partitioned() -> (Bus, Peer, Link, Node) {
    let (bus, mut peer, sender) =
        Bus::configured(&queues("", &[("q", r#""EnablePartitioning":true"#)])).with_sender("q");
    let node = peer.node("q/$management");
    (bus, peer, sender, node)
}

fn keyed(id: &str, key: &str) -> Message {
    Message::new(id).annotation("x-opt-partition-key", text(key))
}

fn number(message: &Received) -> i64 {
    match message.annotation("x-opt-sequence-number") {
        Value::Long(number) => number,
        other => panic!("the sequence number is {other:?}"),
    }
}

#[test]
fn a_key_has_one_partition_and_a_batch_one_key() {
    let (bus, mut peer, sender, node) = partitioned();
    for (id, key) in [("1", "red"), ("2", "blue"), ("3", "red")] {
        peer.send(&sender, &keyed(id, key));
    }
    peer.send(&sender, &keyed("4", "red").property(10, text("red")));
    let seen: Vec<i64> = peer
        .peek_all(&node)
        .iter()
        .map(|m| number(m) >> 48)
        .collect();
    assert_eq!((seen[2], seen[3]), (seen[0], seen[0]));
    let two = [keyed("5", "red").encode(), keyed("6", "blue").encode()];
    let id = peer.transfer(&sender, BATCH, false, &batch(&two));
    let refusal = peer.outcome(&sender, id).expect_err("two keys");
    assert_eq!(refusal.condition, "amqp:not-allowed");
    let differ = keyed("7", "red").property(10, text("blue"));
    let refusal = peer.send_in_vain(&sender, &differ.encode());
    assert_eq!(refusal.condition, "amqp:not-allowed");
    assert_eq!(bus.http.held("q"), (4, 0));
}

#[test]
fn the_timeline_has_the_numbers_that_clients_see() {
    let (bus, mut peer, sender, _) = partitioned();
    for id in ["a", "b", "c"] {
        peer.send(&sender, &Message::new(id));
    }
    let receiver = peer.receiver("q");
    let taken = peer.drain(&receiver, 3);
    let own = number(&taken[2].message);
    assert!(own >> 48 > 0, "it shows its partition");
    peer.settle(&taken[2], dead_lettered("Why", "so"));
    let dead = peer.receiver("q/$deadletterqueue");
    let message = peer.receive_one(&dead);
    peer.complete(&message);
    let of = |number: i64| -> Vec<String> {
        let events = bus.http.events(&format!("?sequence_number={number}"));
        let kind = |event: &serde_json::Value| event["kind"].as_str().map(str::to_owned);
        events.iter().filter_map(kind).collect()
    };
    assert_eq!(of(own), ["sent", "delivered", "dead-lettered"]);
    assert_eq!(of(number(&message.message)), ["delivered", "completed"]);
}
