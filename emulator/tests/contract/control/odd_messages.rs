//! Messages that are deep, wide, long, not text, or of wrong types: they are returned, or refused with the reason, and nothing
//! hangs.

use serde_json::{Value, json};

use crate::support::*;

fn send(bus: &Bus, message: &str) -> Answer {
    bus.http
        .request("POST", "~/messages?entity=q", Some(message))
}

fn listed(bus: &Bus) -> Vec<Value> {
    let answer = bus.http.get("~/messages?entity=q").ok();
    answer["messages"].as_array().expect("a list").clone()
}

/// A message whose body is lists within lists.
fn nested(depth: usize) -> String {
    let (begin, end) = (r#"{"list":["#.repeat(depth), "]}".repeat(depth));
    format!(r#"{{"body":{{"value":{begin}{end}}}}}"#)
}

#[test]
fn a_json_value_has_at_most_the_nesting_depth_of_amqp() {
    let bus = Bus::with_queues(&["q"]);
    assert_eq!(send(&bus, &nested(20)).status, 201);
    let deep = send(&bus, &nested(50));
    let text = deep.error_with(400, "invalid-argument");
    assert_contains(text, "nested deeper");
    assert_eq!(send(&bus, &nested(100_000)).error(400).0, "invalid-body");
    assert_eq!(listed(&bus).len(), 1);
}

#[test]
fn all_application_properties_that_fit_are_listed() {
    let bus = Bus::with_queues(&["q"]);
    let with = |count: usize| {
        let members = (0..count).map(|n| (format!("p{n}"), Value::Null));
        json!({ "application_properties": Value::Object(members.collect()) }).to_string()
    };
    assert_eq!(send(&bus, &with(4_000)).status, 201);
    let shown = bus.http.get("~/messages/1?entity=q").ok();
    let properties = shown["message"]["application_properties"].as_object();
    assert_eq!(properties.map(serde_json::Map::len), Some(4_000));
    assert_eq!(send(&bus, &with(10_000)).error(400).0, "invalid-argument");
}

#[test]
fn a_preview_shows_the_beginning_of_text_and_no_bytes() {
    let bus = Bus::with_queues(&["q"]);
    let line = "ü".repeat(100_000);
    let sent = send(&bus, &json!({ "body": { "text": line } }).to_string());
    assert_eq!(sent.status, 201);
    assert_eq!(send(&bus, r#"{"body":{"data":["w7zDKA=="]}}"#).status, 201);
    assert_eq!(send(&bus, r#"{"body":{"value":{"int":5}}}"#).status, 201);
    let messages = listed(&bus);
    assert_eq!(messages[0]["preview"], "ü".repeat(100));
    assert_eq!(messages[1].get("preview"), None);
    assert_eq!(messages[2].get("preview"), None);
    let bytes = bus.http.get("~/messages/2?entity=q").ok();
    assert_eq!(bytes["message"]["body"], json!({"data": ["w7zDKA=="]}));
}

#[test]
fn entity_names_with_slashes_are_accepted_in_message_requests() {
    let bus = Bus::with_queues(&["a/b"]);
    let path = "~/messages?entity=a%2Fb";
    assert_eq!(bus.http.post(path, &json!({})).status, 201);
    let dead = json!({"entity": "a/b", "numbers": [1], "act": "dead-letter"});
    assert_eq!(
        bus.http.post("~/messages/act", &dead).ok()["done"],
        json!([1])
    );
    for entity in ["a/b/$DeadLetterQueue", "a%2Fb%2F$DeadLetterQueue"] {
        let shown = bus.http.get(&format!("~/messages/1?entity={entity}")).ok();
        assert_eq!(shown["summary"]["sequence_number"], 1, "{entity}");
    }
    let unknown = bus.http.get("~/messages?entity=100%25");
    assert_eq!(unknown.error(404).0, "not-found");
}

#[test]
fn the_invalid_one_of_several_messages_is_reported_and_none_sent() {
    let bus = Bus::with_queues(&["q"]);
    for (wrong, status, text) in [
        (json!({"subject": "x"}), 422, "messages[1]: unknown field"),
        (
            json!({"properties": {"subject": 5}}),
            400,
            "messages[1]: properties.subject: it must be of the type string",
        ),
    ] {
        let messages = json!([{}, wrong, {}]);
        let answer = bus.http.post("~/messages?entity=q", &messages);
        assert_contains(answer.error(status).1, text);
    }
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn message_properties_in_json_have_their_amqp_types() {
    let bus = Bus::with_queues(&["q"]);
    let sent = |properties: Value| {
        let message = json!({"properties": properties});
        bus.http.post("~/messages?entity=q", &message)
    };
    for (field, value, text) in [
        (
            "subject",
            json!(5),
            "properties.subject: it must be of the type string",
        ),
        (
            "absolute_expiry_time",
            json!("tomorrow"),
            "of the type timestamp",
        ),
        (
            "content_type",
            json!({"binary": "aGk="}),
            "of the type symbol",
        ),
        (
            "correlation_id",
            json!({"list": [1]}),
            "one of string, ulong, uuid, binary",
        ),
    ] {
        let answer = sent(json!({ field: value }));
        assert_contains(answer.error(400).1, text);
    }
    let ids = json!({"message_id": {"ulong": 7}, "correlation_id": {"uuid": "00000000-0000-0000-0000-000000000001"}});
    assert_eq!(sent(ids).status, 201);
}
