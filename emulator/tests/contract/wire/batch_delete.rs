//! `batch-delete-messages`: many messages go without anybody reading them (semantics §17.3).

use serde_amqp::Value;

use crate::support::*;

const HOUR: i64 = 3_600_000;

fn filled(emulator: &str, properties: &str, ids: &[&str]) -> (Bus, Peer, Node) {
    let (bus, mut peer, sender) =
        Bus::configured(&queues(emulator, &[("q", properties)])).with_sender("q");
    for id in ids {
        peer.send(&sender, &Message::new(id));
    }
    let node = peer.node("q/$management");
    (bus, peer, node)
}

fn delete(peer: &mut Peer, node: &Node, count: Value, before: i64) -> Reply {
    let body = map([
        (text("message-count"), count),
        (text("enqueued-time-utc"), timestamp(before)),
    ]);
    peer.call(node, "batch-delete-messages", body)
}

fn deleted(reply: &Reply) -> Value {
    assert_eq!(reply.status(), 200, "{}", reply.text());
    reply.field("message-count").clone()
}

#[test]
fn it_says_how_many_went_until_there_are_none() {
    let (bus, mut peer, node) = filled("", "", &["a", "b", "c"]);
    let soon = client_now() + HOUR;
    assert_eq!(
        deleted(&delete(&mut peer, &node, Value::Int(2), soon)),
        Value::Int(2)
    );
    assert_eq!(ids(&peer.peek_all(&node)), ["c"], "the oldest first");
    assert_eq!(
        deleted(&delete(&mut peer, &node, Value::Int(500), soon)),
        Value::Int(1)
    );
    let reply = delete(&mut peer, &node, Value::Int(500), soon);
    assert_eq!(deleted(&reply), Value::Int(0), "spec/observed.md 56");
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn only_what_is_older_and_free_goes() {
    let (bus, mut peer, node) = filled("", "", &["locked", "deferred", "old"]);
    bus.http.advance(7200.0);
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("young"));
    peer.send(
        &sender,
        &Message::new("later").scheduled_at(client_now() + HOUR),
    );
    let receiver = peer.receiver("q");
    let locked = peer.receive_one(&receiver);
    let aside = peer.receive_one(&receiver);
    peer.settle(&aside, deferred());
    // In the client's time the old ones came two hours ago.
    let reply = delete(&mut peer, &node, Value::Int(100), client_now() - HOUR);
    assert_eq!(deleted(&reply), Value::Int(1));
    assert_eq!(
        ids(&peer.peek_all(&node)),
        ["locked", "deferred", "young", "later"]
    );
    peer.complete(&locked);
    let reply = delete(&mut peer, &node, Value::Int(100), i64::MAX);
    assert_eq!(deleted(&reply), Value::Int(1));
    assert_eq!(ids(&peer.peek_all(&node)), ["deferred", "later"]);
}

#[test]
fn dead_letters_are_deleted_at_their_own_node() {
    let (bus, mut peer, _) = filled("", "", &["a", "b"]);
    let held = peer.receive_from("q");
    peer.settle(&held, dead_lettered("why", ""));
    let node = peer.node("q/$DeadLetterQueue/$management");
    let reply = delete(&mut peer, &node, Value::Int(10), client_now() + HOUR);
    assert_eq!(deleted(&reply), Value::Int(1));
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn the_tier_limits_how_many_go_at_once() {
    for (tier, limit) in [("basic", 500), ("standard", 500), ("premium", 4000)] {
        let (_bus, mut peer, node) = filled(&format!(r#""Tier":"{tier}""#), "", &["a"]);
        for count in [limit + 1, 0, -1, i32::MAX] {
            let reply = delete(&mut peer, &node, Value::Int(count), client_now() + HOUR);
            let words = refused_with(&reply, 400, "com.microsoft:argument-out-of-range");
            let expected = format!(
                "Invalid Message Count : requested {count}. Message count should be between 1 and {limit}."
            );
            assert_eq!(words, expected);
        }
        let reply = delete(&mut peer, &node, Value::Int(limit), client_now() + HOUR);
        assert_eq!(deleted(&reply), Value::Int(1));
    }
}

#[test]
fn a_partitioned_queue_and_half_a_request_are_refused() {
    let (bus, mut peer, node) = filled("", r#""EnablePartitioning":true"#, &["a"]);
    let reply = delete(&mut peer, &node, Value::Int(1), client_now() + HOUR);
    refused_with(&reply, 400, "amqp:not-allowed");
    let count = || (text("message-count"), Value::Int(1));
    let time = |time| (text("enqueued-time-utc"), time);
    for body in [
        map([count()]),
        map([time(timestamp(0))]),
        map([count(), time(text("now"))]),
        map([(text("message-count"), text("1")), time(timestamp(0))]),
    ] {
        let reply = peer.call(&node, "batch-delete-messages", body);
        refused_with(&reply, 400, "com.microsoft:argument-error");
    }
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn a_subscription_of_a_partitioned_topic_is_refused() {
    let partitioned = serde_json::json!({"EnablePartitioning": true});
    let subscriptions = [("s", serde_json::json!({}))];
    let (_bus, mut peer) = Bus::configured(&topic(&partitioned, &subscriptions)).with_client();
    let node = peer.node("t/Subscriptions/s/$management");
    let reply = delete(&mut peer, &node, Value::Int(1), client_now() + HOUR);
    refused_with(&reply, 400, "amqp:not-allowed");
}
