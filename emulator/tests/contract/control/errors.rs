//! Errors of the control API: a fitting status, and a body of one shape.

use std::time::Duration;

use serde_json::json;
use servicebus_emulator::Options;

use crate::support::*;

const ADVANCE: &str = "/$emulator/v1/clock/advance";
const SETTLED: &str = "/$emulator/v1/namespaces/sbemulatorns/settled";

#[test]
fn an_unknown_route_or_method_is_named() {
    let bus = Bus::with_queues(&["q"]);
    for path in [
        "/$emulator/nothing",
        "/$emulator/v1/nothing",
        "/$emulator/v1/namespaces/sbemulatorns/nothing",
    ] {
        let answer = bus.http.get(path);
        let message = answer.error_with(404, "not-found");
        assert_contains(message, path);
        assert_contains(message, "/$emulator/v1");
    }
    for (method, path) in [
        ("GET", ADVANCE),
        ("GET", SETTLED),
        ("POST", "/health"),
        ("DELETE", "/$emulator/v1/namespaces"),
    ] {
        let answer = bus.http.request(method, path, None);
        let message = answer.error_with(405, "method-not-allowed");
        assert_contains(message, method);
        assert_contains(message, path);
    }
}

#[test]
fn an_unknown_namespace_is_not_found_and_known_ones_are_listed() {
    let bus = Bus::with_queues(&["q"]);
    for (method, path) in [
        ("GET", "clock"),
        ("POST", "clock/freeze"),
        ("GET", "timeline"),
        ("POST", "reset"),
    ] {
        let answer = bus.http.request(
            method,
            &format!("/$emulator/v1/namespaces/other/{path}"),
            None,
        );
        let message = answer.error_with(404, "not-found");
        assert_contains(message, "sbemulatorns");
    }
}

#[test]
fn an_invalid_control_body_is_refused_with_the_reason() {
    let bus = Bus::with_queues(&["q"]);
    for (body, status) in [
        ("", 400),
        ("{", 400),
        ("no json", 400),
        ("{}", 422),
        (r#"{"seconds":"1"}"#, 422),
        (r#"{"seconds":1,"minutes":1}"#, 422),
    ] {
        let answer = bus.http.request("POST", ADVANCE, Some(body));
        let (code, message) = answer.error(status);
        assert_eq!(code, "invalid-body", "{body}");
        assert!(!message.is_empty());
    }
    for (path, body) in [
        (ADVANCE, "null"),
        (ADVANCE, "\"1\""),
        (ADVANCE, "1"),
        (ADVANCE, "-1.5"),
        (SETTLED, "true"),
        // The values of the fields without their names.
        (ADVANCE, "[5]"),
        ("~/faults", r#"["send"]"#),
        ("~/messages/act", r#"["q",[1],null,"delete"]"#),
        ("~/messages?entity=q", "[[]]"),
    ] {
        let answer = bus.http.request("POST", path, Some(body));
        assert_eq!(answer.error(422).0, "invalid-body", "{body}");
    }
    let untyped = format!(
        "POST {ADVANCE} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 13\r\n\r\n{{\"seconds\":1}}"
    );
    assert_eq!(
        bus.http.get("/$emulator/v1/clock").ok()["offset_seconds"],
        0.0
    );
    // Whatever the content type says.
    let form = untyped.replace(
        "Host: x",
        "Host: x\r\nContent-Type: application/x-www-form-urlencoded",
    );
    for (request, offset) in [(untyped, 1.0), (form, 2.0)] {
        let clock = bus.http.raw(request.as_bytes()).ok();
        assert_eq!(clock["offset_seconds"], offset);
    }
}

#[test]
fn a_value_out_of_range_is_reported_with_the_allowed_range() {
    let bus = Bus::with_queues(&["q"]);
    for (path, name, value) in [
        (ADVANCE, "seconds", -1.0),
        (ADVANCE, "seconds", 1e300),
        (SETTLED, "within", -0.5),
        (SETTLED, "within", 1e6),
    ] {
        let answer = bus.http.post(path, &json!({ name: value }));
        assert_eq!(answer.error(400).0, "invalid-argument");
        let problem = &answer.body["error"]["problems"][0];
        assert_eq!(members(problem, ["path", "value"]), json!([name, value]));
        let allowed = problem["allowed"].as_str().unwrap_or_default();
        assert_starts_with(allowed, "seconds from 0 to ");
    }
}

#[test]
fn a_control_body_that_is_too_large_is_refused() {
    let bus = Bus::with_queues(&["q"]);
    let body = format!(r#"{{"seconds":1,"padding":"{}"}}"#, "x".repeat(2 << 20));
    let answer = bus.http.request("POST", ADVANCE, Some(&body));
    let text = answer.error_with(413, "invalid-body");
    assert_eq!(
        text,
        "the body is longer than 1048576 bytes, the limit of this route"
    );
    assert_eq!(bus.http.get("/health").status, 200);
}

#[test]
fn an_invalid_http_request_closes_only_its_connection() {
    let bus = Bus::with_queues(&["q"]);
    for bytes in [
        &b"GET\r\n\r\n"[..],
        b"POST /health HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\xff\xfe: x\r\n\r\n",
    ] {
        let mut peer = Peer::connect(bus.http.0);
        peer.write(bytes);
        peer.read_to_end();
        assert_eq!(bus.http.get("/health").status, 200);
    }
}

#[test]
fn a_missing_control_body_times_out_with_408() {
    let bus = Bus::started(Options {
        config: parse(&queues("", &[("q", "")])),
        step_timeout: Duration::from_millis(300),
        ..Options::default()
    });
    // Which is what `RequestTimeout` in openapi.json describes.
    for path in [ADVANCE, SETTLED, "/$emulator/v1/namespaces/other"] {
        let method = match path {
            ADVANCE | SETTLED => "POST",
            _ => "PUT",
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{{"
        );
        let answer = bus.http.raw(head.as_bytes());
        let (code, message) = answer.error(408);
        assert_eq!(code, "request-timeout", "{path}");
        assert_contains(message, "within 0.3 s");
    }
}

#[test]
fn an_unknown_entity_error_lists_the_nearest_names_of_many() {
    let names: Vec<String> = (0..300)
        .map(|number| format!("queue-{number:03}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let bus = Bus::with_queues(&names);
    let path = "/$emulator/v1/namespaces/sbemulatorns/queues/queue-2777";
    let answer = bus.http.get(path);
    let (_, message) = answer.error(404);
    assert_contains(message, "queue-277");
    assert_eq!(message.matches("queue-").count(), 21, "{message}");
    assert_ends_with(message, ", and 280 more");
}
