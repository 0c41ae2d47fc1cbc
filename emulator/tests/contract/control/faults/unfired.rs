//! Reasons to fail a test that has passed: expected faults that were not applied.

use serde_json::{Value, json};

use super::FAULTS;
use crate::support::*;

fn problem(bus: &Bus) -> Value {
    bus.http.get("~/problem").ok()["problem"].clone()
}

fn fault(more: &Value) -> Value {
    let mut fault = json!({"operation": "send", "entity": "a", "effect": "lose-reply"});
    fault
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    fault
}

#[test]
fn a_fault_with_its_source_text_must_fire() {
    let bus = Bus::with_queues(&["a", "b"]);
    assert_eq!(problem(&bus), Value::Null);
    bus.script(&fault(&json!({})));
    assert_eq!(problem(&bus), Value::Null);

    bus.script(&fault(
        &json!({"nth": 2, "written": "on(send)", "written_at": "it.py:7"}),
    ));
    let other = bus.script(&fault(&json!({"message_id": "x", "written": "on(x)"})));
    bus.client().send_to("b", &Message::new("m"));
    let expected = "a fault never fired: on(send)\n  1 send came, in other entities\n  scripted at it.py:7\n\
                    a fault never fired: on(x)\n  1 send came, in other entities\n\
                    hint: let the test perform the operation of the fault, or remove the fault";
    assert_eq!(problem(&bus), expected);

    assert_eq!(bus.http.delete(&format!("{FAULTS}/{other}")).status, 204);
    let path = format!("{FAULTS}/2");
    assert_eq!(bus.http.get(&path).ok()["written"], "on(send)");
    assert_eq!(bus.http.delete(&path).status, 204);
    assert_eq!(problem(&bus), Value::Null);
}

#[test]
fn a_fault_whose_place_another_took_says_so() {
    let bus = Bus::with_queues(&["a"]);
    bus.script(&fault(&json!({"every": 1})));
    bus.script(&fault(
        &json!({"nth": 2, "effect": "expire-token", "written": "on(send)"}),
    ));
    let (mut peer, sender) = bus.sender("a");
    for id in ["1", "2", "3"] {
        peer.transfer(&sender, 0, false, &Message::new(id).encode());
    }
    until("the sends", || bus.http.held("a") == (3, 0));
    let expected = "a fault never fired: on(send)\n  3 sends came, and another fault fired at 1 of them, which goes first";
    assert_starts_with(problem(&bus).as_str().unwrap(), expected);
}

#[test]
fn an_unfired_fault_with_only_a_position_is_shown_as_requested() {
    let bus = Bus::with_queues(&["orders"]);
    let misspelt = json!({"entity": "order", "written_at": "it.go:7"});
    bus.script(&fault(&misspelt));
    let expected = r#"a fault never fired: {"effect":"lose-reply","entity":"order","every":1,"nth":1,"operation":"send","times":1}
  no send came; did you mean the entity "orders"?
  scripted at it.go:7"#;
    let problem = problem(&bus);
    assert_starts_with(problem.as_str().unwrap(), expected);
}

#[test]
fn ending_a_test_returns_a_report_and_removes_its_namespace() {
    let bus = Bus::with_queues(&[]);
    let begin = || {
        let made = bus
            .http
            .post("/$emulator/v1/namespaces", &json!({"queues": ["q"]}));
        format!(
            "/$emulator/v1/namespaces/{}",
            made.body["name"].as_str().unwrap()
        )
    };
    let end = |test: &str, passed: bool| {
        let answer = bus
            .http
            .post(&format!("{test}/end"), &json!({"passed": passed}));
        assert_eq!(bus.http.get(&format!("{test}/clock")).status, 404);
        answer.ok()["report"].clone()
    };
    assert_eq!(end(&begin(), true), Value::Null);
    let test = begin();
    assert_eq!(end(&test, false), "timeline of test-2\n  nothing happened");

    let test = begin();
    for _ in 0..201 {
        let moved = json!({"seconds": 1});
        assert_eq!(
            bus.http
                .post(&format!("{test}/clock/advance"), &moved)
                .status,
            200
        );
    }
    let fault = json!({"operation": "send", "effect": "lose-reply", "written": "on(send)"});
    bus.http.post(&format!("{test}/faults"), &fault).ok();
    let report = end(&test, true);
    let lines = Vec::from_iter(report.as_str().unwrap().lines());
    assert_eq!(lines[0], "a fault never fired: on(send)");
    assert_eq!(
        lines[3..6],
        ["", "timeline of test-3", "  … 1 older events"]
    );
    assert_eq!(lines.len(), 6 + 200, "{report}");
    assert_contains(lines[6], "clock advanced");
}

#[test]
fn a_fired_fault_is_not_reported() {
    let bus = Bus::with_queues(&["q"]);
    let effect = json!({"answer": {"status": 503}});
    let written = json!({"operation": "management", "effect": effect, "written": "on(management)"});
    let id = bus.script(&written);
    assert_ne!(problem(&bus), Value::Null);
    let (mut peer, node) = bus.node("q/$management");
    let reply = peer.call(&node, "get-message-sessions", map([]));
    assert_eq!(reply.status(), 503);
    assert_eq!(super::hits(&bus, &id), 1);
    assert_eq!(problem(&bus), Value::Null);
}

#[test]
fn a_source_text_of_a_fault_longer_than_4096_bytes_is_refused() {
    let bus = Bus::with_queues(&["a"]);
    for path in ["written", "written_at"] {
        let answer = bus
            .http
            .post(FAULTS, &fault(&json!({path: "x".repeat(4097)})));
        answer.error_with(400, "invalid-argument");
        bus.script(&fault(&json!({path: "x".repeat(4096)})));
    }
}
