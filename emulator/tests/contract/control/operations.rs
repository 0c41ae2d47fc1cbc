//! The operation log: the operations of clients as faults see them, and a fault that matches one entry of it.

use serde_json::{Value, json};

use crate::support::*;

const OPERATIONS: &str = "~/operations";
const FAULTS: &str = "~/faults";
const KEY: &str = "RootManageSharedAccessKey";

fn record(bus: &Bus, recording: bool) {
    let body = json!({ "recording": recording }).to_string();
    let answer = bus.http.request("PUT", OPERATIONS, Some(&body)).ok();
    assert_eq!(answer["recording"], recording);
    assert_eq!(answer["operations"], json!([]));
}

fn operations(bus: &Bus, query: &str) -> Vec<Value> {
    let log = bus.http.get(&format!("{OPERATIONS}{query}")).ok();
    log["operations"].as_array().expect("a list").clone()
}

/// A client that sends a message, receives and completes it, and leaves.
fn work(bus: &Bus) {
    let mut peer = bus.client_as(&Open::named("worker-1"));
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    peer.send(&sender, &Message::new("a").property(10, text("s")));
    peer.complete_one(&receiver);
    peer.settle_down();
}

#[test]
fn operations_are_recorded_only_after_a_request() {
    let bus = Bus::with_queues(&["q"]);
    work(&bus);
    assert_eq!(operations(&bus, ""), [] as [Value; 0]);
    record(&bus, true);
    work(&bus);
    let log = operations(&bus, "");
    let names: Vec<_> = log.iter().map(|one| one["operation"].as_str()).collect();
    let names: Vec<_> = names.into_iter().flatten().collect();
    let expected = [
        "connect", "token", "attach", "attach", "send", "receive", "complete",
    ];
    assert_eq!(names, expected);
    for (index, one) in log.iter().enumerate() {
        assert_eq!(one["number"], index + 1);
        assert_eq!(one["party"], KEY, "{one}");
        assert_eq!(one["client"], "worker-1", "{one}");
        assert_eq!(one["connection"], log[0]["connection"]);
    }
    let (sent, received, completed) = (&log[4], &log[5], &log[6]);
    for one in [sent, received, completed] {
        assert_eq!(one["entity"], "q");
        assert_eq!(
            members(one, ["message_id", "session_id"]),
            json!(["a", "s"])
        );
        assert_eq!(one["body_hash"], sent["body_hash"]);
        assert_eq!(one["messages"], 1);
    }
    assert_eq!(sent["sequence_number"], Value::Null);
    assert_eq!(
        members(received, ["sequence_number", "delivery"]),
        json!([2, 1])
    );
    assert_eq!(completed["sequence_number"], 2);
    assert_eq!(
        members(received, ["locked", "session_locked"]),
        json!([true, false])
    );
    assert_eq!(completed["repeatable"], true);
    assert_eq!(
        received["before"],
        json!({"ready": 1, "locked": 0, "receivers": 1})
    );
    assert_eq!(completed["before"]["locked"], 1);
    record(&bus, false);
    work(&bus);
    assert_eq!(operations(&bus, ""), [] as [Value; 0]);
}

#[test]
fn the_operation_log_has_pages() {
    let bus = Bus::with_queues(&["q"]);
    record(&bus, true);
    work(&bus);
    let page = bus.http.get(&format!("{OPERATIONS}?after=2&limit=2")).ok();
    let numbers: Vec<_> = page["operations"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["number"].as_u64())
        .collect();
    assert_eq!((numbers, &page["next"]), (vec![3, 4], &json!(4)));
    let last = bus.http.get(&format!("{OPERATIONS}?after=4")).ok();
    assert_eq!(
        (last["operations"].as_array().map(Vec::len), &last["next"]),
        (Some(3), &Value::Null)
    );
    for limit in ["0", "1001"] {
        let answer = bus.http.get(&format!("{OPERATIONS}?limit={limit}"));
        assert_eq!(answer.status, 400, "{answer:?}");
        let problem = &answer.body["error"]["problems"][0];
        assert_eq!(problem["allowed"], "from 1 to 1000");
    }
}

#[test]
fn a_fault_narrowed_to_one_operation_affects_only_that() {
    let bus = Bus::with_queues(&["q"]);
    record(&bus, true);
    let fault = json!({
        "operation": "complete", "party": KEY, "entity": "q", "sequence_number": 2, "delivery": 2,
        "effect": {"reject": {"condition": "com.microsoft:timeout"}},
    });
    let id = bus.http.post(FAULTS, &fault).ok()["id"].clone();
    let mut peer = bus.client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    for id in ["a", "b"] {
        peer.send(&sender, &Message::new(id));
    }
    peer.complete_one(&receiver);
    let second = peer.receive_one(&receiver);
    peer.settle(&second, abandoned());
    let again = peer.receive_one(&receiver);
    peer.assert_settle_refused(&again, accepted(), "com.microsoft:timeout");
    let log = operations(&bus, "");
    let affected: Vec<_> = log
        .iter()
        .filter(|one| one.get("faults").is_some())
        .collect();
    let [affected] = affected[..] else {
        panic!("one was affected: {affected:?}");
    };
    assert_eq!(affected["message_id"], "b");
    let expected = json!([{
        "fault": id, "effect": "reject", "detail": "the completion was rejected with com.microsoft:timeout",
    }]);
    assert_eq!(affected["faults"], expected);
}

#[test]
fn an_impossible_fault_filter_is_refused_with_the_allowed_operations() {
    let bus = Bus::with_queues(&["q"]);
    let numbered = "only with the operations receive, settle, complete, abandon, dead-letter, defer, renew-lock, management";
    for (operation, key, value, allowed) in [
        (
            "complete",
            "party",
            json!("nobody"),
            format!("the name of a key: {KEY}"),
        ),
        ("send", "sequence_number", json!(3), numbered.to_owned()),
        ("send", "delivery", json!(1), numbered.to_owned()),
        (
            "complete",
            "sequence_number",
            json!(0),
            "a whole number from 1".to_owned(),
        ),
        (
            "complete",
            "delivery",
            json!(1_u64 << 40),
            "a whole number that a message can have".to_owned(),
        ),
    ] {
        let mut fault = json!({"operation": operation, "effect": "lose-reply"});
        fault[key] = value.clone();
        let answer = bus.http.post(FAULTS, &fault);
        assert_eq!(answer.status, 400, "{fault}: {answer:?}");
        let problem = json!({"path": key, "value": value, "allowed": allowed});
        assert_eq!(answer.body["error"]["problems"], json!([problem]));
    }
}
