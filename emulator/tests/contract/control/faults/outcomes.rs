//! Outcomes of sends and settlements that clients get or do not get; lost locks, and redelivered messages.

use serde_json::{Value, json};

use super::{details, hits};
use crate::support::*;

fn sending(fault: &Value) -> (Bus, Peer, Link, Value) {
    let bus = Bus::with_queues(&["q"]);
    let id = bus.script(fault);
    let (peer, sender) = bus.sender("q");
    (bus, peer, sender, id)
}

#[test]
fn a_fault_rejects_a_send_without_storing_it() {
    let (bus, mut peer, sender, id) = sending(&json!({
        "operation": "send", "entity": "q", "nth": 2,
        "effect": {"reject": {"condition": "amqp:resource-limit-exceeded", "description": "full"}},
    }));
    peer.send(&sender, &Message::new("1"));
    let refusal = peer.send_in_vain(&sender, &Message::new("2").encode());
    assert_eq!(refusal.condition, "amqp:resource-limit-exceeded");
    assert_eq!(refusal.words(), "full");
    peer.send(&sender, &Message::new("3"));
    assert_eq!(bus.http.held("q"), (2, 0));
    assert_eq!(hits(&bus, &id), 1);
    assert_eq!(
        details(&bus, "q"),
        ["the send was rejected with amqp:resource-limit-exceeded"]
    );
}

#[test]
fn a_throttled_client_reads_how_long_to_wait() {
    let (_bus, mut peer, sender, _) = sending(&json!({
        "operation": "send", "effect": {"reject": {"condition": "com.microsoft:server-busy"}},
    }));
    let refusal = peer.send_in_vain(&sender, &Message::new("1").encode());
    assert_eq!(refusal.condition, "com.microsoft:server-busy");
    let words = refusal.words();
    assert_ends_with(words, "Please wait 2 seconds and try again.");
}

#[test]
fn a_send_with_a_lost_outcome_is_stored() {
    let (bus, mut peer, sender, id) =
        sending(&json!({"operation": "send", "effect": "lose-reply"}));
    let lost = peer.transfer(&sender, 0, false, &Message::new("1").encode());
    peer.send(&sender, &Message::new("2"));
    peer.assert_no_frame(|frame| frame.is_about(lost));
    assert_eq!(bus.http.held("q"), (2, 0));
    assert_eq!(hits(&bus, &id), 1);
}

#[test]
fn a_fault_rejects_every_second_send_two_times() {
    let (bus, mut peer, sender, id) = sending(&json!({
        "operation": "send", "every": 2, "times": 2,
        "effect": {"reject": {"condition": "com.microsoft:timeout"}},
    }));
    let mut sent = |name: u32| {
        let payload = Message::new(&name.to_string()).encode();
        let id = peer.transfer(&sender, 0, false, &payload);
        peer.outcome(&sender, id).is_ok()
    };
    let outcomes: Vec<bool> = (1..=6).map(&mut sent).collect();
    assert_eq!(outcomes, [true, false, true, false, true, true]);
    assert_eq!(hits(&bus, &id), 2);
}

#[test]
fn a_fault_sends_an_outcome_after_later_ones() {
    let (bus, mut peer, sender, _) = sending(&json!({
        "operation": "send", "nth": 1, "effect": {"hold-back": {"behind": 2}},
    }));
    let send = |peer: &mut Peer, id| peer.transfer(&sender, 0, false, &Message::new(id).encode());
    let held = send(&mut peer, "1");
    let second = send(&mut peer, "2");
    peer.outcome(&sender, second).unwrap();
    peer.assert_no_frame(|frame| frame.is_about(held));
    assert_eq!(bus.http.held("q"), (2, 0), "it is stored all the same");
    let third = send(&mut peer, "3");
    peer.outcome(&sender, third).unwrap();
    peer.outcome(&sender, held).unwrap();
}

#[test]
fn a_fault_rejects_a_completion_and_keeps_the_lock() {
    let (bus, mut peer, sender, id) = sending(&json!({
        "operation": "complete", "effect": {"reject": {"condition": "amqp:internal-error"}},
    }));
    peer.send(&sender, &Message::new("1"));
    let delivery = peer.receive_from("q");
    peer.assert_settle_refused(&delivery, accepted(), "amqp:internal-error");
    assert_eq!(bus.http.counts("q")["locked"], 1);
    assert_eq!(hits(&bus, &id), 1);
}

