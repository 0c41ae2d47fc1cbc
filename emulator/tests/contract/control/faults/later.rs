//! Delays by faults in the namespace's time or in real time, and the operations that a fault matches.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{FAULTS, details};
use crate::support::*;

fn bus(fault: &Value) -> (Bus, Peer) {
    let bus = Bus::with_queues(&["q"]);
    bus.script(fault);
    let peer = bus.client();
    (bus, peer)
}

#[test]
fn delayed_sends_are_stored_together_when_the_clock_advances() {
    let (bus, mut peer) = bus(&json!({
        "operation": "send", "times": 3, "effect": {"delay": {"seconds": 30}},
    }));
    bus.http.freeze();
    let sender = peer.sender("q");
    let mut send = |id| peer.transfer(&sender, 0, false, &Message::new(id).encode());
    let delayed = ["1", "2", "3"].map(&mut send);
    // The fourth overtakes them.
    peer.send(&sender, &Message::new("4"));
    assert_eq!(bus.http.held("q"), (1, 0));
    bus.http.advance(29.0);
    assert_eq!(bus.http.held("q"), (1, 0));
    bus.http.advance(1.0);
    assert_eq!(bus.http.held("q"), (4, 0));
    for id in delayed {
        peer.outcome(&sender, id).unwrap();
    }
    assert_eq!(
        details(&bus, "q"),
        ["the send was delayed by 30 s of virtual time"; 3]
    );
    let receiver = peer.receiver("q");
    let order = peer
        .drain(&receiver, 10)
        .iter()
        .map(Delivery::id)
        .collect::<Vec<_>>();
    assert_eq!(order, ["4", "1", "2", "3"]);
}

