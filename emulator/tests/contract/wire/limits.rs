//! How large messages and what is written on them may be (semantics §1, §17).

use serde_amqp::Value;
use serde_json::json;

use crate::support::*;

const TOO_LARGE: &str = "amqp:link:message-size-exceeded";
const MIB: usize = 1024 * 1024;

fn premium(properties: &str) -> Bus {
    Bus::configured(&queues(r#""Tier":"premium""#, &[("q", properties)]))
}

fn large(id: &str, size: usize) -> Message {
    Message::new(id).body(vec![0; size])
}

#[test]
fn an_entity_may_allow_larger_messages_but_no_larger_batches() {
    let (_bus, mut peer, sender) = premium(r#""MaxMessageSizeInKilobytes":2048"#).with_sender("q");
    assert_eq!(sender.answer.field(10), &ulong(2 << 20));
    assert_eq!(sender.answer.field(13), &batch_limit(1 << 20));
    peer.send(&sender, &large("single", 2 * MIB - 1000));
    let refusal = peer.send_in_vain(&sender, &large("over", 2 * MIB).encode());
    assert_eq!(refusal.condition, TOO_LARGE);
    assert!(
        refusal
            .words()
            .ends_with("exceeds the limit (2097152 bytes) currently allowed on the link."),
        "{}",
        refusal.text
    );
    let half = |id| large(id, MIB / 2 + 100).encode();
    let id = peer.transfer(&sender, BATCH, false, &batch(&[half("a"), half("b")]));
    let refusal = peer
        .outcome(&sender, id)
        .expect_err("a batch has its own limit");
    assert_eq!(refusal.condition, TOO_LARGE);
    assert_contains(refusal.words(), "(1048576 bytes)");
    let later = large("later", MIB).scheduled_at(client_now() + 3_600_000);
    let refusal = peer.send_in_vain(&sender, &later.encode());
    assert_eq!(refusal.condition, TOO_LARGE, "what is scheduled has it too");
    // The link has heard no and goes on; a receiver is sent what is that large.
    peer.send(&sender, &Message::new("small"));
    let receiver = peer.receiver("q");
    assert_eq!(
        peer.receive_one(&receiver).message.data().len(),
        2 * MIB - 1000
    );
    assert_eq!(peer.receive_one(&receiver).id(), "small");
}

#[test]
fn otherwise_the_tier_decides_and_there_is_one_limit() {
    let standard = Bus::with_queues(&["q"]);
    for (bus, limit) in [
        (&standard, 256 * 1024),
        (&premium(""), MIB),
        (&premium(r#""MaxMessageSizeInKilobytes":1024"#), MIB),
    ] {
        let mut peer = bus.client();
        let sender = peer.sender("q");
        assert_eq!(sender.answer.field(10), &ulong(limit as u64));
        assert_eq!(sender.answer.field(13), &batch_limit(limit as i64));
        let two = [
            large("a", limit / 2).encode(),
            large("b", limit / 2).encode(),
        ];
        let id = peer.transfer(&sender, BATCH, false, &batch(&two));
        let refusal = peer.outcome(&sender, id).expect_err("it is too large");
        assert_eq!(refusal.condition, TOO_LARGE);
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
fn headers_have_limits_of_their_own() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let property = |name: &str, size: usize| (name.to_owned(), text(&"x".repeat(size)));
    let with = |properties: &[(String, Value)]| {
        let message = Message::new("m");
        properties.iter().fold(message, |message, (name, value)| {
            message.application(name, value.clone())
        })
    };
    peer.send(&sender, &with(&[property("a", 32 * 1024)]));
    peer.send(
        &sender,
        &with(&[property("a", 30_000), property("b", 30_000)]),
    );
    let annotated = Message::new("m").annotation("x-mine", text(&"x".repeat(33_000)));
    for message in [
        with(&[property("a", 32 * 1024 + 1)]),
        with(&[
            property("a", 30_000),
            property("b", 30_000),
            property("c", 6_000),
        ]),
        annotated,
    ] {
        let refusal = peer.send_in_vain(&sender, &message.encode());
        assert_eq!(refusal.condition, "amqp:internal-error");
        let words = "The service was unable to process the request; please retry the operation.";
        assert!(refusal.words().starts_with(words), "{}", refusal.text);
    }
    assert_eq!(bus.http.held("q"), (2, 0));
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
fn a_message_that_outgrows_the_limits_is_dead_lettered_whatever_the_settings() {
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
