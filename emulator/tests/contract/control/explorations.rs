//! Explorations over the control API: a test runs again and again, each time with other faults.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use servicebus_emulator::auth::{Claims, ConnectionString, Key, sas};

use crate::support::*;

const ALL: &str = "/$emulator/v1/explorations";
const DEADLINE: Duration = Duration::from_secs(20);

/// An exploration of a worker that completes two messages.
fn request_body() -> Value {
    json!({
        "name": "test_orders",
        "topology": {"UserConfig": {"Namespaces": [{"Name": "any", "Queues": [{"Name": "q"}]}]}},
        "parties": ["worker"],
        "only": ["worker.complete"],
        "effects": ["lose-lock", "deliver-twice"],
    })
}

fn begin(bus: &Bus, request: &Value) -> String {
    let answer = bus.http.post(ALL, request);
    assert_eq!(answer.status, 201, "{answer:?}");
    format!("{ALL}/{}", answer.body["id"].as_str().expect("an id"))
}

fn next(bus: &Bus, exploration: &str) -> Option<Value> {
    let answer = bus.http.post(&format!("{exploration}/runs"), &Value::Null);
    match answer.status {
        204 => None,
        status => {
            assert_eq!(status, 201, "{answer:?}");
            Some(answer.body)
        }
    }
}

fn end(bus: &Bus, exploration: &str, run: &Value, result: &Value) -> Answer {
    bus.http.post(
        &format!("{exploration}/runs/{}/result", run["number"]),
        result,
    )
}

fn client(bus: &Bus, connection_string: &Value) -> Peer {
    let string: ConnectionString = connection_string
        .as_str()
        .expect("a text")
        .parse()
        .expect("a connection string");
    let key = Key {
        name: string.key_name.clone().expect("a key name"),
        key: string.key.expect("a key"),
        claims: Claims::ALL,
    };
    let mut peer = Peer::open(bus.amqp, &Open::default());
    let token = sas::sign("sb://localhost/", &key, in_an_hour());
    assert_eq!(peer.put_token("sb://localhost/", &token).cbs_status(), 202);
    peer
}

/// Sends two orders and lets a worker handle what comes; returns which orders it charged.
fn work(bus: &Bus, run: &Value, knows_orders: bool) -> Vec<String> {
    let mut customer = client(bus, &run["connection_string"]);
    let sender = customer.sender("q");
    for id in ["o-1", "o-2"] {
        customer.send(&sender, &Message::new(id));
    }
    let mut worker = client(bus, &run["parties"]["worker"]);
    let receiver = worker.receiver("q");
    let (mut charged, mut known) = (Vec::new(), HashSet::new());
    let namespace = run["namespace"].as_str().expect("a name");
    let counts = format!("/$emulator/v1/namespaces/{namespace}/counts?entity=q");
    while bus.http.get(&counts).ok()["active"] != 0 {
        let order = worker.receive_one(&receiver);
        if known.insert(order.id()) || !knows_orders {
            charged.push(order.id());
        }
        worker.settle(&order, accepted());
    }
    charged
}

/// Makes all runs; returns their tokens and the report.
fn explore(bus: &Bus, request: &Value, knows_orders: bool) -> (Vec<Value>, Value) {
    let exploration = begin(bus, request);
    let mut tokens = Vec::new();
    while let Some(run) = next(bus, &exploration) {
        let charged = work(bus, &run, knows_orders);
        let passed = charged == ["o-1", "o-2"];
        let result = json!({
            "passed": passed, "message": (!passed).then(|| format!("charged {charged:?}")),
            "location": (!passed).then_some("test_shop.py:7"),
        });
        assert_eq!(end(bus, &exploration, &run, &result).status, 204);
        tokens.push(run["token"].clone());
    }
    let report = bus.http.get(&exploration).ok();
    assert_eq!(
        members(&report, ["done", "replay"]),
        json!([true, "statistical"])
    );
    (tokens, report)
}

fn names(bus: &Bus) -> usize {
    let list = bus.http.get("/$emulator/v1/namespaces").ok();
    list.as_array().expect("a list").len()
}

