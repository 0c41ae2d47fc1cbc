//! The short form of a topology, as packages for other languages declare it.

use serde_json::json;

use super::*;

#[test]
fn a_short_topology_declares_the_entities_of_a_configuration() {
    let bus = Bus::with_queues(&["q"]);
    let short = json!({
        "queues": [
            "plain",
            {"name": "snake", "max_delivery_count": 3, "lock_duration": 30, "forward_to": null},
            {"name": "camel", "maxDeliveryCount": 3, "lockDuration": "PT30S"},
            {"Name": "whole", "Properties": {"RequiresSession": true}},
        ],
        "topics": [{"name": "prices", "requires_duplicate_detection": true, "subscriptions": [
            "all",
            {"name": "some", "default_message_time_to_live": 1.5, "rules": [
                {"name": "high", "sql": "price > 10", "action": "SET tag = 'high'"},
                {"name": "label", "correlation": {"Label": "order"}},
                {"name": "any"},
            ]},
        ]}],
        "settings": {"Tier": "premium"},
    });
    let limits = json!({"MaxDeliveryCount": 3, "LockDuration": "PT30S"});
    let whole = json!({
        "Name": "tests",
        "Queues": [
            {"Name": "plain"},
            {"Name": "snake", "Properties": limits},
            {"Name": "camel", "Properties": limits},
            {"Name": "whole", "Properties": {"RequiresSession": true}},
        ],
        "Topics": [{
            "Name": "prices",
            "Properties": {"RequiresDuplicateDetection": true},
            "Subscriptions": [
                {"Name": "all"},
                {"Name": "some", "Properties": {"DefaultMessageTimeToLive": "PT1.5S"}, "Rules": [
                    {"Name": "high", "Properties": {
                        "FilterType": "Sql",
                        "SqlFilter": {"SqlExpression": "price > 10"},
                        "Action": {"SqlExpression": "SET tag = 'high'"},
                    }},
                    {"Name": "label", "Properties": {
                        "FilterType": "Correlation", "CorrelationFilter": {"Label": "order"},
                    }},
                    {"Name": "any", "Properties": {"FilterType": "True"}},
                ]},
            ],
        }],
        "Emulator": {"Tier": "premium"},
    });
    let whole = json!({"UserConfig": {"Namespaces": [whole]}});
    let held = |name: &str, declared: &Value| {
        make(&bus, name, &declared.to_string());
        let mut held = bus.http.get(&format!("{}/topology", path(name))).ok();
        let namespace = &mut held["UserConfig"]["Namespaces"][0];
        namespace["Name"] = Value::Null;
        namespace["Emulator"]["Keys"] = Value::Null;
        held
    };
    assert_eq!(held("short", &short), held("whole", &whole));
    assert_eq!(
        held("empty", &json!({"queues": []}))["UserConfig"]["Namespaces"][0]["Queues"],
        json!([])
    );
}

#[test]
fn a_mistake_in_a_short_topology_is_reported() {
    let bus = Bus::with_queues(&["q"]);
    let limits =
        json!({"queues": [{"name": "a", "maxDeliveries": 3}, {"name": "b", "lock_duration": 1}]});
    for (declared, sentence) in [
        (
            json!({"queues": [], "queue": ["a"]}),
            "a topology has queues, topics and settings, or UserConfig, not queue",
        ),
        (
            json!({"queue": ["a"]}),
            "a topology has queues, topics and settings, or UserConfig, not queue",
        ),
        (
            json!({"queues": "orders"}),
            "queues is a list: [\"orders\"], not \"orders\"",
        ),
        (
            json!({"topics": [{"name": "t", "subscriptions": [{"name": "s", "rules": [{"name": "r", "SQL": ""}]}]}]}),
            "the rule \"r\" has name, sql, correlation and action, not SQL",
        ),
        (limits, "the topology cannot be served"),
    ] {
        let answer = put(&bus, "wrong", &declared.to_string());
        assert_eq!(answer.error_with(400, "invalid-argument"), sentence);
    }
    for (declared, key) in [
        (r#"{"queues":["a"],"queues":["b"]}"#, "queues"),
        (r#"{"topics":[{"name":"t","name":"u"}]}"#, "name"),
        (
            r#"{"queues":[{"name":"a","lockDuration":30,"lock_duration":40}]}"#,
            "LockDuration",
        ),
    ] {
        let answer = put(&bus, "wrong", declared);
        assert_eq!(
            answer.error_with(400, "invalid-argument"),
            format!("an object has {key} twice")
        );
    }
    for impossible in [
        r#"{"queues":[{"name":"a","lock_duration":1e999}]}"#,
        r#"{"queues":["\ud800"]}"#,
    ] {
        assert_eq!(put(&bus, "wrong", impossible).status, 400, "{impossible}");
    }
}

/// Each problem is in the text, as packages for other languages print it.
#[test]
fn an_error_response_has_one_text_with_all_problems() {
    let bus = Bus::with_queues(&["q"]);
    let declared =
        json!({"queues": [{"name": "a", "maxDeliveries": 3}, {"name": "b", "lock_duration": 1.0}]});
    let answer = put(&bus, "wrong", &declared.to_string());
    let text = answer.body["error"]["text"].as_str().expect("a text");
    assert_contains(text, "the topology cannot be served: ");
    assert_contains(text, ".Queues[0].Properties.MaxDeliveries ");
    assert_contains(text, "did you mean \"MaxDeliveryCount\"?; ");
    let last = ".Queues[1].Properties.LockDuration \"PT1S\": 5 s (PT5S) to 5 min (PT5M)";
    assert_ends_with(text, last);
    assert_eq!(
        put(&bus, "wrong", "{}").body["error"]["text"],
        "a topology has queues, topics and settings, or UserConfig, and this one has none of them; {\"queues\":[]} declares no entities"
    );
    let unknown = bus.http.get("/$emulator/v1/namespaces/none/clock");
    assert_eq!(
        unknown.body["error"]["text"],
        unknown.body["error"]["message"]
    );
}
