//! Scheduled messages: over `$management` or on a link, cancelled, active when due (semantics §8).

use serde_amqp::Value;

use crate::support::*;

const MINUTE: i64 = 60_000;
const NOT_FOUND: &str = "com.microsoft:message-not-found";

fn bus_with(properties: &str) -> (Bus, Peer, Node) {
    let (bus, mut peer) = Bus::with_queue(properties).with_client();
    let node = peer.node("q/$management");
    (bus, peer, node)
}

/// A message that becomes active in an hour.
fn later(id: &str) -> Message {
    Message::new(id).scheduled_at(client_now() + 60 * MINUTE)
}

fn cancel(peer: &mut Peer, node: &Node, wanted: &[i64]) -> Reply {
    peer.cancel_scheduled(node, wanted)
}

#[test]
fn a_scheduled_entry_may_have_no_message_id_as_from_python() {
    let (bus, mut peer, node) = bus_with("");
    let message = Message::default()
        .body("nameless")
        .scheduled_at(client_now() + MINUTE);
    let entry = map([
        (text("message-id"), Value::Null),
        (text("session-id"), Value::Null),
        (text("message"), binary(&message.encode())),
    ]);
    let body = map([(text("messages"), list([entry]))]);
    assert_eq!(scheduled(&peer.call(&node, "schedule-message", body)), [1]);
    bus.http.advance(61.0);
    let delivery = peer.receive_from("q");
    assert_eq!(delivery.message.data(), b"nameless");
    assert_eq!(delivery.id().len(), 32, "the broker gave it one");
}

#[test]
fn scheduled_instants_are_in_client_time_after_an_advance() {
    let (bus, mut peer, node) = bus_with("");
    bus.http.advance(10.0 * 3600.0);
    let at = client_now() + MINUTE;
    let over_management = Message::new("a").scheduled_at(at);
    let reply = peer.schedule(&node, &[over_management]);
    assert_eq!(scheduled(&reply), [1]);
    peer.send_to("q", &Message::new("b").scheduled_at(at));
    assert_eq!(bus.http.counts("q")["scheduled"], 2);
    for message in peer.peek_all(&node) {
        assert_eq!(message.instant("x-opt-scheduled-enqueue-time"), at);
    }
    bus.http.advance(30.0);
    assert_eq!(bus.http.counts("q")["scheduled"], 2);
    bus.http.advance(31.0);
    assert_eq!(bus.http.numbers("q", ["scheduled", "active"]), [0, 2]);
}

#[test]
fn a_scheduled_instant_in_the_past_activates_at_once() {
    let (bus, mut peer, node) = bus_with("");
    let past = Message::new("a").scheduled_at(client_now() - MINUTE);
    let reply = peer.schedule(&node, std::slice::from_ref(&past));
    assert_eq!(scheduled(&reply), [1]);
    let sender = peer.sender("q");
    peer.send(&sender, &past.property(0, text("b")));
    assert_eq!(ids(&peer.peek_all(&node)), ["a", "b"]);
    let receiver = peer.receiver("q");
    for number in [1, 2] {
        let delivery = peer.receive_one(&receiver);
        let own = delivery.message.annotation("x-opt-sequence-number");
        assert_eq!(own, long(number), "the number that its sender knows");
    }
    assert_eq!(bus.http.counts("q")["scheduled"], 0);
}

#[test]
fn a_sender_link_schedules_single_messages_and_batches() {
    let (bus, mut peer, node) = bus_with("");
    let sender = peer.sender("q");
    peer.send(&sender, &later("a"));
    let mixed = batch(&[later("b").encode(), Message::new("c").encode()]);
    assert_eq!(peer.post(&sender, BATCH, &mixed), Ok(()));
    assert_eq!(bus.http.numbers("q", ["scheduled", "active"]), [2, 1]);
    let states = peer.peek_all(&node);
    let state = |message: &Received| message.annotation("x-opt-message-state");
    let states: Vec<Value> = states.iter().map(state).collect();
    assert_eq!(states, [2, 2, 0].map(Value::Int));
    let wrong = Message::new("d").annotation("x-opt-scheduled-enqueue-time", text("tomorrow"));
    let refusal = peer.send_in_vain(&sender, &wrong.encode());
    assert_eq!(refusal.condition, "com.microsoft:argument-error");
}