#[test]
fn an_exploration_finds_a_worker_that_charges_twice() {
    let bus = Bus::with_queues(&["other"]);
    let (tokens, report) = explore(&bus, &request_body(), false);
    assert_eq!(&tokens[..2], &[Value::Null, Value::Null]);
    let found = "x1:worker.complete@q/o-1#1=deliver-twice";
    assert!(tokens.contains(&json!(found)), "{tokens:?}");
    let text = report["text"].as_str().expect("a text");
    for part in [
        "worker's completion of o-1, delivery 1",
        "(test_shop.py:7)",
        "again in 3 of 3 runs",
        "timeline of o-1 in q",
        "explore with \"token\": \"x1:worker.complete@q/o-1#1=",
        "statistical",
    ] {
        assert_contains(text, part);
    }
    assert_eq!(report["report"]["notReached"], 0, "{text}");
    assert_eq!(names(&bus), 1, "the namespaces of runs are gone");
    let mut only = request_body();
    only["token"] = json!(found);
    let (tokens, report) = explore(&bus, &only, false);
    assert_eq!(tokens[2], found);
    assert_eq!(report["report"]["findings"][0]["token"], found);
}

#[test]
fn an_exploration_passes_for_an_idempotent_worker() {
    let bus = Bus::with_queues(&["other"]);
    let (tokens, report) = explore(&bus, &request_body(), true);
    assert_eq!(
        tokens.len(),
        6,
        "two of the base, and two effects at two completions"
    );
    assert_eq!(
        report["report"]["findings"],
        json!([]),
        "{}",
        report["text"]
    );
    assert_eq!(report["failed"], false);
}

#[test]
fn an_exploration_without_findings_fails_if_its_faults_are_never_applied() {
    let bus = Bus::with_queues(&["other"]);
    let exploration = begin(&bus, &request_body());
    while let Some(run) = next(&bus, &exploration) {
        let has_fault = !run["token"].is_null();
        if !has_fault {
            work(&bus, &run, true);
        }
        let result = json!({"passed": !has_fault, "message": "no database"});
        assert_eq!(end(&bus, &exploration, &run, &result).status, 204);
    }
    let report = bus.http.get(&exploration).ok();
    assert_eq!(members(&report, ["done", "failed"]), json!([true, true]));
    assert_eq!(report["report"]["findings"], json!([]), "{report}");
    let text = report["text"].as_str().expect("a text");
    assert_contains(text, "fails although its fault was not applied");
}

/// The log does not know the message of a settlement whose lock is lost, so that its key has no message id.
#[test]
fn an_exploration_applies_faults_to_settlements_without_a_lock() {
    let bus = Bus::with_queues(&["other"]);
    let mut request = request_body();
    request["token"] = json!("x1:worker.complete(update-disposition)@q#1=lose-lock");
    let exploration = begin(&bus, &request);
    while let Some(run) = next(&bus, &exploration) {
        let mut customer = client(&bus, &run["connection_string"]);
        for id in ["o-1", "o-2"] {
            customer.send_to("q", &Message::new(id));
        }
        let mut worker = client(&bus, &run["parties"]["worker"]);
        let (receiver, node) = (worker.receiver("q"), worker.node("q/$management"));
        let first = worker.receive_one(&receiver).token();
        let second = worker.receive_one(&receiver).token();
        let tokens = [first, first, second];
        let replies = tokens.map(|token| worker.update_disposition(&node, "completed", &[token]));
        assert_eq!(replies.map(|reply| reply.status()), [200, 410, 200]);
        let passed = json!({"passed": true});
        assert_eq!(end(&bus, &exploration, &run, &passed).status, 204);
    }
    let report = bus.http.get(&exploration).ok();
    let outcome = members(&report, ["done", "failed"]);
    assert_eq!(outcome, json!([true, false]), "{report}");
}

#[test]
fn an_exploration_combines_two_faults_and_is_cut_by_its_budget() {
    let bus = Bus::with_queues(&["other"]);
    let mut request = request_body();
    request["faults"] = json!(2);
    request["runs"] = json!(8);
    request["topology"] = json!(format!("// As a file.\n{}", request["topology"]));
    let (tokens, report) = explore(&bus, &request, true);
    assert_eq!(tokens.len(), 8);
    let pair = tokens[7].as_str().expect("a token");
    assert_eq!(pair.matches('=').count(), 2, "{pair}");
    assert!(
        report["report"]["cutByBudget"].as_u64() > Some(0),
        "{report}"
    );
}

#[test]
fn an_exploration_reports_a_test_that_fails_without_faults() {
    let bus = Bus::with_queues(&["other"]);
    for (results, expected) in [
        (
            [false, false],
            "the test fails without any fault; make it pass first\nboom",
        ),
        ([true, false], "the base run is itself flaky"),
        ([true, true], "there is no operation to apply a fault to"),
    ] {
        let exploration = begin(&bus, &request_body());
        for passed in results {
            let run = next(&bus, &exploration).expect("a run");
            let result = json!({"passed": passed, "message": "boom"});
            assert_eq!(end(&bus, &exploration, &run, &result).status, 204);
        }
        assert_eq!(next(&bus, &exploration), None);
        let report = bus.http.get(&exploration).ok();
        let text = report["text"].as_str().expect("a text");
        assert_starts_with(text, &format!("test_orders: {expected}"));
        assert_eq!(report["done"], true);
    }
}

