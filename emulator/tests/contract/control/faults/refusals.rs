//! Faults that make no sense are refused with what does.

use serde_json::{Value, json};

use super::FAULTS;
use crate::support::*;

/// Every body with the one problem that it has.
fn senseless() -> Vec<(Value, Value)> {
    let fault = |extra: Value| {
        let mut body = json!({"operation": "send", "effect": "lose-reply"});
        for (key, value) in extra.as_object().expect("an object") {
            body[key] = value.clone();
        }
        body
    };
    let problem = |path: &str, value: Value, allowed: &str| json!({"path": path, "value": value, "allowed": allowed});
    let mut all = Vec::new();
    let operations = "send, receive, settle, complete, abandon, dead-letter, defer, renew-lock, attach, connect, \
                      token, management, discharge, http";
    all.push((
        fault(json!({"operation": "explode"})),
        problem("operation", json!("explode"), operations),
    ));
    let effects = "for the operation send: lose-reply, reject, detach, close, drop, delay, hold-back, \
                   expire-token, stall";
    for effect in [
        json!("explode"),
        json!("lose-lock"),
        json!(7),
        json!({"drop": {}, "detach": {}}),
        json!({"drop": 1}),
    ] {
        all.push((
            fault(json!({"effect": effect})),
            problem("effect", effect, effects),
        ));
    }
    let connect = "for the operation connect: close, drop, delay, round-trip, stall";
    let body = json!({"operation": "connect", "effect": "lose-reply"});
    all.push((body, problem("effect", json!("lose-reply"), connect)));
    for key in ["nth", "every", "times"] {
        for value in [json!(0), json!(-1), json!(1.5), json!("first")] {
            let problem = problem(key, value.clone(), "a whole number from 1");
            let mut body = fault(json!({}));
            body[key] = value;
            all.push((body, problem));
        }
    }
    let seconds = "a number of seconds above 0, at most 3600";
    for value in [json!(0), json!(-1), json!(1e9), json!("long"), Value::Null] {
        let effect = json!({"delay": {"seconds": value, "clock": "real"}});
        all.push((
            fault(json!({"effect": effect})),
            problem("effect.delay.seconds", value, seconds),
        ));
    }
    let particulars = [
        (
            json!({"delay": {"seconds": 1, "clock": "wall"}}),
            "effect.delay.clock",
            json!("wall"),
            "virtual, real",
        ),
        (
            json!({"delay": {"minutes": 1}}),
            "effect.delay.minutes",
            json!(1),
            "seconds, clock",
        ),
        (
            json!({"lose-reply": {"twice": true}}),
            "effect.lose-reply.twice",
            json!(true),
            "nothing",
        ),
        (
            json!({"drop": {"when": "never"}}),
            "effect.drop.when",
            json!("never"),
            "before, after",
        ),
        (
            json!({"hold-back": {"behind": 0}}),
            "effect.hold-back.behind",
            json!(0),
            "a whole number from 1 to 1000",
        ),
        (
            json!("reject"),
            "effect.reject.condition",
            Value::Null,
            "a string of ASCII with 1 to 128 bytes",
        ),
        (
            json!({"reject": {"condition": "ü"}}),
            "effect.reject.condition",
            json!("ü"),
            "a string of ASCII with 1 to 128 bytes",
        ),
    ];
    for (effect, path, value, allowed) in particulars {
        all.push((
            fault(json!({"effect": effect})),
            problem(path, value, allowed),
        ));
    }
    let http = json!({"operation": "http", "effect": {"answer": {"status": 99}}});
    let allowed = "a status of HTTP from 200 to 599";
    all.push((http, problem("effect.answer.status", json!(99), allowed)));
    all
}

#[test]
fn what_makes_no_sense_is_refused_with_what_does() {
    let bus = Bus::with_queues(&["q"]);
    for (body, problem) in senseless() {
        let answer = bus.http.post(FAULTS, &body);
        assert_eq!(answer.error(400).0, "invalid-argument", "{body}");
        assert_eq!(answer.body["error"]["problems"], json!([problem]), "{body}");
    }
    assert_eq!(bus.http.get(FAULTS).ok(), json!({ "faults": [] }));
}

#[test]
fn what_an_operation_does_not_have_cannot_narrow_it() {
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
        assert!(
            allowed.starts_with("only with the operations "),
            "{allowed}"
        );
        assert!(!allowed.contains(operation), "{allowed}");
    }
}

#[test]
fn chance_is_asked_for_alone_and_within_bounds() {
    let bus = Bus::with_queues(&["q"]);
    let effect = json!("lose-reply");
    for (extra, path) in [
        (
            json!({"random": {"seed": 1, "probability": 0}, "effect": effect}),
            "random",
        ),
        (
            json!({"random": {"seed": 1, "probability": 1.1}, "effect": effect}),
            "random",
        ),
        (
            json!({"random": {"seed": -1, "probability": 0.5}, "effect": effect}),
            "random",
        ),
        (
            json!({"random": {"seed": 1, "probability": 0.5}, "nth": 2, "effect": effect}),
            "nth",
        ),
        (
            json!({"random": {"seed": 1, "probability": 0.5}, "effects": []}),
            "effects",
        ),
        (json!({"effects": [effect]}), "effects"),
        (
            json!({"property": {"name": "n"}, "effect": effect}),
            "property",
        ),
    ] {
        let mut body = extra.clone();
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
