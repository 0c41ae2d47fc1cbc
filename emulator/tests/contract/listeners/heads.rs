//! Heads of requests that are not as HTTP has them.

use std::io::{Read as _, Write as _};

use crate::support::*;

#[test]
fn a_head_that_others_may_read_differently_is_refused() {
    let bus = Bus::with_queues(&["q"]);
    for (what, reason) in [
        ("/health HTTP/1.1\r\n", "no header Host"),
        (
            "/health HTTP/1.1\r\nHost: a\r\nHost: a\r\n",
            "more than one header Host",
        ),
        (
            "/health HTTP/1.0\r\nHost: a\r\nHost: b\r\n",
            "more than one header Host",
        ),
        ("/health HTTP/1.1\nHost: a\r\n", "LF alone"),
        ("/health HTTP/1.1\r\nHost: a\n", "LF alone"),
        ("/q/messages HTTP/1.1\r\n", "no header Host"),
        ("/$servicebus/websocket HTTP/1.1\r\n", "no header Host"),
    ] {
        let answer = bus.http.raw(format!("GET {what}\r\n").as_bytes());
        let (code, message) = answer.error(400);
        assert_eq!(code, "malformed-request", "{what:?}");
        assert!(message.contains(reason), "{what:?}: {message}");
        assert!(
            answer.head.to_lowercase().contains("connection: close"),
            "{answer:?}"
        );
    }
    let old = bus.http.raw(b"GET /health HTTP/1.0\r\n\r\n");
    assert_eq!(old.status, 200, "{old:?}");
}

#[test]
fn a_head_behind_another_request_is_judged_as_the_first() {
    let bus = Bus::with_queues(&["q"]);
    // Two bodies with the look of a head, the one of a known length, the other in chunks.
    let body = "GET /health HTTP/1.1\nHost: a\n\n";
    let freeze = "POST /$emulator/v1/clock/freeze HTTP/1.1\r\nHost: a\r\n";
    let known = format!("{freeze}Content-Length: {}\r\n\r\n{body}", body.len());
    let chunked = format!(
        "{freeze}Transfer-Encoding: chunked\r\n\r\n{:x}\r\nGET /other HTTP/1.1\n\n\r\n0\r\n\r\n",
        21
    );
    let last = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    for (first, last, statuses) in [
        (&known, last, ["200", "200"]),
        (&chunked, last, ["200", "200"]),
        (
            &known,
            "GET /health HTTP/1.1\r\nHost: a\n\r\n",
            ["200", "400"],
        ),
    ] {
        let mut stream = Stream::plain(bus.http.0);
        let requests = format!("{first}{last}");
        let written = stream.write_all(requests.as_bytes());
        written.expect("they are written");
        let mut text = String::new();
        let read = stream.read_to_string(&mut text);
        read.expect("they are answered");
        let seen: Vec<&str> = text
            .split("HTTP/1.1 ")
            .skip(1)
            .map(|answer| &answer[..3])
            .collect();
        assert_eq!(seen, statuses, "{first}{last}: {text}");
    }
}
