//! Tokens of requests and the errors for missing rights.
//!
//! Requests that are too large, too long, too slow, or not HTTP: bounded, and answered if possible.

use serde_json::json;
use servicebus_emulator::auth::{Claims, Key, sas};

use crate::support::*;

const JWT: &str = "e30.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln";

fn keys(more: &str) -> Bus {
    let keys = r#""Keys":[{"Name":"RootManageSharedAccessKey","Key":"SAS_KEY_VALUE","Claims":["Send","Listen","Manage"]},
        {"Name":"sender","Key":"s","Claims":["Send"]},{"Name":"listener","Key":"l","Claims":["Listen"]}]"#;
    Bus::configured(&queues(
        &format!("{keys}{more}"),
        &[("q", ""), ("other", "")],
    ))
}

fn token(resource: &str, name: &str, secret: &str) -> String {
    let key = Key {
        name: name.to_owned(),
        key: secret.to_owned(),
        claims: Claims::NONE,
    };
    sas::sign(resource, &key, in_an_hour())
}

#[test]
fn each_rest_operation_needs_its_claim() {
    let bus = keys("");
    let with =
        |name: &str, secret: &str| bus.rest_with(Some(&token("http://localhost/q", name, secret)));
    let (sender, listener) = (with("sender", "s"), with("listener", "l"));
    let needs = |response: &Response, claim: &str| {
        let words = response.refusal(401);
        assert_starts_with(words, "SubCode=40100. Unauthorized: ");
        assert_contains(words, &format!("'{claim}' claim(s) are required"));
        assert!(!words.contains(".."), "{words}");
    };
    needs(&listener.send("q", &[], "x"), "Send");
    assert_eq!(sender.send("q", &[], "x").status, 201);
    needs(&sender.peek_lock("q"), "Listen");
    let lock = listener.peek_lock("q").lock();
    for method in ["DELETE", "PUT", "POST"] {
        needs(&sender.ask(method, &lock), "Listen");
    }
    assert_eq!(listener.ask("DELETE", &lock).status, 200);
}

#[test]
fn a_token_for_any_covering_resource_is_accepted() {
    let bus = Bus::with_queues(&["q"]);
    let root = Key::well_known();
    for resource in [
        "http://localhost",
        "https://ns.servicebus.windows.net/",
        "sb://localhost:5672/Q",
        "https://ns.servicebus.windows.net/q/messages/head?timeout=0",
        "https://ns.servicebus.windows.net/q/messages/head?timeout=17",
        "https://ns.servicebus.windows.net/q/messages/head",
        "https://ns.servicebus.windows.net/q/messages",
        "ns.servicebus.windows.net",
    ] {
        let rest = bus.rest_with(Some(&sas::sign(resource, &root, in_an_hour())));
        assert_eq!(rest.peek_lock("q").status, 204, "{resource}");
    }
    let encoded = "https://ns.servicebus.windows.net/q/%24DeadLetterQueue/messages/head?timeout=0";
    let rest = bus.rest_with(Some(&sas::sign(encoded, &root, in_an_hour())));
    assert_eq!(rest.peek_lock("q/%24DeadLetterQueue").status, 204);
    for resource in [
        "http://localhost/other",
        "http://localhost/q/messages/1",
        "http://localhost/qq",
    ] {
        let rest = bus.rest_with(Some(&sas::sign(resource, &root, in_an_hour())));
        let refused = rest.peek_lock("q");
        assert_starts_with(refused.refusal(401), "SubCode=40104. InvalidAudience: ");
    }
}

#[test]
fn an_invalid_sas_token_is_refused_with_the_reason() {
    let bus = keys("");
    let expired = sas::sign("http://localhost/q", &Key::well_known(), now() - 1);
    let wrong = token("http://localhost/q", "sender", "wrong");
    let unknown = token("http://localhost/q", "nobody", "x");
    for (token, beginning) in [
        (None, "SubCode=40102. MissingToken: "),
        (Some(""), "SubCode=40105. MalformedToken: "),
        (
            Some("SharedAccessSignature sr=x"),
            "SubCode=40105. MalformedToken: ",
        ),
        (
            Some("WRAP access_token=\"x\""),
            "SubCode=40105. MalformedToken: ",
        ),
        (Some("Bearer x"), "SubCode=40105. MalformedToken: "),
        (
            Some(expired.as_str()),
            "ExpiredToken: The token is expired. Expiration time: '",
        ),
        (Some(wrong.as_str()), "SubCode=40103. InvalidSignature: "),
        (Some(unknown.as_str()), "SubCode=40103. InvalidSignature: "),
    ] {
        let rest = bus.rest_with(token);
        for refused in [
            rest.send("q", &[], "x"),
            rest.take("q"),
            rest.ask("DELETE", "/q/messages/1/x"),
        ] {
            let words = refused.refusal(401);
            assert!(words.starts_with(beginning), "{token:?}: {words}");
        }
    }
    assert_eq!(bus.http.held("q"), (0, 0), "nothing was written");
}