#[test]
fn an_invalid_exploration_is_refused_with_the_allowed_values() {
    let bus = Bus::with_queues(&["other"]);
    for (path, value, allowed) in [
        ("parties", json!([]), "1 to 32 names"),
        ("parties", json!(["a b"]), "1 to 64 letters"),
        ("parties", json!(["a", "a"]), "which no other party has"),
        (
            "parties",
            json!(["RootManageSharedAccessKey"]),
            "which are not RootManageSharedAccessKey",
        ),
        (
            "effects",
            json!(["explode"]),
            "postpone, elsewhere, server-busy",
        ),
        ("runs", json!(0), "1 to 10000"),
        ("within", json!(0.0), "above 0 to 3600"),
        ("keep", json!(3601.0), "above 0 to 3600"),
        ("faults", json!(3), "1 to 2"),
        ("token", json!("worker"), "begins with x1:"),
        (
            "topology",
            json!({"UserConfig": {"Namespaces": [{"Queues": 1}]}}),
            "",
        ),
    ] {
        let mut request = request_body();
        request[path] = value;
        let answer = bus.http.post(ALL, &request);
        assert_eq!(answer.status, 400, "{request}: {answer:?}");
        let problem = &answer.body["error"]["problems"][0];
        assert_contains(problem["allowed"].as_str().expect("a text"), allowed);
    }
    let mut request = request_body();
    request["token"] = json!("x0:worker.complete@q/o-1#1=lose-lock");
    let answer = bus.http.post(ALL, &request);
    assert_eq!(
        answer.error(400).1,
        "the token has version x0, but this harness reads x1: explore again without it, and copy the token that the report then shows"
    );
}

#[test]
fn an_exploration_reports_a_token_of_another_test() {
    let bus = Bus::with_queues(&["other"]);
    let mut request = request_body();
    request["token"] = json!("x1:worker.complete@q/o-9#1=lose-lock");
    let (tokens, report) = explore(&bus, &request, true);
    assert_eq!(tokens, [Value::Null, Value::Null]);
    let text = report["text"].as_str().expect("a text");
    assert_contains(text, "the token belongs to another test");
}

#[test]
fn an_exploration_result_is_accepted_for_the_open_run_only() {
    let bus = Bus::with_queues(&["other"]);
    let exploration = begin(&bus, &request_body());
    let passed = json!({"passed": true});
    let run = next(&bus, &exploration).expect("a run");
    let early = bus.http.post(&format!("{exploration}/runs"), &Value::Null);
    assert_eq!(
        early.error_with(409, "conflict").split(':').next(),
        Some("the run 1 has no result yet")
    );
    let unknown = end(&bus, &exploration, &json!({"number": 7}), &passed);
    assert_eq!(unknown.error(404).1, "there is no run \"7\"; there are: 1");
    assert_eq!(end(&bus, &exploration, &run, &passed).status, 204);
    let again = end(&bus, &exploration, &run, &passed);
    assert_eq!(
        again.error_with(409, "conflict"),
        "the run 1 has its result already"
    );
}

#[test]
fn an_abandoned_exploration_is_removed_with_its_namespace() {
    let bus = Bus::with_queues(&["other"]);
    let mut request = request_body();
    request["keep"] = json!(0.05);
    // On a slow machine the exploration may be gone before its run is executed.
    let exploration = begin(&bus, &request);
    let _ = bus.http.post(&format!("{exploration}/runs"), &Value::Null);
    let begun = Instant::now();
    while names(&bus) > 1 {
        assert!(begun.elapsed() < DEADLINE, "its namespace is still there");
        std::thread::yield_now();
    }
    let answer = bus.http.get(&exploration);
    assert_eq!(answer.error(404).0, "not-found");
}

#[test]
fn a_removed_exploration_removes_the_namespace_of_its_run() {
    let bus = Bus::with_queues(&["other"]);
    let exploration = begin(&bus, &request_body());
    next(&bus, &exploration).expect("a run");
    assert_eq!(names(&bus), 2);
    let removed = bus.http.delete(&exploration);
    assert_eq!((removed.status, names(&bus)), (204, 1));
}
