//! Too large, too long, too slow, and not HTTP: bounded, and answered where that is possible.

use serde_json::json;

use crate::support::*;

const LIMIT: usize = 256 * 1024;

#[test]
fn a_message_is_no_larger_than_its_entity_allows() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    assert_eq!(rest.send("q", &[], &"x".repeat(LIMIT - 1024)).status, 201);
    for size in [LIMIT, LIMIT + 1, 4 * LIMIT] {
        let refused = rest.send("q", &[], &"x".repeat(size));
        let words = refused.refusal(403);
        assert_contains(
            words,
            "exceeds the limit (262144 bytes) currently allowed on the link.",
        );
    }
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn an_endless_body_is_cut_off() {
    let bus = Bus::with_queues(&["q"]);
    let token = root_token("http://localhost");
    let head = format!(
        "POST /q/messages HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nConnection: close\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    );
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let request = head + &chunk.repeat(6);
    let refused = bus.rest().begin_raw(request.as_bytes()).answer();
    assert!(refused.refusal(403).contains("exceeds the limit"));
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_full_queue_is_told_from_an_empty_one() {
    let (_bus, rest) =
        Bus::configured(&queues("", &[("q", r#""MaxSizeInMegabytes":1"#)])).with_rest();
    let quarter = "x".repeat(250 * 1024);
    let answers = [0; 6].map(|_| rest.send("q", &[], &quarter));
    let full = answers
        .iter()
        .find(|answer| answer.status != 201)
        .expect("it gets full");
    assert!(
        full.refusal(403)
            .contains("The maximum entity size has been reached or exceeded for Queue: 'q'")
    );
}

#[test]
fn what_is_too_long_for_a_property_is_refused() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let long = "x".repeat(129);
    for name in ["MessageId", "SessionId", "PartitionKey"] {
        let properties = json!({ name: long }).to_string();
        let refused = rest.send("q", &[("BrokerProperties", &properties)], "");
        assert_contains(
            refused.refusal(400),
            "has 129 characters; at most 128 are allowed",
        );
    }
    let large = format!("\"{}\"", "x".repeat(33 * 1024));
    let refused = rest.send("q", &[("Large", &large)], "");
    assert_contains(refused.refusal(400), "the property 'Large' has");
    let many: Vec<(String, String)> = (0..3)
        .map(|n| (format!("p{n}"), format!("\"{}\"", "x".repeat(30 * 1024))))
        .collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let refused = rest.send("q", &many, "");
    assert_contains(refused.refusal(400), "at most 65536 are allowed");
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn keys_that_differ_are_refused_where_they_decide_a_partition() {
    let (_bus, rest) =
        Bus::configured(&queues("", &[("q", r#""EnablePartitioning":true"#)])).with_rest();
    let keys = (
        "BrokerProperties",
        r#"{"PartitionKey":"a","SessionId":"b"}"#,
    );
    let refused = rest.send("q", &[keys], "");
    assert_contains(refused.refusal(400), "must be equal");
}

#[test]
fn malformed_headers_are_refused() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    for (headers, said) in [
        (
            ("BrokerProperties", "{"),
            "The value '{' of the HTTP header 'BrokerProperties' is invalid",
        ),
        (("BrokerProperties", r#"{"TimeToLive":0}"#), "TimeToLive"),
        (
            ("BrokerProperties", r#"{"ScheduledEnqueueTimeUtc":"x"}"#),
            "ScheduledEnqueueTimeUtc",
        ),
        (("Content-Type", "é"), "Content-Type"),
    ] {
        let refused = rest.send("q", &[headers], "x");
        assert!(refused.refusal(400).contains(said), "{refused:?}");
    }
    let refused = rest.send("q", &[("BrokerProperties", "<&>")], "x");
    assert_contains(refused.refusal(400), "'&lt;&amp;&gt;'");
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_client_that_breaks_off_a_body_sends_nothing() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let token = root_token("http://localhost");
    let head = format!(
        "POST /q/messages HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Length: 100\r\n\r\nhalf"
    );
    for _ in 0..20 {
        drop(rest.begin_raw(head.as_bytes()));
    }
    assert_eq!(rest.send("q", &[], "whole").status, 201);
    assert_eq!(bus.http.held("q"), (1, 0));
}
