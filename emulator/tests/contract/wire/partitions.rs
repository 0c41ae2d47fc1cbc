//! Partitioned queues: sequence numbers with the partition, and keys that determine it (semantics §15, decision D18).

use std::collections::BTreeSet;

use serde_amqp::Value;

use crate::support::*;

const NOT_FOUND: &str = "com.microsoft:message-not-found";

fn partitioned() -> (Bus, Peer, Link, Node) {
    let (bus, mut peer, sender) = Bus::with_queue(r#""EnablePartitioning":true"#).with_sender("q");
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
fn the_upper_bits_of_a_number_are_its_partition() {
    let (_bus, mut peer, sender, _) = partitioned();
    for id in 0..32 {
        peer.send(&sender, &Message::new(&id.to_string()));
    }
    let receiver = peer.receiver("q");
    let all: Vec<i64> = peer
        .drain(&receiver, 100)
        .iter()
        .map(|delivery| number(&delivery.message))
        .collect();
    let partitions: BTreeSet<i64> = all.iter().map(|number| number >> 48).collect();
    assert_eq!(partitions, (0..16).collect(), "they take turns");
    let places: Vec<i64> = all.iter().map(|number| number & 0xffff_ffff_ffff).collect();
    assert_eq!(places, (1..=32).collect::<Vec<_>>());
}

#[test]
fn a_partition_key_has_one_partition_and_a_batch_one_key() {
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
    let refusal = peer
        .post(&sender, BATCH, &batch(&two))
        .expect_err("two keys");
    assert_eq!(refusal.condition, "amqp:not-allowed");
    let differ = keyed("7", "red").property(10, text("blue"));
    let refusal = peer.send_in_vain(&sender, &differ.encode());
    assert_eq!(refusal.condition, "amqp:not-allowed");
    assert_eq!(bus.http.held("q"), (4, 0));
}

#[test]
fn messages_are_found_by_sequence_numbers_with_the_partition_only() {
    let (bus, mut peer, sender, node) = partitioned();
    for id in ["a", "b", "c"] {
        peer.send(&sender, &Message::new(id));
    }
    let all: Vec<i64> = peer.peek_all(&node).iter().map(number).collect();
    let from = |from| peek_from(from, Value::Int(1));
    for (&own, id) in all.iter().zip(["a", "b", "c"]) {
        let reply = peer.call(&node, "peek-message", from(own));
        assert_eq!(ids(&peeked(&reply)), [id]);
    }
    // As SDKs continue: from the last number and one.
    let reply = peer.call(&node, "peek-message", from(all[0] + 1));
    assert_eq!(ids(&peeked(&reply)), ["b"]);

    let receiver = peer.receiver("q");
    let mut aside = 0;
    for _ in 0..3 {
        let delivery = peer.receive_one(&receiver);
        peer.settle(&delivery, deferred());
        aside = aside.max(number(&delivery.message));
    }
    assert!(aside >> 48 > 0, "{aside:x}");
    for wrong in [aside & 0xffff_ffff_ffff, aside ^ (1 << 50)] {
        let reply = peer.call(&node, "receive-by-sequence-number", receive_by(&[wrong], 1));
        refused_with(&reply, 404, NOT_FOUND);
    }
    let reply = peer.call(&node, "receive-by-sequence-number", receive_by(&all, 1));
    let words = refused_with(&reply, 400, "amqp:not-allowed");
    let expected = "ReceiveBatch of sequence numbers from different partitions is not supported";
    assert_starts_with(&words, expected);
    let reply = peer.call(&node, "receive-by-sequence-number", receive_by(&[aside], 1));
    let fetched = received(&reply);
    assert_eq!(number(&fetched[0].1), aside);
    peer.settle_by_token(&node, "completed", fetched[0].0);
    assert_eq!(bus.http.held("q"), (2, 0));
}

#[test]
fn scheduled_messages_are_cancelled_by_numbers_with_the_partition() {
    let (bus, mut peer, _, node) = partitioned();
    let later = |id| keyed(id, "some key").scheduled_at(client_now() + 3_600_000);
    let reply = peer.call(
        &node,
        "schedule-message",
        schedule(&[later("a"), later("b")]),
    );
    let [first, second] = scheduled(&reply)[..] else {
        panic!("{reply:?}");
    };
    assert_eq!(first >> 48, second >> 48);
    let wrong = first ^ (1 << 48);
    let cancel = |number| map([numbers(&[number])]);
    let reply = peer.call(&node, "cancel-scheduled-message", cancel(wrong));
    let words = refused_with(&reply, 404, NOT_FOUND);
    assert_ends_with(&words, &format!(": {wrong}"));
    let reply = peer.call(&node, "cancel-scheduled-message", cancel(first));
    assert_eq!(reply.status(), 200);
    bus.http.advance(3601.0);
    let left = peer.peek_all(&node);
    assert_eq!(ids(&left), ["b"]);
    assert_eq!(
        number(&left[0]) >> 48,
        second >> 48,
        "it keeps its partition"
    );
}

#[test]
fn the_timeline_has_the_sequence_numbers_that_clients_see() {
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
