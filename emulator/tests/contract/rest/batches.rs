//! `POST {entity}/messages` with `application/vnd.microsoft.servicebus.json`.

use serde_json::json;

use crate::support::*;

#[test]
fn a_batch_is_stored_message_by_message() {
    let bus = Bus::with_queues(&["q"]);
    let rest = bus.rest();
    let batch = json!([
        {"Body": "first", "BrokerProperties": {"Label": "M1", "TimeToLiveTimeSpan": "0.00:00:40"}},
        {"Body": "second", "BrokerProperties": {"Label": "M2"}, "UserProperties": {"Priority": "Low"}},
        {"Body": "third", "UserProperties": {"Priority": "Medium", "Weight": 2, "Rate": 0.5, "Late": true}},
    ]);
    assert_eq!(rest.send_batch("q", &batch).status, 201);
    let [first, second, third] = [0, 1, 2].map(|_| rest.take("q"));
    assert_eq!(first.text(), "first");
    assert_eq!(first.property("Label"), "M1");
    assert_eq!(first.property("TimeToLive"), 40);
    assert_eq!(second.text(), "second");
    assert_eq!(second.property("Label"), "M2");
    assert_eq!(second.header("Priority"), Some(r#""Low""#));
    let headers = ["Priority", "Weight", "Rate", "Late"].map(|name| third.header(name));
    assert_eq!(
        headers,
        [Some(r#""Medium""#), Some("2"), Some("0.5"), Some("true")]
    );
    assert_eq!(rest.take("q").status, 204);
}

#[test]
fn the_headers_of_a_batch_are_not_those_of_its_messages() {
    let bus = Bus::with_queues(&["q"]);
    let rest = bus.rest();
    let headers = [
        ("Content-Type", "application/vnd.microsoft.servicebus.json"),
        ("Priority", "1"),
        ("BrokerProperties", r#"{"Label":"no"}"#),
    ];
    assert_eq!(rest.send("q", &headers, r#"[{"Body":"m"}]"#).status, 201);
    let taken = rest.take("q");
    assert_eq!(taken.header("Priority"), None);
    assert!(taken.property("Label").is_null());
    assert_eq!(
        taken.header("Content-Type"),
        Some("application/xml; charset=utf-8")
    );
}

#[test]
fn a_batch_that_is_refused_leaves_nothing() {
    let bus = Bus::with_queues(&["q"]);
    let rest = bus.rest();
    let long = "x".repeat(129);
    for (batch, said) in [
        (json!([]), "at least one message"),
        (json!({"Body": "x"}), "a JSON array"),
        (
            json!([{"Body": "x"}, {"Body": 1}]),
            "The message 1 of the batch is refused",
        ),
        (
            json!([{"Body": "x"}, {"BrokerProperties": {"MessageId": long}}]),
            "at most 128",
        ),
    ] {
        let refused = rest.send_batch("q", &batch);
        let words = refused.refusal(400);
        assert!(words.contains(said), "{batch}: {words}");
    }
    let content_type = ("Content-Type", "application/vnd.microsoft.servicebus.json");
    let refused = rest.send("q", &[content_type], "[{\"Body\":");
    assert!(refused.refusal(400).starts_with("The batch is not JSON"));
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn with_a_parameter_in_its_type_it_is_one_message() {
    let bus = Bus::with_queues(&["q"]);
    let rest = bus.rest();
    let content_type = "application/vnd.microsoft.servicebus.json; charset=utf-8";
    rest.send("q", &[("Content-Type", content_type)], "[{},{}]");
    let taken = rest.take("q");
    assert_eq!(taken.text(), "[{},{}]");
    assert_eq!(taken.header("Content-Type"), Some(content_type));
}

#[test]
fn a_batch_is_no_larger_than_the_tier_allows() {
    let bus = Bus::with_queues(&["q"]);
    let rest = bus.rest();
    let half = json!({"Body": "x".repeat(120 * 1024)});
    assert_eq!(rest.send_batch("q", &json!([half, half])).status, 201);
    let refused = rest.send_batch("q", &json!([half, half, half]));
    assert!(
        refused
            .refusal(403)
            .contains("exceeds the limit (262144 bytes)")
    );
    assert_eq!(bus.http.held("q"), (2, 0));
    let endless = json!([{"Body": "x".repeat(2 * 1024 * 1024)}]);
    let refused = rest.send_batch("q", &endless);
    assert!(refused.refusal(413).contains("at most 1572864 are read"));
}
