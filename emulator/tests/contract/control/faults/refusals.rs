//! Meaningless faults are refused with the allowed values.

use serde_json::{Value, json};

use super::FAULTS;
use crate::support::*;

const SECONDS: &str = "a number of seconds above 0, at most 3600";

/// A body, and the one problem that it has.
type InvalidFault = (Value, Value);

/// A fault of sends with this instead of the usual value.
fn with(key: &str, value: &Value, path: &str, wrong: &Value, allowed: &str) -> InvalidFault {
    let mut body = json!({"operation": "send", "effect": "lose-reply"});
    body[key] = value.clone();
    (
        body,
        json!({"path": path, "value": wrong, "allowed": allowed}),
    )
}

fn of_operations() -> Vec<InvalidFault> {
    let operations = "send, receive, settle, complete, abandon, dead-letter, defer, renew-lock, attach, connect, \
                      token, management, discharge, http";
    let connect =
        "for the operation connect: close, drop, delay, stall, crash, failover, round-trip";
    let body = json!({"operation": "connect", "effect": "lose-reply"});
    let problem = json!({"path": "effect", "value": "lose-reply", "allowed": connect});
    let status = "a status of HTTP from 200 to 599";
    let entity =
        "an address, such as orders or orders/$DeadLetterQueue; all entities where it is left out";
    let http = json!({"operation": "http", "effect": {"answer": {"status": 99}}});
    let unknown = json!("explode");
    vec![
        with("operation", &unknown, "operation", &unknown, operations),
        with("entity", &json!(""), "entity", &json!(""), entity),
        (body, problem),
        (
            http,
            json!({"path": "effect.answer.status", "value": 99, "allowed": status}),
        ),
    ]
}

fn of_counts() -> Vec<InvalidFault> {
    let values = [json!(0), json!(-1), json!(1.5), json!("first")];
    let each = ["nth", "every", "times"].into_iter().flat_map(|key| {
        let allowed = "a whole number from 1";
        values
            .clone()
            .map(|value| with(key, &value, key, &value, allowed))
    });
    each.collect()
}

/// The location of a wrong value, the value, what is allowed, and the effect.
const WRONG_EFFECTS: &str = r#"
    delay.clock | "wall" | virtual, real | {"delay": {"seconds": 1, "clock": "wall"}}
    delay.minutes | 1 | seconds, clock | {"delay": {"minutes": 1}}
    lose-reply.twice | true | nothing | {"lose-reply": {"twice": true}}
    drop.when | "never" | before, after | {"drop": {"when": "never"}}
    hold-back.behind | 0 | a whole number from 1 to 1000 | {"hold-back": {"behind": 0}}
    reject.condition | null | a string of ASCII with 1 to 128 bytes | "reject"
    reject.condition | "ü" | a string of ASCII with 1 to 128 bytes | {"reject": {"condition": "ü"}}
"#;

fn of_effects() -> Vec<InvalidFault> {
    let effects = "for the operation send: lose-reply, reject, detach, close, drop, delay, hold-back, \
                   expire-token, stall, crash, postpone, failover";
    let names = [
        json!("explode"),
        json!("lose-lock"),
        json!(7),
        json!({"drop": {}, "detach": {}}),
        json!({"drop": 1}),
    ];
    let names = names.map(|effect| with("effect", &effect, "effect", &effect, effects));
    let seconds = [json!(0), json!(-1), json!(1e9), json!("long"), Value::Null].map(|value| {
        let effect = json!({"delay": {"seconds": value, "clock": "real"}});
        with("effect", &effect, "effect.delay.seconds", &value, SECONDS)
    });
    let wrong_effects = WRONG_EFFECTS.trim().lines().map(|line| {
        let [path, value, allowed, effect] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let json = |text: &str| -> Value { serde_json::from_str(text).expect(line) };
        let path = format!("effect.{}", path.trim());
        with("effect", &json(effect), &path, &json(value), allowed)
    });
    names
        .into_iter()
        .chain(seconds)
        .chain(wrong_effects)
        .collect()
}

#[test]
fn an_invalid_fault_is_refused_with_the_allowed_values() {
    let bus = Bus::with_queues(&["q"]);
    let all = [of_operations(), of_counts(), of_effects()].concat();
    for (body, problem) in all {
        let answer = bus.http.post(FAULTS, &body);
        assert_eq!(answer.error(400).0, "invalid-argument", "{body}");
        assert_eq!(answer.body["error"]["problems"], json!([problem]), "{body}");
    }
    assert_eq!(bus.http.get(FAULTS).ok(), json!({ "faults": [] }));
}

#[test]
fn a_fault_filter_unknown_to_its_operation_is_refused() {
    let bus = Bus::with_queues(&["q"]);
    for (operation, effect, key, value) in [
        ("connect", json!("drop"), "entity", json!("q")),
        ("http", json!("drop"), "client", json!("worker-1")),
        ("attach", json!("drop"), "message_id", json!("m")),
        ("discharge", json!("drop"), "session_id", json!("s")),
        (
            "send",
            json!("drop"),
            "name",
            json!("com.microsoft:peek-message"),
        ),
    ] {
        let mut body = json!({"operation": operation, "effect": effect});
        body[key] = value.clone();
        let answer = bus.http.post(FAULTS, &body);
        assert_eq!(answer.error(400).0, "invalid-argument", "{body}");
        let problem = &answer.body["error"]["problems"][0];
        assert_eq!((&problem["path"], &problem["value"]), (&json!(key), &value));
        let allowed = problem["allowed"].as_str().unwrap();
        assert_starts_with(allowed, "only with the operations ");
        assert!(!allowed.contains(operation), "{allowed}");
    }
}

/// The wrong member, and the fault of sends.
const CHANCE: &str = r#"
    random | {"random": {"seed": 1, "probability": 0}, "effect": "lose-reply"}
    random | {"random": {"seed": 1, "probability": 1.1}, "effect": "lose-reply"}
    random | {"random": {"seed": -1, "probability": 0.5}, "effect": "lose-reply"}
    nth | {"random": {"seed": 1, "probability": 0.5}, "nth": 2, "effect": "lose-reply"}
    effects | {"random": {"seed": 1, "probability": 0.5}, "effects": []}
    effects | {"effects": ["lose-reply"]}
    property | {"property": {"name": "n"}, "effect": "lose-reply"}
"#;

#[test]
fn a_random_fault_excludes_counts_and_has_a_valid_probability() {
    let bus = Bus::with_queues(&["q"]);
    for line in CHANCE.trim().lines() {
        let (path, body) = line.trim().split_once(" | ").expect(line);
        let mut body: Value = serde_json::from_str(body).expect(line);
        body["operation"] = json!("send");
        let answer = bus.http.post(FAULTS, &body);
        assert_eq!(answer.error(400).0, "invalid-argument", "{body}");
        assert_eq!(answer.body["error"]["problems"][0]["path"], path, "{body}");
    }
    for body in [
        json!({"effect": "lose-reply"}),
        json!({"operation": "send", "effect": "lose-reply", "often": true}),
    ] {
        assert_eq!(bus.http.post(FAULTS, &body).error(422).0, "invalid-body");
    }
}
