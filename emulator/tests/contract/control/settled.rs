//! Waiting for rest: nothing due, nothing to be written, nothing locked.

use std::thread;

use serde_json::{Value, json};

use crate::support::*;

fn settled(bus: &Bus, body: &Value) -> Answer {
    bus.http
        .post("/$emulator/v1/namespaces/sbemulatorns/settled", body)
}

/// What keeps the bus from rest, once all that it has said to clients is in their sockets: a client may read an
/// answer before the emulator has noted that it is written.
fn problems(bus: &Bus) -> Value {
    eventually("nothing but locks", || {
        let answer = settled(bus, &json!({"within": 0.01}));
        let expected = ("not-settled", "not at rest within 0.01 s");
        assert_eq!(answer.error(408), expected);
        let problems = answer.body["error"]["problems"].clone();
        let is_written = !problems.to_string().contains("output is not written");
        is_written.then_some(problems)
    })
}

/// A queue with a locked message, its holder named.
fn locked() -> (Bus, Peer, Delivery) {
    let bus = Bus::with_queues(&["q", "other"]);
    let mut peer = bus.client_as(&Open::named("worker-1"));
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("m"));
    let receiver = peer.receiver("q");
    let delivery = peer.receive_one(&receiver);
    (bus, peer, delivery)
}

#[test]
fn messages_without_a_taker_are_at_rest() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.client();
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("m"));
    for body in [
        json!({}),
        json!({"within": 30}),
        json!({"within": 30, "entity": null}),
        json!({"entity": "q"}),
    ] {
        assert_eq!(settled(&bus, &body).status, 200, "{body}");
    }
}

#[test]
fn a_lock_is_told_with_its_holder() {
    let (bus, mut peer, delivery) = locked();
    let expected = json!([{"path": "q", "value": "1 locked by worker-1", "allowed": "at rest"}]);
    assert_eq!(problems(&bus), expected);
    peer.settle(&delivery, dead_lettered("why", ""));
    assert_eq!(settled(&bus, &json!({"within": 30})).status, 200);
    let dead = peer.receiver("q/$DeadLetterQueue");
    peer.receive_one(&dead);
    assert_eq!(problems(&bus)[0]["path"], "q/$DeadLetterQueue");
}

#[test]
fn an_entity_is_meant_by_any_of_its_addresses() {
    let (bus, _peer, _delivery) = locked();
    for entity in ["q", "Q", "/q", "sb://localhost/q"] {
        assert_eq!(
            settled(&bus, &json!({"within": 0, "entity": entity})).status,
            408,
            "{entity}"
        );
    }
    for entity in ["other", "q/$DeadLetterQueue"] {
        assert_eq!(
            settled(&bus, &json!({"within": 30, "entity": entity})).status,
            200,
            "{entity}"
        );
    }
    let answer = settled(&bus, &json!({"within": 0, "entity": "nowhere"}));
    assert_eq!(answer.error(404).0, "not-found");
}

/// Starts to wait, ends the lock in some way, and expects rest.
fn waits_for(end: impl FnOnce(&Bus, &mut Peer, &Delivery)) {
    let (bus, mut peer, delivery) = locked();
    thread::scope(|scope| {
        // Of the whole namespace: the queue may be gone before this is asked.
        let waiting = scope.spawn(|| settled(&bus, &json!({"within": 30})));
        end(&bus, &mut peer, &delivery);
        assert_eq!(waiting.join().expect("it answers").status, 200);
    });
}

#[test]
fn it_waits_for_whatever_ends_the_lock() {
    waits_for(|_, peer, delivery| peer.complete(delivery));
    waits_for(|bus, _, _| bus.http.advance(61.0));
    waits_for(|bus, _, _| {
        let reset = "/$emulator/v1/namespaces/sbemulatorns/reset";
        assert_eq!(bus.http.post(reset, &Value::Null).status, 204);
    });
    waits_for(|bus, peer, _| {
        // Nobody is there any more who would take a turn.
        std::mem::replace(peer, bus.client()).close();
        bus.http.queue("DELETE", "q", None).ok();
    });
    waits_for(|_, peer, delivery| {
        let node = peer.node("q/$management");
        let tokens = (text("lock-tokens"), list([uuid(delivery.token())]));
        let body = map([(text("disposition-status"), text("completed")), tokens]);
        assert_eq!(peer.call(&node, "update-disposition", body).status(), 200);
    });
}
