//! Which operations a fault is meant for.

use serde_json::{Value, json};

use super::{FAULTS, script};
use crate::support::*;

/// Sends these and says which were rejected.
fn rejected(narrowing: &Value, messages: &[Message]) -> Vec<bool> {
    let bus = Bus::with_queues(&["q"]);
    let mut fault = json!({
        "operation": "send", "every": 1, "effect": {"reject": {"condition": "com.microsoft:timeout"}},
    });
    for (key, value) in narrowing.as_object().expect("an object") {
        fault[key] = value.clone();
    }
    let id = script(&bus, &fault);
    let mut peer = bus.client_as(&Open::named("worker-1"));
    let sender = peer.sender("q");
    let mut send = |message: &Message| {
        let id = peer.transfer(&sender, 0, false, &message.encode());
        peer.outcome(&sender, id).is_err()
    };
    let outcomes: Vec<bool> = messages.iter().map(&mut send).collect();
    let fault = bus.http.get(&format!("{FAULTS}/{id}")).ok();
    let count = |wanted| {
        outcomes
            .iter()
            .filter(|outcome| **outcome == wanted)
            .count() as u64
    };
    let passed = fault["different"].as_u64().unwrap() + fault["elsewhere"].as_u64().unwrap();
    assert_eq!(
        (fault["matched"].as_u64(), passed),
        (Some(count(true)), count(false))
    );
    outcomes
}

#[test]
fn messages_are_told_apart_by_what_they_bring() {
    let messages = [
        Message::new("1").application("n", text("a")),
        Message::new("2")
            .application("n", serde_amqp::Value::Int(7))
            .property(10, text("s")),
    ];
    for (narrowing, expected) in [
        (json!({"message_id": "1"}), [true, false]),
        (json!({"session_id": "s"}), [false, true]),
        (
            json!({"property": {"name": "n", "value": "a"}}),
            [true, false],
        ),
        (
            json!({"property": {"name": "n", "value": 7}}),
            [false, true],
        ),
        (
            json!({"property": {"name": "m", "value": 7}}),
            [false, false],
        ),
        (json!({"client": "worker-1"}), [true, true]),
        (json!({"client": "worker-2"}), [false, false]),
        (json!({"entity": "Q"}), [true, true]),
        (json!({"entity": "other"}), [false, false]),
    ] {
        assert_eq!(rejected(&narrowing, &messages), expected, "{narrowing}");
    }
}

#[test]
fn settlements_are_told_apart_by_the_message_they_settle() {
    let bus = Bus::with_queues(&["q"]);
    let effect = json!({"reject": {"condition": "com.microsoft:timeout"}});
    script(
        &bus,
        &json!({"operation": "complete", "message_id": "2", "effect": effect}),
    );
    let mut peer = bus.client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    for id in ["1", "2"] {
        peer.send(&sender, &Message::new(id));
    }
    let [first, second] = [(); 2].map(|()| peer.receive_one(&receiver));
    peer.complete(&first);
    refused(&peer.settle(&second, accepted()));
}

#[test]
fn a_dead_letter_queue_is_an_entity_of_its_own() {
    let bus = Bus::with_queues(&["q"]);
    let fault = |entity: &str| {
        let fault =
            json!({"operation": "receive", "entity": entity, "nth": 9, "effect": "lose-lock"});
        script(&bus, &fault)
    };
    let (queue, graves) = (fault("q"), fault("q/$DeadLetterQueue"));
    let mut peer = bus.client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    peer.send(&sender, &Message::new("1"));
    let delivery = peer.receive_one(&receiver);
    peer.settle(&delivery, dead_lettered("Rejected", ""));
    let dead = peer.receiver("q/$DeadLetterQueue");
    peer.receive_one(&dead);
    for id in [queue, graves] {
        let fault = bus.http.get(&format!("{FAULTS}/{id}")).ok();
        assert_eq!(
            (&fault["matched"], &fault["elsewhere"]),
            (&json!(1), &json!(1))
        );
    }
}