#[test]
fn every_delayed_send_is_due() {
    let (bus, mut peer) = bus(&json!({
        "operation": "send", "every": 1, "effect": {"delay": {"seconds": 30}},
    }));
    let sender = peer.sender("q");
    for id in ["1", "2", "3"] {
        peer.transfer(&sender, 0, false, &Message::new(id).encode());
    }
    peer.settle_down();
    let kinds = |query: &str| {
        let due = bus.http.get(&format!("~/due{query}")).ok();
        let due = due["due"].as_array().expect("a list").iter();
        due.map(|due| due["kind"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(""), ["fault-delay"; 3]);
    assert_eq!(kinds("?limit=2"), ["fault-delay"; 2]);
}

#[test]
fn a_delayed_send_is_dropped_with_its_link() {
    let (bus, mut peer) = bus(&json!({"operation": "send", "effect": {"delay": {"seconds": 30}}}));
    let sender = peer.sender("q");
    peer.transfer(&sender, 0, false, &Message::new("1").encode());
    peer.detach(&sender);
    bus.http.advance(60.0);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_delayed_send_can_be_rejected_by_another_fault() {
    let (bus, mut peer) = bus(&json!({"operation": "send", "effect": {"delay": {"seconds": 30}}}));
    bus.script(
        &json!({"operation": "send", "effect": {"reject": {"condition": "com.microsoft:timeout"}}}),
    );
    let sender = peer.sender("q");
    let id = peer.transfer(&sender, 0, false, &Message::new("1").encode());
    peer.assert_no_frame(|frame| frame.is_about(id));
    bus.http.advance(30.0);
    assert_eq!(
        peer.outcome(&sender, id).unwrap_err().condition,
        "com.microsoft:timeout"
    );
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_send_delayed_in_real_time_is_stored() {
    let (bus, mut peer) = bus(&json!({
        "operation": "send", "every": 1, "effect": {"delay": {"seconds": 0.3, "clock": "real"}},
    }));
    let sender = peer.sender("q");
    let begun = Instant::now();
    let mut send = |id| peer.transfer(&sender, 0, false, &Message::new(id).encode());
    for id in ["1", "2"].map(&mut send) {
        peer.outcome(&sender, id).unwrap();
    }
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert_eq!(bus.http.held("q"), (2, 0));
}

#[test]
fn the_message_of_a_delayed_delivery_can_go_to_another_receiver() {
    let (bus, mut peer) = bus(&json!({
        "operation": "receive", "client": "slow", "every": 1, "effect": {"delay": {"seconds": 30}},
    }));
    let sender = peer.sender("q");
    let mut slow = bus.client_as(&Open::named("slow"));
    let receiver = slow.receiver_with_credit("q", 1);
    peer.send(&sender, &Message::new("1"));
    slow.assert_no_frame(|frame| frame.code == TRANSFER);
    assert_eq!(bus.http.counts("q")["locked"], 0);
    let delivery = peer.receive_from("q");
    peer.complete(&delivery);
    peer.send(&sender, &Message::new("2"));
    bus.http.advance(30.0);
    assert_eq!(slow.receive(&receiver).id(), "2");
}

#[test]
fn the_lock_of_a_delayed_settlement_keeps_running() {
    let (bus, mut peer) =
        bus(&json!({"operation": "complete", "effect": {"delay": {"seconds": 90}}}));
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    peer.send(&sender, &Message::new("1"));
    let delivery = peer.receive_one(&receiver);
    peer.dispose(0, delivery.id, delivery.id, false, accepted());
    peer.settle_down();
    bus.http.advance(90.0);
    let refusal = refused(&peer.settled(&delivery));
    assert_eq!(refusal.condition, "com.microsoft:message-lock-lost");
}

#[test]
fn a_delayed_attach_keeps_the_credit_granted_meanwhile() {
    let (bus, mut peer) =
        bus(&json!({"operation": "attach", "nth": 2, "effect": {"delay": {"seconds": 30}}}));
    peer.send_to("q", &Message::new("1"));
    let attach = Attach::receiver("q");
    let handle = peer.ask_to_attach(&attach);
    peer.assert_no_frame(|frame| frame.code == ATTACH);
    bus.http.advance(30.0);
    let receiver = peer.answer_to(&attach, handle).expect("it is attached");
    assert_eq!(peer.receive_one(&receiver).id(), "1");
}

#[test]
fn a_delayed_attach_accepts_its_session_for_its_own_client() {
    let bus = Bus::with_sessions();
    bus.script(&json!({"operation": "attach", "nth": 2, "effect": {"delay": {"seconds": 30}}}));
    let mut peer = bus.client();
    let sender = peer.attached(&Attach::sender("q").identified("sender"));
    let attach = Attach::session("q", text("s")).identified("receiver");
    let handle = peer.ask_to_attach(&attach);
    peer.send(&sender, &Message::new("1").session("s"));
    bus.http.advance(30.0);
    peer.answer_to(&attach, handle).expect("it is attached");
    let node = peer.node("q/$management");
    let request = Message::request(text("r"), text(&node.reply_to), in_session("s", []))
        .application("operation", text("com.microsoft:renew-session-lock"))
        .application("associated-link-name", text(&attach.name));
    let reply = peer.ask(&node, &request);
    assert_eq!(reply.status(), 200, "{}", reply.text());
}

/// Sends these; returns which were rejected.
fn rejected(narrowing: &Value, messages: &[Message]) -> Vec<bool> {
    let bus = Bus::with_queues(&["q"]);
    let mut fault = json!({
        "operation": "send", "every": 1, "effect": {"reject": {"condition": "com.microsoft:timeout"}},
    });
    for (key, value) in narrowing.as_object().expect("an object") {
        fault[key] = value.clone();
    }
    let id = bus.script(&fault);
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
fn a_fault_filters_sends_by_message_content() {
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
fn a_fault_filters_settlements_by_their_message() {
    let bus = Bus::with_queues(&["q"]);
    let effect = json!({"reject": {"condition": "com.microsoft:timeout"}});
    bus.script(&json!({"operation": "complete", "message_id": "2", "effect": effect}));
    let mut peer = bus.client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    for id in ["1", "2"] {
        peer.send(&sender, &Message::new(id));
    }
    let [first, second] = [(); 2].map(|()| peer.receive_one(&receiver));
    peer.complete(&first);
    peer.settle_in_vain(&second, accepted());
}

#[test]
fn faults_treat_a_dead_letter_queue_as_its_own_entity() {
    let bus = Bus::with_queues(&["q"]);
    let fault = |entity: &str| {
        let fault =
            json!({"operation": "receive", "entity": entity, "nth": 9, "effect": "lose-lock"});
        bus.script(&fault)
    };
    let (queue, dead_letters) = (fault("q"), fault("q/$DeadLetterQueue"));
    let mut peer = bus.client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    peer.send(&sender, &Message::new("1"));
    let delivery = peer.receive_one(&receiver);
    peer.settle(&delivery, dead_lettered("Rejected", ""));
    let dead = peer.receiver("q/$DeadLetterQueue");
    peer.receive_one(&dead);
    for id in [queue, dead_letters] {
        let fault = bus.http.get(&format!("{FAULTS}/{id}")).ok();
        assert_eq!(members(&fault, ["matched", "elsewhere"]), json!([1, 1]));
    }
}
