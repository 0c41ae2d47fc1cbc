//! Queues are created, changed and removed at run time.

use serde_json::{Value, json};

use crate::support::*;

fn problems(answer: &Answer) -> Vec<(String, String)> {
    let (code, message) = answer.error(400);
    assert_eq!(code, "invalid-argument", "{message}");
    let problems = answer.body["error"]["problems"].as_array();
    let text = |problem: &Value, name: &str| problem[name].as_str().map(str::to_owned);
    let both = |problem: &Value| {
        let allowed = text(problem, "allowed").unwrap_or_default();
        assert!(!allowed.is_empty(), "{problem}");
        (text(problem, "path").expect("a path"), allowed)
    };
    problems.expect("problems").iter().map(both).collect()
}

fn paths(answer: &Answer) -> Vec<String> {
    problems(answer).into_iter().map(|(path, _)| path).collect()
}

fn put(bus: &Bus, path: &str, properties: &Value) -> Answer {
    bus.http.queue("PUT", path, Some(&properties.to_string()))
}

#[test]
fn a_queue_is_created_updated_shown_and_deleted() {
    let bus = Bus::with_queues(&["q"]);
    let made = put(&bus, "new", &json!({"LockDuration": "PT30S"}));
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.body["name"], "new");
    let properties = &made.body["properties"];
    assert_eq!(properties["LockDuration"], "PT30S");
    assert_eq!(properties["MaxDeliveryCount"], 10, "the service's default");
    assert_eq!(properties["Status"], "Active");

    let changed = put(&bus, "NEW", &json!({"MaxDeliveryCount": 3}));
    assert_eq!(
        (changed.status, &changed.body["name"]),
        (200, &json!("new"))
    );
    assert_eq!(changed.body["properties"]["LockDuration"], "PT30S", "kept");
    assert_eq!(changed.body["properties"]["MaxDeliveryCount"], 3);
    assert_eq!(bus.http.queue("GET", "New", None).ok(), changed.body);
    let list = bus.http.get("~/queues").ok();
    let names: Vec<&Value> = list["queues"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|queue| &queue["name"])
        .collect();
    assert_eq!(names, ["new", "q"]);
    // Its response can be written back.
    let same = put(&bus, "new", &changed.body["properties"]);
    assert_eq!((same.status, &same.body), (200, &changed.body));

    let mut peer = bus.client();
    peer.send_to("new", &Message::new("m"));
    let removed = bus.http.queue("DELETE", "new", None);
    assert_eq!((removed.status, removed.body), (204, Value::Null));
    for method in ["GET", "DELETE"] {
        let answer = bus.http.queue(method, "new", None);
        let message = answer.error_with(404, "not-found");
        assert!(
            message.contains("\"new\"") && message.contains('q'),
            "{message}"
        );
    }
    assert_eq!(put(&bus, "new", &json!({})).status, 201);
    assert_eq!(bus.http.held("new"), (0, 0), "another one");
}