#[test]
fn a_fault_applies_to_one_kind_of_settlement() {
    let bus = Bus::with_queues(&["q"]);
    let kinds = ["settle", "complete", "abandon", "defer", "dead-letter"];
    let faults = kinds.map(|kind| {
        let fault = json!({"operation": kind, "entity": "q", "nth": 9, "effect": "lose-reply"});
        (kind, bus.script(&fault))
    });
    let mut peer = bus.client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    for (id, outcome) in [
        ("1", accepted()),
        ("2", abandoned()),
        ("2 again", accepted()),
        ("3", deferred()),
        ("4", dead_lettered("Rejected", "")),
    ] {
        if !id.ends_with("again") {
            peer.send(&sender, &Message::new(id));
        }
        let delivery = peer.receive_one(&receiver);
        peer.settle(&delivery, outcome);
    }
    let counted = faults.map(|(kind, id)| {
        let fault = bus.http.get(&format!("{}/{id}", super::FAULTS)).ok();
        (kind, fault["matched"].as_u64().unwrap())
    });
    let expected = [
        ("settle", 5),
        ("complete", 2),
        ("abandon", 1),
        ("defer", 1),
        ("dead-letter", 1),
    ];
    assert_eq!(counted, expected);
}

#[test]
fn a_settlement_with_a_lost_reply_is_applied() {
    let (bus, mut peer, sender, _) =
        sending(&json!({"operation": "settle", "effect": "lose-reply"}));
    peer.send(&sender, &Message::new("1"));
    let delivery = peer.receive_from("q");
    peer.dispose(0, delivery.id, delivery.id, false, accepted());
    peer.assert_no_frame(|frame| frame.is_about(delivery.id));
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_random_fault_affects_the_same_sends_again() {
    let run = |seed: u64| {
        let (_bus, mut peer, sender, _) = sending(&json!({
            "operation": "send", "random": {"seed": seed, "probability": 0.5},
            "effects": [
                {"reject": {"condition": "com.microsoft:server-busy"}},
                {"reject": {"condition": "com.microsoft:timeout"}},
            ],
        }));
        let mut sent = |name: u32| {
            let payload = Message::new(&name.to_string()).encode();
            peer.post(&sender, 0, &payload)
                .map_err(|refusal| refusal.condition)
        };
        let outcomes: Vec<_> = (0..40).map(&mut sent).collect();
        outcomes
    };
    let first = run(7);
    assert_eq!(run(7), first);
    assert_ne!(run(8), first);
    let conditions = first.iter().filter_map(|outcome| outcome.as_ref().err());
    let kinds: std::collections::BTreeSet<_> = conditions.collect();
    assert_eq!(kinds.len(), 2, "{first:?}");
    assert!(first.iter().any(Result::is_ok), "{first:?}");
}

const LOST: &str = "com.microsoft:message-lock-lost";

fn holding(fault: &Value) -> (Bus, Peer, Link, Delivery) {
    let bus = Bus::with_queues(&["q"]);
    bus.script(fault);
    let mut peer = bus.client();
    peer.send_to("q", &Message::new("1"));
    let receiver = peer.receiver("q");
    let delivery = peer.receive_one(&receiver);
    (bus, peer, receiver, delivery)
}

#[test]
fn a_fault_ends_a_lock_before_the_completion() {
    let (bus, mut peer, receiver, delivery) =
        holding(&json!({"operation": "complete", "effect": "lose-lock"}));
    peer.assert_settle_refused(&delivery, accepted(), LOST);
    let again = peer.receive_one(&receiver);
    assert_eq!(again.message.header(4), uint(1), "a failed delivery");
    peer.complete(&again);
    assert_eq!(
        details(&bus, "q"),
        ["the lock of the message was lost at the completion"]
    );
}

#[test]
fn a_fault_ends_a_lock_after_the_delivery() {
    let (_bus, mut peer, receiver, delivery) =
        holding(&json!({"operation": "receive", "effect": "lose-lock"}));
    let again = peer.receive_one(&receiver);
    assert_eq!(again.id(), delivery.id());
    peer.assert_settle_refused(&delivery, accepted(), LOST);
    peer.complete(&again);
}

#[test]
fn a_fault_ends_a_lock_before_its_renewal() {
    let (bus, mut peer, _, delivery) =
        holding(&json!({"operation": "renew-lock", "effect": "lose-lock"}));
    let node = peer.node("q/$management");
    let body = map([tokens(&[delivery.token()])]);
    assert_lock_lost(&peer.call(&node, "renew-lock", body));
    assert_eq!(bus.http.counts("q")["locked"], 0);
}

#[test]
fn a_fault_ends_a_session_lock_at_a_delivery_or_settlement() {
    for operation in ["receive", "settle"] {
        let bus = Bus::with_sessions();
        let fault =
            json!({"operation": operation, "session_id": "s", "effect": "lose-session-lock"});
        let id = bus.script(&fault);
        let mut peer = bus.client();
        send_all(&mut peer, "q", &[("1", "s")]);
        let link = peer.accept("q", "s");
        let delivery = peer.receive_one(&link);
        if operation == "settle" {
            peer.assert_settle_refused(&delivery, accepted(), "com.microsoft:session-lock-lost");
        }
        let refusal = peer.detached(&link).refusal(2);
        assert_eq!(refusal.condition, "com.microsoft:session-lock-lost");
        assert_eq!(hits(&bus, &id), 1);
        assert_eq!(bus.http.held("q"), (1, 0));
    }
}

/// Delivers a message, renews its lock and completes it, while a fault looks for a lock at each.
fn assert_never_loses(effect: &str, settings: &str, session: Option<&str>) {
    let bus = Bus::configured(&queues("", &[("q", settings)]));
    let of_each = ["receive", "renew-lock", "complete"];
    let of_each =
        of_each.map(|operation| bus.script(&json!({"operation": operation, "effect": effect})));
    let mut peer = bus.client();
    send_all(&mut peer, "q", &[("1", "s")]);
    let receiver = match session {
        Some(session) => peer.accept("q", session),
        None => peer.receiver("q"),
    };
    let delivery = peer.receive_one(&receiver);
    let node = peer.node("q/$management");
    let renewed = match session {
        Some(session) => peer.call(&node, "renew-session-lock", in_session(session, [])),
        None => peer.call(&node, "renew-lock", map([tokens(&[delivery.token()])])),
    };
    assert_eq!(renewed.status(), 200);
    peer.complete(&delivery);
    for id in of_each {
        let fault = bus.http.get(&format!("{}/{id}", super::FAULTS)).ok();
        let counts = members(&fault, ["matched", "different", "hits"]);
        assert_eq!(counts, json!([0, 1, 0]), "{fault}");
    }
}

#[test]
fn the_lock_of_a_message_in_a_session_is_that_of_the_session() {
    assert_never_loses("lose-lock", r#""RequiresSession":true"#, Some("s"));
}

#[test]
fn a_message_outside_sessions_has_no_session_lock() {
    assert_never_loses("lose-session-lock", "", None);
}

#[test]
fn a_fault_redelivers_a_message_completed_in_a_transaction() {
    for operation in ["receive", "complete"] {
        let fault = json!({"operation": operation, "effect": "deliver-twice"});
        let (bus, mut peer, receiver, delivery) = holding(&fault);
        let (coordinator, transaction) = peer.transaction();
        let (channel, id) = (delivery.channel, delivery.id);
        let outcome = in_transaction(&transaction, accepted());
        peer.dispose(channel, id, id, false, outcome.clone());
        assert_eq!(peer.settled(&delivery), outcome, "{operation}");
        let again = peer.receive_one(&receiver);
        assert_eq!(again.id(), delivery.id());
        assert_eq!(peer.commit(&coordinator, &transaction), Ok(()));
        peer.complete(&again);
        assert_eq!(bus.http.held("q"), (0, 0));
    }
}

#[test]
fn a_fault_redelivers_a_completed_message() {
    for operation in ["receive", "complete", "settle"] {
        let fault = json!({"operation": operation, "effect": "deliver-twice"});
        let (bus, mut peer, receiver, delivery) = holding(&fault);
        peer.complete(&delivery);
        let again = peer.receive_one(&receiver);
        assert_eq!(again.id(), delivery.id(), "{operation}");
        peer.complete(&again);
        assert_eq!(bus.http.held("q"), (0, 0));
    }
}

#[test]
fn a_fault_does_not_redeliver_a_received_and_deleted_message() {
    let bus = Bus::with_queues(&["q"]);
    let id = bus.script(&json!({"operation": "receive", "effect": "deliver-twice"}));
    let mut peer = bus.client();
    peer.send_to("q", &Message::new("1"));
    let deleting = peer.attached(&Attach::deleting("q"));
    peer.receive_one(&deleting);
    let fault = bus.http.get(&format!("{}/{id}", super::FAULTS)).ok();
    assert_eq!(members(&fault, ["different", "hits"]), json!([1, 0]));
}
