//! Every listener distinguishes AMQP, HTTP, TLS and the rest by the first bytes. Also heads of requests that violate HTTP.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;
use servicebus_emulator::Options;

use crate::support::*;

#[test]
fn every_listener_serves_health_at_both_paths() {
    let bus = Bus::with_queues(&["q"]);
    for listener in [bus.http, Http(bus.amqp)] {
        for path in ["/health", "/$emulator/v1/health"] {
            let body = listener.get(path).ok();
            assert_eq!(body["status"], "healthy", "{body}");
        }
        let answer = listener.get("/health");
        assert_contains(
            &answer.head.to_lowercase(),
            "content-type: application/json",
        );
    }
}

#[test]
fn the_http_port_accepts_amqp() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = Peer::connect(bus.http.0);
    assert_eq!(
        peer.sasl("PLAIN", b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE"),
        0
    );
    peer.introduce(&Open::default());
    peer.send_to("q", &Message::new("m"));
    assert_eq!(Http(bus.amqp).held("q"), (1, 0));
}

#[test]
fn one_connection_may_send_many_http_requests() {
    let bus = Bus::with_queues(&["q"]);
    let mut stream = TcpStream::connect(bus.http.0).expect("HTTP accepts");
    let request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream
        .write_all(&request.repeat(3))
        .expect("requests can be written");
    let mut text = String::new();
    while text.matches("\"healthy\"").count() < 3 {
        let mut block = [0; 1024];
        let read = stream.read(&mut block).expect("responses come");
        assert!(read > 0, "ended after {text}");
        text += &String::from_utf8_lossy(&block[..read]);
    }
}

#[test]
fn silent_connections_do_not_block_requests_and_advances() {
    let bus = Bus::with_queues(&["q"]);
    let silent: Vec<Peer> = (0..20).map(|_| Peer::connect(bus.amqp)).collect();
    drop(Peer::connect(bus.amqp));
    assert_eq!(bus.http.get("/health").status, 200);
    bus.http
        .post("/$emulator/v1/clock/advance", &json!({"seconds": 1}))
        .ok();
    drop(silent);
}

#[test]
fn health_is_served_at_the_connection_limit() {
    let bus = Bus::started(Options {
        config: parse(&queues("", &[("q", "")])),
        connections: 3,
        ..Options::default()
    });
    let mut taken: Vec<Stream> = (0..3).map(|_| Stream::plain(bus.http.0)).collect();
    let ask = |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        bus.http.text(request.as_bytes())
    };
    eventually("only health to be answered", || {
        let answer = ask("/$emulator/v1/namespaces");
        let is_full = answer.starts_with("HTTP/1.1 503 ");
        if !is_full {
            // The request came before one of the others, which was refused.
            taken.push(Stream::plain(bus.http.0));
        }
        is_full.then_some(())
    });
    for _ in 0..100 {
        assert_starts_with(&ask("/health"), "HTTP/1.1 200 ");
    }
    drop(taken);
    eventually("everything to be answered", || {
        let answer = ask("/$emulator/v1/namespaces");
        answer.starts_with("HTTP/1.1 200 ").then_some(())
    });
}

#[test]
fn an_ambiguous_http_head_is_refused() {
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
        assert_contains(&answer.head.to_lowercase(), "connection: close");
    }
    let old = bus.http.raw(b"GET /health HTTP/1.0\r\n\r\n");
    assert_eq!(old.status, 200, "{old:?}");
}

#[test]
fn the_head_of_a_pipelined_request_is_checked() {
    let bus = Bus::with_queues(&["q"]);
    // Two bodies that look like a head, one of known length, the other chunked.
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
