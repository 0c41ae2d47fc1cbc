//! Waiting for an idle namespace (nothing due, nothing to be written, nothing locked), and message counts.

use std::thread;

use serde_json::{Value, json};

use crate::support::*;

fn settled(bus: &Bus, body: &Value) -> Answer {
    bus.http.post("~/settled", body)
}

/// What keeps the namespace busy, once all its output is in the sockets: a client may read an answer before the emulator has
/// recorded that it is written.
fn problems(bus: &Bus) -> Value {
    eventually("nothing but locks", || {
        let answer = settled(bus, &json!({"within": 0.01}));
        let expected = ("not-settled", "not idle within 0.01 s");
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
    peer.send_to("q", &Message::new("m"));
    let delivery = peer.receive_from("q");
    (bus, peer, delivery)
}

#[test]
fn messages_without_a_receiver_are_idle() {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    peer.send_to("q", &Message::new("m"));
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
fn busy_parts_are_listed_on_request() {
    let (bus, mut peer, delivery) = locked();
    problems(&bus);
    let request = json!({"within": 0, "refuse": false});
    let expected = json!({
        "settled": false,
        "failure": "the namespace did not become idle within 0 s\n  q: 1 locked by worker-1",
    });
    assert_eq!(settled(&bus, &request).ok(), expected);
    peer.settle(&delivery, accepted());
    let request = json!({"within": 30, "refuse": false});
    assert_eq!(settled(&bus, &request).ok(), json!({"settled": true}));
}

#[test]
fn a_held_lock_is_reported_as_busy_with_its_holder() {
    let (bus, mut peer, delivery) = locked();
    let expected = json!([{"path": "q", "value": "1 locked by worker-1", "allowed": "idle"}]);
    assert_eq!(problems(&bus), expected);
    peer.settle(&delivery, dead_lettered("why", ""));
    assert_eq!(settled(&bus, &json!({"within": 30})).status, 200);
    let dead = peer.receiver("q/$DeadLetterQueue");
    peer.receive_one(&dead);
    assert_eq!(problems(&bus)[0]["path"], "q/$DeadLetterQueue");
}

#[test]
fn waiting_for_idle_accepts_any_address_of_an_entity() {
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

/// Starts a wait, ends the lock in some way, and expects an idle namespace.
fn waits_for(end: impl FnOnce(&Bus, &mut Peer, &Delivery)) {
    let (bus, mut peer, delivery) = locked();
    thread::scope(|scope| {
        // Of the whole namespace, because the queue may be deleted before this request.
        let waiting = scope.spawn(|| settled(&bus, &json!({"within": 30})));
        end(&bus, &mut peer, &delivery);
        assert_eq!(waiting.join().expect("it answers").status, 200);
    });
}

#[test]
fn waiting_for_idle_ends_when_the_lock_ends() {
    waits_for(|_, peer, delivery| peer.complete(delivery));
    waits_for(|bus, _, _| bus.http.advance(61.0));
    waits_for(|bus, _, _| {
        let reset = "~/reset";
        assert_eq!(bus.http.post(reset, &Value::Null).status, 204);
    });
    waits_for(|bus, peer, _| {
        // No connection is left that would take a turn.
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

const COUNTS: &str = "~/counts";

#[test]
fn counts_of_an_entity_are_those_of_the_service() {
    let (bus, mut peer, sender) = Bus::with_queues(&["orders"]).with_sender("orders");
    let mut bytes = 0;
    for id in ["a", "b", "c"] {
        let message = Message::new(id);
        bytes += message.encode().len();
        peer.send(&sender, &message);
    }
    let receiver = peer.receiver("orders");
    let dead = peer.receive_one(&receiver);
    peer.settle(&dead, dead_lettered("why", ""));
    peer.receive_one(&receiver);
    let counts = bus.http.counts("orders");
    let size = counts["size_bytes"].as_u64().expect("the size is a number");
    assert!(
        size as usize >= bytes && (size as usize) < bytes + 500,
        "{size} for {bytes} sent"
    );
    let expected = json!({
        "active": 2, "dead_letter": 1, "transfer_dead_letter": 0, "scheduled": 0, "transfer": 0,
        "locked": 1, "deferred": 0, "size_bytes": size,
    });
    assert_eq!(counts, expected);
    let dead = bus.http.counts("orders/$DeadLetterQueue");
    assert_eq!(members(&dead, ["active", "dead_letter"]), json!([1, 0]));
}

#[test]
fn counts_accept_any_spelling_of_an_address() {
    let (bus, mut peer) = Bus::with_queues(&["Orders/Eu"]).with_client();
    peer.send_to("orders/eu", &Message::new("m"));
    for spelling in [
        "Orders/Eu",
        "orders/eu",
        "/orders/eu",
        "Orders%2FEu",
        "sb://localhost/orders/eu",
    ] {
        assert_eq!(bus.http.held(spelling), (1, 0), "{spelling}");
    }
    for spelling in [
        "orders/eu/$DeadLetterQueue",
        "ORDERS/EU/$deadletterqueue",
        "orders/eu/%24DeadLetterQueue",
    ] {
        assert_eq!(bus.http.held(spelling), (0, 0), "{spelling}");
    }
}

#[test]
fn counts_of_an_unknown_entity_list_the_known_ones() {
    let bus = Bus::with_queues(&["a", "b"]);
    for entity in ["c", "a/$management", "$cbs", "a%00"] {
        let answer = bus.http.get(&format!("{COUNTS}?entity={entity}"));
        let message = answer.error_with(404, "not-found");
        assert_contains(message, "a, b");
    }
    let answer = bus.http.get(COUNTS);
    assert_eq!(answer.error(400).0, "invalid-query");
}
