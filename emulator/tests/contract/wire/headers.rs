//! Sizes, lengths and types of messages and of their parts beside the body (semantics §1, §17, §20.2).

use serde_amqp::Value;
use serde_json::json;
use servicebus_codec::Writer;

use crate::support::*;

const KIB: usize = 1024;
/// Observed at the service for a property that is too large.
const TOO_LARGE: &str = "The service was unable to process the request; please retry the operation. For more \
    information on exception types and proper exception handling, please refer to \
    http://go.microsoft.com/fwlink/?LinkId=761101";

/// A described section.
fn section(code: u8, content: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.descriptor(code);
    content(&mut writer);
    out
}

/// A section that is a map of one entry.
fn entry(code: u8, name: &str, value: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    section(code, |out| {
        let mark = out.begin_map();
        out.string(name);
        value(out);
        out.end(mark, 2);
    })
}

/// Four application properties that have this many bytes together.
fn four_properties(bytes: usize) -> Vec<u8> {
    section(0x74, |out| {
        let mark = out.begin_map();
        for name in ["a", "b", "c", "d"] {
            out.string(name);
            out.string(&"x".repeat(bytes / 4));
        }
        out.end(mark, 8);
    })
}

fn large(code: u8, size: usize) -> Vec<u8> {
    entry(code, "large", |out| out.string(&"x".repeat(size)))
}

fn empty_list(out: &mut Writer<'_>) {
    let mark = out.begin_list();
    out.end(mark, 0);
}

#[test]
fn headers_within_the_limits_are_accepted() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let fitting = [
        large(0x72, 32 * KIB),
        large(0x74, 32 * KIB),
        four_properties(63 * KIB),
        entry(0x74, "none", |out| out.null()),
    ];
    for payload in &fitting {
        assert_eq!(peer.post(&sender, 0, payload), Ok(()));
    }
    assert_eq!(bus.http.held("q"), (fitting.len() as u64, 0));
}

#[test]
fn headers_over_the_limits_are_rejected_with_the_service_text() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let payloads = [
        large(0x71, 32 * KIB + 1),
        large(0x72, 32 * KIB + 1),
        large(0x74, 32 * KIB + 1),
        four_properties(64 * KIB),
    ];
    for payload in payloads {
        let refusal = peer.send_in_vain(&sender, &payload);
        assert_eq!(refusal.condition, "amqp:internal-error");
        assert_eq!(refusal.words(), TOO_LARGE);
    }
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn unsupported_property_types_are_rejected_by_name() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let schedule = "x-opt-scheduled-enqueue-time";
    let payloads = [
        (
            entry(0x74, "order", empty_list),
            "the application property 'order' is not of a primitive type",
        ),
        (entry(0x72, schedule, |out| out.string("noon")), schedule),
    ];
    for (payload, named) in payloads {
        let refusal = peer.send_in_vain(&sender, &payload);
        assert_eq!(refusal.condition, "com.microsoft:argument-error");
        assert_contains(refusal.words(), named);
    }
    assert_eq!(bus.http.held("q"), (0, 0));
}

const MESSAGE_TOO_LARGE: &str = "amqp:link:message-size-exceeded";
const MIB: usize = 1024 * 1024;

