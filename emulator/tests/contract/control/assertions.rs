//! Assertions that the emulator evaluates for clients: how long they wait, when they end, and which are refused.
//! `tests/harness/served_assertions.rs` compares their meaning and texts with the harness.

use std::io::Write as _;
use std::net::TcpStream;
use std::thread;

use serde_json::{Value, json};

use crate::support::*;

/// As many wait as allowed at once.
const AT_ONCE: usize = 256;

fn checked(bus: &Bus, body: &Value) -> Answer {
    bus.http.post("~/assertions", body)
}

/// One that waits for a message until its client hangs up.
fn waiting(bus: &Bus) -> TcpStream {
    let body = r#"{"kind":"message_count","entity":"q","active":1,"within":600}"#;
    let head = format!(
        "POST /$emulator/v1/namespaces/sbemulatorns/assertions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut client = TcpStream::connect(bus.http.0).expect("HTTP accepts");
    client.write_all(head.as_bytes()).expect("it is read");
    client.write_all(body.as_bytes()).expect("it is read");
    client
}

#[test]
fn an_assertion_waits_until_it_holds_or_times_out() {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let request = json!({"kind": "message_count", "entity": "q", "active": 1, "within": 60});
    thread::scope(|scope| {
        let waiting = scope.spawn(|| checked(&bus, &request));
        peer.send_to("q", &Message::new("m"));
        let answer = waiting.join().expect("it answers");
        assert_eq!(answer.ok(), json!({"holds": true}));
    });
    let request = json!({"kind": "empty", "entity": "q", "within": 0});
    let answer = checked(&bus, &request).ok();
    assert_eq!(answer["holds"], false);
    let failure = answer["failure"].as_str().expect("a text");
    assert_contains(
        failure,
        "q: expected to be empty, found 1 message after 0 s",
    );
}

/// Clients retry after such a message until their timeout, without reporting it.
#[test]
fn a_failed_assertion_mentions_a_refused_message() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let missed = |id: &str| {
        let request = json!({"kind": "completed", "entity": "q", "message_id": id, "within": 0});
        let answer = checked(&bus, &request).ok();
        answer["failure"].as_str().expect("a text").to_owned()
    };
    let refusal = peer.send_in_vain(&sender, &Message::new("o-1").ttl(0).encode());
    let why = refusal.words().trim_end();
    assert_contains(why, "time to live");
    let hint = format!("was refused: {why}");
    assert_contains(&missed("o-1"), &hint);
    peer.send(&sender, &Message::new("o-2"));
    assert_contains(&missed("o-1"), &hint);
}

#[test]
fn waiting_assertions_are_limited_and_end_with_their_client() {
    let bus = Bus::with_queues(&["q"]);
    let mut clients: Vec<TcpStream> = (0..AT_ONCE).map(|_| waiting(&bus)).collect();
    let request = json!({"kind": "empty", "entity": "q"});
    let message = eventually("all wait", || {
        let answer = checked(&bus, &request);
        if answer.status == 409 {
            return Some(answer.error_with(409, "too-many").to_owned());
        }
        // While it was answered it may have had the place of one of them, which was refused.
        clients.push(waiting(&bus));
        None
    });
    assert_eq!(
        message,
        "256 assertions wait already, as many as may at once"
    );
    drop(clients);
    until("they end", || checked(&bus, &request).status == 200);
}

#[test]
fn a_waiting_assertion_ends_with_its_namespace() {
    let bus = &Bus::with_queues(&["q"]);
    let path = "/$emulator/v1/namespaces/one";
    let topology =
        json!({"UserConfig": {"Namespaces": [{"Name": "one", "Queues": [{"Name": "q"}]}]}});
    assert_eq!(bus.http.put(path, &topology).status, 201);
    let request = json!({"kind": "completed", "entity": "q", "within": 600});
    thread::scope(|scope| {
        let assertions = format!("{path}/assertions");
        let waiting = scope.spawn(move || bus.http.post(&assertions, &request));
        // It may arrive before or after the assertion has begun to wait: the answer is the same.
        assert_eq!(bus.http.delete(path).status, 204);
        let answer = waiting.join().expect("it answers");
        assert_eq!(answer.error(404).0, "not-found");
    });
}

#[test]
fn an_invalid_assertion_is_refused_with_the_reason() {
    let bus = Bus::with_queues(&["q"]);
    for (request, sentence) in [
        (
            json!({"kind": "empty", "entity": "q", "reason": "x"}),
            "the assertion empty takes no \"reason\"; it takes kind, entity, within",
        ),
        (
            json!({"kind": "empty", "entity": "q", "within": "long"}),
            "within is \"long\"; it takes seconds from 0 to 600",
        ),
    ] {
        let answer = checked(&bus, &request);
        assert_eq!(answer.error_with(400, "invalid-argument"), sentence);
    }
    let unknown = json!({"kind": "gone", "entity": "q"});
    let answer = checked(&bus, &unknown);
    let sentence = answer.error_with(400, "invalid-argument");
    assert_contains(
        sentence,
        "there is no assertion \"gone\"; there are abandoned, ",
    );
}
