//! The list of sessions with their holders, and ending a session's lock.

use serde_json::{Value, json};

use crate::support::*;

const SESSIONS: &str = "~/sessions";

fn listed(bus: &Bus) -> Vec<Value> {
    let answer = bus.http.get(&format!("{SESSIONS}?entity=q")).ok();
    answer["sessions"].as_array().expect("an array").clone()
}

fn lose(bus: &Bus, body: &Value) -> Answer {
    bus.http.post(&format!("{SESSIONS}/lose"), body)
}

#[test]
fn sessions_are_listed_with_holders_and_contents() {
    let bus = Bus::with_sessions();
    assert_eq!(listed(&bus), Vec::<Value>::new());
    let mut peer = bus.client_as(&Open::named("worker-1"));
    send_all(
        &mut peer,
        "q",
        &[("1", "b"), ("2", "b"), ("3", "b"), ("4", "a")],
    );
    let link = peer.accept("q", "b");
    let first = peer.receive_one(&link);
    peer.settle(&first, deferred());
    peer.receive_one(&link);
    let node = peer.node("q/$management");
    let state = (text("session-state"), binary(b"step 1"));
    let body = in_session("b", [state]);
    assert_eq!(peer.call(&node, "set-session-state", body).status(), 200);
    let [free, held] = &listed(&bus)[..] else {
        panic!("two sessions");
    };
    let expected = json!({
        "id": "a", "active": 1, "locked": 0, "deferred": 0, "holder": null, "locked_until": null, "state": null,
    });
    assert_eq!(free, &expected);
    assert_eq!(held["id"], "b");
    assert_eq!(held["holder"], "worker-1");
    assert_eq!(held["state"], "c3RlcCAx");
    let numbers = ["active", "locked", "deferred"].map(|name| held[name].as_u64());
    assert_eq!(
        numbers,
        [Some(2), Some(1), Some(1)],
        "one of the active is locked"
    );
    let until: jiff::Timestamp = held["locked_until"]
        .as_str()
        .and_then(|at| at.parse().ok())
        .expect("a time");
    let left = until.as_millisecond() - client_now();
    assert!((left - 60_000).abs() < 20_000, "{left}");
}

#[test]
fn a_session_lock_can_be_ended_by_a_request() {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    let link = peer.accept("q", "s");
    let body = json!({"entity": "q", "session": "s"});
    assert_eq!(lose(&bus, &body).status, 204);
    peer.detached(&link);
    let message = "no receiver holds the session \"s\" of 'q'; none is held";
    assert_eq!(lose(&bus, &body).error_with(404, "not-found"), message);
    peer.accept("q", "other");
    let answer = lose(&bus, &body);
    let message = answer.error_with(404, "not-found");
    assert_eq!(
        message,
        r#"no receiver holds the session "s" of 'q'; held are: other"#
    );
}

#[test]
fn an_entity_without_sessions_refuses_session_requests() {
    let with_sessions = r#""RequiresSession":true"#;
    let bus = Bus::configured(&queues("", &[("q", with_sessions), ("plain", "")]));
    for entity in ["plain", "q/$DeadLetterQueue"] {
        let listing = bus.http.get(&format!("{SESSIONS}?entity={entity}"));
        let losing = lose(&bus, &json!({"entity": entity, "session": "s"}));
        for answer in [listing, losing] {
            assert_eq!(answer.error(400).0, "invalid-argument");
            let problem = &answer.body["error"]["problems"][0];
            assert_eq!(problem["value"], entity);
            assert_eq!(
                problem["allowed"],
                "a queue or subscription with RequiresSession"
            );
        }
    }
    let listing = bus.http.get(&format!("{SESSIONS}?entity=x"));
    assert_eq!(listing.error(404).0, "not-found");
    assert_eq!(bus.http.get(SESSIONS).error(400).0, "invalid-query");
}

#[test]
fn ending_a_session_lock_needs_a_valid_session_id() {
    let bus = Bus::with_sessions();
    let answer = lose(&bus, &json!({"entity": "q", "session": "s".repeat(129)}));
    assert_eq!(answer.error(400).0, "invalid-argument");
    let problem = &answer.body["error"]["problems"][0];
    assert_eq!(problem["allowed"], "up to 128 characters");
    for body in [
        json!({"entity": "q"}),
        json!({"entity": "q", "session": 1}),
        json!([]),
    ] {
        let answer = lose(&bus, &body);
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
}

#[test]
fn the_timeline_has_the_events_of_a_session() {
    let bus = Bus::with_sessions();
    let mut peer = bus.client_as(&Open::named("worker-1"));
    send_all(&mut peer, "q", &[("m", "s")]);
    let link = peer.accept("q", "s");
    let node = peer.node("q/$management");
    assert_eq!(
        peer.call(&node, "renew-session-lock", in_session("s", []))
            .status(),
        200
    );
    for state in [binary(b"step 1"), serde_amqp::Value::Null] {
        let body = in_session("s", [(text("session-state"), state)]);
        assert_eq!(peer.call(&node, "set-session-state", body).status(), 200);
    }
    peer.detach(&link);
    peer.accept("q", "s");
    bus.http.advance(61.0);
    let events = bus.http.events("?entity=q");
    let with_session: Vec<&Value> = events
        .iter()
        .filter(|event| !event["session"].is_null())
        .collect();
    let column = |name: &str| -> Vec<Value> {
        with_session
            .iter()
            .map(|event| event[name].clone())
            .collect()
    };
    let kinds = [
        "session-accepted",
        "session-lock-renewed",
        "session-state-set",
        "session-state-set",
        "session-released",
        "session-accepted",
        "session-lock-expired",
    ];
    assert_eq!(column("kind"), kinds);
    assert!(column("session").iter().all(|session| session == "s"));
    assert_eq!(column("client")[..6], ["worker-1"; 6]);
    assert!(column("client")[6].is_null(), "time did it");
    assert_eq!(column("detail")[2..4], ["6 bytes", "cleared"]);
    let ends = column("locked_until");
    assert!(ends[0].is_string() && ends[1].is_string() && ends[2].is_null());
}

#[test]
fn requires_session_is_set_at_creation_and_cannot_be_changed() {
    let bus = Bus::with_queues(&["plain"]);
    let shown = bus.http.put_queue("new", &json!({"RequiresSession": true}));
    assert_eq!(shown["properties"]["RequiresSession"], true);
    assert_eq!(
        bus.http.put_queue("plain", &json!({}))["properties"]["RequiresSession"],
        false
    );
    bus.client().accept("new", "s");
    for (queue, wanted) in [("new", false), ("plain", true)] {
        let body = json!({ "RequiresSession": wanted }).to_string();
        let answer = bus.http.queue("PUT", queue, Some(&body));
        assert_eq!(answer.error(400).0, "invalid-argument");
        assert_eq!(
            answer.body["error"]["problems"][0]["path"],
            "RequiresSession"
        );
    }
    assert_eq!(bus.http.put("~/topics/t", &json!({})).status, 201);
    let path = "~/subscriptions/t/Subscriptions/s";
    let made = bus.http.put(path, &json!({"RequiresSession": true}));
    assert_eq!(made.status, 201);
    assert_eq!(made.body["properties"]["RequiresSession"], true);
    let changed = bus.http.put(path, &json!({"RequiresSession": false}));
    assert_eq!(changed.error(400).0, "invalid-argument");
}