#[test]
fn an_empty_body_creates_a_queue_with_defaults() {
    let bus = Bus::with_queues(&["q"]);
    for (path, body) in [("a", None), ("b", Some("")), ("c", Some("{}"))] {
        assert_eq!(bus.http.queue("PUT", path, body).status, 201, "{path}");
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let bus = Bus::with_queues(&["q"]);
    let wrong = json!({
        "LockDuration": "PT1H",
        "MaxDeliveryCount": 0,
        "AutoDeleteOnIdle": "PT1M",
        "MaxMessageSizeInKilobytes": 2048,
    });
    let answer = put(&bus, "new", &wrong);
    let mut found = paths(&answer);
    found.sort();
    let mut expected: Vec<&str> = wrong
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    for problem in answer.body["error"]["problems"]
        .as_array()
        .expect("problems")
    {
        assert!(problem["value"].is_string(), "{problem}");
    }
    assert_eq!(bus.http.queue("GET", "new", None).status, 404);
    for (body, path) in [
        (json!({"LockDuratoin": "PT30S"}), "LockDuratoin"),
        (json!({"LockDuration": 30}), "LockDuration"),
        (json!({"LockDuration": "30"}), "LockDuration"),
        (json!({"Status": "Asleep"}), "Status"),
        (json!({"RequiresSession": true}), "RequiresSession"),
        (json!({"MaxDeliveryCount": 1.5}), "MaxDeliveryCount"),
    ] {
        assert_eq!(paths(&put(&bus, "q", &body)), [path]);
    }
}

#[test]
fn a_queue_body_must_be_an_object() {
    let bus = Bus::with_queues(&["q"]);
    for body in ["[]", "[\"PT30S\"]", "1", "null", "\"q\"", "{", "no json"] {
        let answer = bus.http.queue("PUT", "q", Some(body));
        assert_eq!(answer.error(400).0, "invalid-argument", "{body}");
    }
    let binary = bus.http.send("PUT", "~/queues/q", &[], b"\xff\xfe");
    assert_eq!(binary.error(400).0, "invalid-body");
    let long = format!("{{{}}}", " ".repeat(2 << 20));
    let answer = bus.http.queue("PUT", "q", Some(&long));
    assert_eq!(answer.error(413).0, "invalid-body");
}

#[test]
fn properties_of_a_queue_fixed_at_creation_cannot_be_changed() {
    let bus = Bus::with_queues(&["q"]);
    for name in ["RequiresDuplicateDetection", "EnablePartitioning"] {
        let answer = put(&bus, "q", &json!({ name: true, "MaxDeliveryCount": 3 }));
        let allowed = "false, as it was created".to_owned();
        assert_eq!(problems(&answer), [(name.to_owned(), allowed)]);
        assert_eq!(put(&bus, "q", &json!({ name: false })).status, 200);
    }
    let shown = bus.http.queue("GET", "q", None).ok();
    assert_eq!(shown["properties"]["MaxDeliveryCount"], 10);
}

#[test]
fn forwarding_targets_of_a_queue_must_exist() {
    let bus = Bus::with_queues(&["orders", "q"]);
    for property in ["ForwardTo", "ForwardDeadLetteredMessagesTo"] {
        let answer = put(&bus, "q", &json!({ property: "order" }));
        let allowed = "a queue or topic of the namespace; the nearest name is \"orders\"";
        assert_eq!(
            problems(&answer),
            [(property.to_owned(), allowed.to_owned())]
        );
        // An entity may name itself: the limit of hops ends cycles (observed 26).
        assert_eq!(put(&bus, "q", &json!({ property: "Q" })).status, 200);
        let itself = format!("itself-{property}");
        assert_eq!(put(&bus, &itself, &json!({ property: itself })).status, 201);
        assert_eq!(
            paths(&put(&bus, "q", &json!({ property: "a b" }))),
            [property]
        );
        assert_eq!(put(&bus, "q", &json!({ property: "Orders" })).status, 200);
        assert_eq!(put(&bus, "q", &json!({ property: "" })).status, 200);
    }
    assert_eq!(bus.http.queue("GET", "new", None).status, 404);
    // A subscription is no target, and is not suggested.
    bus.http.put("~/topics/t1", &json!({}));
    let subscription = "t1/Subscriptions/s1";
    let path = format!("~/subscriptions/{subscription}");
    assert_eq!(bus.http.put(&path, &json!({})).status, 201);
    let answer = put(&bus, "q", &json!({"ForwardTo": "t1/Subscription/s1"}));
    let [(_, allowed)] = &problems(&answer)[..] else {
        panic!("{answer:?}");
    };
    assert!(!allowed.contains(subscription), "{allowed}");
}

#[test]
fn a_source_of_a_deleted_target_can_be_changed_and_get_another_target() {
    let bus = Bus::with_queues(&["a", "b", "c"]);
    put(&bus, "a", &json!({"ForwardTo": "b"})).ok();
    bus.http.queue("DELETE", "b", None).ok();
    assert_eq!(
        bus.http.queue("GET", "a", None).ok()["properties"]["ForwardTo"],
        "b"
    );
    let unchanged = json!({"Status": "SendDisabled", "ForwardTo": "b"});
    assert_eq!(put(&bus, "a", &unchanged).status, 200);
    let elsewhere = json!({"ForwardDeadLetteredMessagesTo": "b"});
    let refused = put(&bus, "a", &elsewhere);
    assert_eq!(refused.status, 400);
    assert_contains(
        &refused.body["error"]["message"].to_string(),
        "the target of forwarding does not exist",
    );
    assert_eq!(put(&bus, "a", &json!({"ForwardTo": "c"})).status, 200);
}

#[test]
fn a_queue_name_may_have_slashes_and_only_legal_characters() {
    let bus = Bus::with_queues(&["q"]);
    for path in ["eu/orders", "eu%2Forders", "EU%2forders"] {
        let answer = put(&bus, path, &json!({}));
        assert!(answer.status < 300, "{answer:?}");
        assert_eq!(answer.body["name"], "eu/orders");
    }
    let mut peer = bus.client();
    peer.sender("eu/orders");
    assert_eq!(bus.http.queue("DELETE", "eu%2Forders", None).status, 204);
    for path in [
        "a%20b",
        "-a",
        "a%2F",
        "a%3F",
        "q/$DeadLetterQueue",
        "q/$management",
        "%ff",
        &"x".repeat(261),
    ] {
        for method in ["GET", "PUT", "DELETE"] {
            let body = (method == "PUT").then_some("{}");
            let answer = bus.http.queue(method, path, body);
            assert_eq!(paths(&answer), ["queue"], "{method} {path}");
        }
    }
    assert_eq!(bus.http.queue("GET", "q", None).status, 200);
}

#[test]
fn concurrent_updates_of_a_queue_are_all_applied() {
    let bus = Bus::with_queues(&["q"]);
    let names = ["MaxDeliveryCount", "MaxSizeInMegabytes"];
    for round in 1..20 {
        std::thread::scope(|scope| {
            for name in names {
                scope.spawn(|| put(&bus, "q", &json!({ name: round + 20 })).ok());
            }
        });
        let shown = bus.http.queue("GET", "q", None).ok();
        for name in names {
            assert_eq!(shown["properties"][name], round + 20, "{name}");
        }
    }
}