fn premium(properties: &str) -> Bus {
    Bus::configured(&queues(r#""Tier":"premium""#, &[("q", properties)]))
}

fn large_message(id: &str, size: usize) -> Message {
    Message::new(id).body(vec![0; size])
}

#[test]
fn an_entity_may_allow_larger_messages_but_no_larger_batches() {
    let (bus, mut peer, sender) = premium(r#""MaxMessageSizeInKilobytes":2048"#).with_sender("q");
    assert_eq!(sender.answer.field(10), &ulong(2 << 20));
    assert_eq!(sender.answer.field(13), &batch_limit(1 << 20));
    peer.send(&sender, &large_message("single", 2 * MIB - 1000));
    let refusal = peer.send_in_vain(&sender, &large_message("over", 2 * MIB).encode());
    assert_eq!(refusal.condition, MESSAGE_TOO_LARGE);
    assert_ends_with(
        refusal.words(),
        "exceeds the limit (2097152 bytes) currently allowed on the link.",
    );
    let (mut other_peer, other) = bus.sender("q");
    let half = |id| large_message(id, MIB / 2 + 100).encode();
    let outcome = other_peer.post(&other, BATCH, &batch(&[half("a"), half("b")]));
    let outcome = outcome.expect_err("a batch has its own limit");
    let refusal = other_peer.detached(&other).refusal(2);
    assert_eq!(outcome.condition, refusal.condition);
    assert_eq!(refusal.condition, "amqp:not-allowed");
    assert_contains(
        refusal.words(),
        "received a batch message with no data in it. Detach origin: Publisher.",
    );
    let later = large_message("later", MIB).scheduled_at(client_now() + 3_600_000);
    let refusal = peer.send_in_vain(&sender, &later.encode());
    assert_eq!(
        refusal.condition, MESSAGE_TOO_LARGE,
        "what is scheduled has it too"
    );
    // The link was refused one and continues; a receiver gets messages of that size.
    peer.send(&sender, &Message::new("small"));
    let receiver = peer.receiver("q");
    assert_eq!(
        peer.receive_one(&receiver).message.data().len(),
        2 * MIB - 1000
    );
    assert_eq!(peer.receive_one(&receiver).id(), "small");
}

#[test]
fn the_tier_sets_one_limit_for_messages_and_batches() {
    let standard = Bus::with_queues(&["q"]);
    for (bus, limit) in [
        (&standard, 256 * 1024),
        (&premium(""), MIB),
        (&premium(r#""MaxMessageSizeInKilobytes":1024"#), MIB),
    ] {
        let (mut peer, sender) = bus.sender("q");
        assert_eq!(sender.answer.field(10), &ulong(limit as u64));
        assert_eq!(sender.answer.field(13), &batch_limit(limit as i64));
        let two = [
            large_message("a", limit / 2).encode(),
            large_message("b", limit / 2).encode(),
        ];
        let refusal = peer
            .post(&sender, BATCH, &batch(&two))
            .expect_err("it is too large");
        assert_eq!(refusal.condition, MESSAGE_TOO_LARGE);
        peer.send(&sender, &Message::new("small"));
        assert_eq!(bus.http.held("q"), (1, 0));
    }
    let answer = standard.http.queue(
        "PUT",
        "q",
        Some(&json!({"MaxMessageSizeInKilobytes": 2048}).to_string()),
    );
    assert_eq!(answer.error(400).0, "invalid-argument");
}

#[test]
fn ids_have_at_most_128_characters() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let with = |id: &str| {
        [
            Message::new(id),
            Message::new("m").property(10, text(id)),
            Message::new("m").annotation("x-opt-partition-key", text(id)),
        ]
    };
    for message in with(&"ü".repeat(128)) {
        peer.send(&sender, &message);
    }
    let names = ["message id", "session id", "partition key"];
    for (message, name) in with(&"x".repeat(129)).iter().zip(names) {
        let refusal = peer.send_in_vain(&sender, &message.encode());
        assert_eq!(refusal.condition, "com.microsoft:argument-error");
        let words = format!(
            "The message was refused: the {name} has 129 characters; at most 128 are allowed."
        );
        assert_eq!(refusal.words(), words);
    }
    assert_eq!(bus.http.held("q"), (3, 0));
}

#[test]
fn a_message_exceeding_the_header_limit_later_is_dead_lettered() {
    for outcome in [0, 1] {
        let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
        let message = Message::new("m").application("a", text(&"x".repeat(32_000)));
        peer.send(
            &sender,
            &message.application("b", text(&"x".repeat(20_000))),
        );
        let receiver = peer.receiver("q");
        let held = peer.receive_one(&receiver);
        let changes = map([(symbol("c"), text(&"x".repeat(20_000)))]);
        // Abandoned, then deferred.
        let elsewhere = Value::Bool(outcome == 1);
        let outcome = composite(0x27, [Value::Bool(true), elsewhere, changes]);
        let answer = peer.settle(&held, outcome);
        assert_eq!(described_list(&answer).0, 0x27);
        assert_eq!(bus.http.held("q"), (0, 1));
        let dead = peer.receive_from("q/$DeadLetterQueue").message;
        let reason = dead.dead_letter_reason();
        assert_eq!(reason, text("HeaderSizeExceeded"));
    }
}
