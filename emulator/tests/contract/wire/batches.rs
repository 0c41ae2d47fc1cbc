//! A batch is accepted completely or not at all, whatever is wrong with one of its messages (semantics §17.1).
//!
//! `batch-delete-messages` deletes messages without receiving them (semantics §17.3).

use serde_amqp::Value;

use crate::support::*;

fn full(bus: &Bus) -> (Peer, Link) {
    let (mut peer, sender) = bus.sender("q");
    for number in 0..5 {
        let message = Message::new(&format!("filler-{number}")).body(vec![0; 200_000]);
        peer.send(&sender, &message);
    }
    (peer, sender)
}

fn send_batch(peer: &mut Peer, sender: &Link, messages: &[Message]) -> Result<(), ServiceError> {
    let encoded: Vec<Vec<u8>> = messages.iter().map(Message::encode).collect();
    peer.post(sender, BATCH, &batch(&encoded))
}

#[test]
fn one_message_over_the_header_limits_rejects_its_batch() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let good = || Message::new("good");
    for (bad, condition) in [
        (
            Message::new(&"x".repeat(129)),
            "com.microsoft:argument-error",
        ),
        (
            good().application("long", text(&"x".repeat(40_000))),
            "amqp:internal-error",
        ),
        (
            good().application("list", list([])),
            "com.microsoft:argument-error",
        ),
        (good().ttl(0), "amqp:internal-error"),
    ] {
        let refusal = send_batch(&mut peer, &sender, &[good(), bad, good()]);
        assert_eq!(refusal.expect_err("one is bad").condition, condition);
        assert_eq!(bus.http.held("q"), (0, 0));
    }
    assert_eq!(send_batch(&mut peer, &sender, &[good(), good()]), Ok(()));
    assert_eq!(bus.http.held("q"), (2, 0));
}

#[test]
fn a_batch_over_the_queue_quota_is_rejected_completely() {
    let bus = Bus::with_queue(r#""MaxSizeInMegabytes":1"#);
    let (mut peer, sender) = full(&bus);
    let message = |id: &str| Message::new(id).body(vec![0; 40_000]);
    let refusal = send_batch(&mut peer, &sender, &[message("a"), message("b")]);
    let refusal = refusal.expect_err("the queue is full");
    assert_eq!(refusal.condition, "amqp:resource-limit-exceeded");
    let words = "The maximum entity size has been reached or exceeded for Queue: 'q'. Size of entity in bytes:";
    assert_starts_with(refusal.words(), words);
    assert_eq!(bus.http.held("q"), (5, 0));
    assert_eq!(send_batch(&mut peer, &sender, &[message("a")]), Ok(()));
    let refusal = peer.send_in_vain(&sender, &message("b").encode());
    assert_eq!(refusal.condition, "amqp:resource-limit-exceeded");
    // What is taken out makes room.
    let receiver = peer.attached(&Attach::deleting("q"));
    peer.receive_one(&receiver);
    peer.send(&sender, &message("b"));
}

#[test]
fn refused_presettled_sends_are_dropped_and_recorded() {
    let bus = Bus::with_queue(r#""MaxSizeInMegabytes":1"#);
    let (mut peer, sender) = full(&bus);
    let large = Message::new("large").body(vec![0; 100_000]);
    peer.transfer(&sender, 0, true, &large.encode());
    peer.transfer(
        &sender,
        BATCH,
        true,
        &batch(&[large.encode(), large.encode()]),
    );
    peer.settle_down();
    bus.http.set_status("q", "SendDisabled");
    peer.transfer(&sender, 0, true, &Message::new("small").encode());
    peer.assert_no_frame(|frame| [DISPOSITION, DETACH].contains(&frame.code));
    assert_eq!(bus.http.held("q"), (5, 0));
    let mut events = bus.http.events("?entity=q");
    events.retain(|event| event["kind"] == "refused");
    let reasons: Vec<&str> = events
        .iter()
        .filter_map(|event| event["reason"].as_str())
        .collect();
    assert_eq!(
        reasons,
        [
            "amqp:resource-limit-exceeded",
            "amqp:resource-limit-exceeded",
            "com.microsoft:entity-disabled",
        ]
    );
    for event in events {
        untracked(event["detail"].as_str().expect("the words"));
    }
}

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
fn a_batch_delete_returns_the_number_of_deleted_messages() {
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
fn a_batch_delete_removes_only_old_unlocked_active_messages() {
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
fn dead_letters_are_batch_deleted_at_their_own_management_node() {
    let (bus, mut peer, _) = filled("", "", &["a", "b"]);
    let held = peer.receive_from("q");
    peer.settle(&held, dead_lettered("why", ""));
    let node = peer.node("q/$DeadLetterQueue/$management");
    let reply = delete(&mut peer, &node, Value::Int(10), client_now() + HOUR);
    assert_eq!(deleted(&reply), Value::Int(1));
    assert_eq!(bus.http.held("q"), (1, 0));
}

/// It receives, which is not possible there.
#[test]
fn a_batch_delete_is_refused_while_receiving_is_disabled() {
    let (bus, mut peer, node) = filled("", "", &["a", "b"]);
    let held = peer.receive_from("q");
    peer.settle(&held, dead_lettered("why", ""));
    let dead = peer.node("q/$DeadLetterQueue/$management");
    bus.http.set_status("q", "ReceiveDisabled");
    for node in [&node, &dead] {
        let reply = delete(&mut peer, node, Value::Int(10), client_now() + HOUR);
        refused_with(&reply, 400, "com.microsoft:entity-disabled");
    }
    assert_eq!(bus.http.held("q"), (1, 1));
    bus.http.set_status("q", "SendDisabled");
    let reply = delete(&mut peer, &node, Value::Int(10), client_now() + HOUR);
    assert_eq!(deleted(&reply), Value::Int(1));
}

#[test]
fn the_tier_limits_the_count_of_a_batch_delete() {
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
fn a_batch_delete_of_a_partitioned_queue_or_incomplete_is_refused() {
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
fn a_batch_delete_of_a_partitioned_subscription_is_refused() {
    let partitioned = serde_json::json!({"EnablePartitioning": true});
    let subscriptions = [("s", serde_json::json!({}))];
    let (_bus, mut peer) = Bus::configured(&topic(&partitioned, &subscriptions)).with_client();
    let node = peer.node("t/Subscriptions/s/$management");
    let reply = delete(&mut peer, &node, Value::Int(1), client_now() + HOUR);
    refused_with(&reply, 400, "amqp:not-allowed");
}