#[test]
fn scheduled_messages_are_cancelled_all_or_none() {
    let (bus, mut peer, node) = bus_with("");
    let messages = ["a", "b", "c"].map(later);
    let reply = peer.schedule(&node, &messages);
    assert_eq!(scheduled(&reply), [1, 2, 3]);
    for (wanted, missing) in [
        (vec![1, 99, 2, 98], "99,98"),
        (vec![4], "4"),
        (vec![0], "0"),
        (vec![-1], "-1"),
    ] {
        let reply = cancel(&mut peer, &node, &wanted);
        let words = refused_with(&reply, 404, NOT_FOUND);
        let expected = format!("Messages not found. Missing sequence numbers: {missing}");
        assert_eq!(words, expected);
        assert_eq!(bus.http.counts("q")["scheduled"], 3);
    }
    let words = refused_with(
        &cancel(&mut peer, &node, &[1, 3, 1]),
        400,
        "amqp:not-allowed",
    );
    let expected = "The scheduled message with SequenceNumber = 1 is already being cancelled.";
    assert_eq!(words, expected);
    let reply = cancel(&mut peer, &node, &[1, 3]);
    assert_eq!((reply.status(), &reply.body), (200, &Value::Null));
    refused_with(&cancel(&mut peer, &node, &[1]), 404, NOT_FOUND);
    bus.http.advance(3601.0);
    let receiver = peer.receiver("q");
    let left: Vec<String> = peer.drain(&receiver, 10).iter().map(Delivery::id).collect();
    assert_eq!(left, ["b"]);
    // It is active by now, under either number.
    for number in [2, 4] {
        refused_with(&cancel(&mut peer, &node, &[number]), 404, NOT_FOUND);
    }
}

#[test]
fn an_invalid_schedule_request_schedules_no_message() {
    let (bus, mut peer, node) = bus_with("");
    let argument = "com.microsoft:argument-error";
    let raw = |bytes: &[u8]| {
        map([(
            text("messages"),
            list([map([(text("message"), binary(bytes))])]),
        )])
    };
    for (body, condition) in [
        (schedule(&[]), argument),
        (schedule(&[Message::new("now")]), argument),
        (schedule(&[later("a"), Message::new("now")]), argument),
        (map([(text("messages"), list([map([])]))]), argument),
        (map([(text("messages"), list([text("a")]))]), argument),
        (map([(text("messages"), text("a"))]), argument),
        (raw(b"no message"), "amqp:decode-error"),
    ] {
        let reply = peer.call(&node, "schedule-message", body);
        refused_with(&reply, 400, condition);
    }
    for body in [
        map([numbers(&[])]),
        map([(text("sequence-numbers"), list([text("1")]))]),
        map([(text("sequence-numbers"), long(1))]),
    ] {
        let reply = peer.call(&node, "cancel-scheduled-message", body);
        refused_with(&reply, 400, argument);
    }
    let large = later("large").body(vec![0; 262_144]);
    let half = || later("half").body(vec![0; 140_000]);
    let larger = later("larger").body(vec![0; 400_000]);
    for large in [vec![large], vec![half(), half()], vec![larger]] {
        let reply = peer.schedule(&node, &large);
        refused_with(&reply, 403, "amqp:link:message-size-exceeded");
    }
    assert_eq!(bus.http.held("q"), (0, 0));
    assert_eq!(bus.http.counts("q")["scheduled"], 0);
}

#[test]
fn scheduling_is_refused_while_sending_is_disabled() {
    let (bus, mut peer, node) = bus_with(r#""Status":"SendDisabled""#);
    let reply = peer.schedule(&node, &[later("a")]);
    let words = refused_with(&reply, 400, "com.microsoft:entity-disabled");
    assert_starts_with(
        &words,
        "Messaging entity 'sb://localhost/q' is currently disabled.",
    );
    for path in ["q/$DeadLetterQueue", "q/$Transfer/$DeadLetterQueue"] {
        let node = peer.node(&format!("{path}/$management"));
        let reply = peer.schedule(&node, &[later("a")]);
        let words = refused_with(&reply, 400, "amqp:not-allowed");
        assert_contains(&words, &format!("'{path}'"));
        refused_with(&cancel(&mut peer, &node, &[1]), 400, "amqp:not-allowed");
    }
    assert_eq!(bus.http.counts("q")["scheduled"], 0);
}
