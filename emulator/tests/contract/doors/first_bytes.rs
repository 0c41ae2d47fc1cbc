//! Every listener tells AMQP, HTTP, TLS and the rest apart by the first bytes.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;

use crate::support::*;

#[test]
fn health_is_told_at_both_paths_and_at_every_door() {
    let bus = Bus::with_queues(&["q"]);
    for door in [bus.http, Http(bus.amqp)] {
        for path in ["/health", "/$emulator/v1/health"] {
            let body = door.get(path).ok();
            assert_eq!(body["status"], "healthy", "{body}");
        }
        let answer = door.get("/health");
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