#[test]
fn a_client_without_rights_does_not_learn_which_names_exist() {
    let bus = keys("");
    let rest = bus.rest_with(None);
    let expected = |name: &str| rest.send(name, &[], "x").refusal(401).replace(name, "…");
    assert_eq!(expected("q"), expected("nobody"));
    let wrong = token("http://localhost/", "sender", "wrong");
    let rest = bus.rest_with(Some(&wrong));
    let expected = |name: &str| rest.send(name, &[], "x").refusal(401).replace(name, "…");
    assert_eq!(expected("q"), expected("nobody"));
}

#[test]
fn the_jwt_and_token_check_settings_apply_to_rest() {
    let bearer = format!("Bearer {JWT}");
    // Keys with fewer rights are declared: unsigned tokens only have every right if the configuration says so.
    let unset = keys("");
    let refused = unset.rest_with(Some(&bearer)).send("q", &[], "x");
    assert_contains(refused.refusal(401), "unsigned tokens are refused");
    let accepting = keys(r#","Jwt":"accept""#);
    assert_eq!(
        accepting
            .rest_with(Some(&bearer))
            .send("q", &[], "x")
            .status,
        201
    );
    let refusing = keys(r#","Jwt":"refuse""#);
    let refused = refusing.rest_with(Some(&bearer)).send("q", &[], "x");
    assert_contains(refused.refusal(401), "refuses JSON web tokens");
    let open = keys(r#","TokenCheck":"none""#);
    assert_eq!(open.rest_with(None).send("q", &[], "x").status, 201);
    assert_eq!(open.rest_with(Some("nonsense")).take("q").status, 200);
}

#[test]
fn tokens_of_rest_requests_expire_in_real_time() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    bus.http
        .post("/$emulator/v1/clock/advance", &json!({"seconds": 7200}))
        .ok();
    assert_eq!(rest.send("q", &[], "x").status, 201);
}

const LIMIT: usize = 256 * 1024;

#[test]
fn a_client_that_sends_all_of_a_far_too_long_body_reads_the_response() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let body = "x".repeat(10 << 20);
    rest.send("q", &[], &body).refusal(403);
    rest.send("missing", &[], &body).refusal(410);
    let path = "/new?api-version=2021-05";
    let refused = rest.request("PUT", path, &[], body.as_bytes());
    assert_eq!(refused.status, 413);
    bus.http
        .request("POST", "~/settled", Some(&body))
        .error(413);
}

#[test]
fn a_message_over_the_size_limit_is_refused() {
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
fn a_chunked_body_over_the_size_limit_is_refused_early() {
    let bus = Bus::with_queues(&["q"]);
    let token = root_token("http://localhost");
    let head = format!(
        "POST /q/messages HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nConnection: close\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    );
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let request = head + &chunk.repeat(6);
    let refused = bus.rest().begin_raw(request.as_bytes()).answer();
    assert_contains(refused.refusal(403), "exceeds the limit");
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_send_to_a_full_queue_is_403() {
    let (_bus, rest) = Bus::with_queue(r#""MaxSizeInMegabytes":1"#).with_rest();
    let quarter = "x".repeat(250 * 1024);
    let answers = [0; 6].map(|_| rest.send("q", &[], &quarter));
    let full = answers
        .iter()
        .find(|answer| answer.status != 201)
        .expect("it gets full");
    assert_contains(
        full.refusal(403),
        "The maximum entity size has been reached or exceeded for Queue: 'q'",
    );
}

#[test]
fn properties_over_their_maximum_length_are_refused() {
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
fn differing_partition_key_and_session_id_are_refused() {
    let (_bus, rest) = Bus::with_queues(&["q"]).with_rest();
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
    for (headers, expected) in [
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
        assert_contains(refused.refusal(400), expected);
    }
    let refused = rest.send("q", &[("BrokerProperties", "<&>")], "x");
    assert_contains(refused.refusal(400), "'&lt;&amp;&gt;'");
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_truncated_send_stores_no_message() {
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
