//! Every listener tells AMQP, HTTP, TLS and the rest apart by the first bytes.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;
use servicebus_emulator::Options;

use crate::support::*;

#[test]
fn health_is_told_at_both_paths_and_at_every_door() {
    let bus = Bus::with_queues(&["q"]);
    for listener in [bus.http, Http(bus.amqp)] {
        for path in ["/health", "/$emulator/v1/health"] {
            let body = listener.get(path).ok();
            assert_eq!(body["status"], "healthy", "{body}");
        }
        let answer = listener.get("/health");
        assert!(
            answer
                .head
                .to_lowercase()
                .contains("content-type: application/json"),
            "{}",
            answer.head
        );
    }
}

#[test]
fn amqp_is_spoken_at_the_door_of_http() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = Peer::connect(bus.http.0);
    assert_eq!(
        peer.sasl("PLAIN", b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE"),
        0
    );
    peer.introduce(&Open::default());
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("m"));
    assert_eq!(Http(bus.amqp).held("q"), (1, 0));
}

#[test]
fn a_connection_may_ask_many_times() {
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
fn connections_that_say_nothing_are_in_nobodys_way() {
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
fn health_is_told_however_many_are_connected() {
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
        assert!(ask("/health").starts_with("HTTP/1.1 200 "));
    }
    drop(taken);
    eventually("everything to be answered", || {
        let answer = ask("/$emulator/v1/namespaces");
        answer.starts_with("HTTP/1.1 200 ").then_some(())
    });
}
