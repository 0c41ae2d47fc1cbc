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
fn a_failed_assertion_mentions_a_refused_transaction() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let (coordinator, transaction) = peer.transaction();
    peer.enlist(&sender, &transaction, "o-1");
    bus.http.advance(121.0);
    peer.commit(&coordinator, &transaction)
        .expect_err("it is too late");
    let request = json!({"kind": "message_count", "entity": "q", "active": 1, "within": 0});
    assert_contains(&failure(&bus, &request), "hint: a transaction of");
}

/// Returns the failure of an assertion that does not hold.
fn failure(bus: &Bus, request: &Value) -> String {
    let answer = checked(bus, request).ok();
    answer["failure"].as_str().expect("a text").to_owned()
}

#[test]
fn a_failed_assertion_blames_a_lost_lock_until_its_message_is_completed() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let script = |effect| {
        let fault = json!({"operation": "complete", "message_id": "o-1", "effect": effect});
        assert_eq!(bus.http.post("~/faults", &fault).status, 201);
    };
    peer.send(&sender, &Message::new("o-1"));
    let receiver = peer.receiver("q");
    let completed = |count| {
        let request = json!({"kind": "completed", "entity": "q", "count": count, "within": 0});
        failure(&bus, &request)
    };
    let first = peer.receive_one(&receiver);
    bus.http.advance(61.0);
    peer.assert_settle_refused(&first, accepted(), "com.microsoft:message-lock-lost");
    let expired = completed(1);
    assert_contains(&expired, "tried to complete o-1 after its lock was lost");
    assert_contains(&expired, "the clock is 61 s ahead");
    let second = peer.receive_one(&receiver);
    peer.complete(&second);
    script("lose-lock");
    peer.send(&sender, &Message::new("o-1"));
    let third = peer.receive_one(&receiver);
    peer.assert_settle_refused(&third, accepted(), "com.microsoft:message-lock-lost");
    let taken = completed(2);
    assert_contains(
        &taken,
        "tried to complete o-1 after a fault took its lock; the lock ended at",
    );
    let fourth = peer.receive_one(&receiver);
    peer.complete(&fourth);
    peer.detach(&receiver);
    peer.send(&sender, &Message::new("o-2"));
    let hint = "hint: o-2 was never received: no client is attached to q";
    assert_contains(&completed(3), hint);
}

#[test]
fn a_failed_assertion_names_the_fault_that_delays_a_delivery() {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    bus.http.freeze();
    let fault = json!({"operation": "receive", "effect": {"delay": {"seconds": 30}}});
    assert_eq!(bus.http.post("~/faults", &fault).status, 201);
    peer.send_to("q", &Message::new("o-1"));
    let mut worker = bus.client_as(&Open::named("worker-1"));
    let receiver = worker.receiver_with_credit("q", 1);
    worker.settle_down();
    let delivered = json!({"kind": "delivered", "entity": "q", "within": 0});
    let hint = "hint: o-1 was never received: a fault kept it from worker-1: the delivery was delayed by 30 s of virtual time";
    assert_contains(&failure(&bus, &delivered), hint);
    // Its absence is not certain before the delay is over.
    let absent = json!({"kind": "not_delivered", "entity": "q", "within": 0.1});
    assert_contains(&failure(&bus, &absent), "operations held by faults: 1");
    bus.http.advance(30.0);
    worker.receive(&receiver);
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
