//! Crashes, failovers, and deliveries in another order.
//!
//! Requests to `$management`, `$cbs` and over HTTP.

use serde_json::{Value, json};
use servicebus_emulator::auth::{Claims, Key, sas};

use super::{details, hits};
use crate::support::*;

const RELEASE: &str = "~/postponed/release";

/// A namespace with the keys of two parties.
fn with_parties() -> Bus {
    let keys = ["worker", "shop"].map(|name| {
        json!({"Name": name, "Key": Key::well_known().key, "Claims": ["Send", "Listen", "Manage"]})
    });
    let keys = format!(r#""Keys":{}"#, json!(keys));
    Bus::configured(&queues(&keys, &[("q", "")]))
}

/// A client that uses the key of this party.
fn party(bus: &Bus, name: &str) -> Peer {
    let mut peer = bus.unauthenticated_client();
    let key = Key {
        name: name.into(),
        claims: Claims::ALL,
        ..Key::well_known()
    };
    let token = sas::sign("sb://localhost/", &key, in_an_hour());
    assert_eq!(peer.put_token("sb://localhost/", &token).cbs_status(), 202);
    peer
}

#[test]
fn a_crash_drops_all_connections_of_its_party_only() {
    let cases = [
        ("before", true, (1, 1)),
        ("after", true, (0, 0)),
        ("before", false, (1, 1)),
    ];
    for (when, is_set_first, held) in cases {
        let bus = with_parties();
        let fault = json!({"operation": "complete", "party": "worker", "effect": {"crash": {"when": when}}});
        let set_first = is_set_first.then(|| bus.script(&fault));
        let (mut first, mut second) = (party(&bus, "worker"), party(&bus, "worker"));
        let mut shop = party(&bus, "shop");
        let id = set_first.unwrap_or_else(|| bus.script(&fault));
        let sender = shop.sender("q");
        shop.send(&sender, &Message::new("a"));
        let receiver = first.receiver("q");
        let delivery = first.receive_one(&receiver);
        first.dispose(
            delivery.channel,
            delivery.id,
            delivery.id,
            false,
            accepted(),
        );
        first.read_to_end();
        second.read_to_end();
        assert_eq!(hits(&bus, &id), 1);
        let counts = bus.http.counts("q");
        let shown = (counts["active"].as_u64(), counts["locked"].as_u64());
        assert_eq!(shown, (Some(held.0), Some(held.1)), "{when}");
        assert_eq!(
            details(&bus, "q"),
            [format!("the client crashed {when} the completion")]
        );
        shop.send(&sender, &Message::new("b"));
    }
}

#[test]
fn a_failover_ends_locks_and_detaches_links() {
    for (when, left) in [("before", 2), ("after", 1)] {
        let bus = Bus::with_queues(&["q"]);
        bus.script(&json!({"operation": "complete", "effect": {"failover": {"when": when}}}));
        let mut peer = bus.client();
        let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
        peer.send(&sender, &Message::new("a"));
        peer.send(&sender, &Message::new("b"));
        peer.credit(&receiver, 2);
        let first = peer.receive(&receiver);
        peer.receive(&receiver);
        peer.dispose(first.channel, first.id, first.id, false, accepted());
        for link in [&sender, &receiver] {
            peer.detached(link);
        }
        let counts = bus.http.counts("q");
        assert_eq!(
            members(&counts, ["active", "locked"]),
            json!([left, 0]),
            "{when}"
        );
    }
}

#[test]
fn a_postponed_send_is_stored_when_released() {
    let bus = Bus::with_queues(&["q"]);
    bus.script(&json!({"operation": "send", "message_id": "a", "effect": "postpone"}));
    let (mut peer, sender) = bus.sender("q");
    let late = peer.transfer(&sender, 0, false, &Message::new("a").encode());
    peer.send(&sender, &Message::new("b"));
    assert_eq!(bus.http.counts("q")["active"], 1);
    let released = bus.http.post(RELEASE, &json!({})).ok();
    assert_eq!(released, json!({"released": true, "waiting": 0}));
    peer.outcome(&sender, late).expect("it is accepted");
    let receiver = peer.receiver("q");
    assert_eq!(peer.receive_one(&receiver).id(), "b");
    assert_eq!(peer.receive_one(&receiver).id(), "a");
    let released = bus.http.post(RELEASE, &json!({})).ok();
    assert_eq!(released, json!({"released": false, "waiting": 0}));
}

#[test]
fn operations_delayed_by_a_fault_keep_the_namespace_busy() {
    let bus = Bus::with_queues(&["q"]);
    bus.http.freeze();
    for (effect, end) in [
        (json!("postpone"), None),
        (json!({"delay": {"seconds": 30}}), Some(30.0)),
        (json!({"delay": {"seconds": 3, "clock": "real"}}), Some(0.0)),
    ] {
        assert_eq!(bus.http.post("~/reset", &Value::Null).status, 204);
        bus.script(&json!({"operation": "send", "effect": effect}));
        let mut peer = bus.client_as(&Open::named("worker-1"));
        let sender = peer.sender("q");
        let late = peer.transfer(&sender, 0, false, &Message::new("a").encode());
        peer.settle_down();
        let answer = bus.http.post("~/settled", &json!({"within": 0.2}));
        assert_eq!(answer.error(408).0, "not-settled", "{effect}");
        let expected = json!([{
            "path": "worker-1", "value": "operations held by faults: 1", "allowed": "idle",
        }]);
        assert_eq!(answer.body["error"]["problems"], expected, "{effect}");
        let absent = json!({"kind": "not_dead_lettered", "entity": "q", "within": 0.2});
        let absent = bus.http.post("~/assertions", &absent).ok();
        assert_eq!(absent["holds"], false, "{effect}: {absent}");
        match end {
            None => drop(bus.http.post(RELEASE, &json!({})).ok()),
            Some(seconds) => bus.http.advance(seconds),
        }
        peer.outcome(&sender, late).expect("it is accepted");
        let answer = bus.http.post("~/settled", &json!({"within": 30}));
        assert_eq!(answer.status, 200, "{effect}: {answer:?}");
    }
}

#[test]
fn a_delayed_delivery_keeps_the_namespace_busy_while_its_message_waits() {
    let bus = Bus::with_queues(&["q"]);
    bus.http.freeze();
    let settled = |within| {
        bus.http
            .post("~/settled", &json!({"within": within}))
            .status
    };
    for effect in [json!("postpone"), json!({"delay": {"seconds": 30}})] {
        let id = bus.script(&json!({"operation": "receive", "client": "slow", "effect": effect}));
        let (mut peer, mut slow) = (bus.client(), bus.client_as(&Open::named("slow")));
        peer.send_to("q", &Message::new("1"));
        let receiver = slow.receiver_with_credit("q", 1);
        eventually("it waits", || (hits(&bus, &id) == 1).then_some(()));
        assert_eq!(settled(0.1), 408, "{effect}");
        let other = peer.receive_from("q");
        peer.complete(&other);
        assert_eq!(
            settled(30.0),
            200,
            "{effect}: another receiver has completed it"
        );
        peer.send_to("q", &Message::new("2"));
        assert_eq!(settled(0.1), 408, "{effect}");
        match effect.is_string() {
            true => drop(bus.http.post(RELEASE, &json!({})).ok()),
            false => bus.http.advance(30.0),
        }
        let late = slow.receive(&receiver);
        assert_eq!(late.id(), "2");
        slow.complete(&late);
        assert_eq!(settled(30.0), 200, "{effect}");
    }
}

#[test]
fn the_waits_of_a_link_end_with_it() {
    for operation in ["send", "receive", "complete"] {
        for effect in [json!("postpone"), json!({"delay": {"seconds": 86_400}})] {
            let what = format!("{operation} {effect}");
            let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
            bus.http.freeze();
            let id = bus.script(&json!({"operation": operation, "effect": effect}));
            let message = Message::new("a").encode();
            peer.transfer(&sender, 0, false, &message);
            let link = match operation {
                "send" => sender,
                _ => peer.receiver_with_credit("q", 1),
            };
            if operation == "complete" {
                let delivery = peer.receive(&link);
                peer.dispose(0, delivery.id, delivery.id, false, accepted());
            }
            eventually(&what, || (hits(&bus, &id) == 1).then_some(()));
            peer.detach(&link);
            peer.settle_down();
            let released = bus.http.post(RELEASE, &json!({})).ok();
            let none = json!({"released": false, "waiting": 0});
            assert_eq!(released, none, "{what}");
            let due = bus.http.get("~/due").ok()["due"].clone();
            let mut due = due.as_array().expect("a list").iter();
            assert!(due.all(|due| due["kind"] != "fault-delay"), "{what}");
        }
    }
}

#[test]
fn a_postponed_send_is_dropped_with_its_connection() {
    let bus = Bus::with_queues(&["q"]);
    let id = bus.script(&json!({"operation": "send", "effect": "postpone"}));
    let (mut peer, sender) = bus.sender("q");
    peer.transfer(&sender, 0, false, &Message::new("a").encode());
    until("it waits", || hits(&bus, &id) == 1);
    peer.close();
    eventually("nothing waits", || {
        let released = bus.http.post(RELEASE, &json!({})).ok();
        (released == json!({"released": false, "waiting": 0})).then_some(())
    });
    assert_eq!(bus.http.counts("q")["active"], 0);
}

#[test]
fn the_elsewhere_effect_delivers_to_another_receiver() {
    let bus = Bus::with_queues(&["q"]);
    let id = bus.script(&json!({"operation": "receive", "effect": "elsewhere"}));
    let mut alone = bus.client();
    let (sender, receiver) = (alone.sender("q"), alone.receiver("q"));
    alone.send(&sender, &Message::new("a"));
    let delivery = alone.receive_one(&receiver);
    alone.complete(&delivery);
    assert_eq!(hits(&bus, &id), 0, "there is no other");
    let (mut other, beside) = bus.receiver("q");
    alone.credit(&receiver, 1);
    alone.settle_down();
    other.credit(&beside, 1);
    other.settle_down();
    alone.send(&sender, &Message::new("b"));
    assert_eq!(other.receive(&beside).id(), "b");
    alone.send(&sender, &Message::new("c"));
    assert_eq!(alone.receive(&receiver).id(), "c");
    assert_eq!(hits(&bus, &id), 1);
    assert_eq!(
        details(&bus, "q"),
        ["the message of the delivery went to another receiver"]
    );
}

#[test]
fn a_fault_answers_a_management_request_with_a_status() {
    let bus = Bus::with_queues(&["q"]);
    let fault = json!({
        "operation": "management", "entity": "q", "name": "com.microsoft:peek-message",
        "effect": {"answer": {"status": 503, "condition": "com.microsoft:server-busy", "description": "later"}},
    });
    bus.script(&fault);
    let (mut peer, node) = bus.node("q/$management");
    let reply = peer.call(&node, "get-message-sessions", map([]));
    assert_ne!(reply.status(), 503);
    let reply = peer.peek(&node, 0, 1);
    refused_with(&reply, 503, "com.microsoft:server-busy");
    assert_starts_with(&reply.text(), "later TrackingId:");
    assert_eq!(
        details(&bus, "q"),
        ["the management request was answered with the status 503"]
    );
}

#[test]
fn a_rejected_management_request_has_the_status_of_its_condition() {
    let bus = Bus::with_queues(&["q"]);
    let effect = json!({"reject": {"condition": "com.microsoft:timeout"}});
    bus.script(&json!({"operation": "management", "effect": effect}));
    let (mut peer, node) = bus.node("q/$management");
    let reply = peer.peek(&node, 0, 1);
    refused_with(&reply, 408, "com.microsoft:timeout");
}

#[test]
fn a_management_request_with_a_lost_reply_is_applied() {
    let bus = Bus::with_queues(&["q"]);
    bus.script(&json!({"operation": "settle", "effect": "lose-reply"}));
    let mut peer = bus.client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    peer.send(&sender, &Message::new("1"));
    let delivery = peer.receive_one(&receiver);
    let node = peer.node("q/$management");
    let body = disposition("completed", &[delivery.token()]);
    let request = Message::request(text("1"), text(&node.reply_to), body)
        .application("operation", text("com.microsoft:update-disposition"));
    peer.send(&node.requests, &request);
    peer.assert_no_frame(|frame| frame.code == TRANSFER);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_fault_refuses_one_token_and_not_the_next() {
    let bus = Bus::with_queues(&["q"]);
    let effect = json!({"answer": {"status": 401, "condition": "amqp:unauthorized-access"}});
    let id = bus.script(&json!({"operation": "token", "effect": effect}));
    let mut peer = bus.unauthenticated_client();
    let token = root_token("sb://localhost/");
    assert_eq!(peer.put_token("sb://localhost/", &token).cbs_status(), 401);
    let refusal = peer.refused(&Attach::sender("q"));
    assert_eq!(refusal.condition, "amqp:unauthorized-access");
    peer.let_in();
    peer.attached(&Attach::sender("q").named("again"));
    assert_eq!(hits(&bus, &id), 1);
}

#[test]
fn a_fault_expires_the_token_after_an_operation() {
    let bus = Bus::with_queues(&["q"]);
    bus.script(&json!({"operation": "send", "effect": "expire-token"}));
    let (mut peer, sender) = bus.sender("q");
    peer.send(&sender, &Message::new("1"));
    let refusal = peer.detached(&sender).refusal(2);
    assert_eq!(refusal.condition, "amqp:link:detach-forced");
    assert_contains(&refusal.text, "Code: RenewToken");
    peer.let_in();
    let again = peer.attached(&Attach::sender("q").named("again"));
    peer.send(&again, &Message::new("2"));
}

#[test]
fn a_fault_answers_an_http_request_with_a_status() {
    let bus = Bus::with_queues(&["q"]);
    let fault = json!({
        "operation": "http", "name": "POST", "entity": "q",
        "effect": {"answer": {"status": 503, "description": "too <busy>"}},
    });
    bus.script(&fault);
    let rest = bus.rest();
    assert_eq!(rest.take("q").status, 204);
    let answer = rest.send("q", &[], "hello");
    assert_eq!(answer.status, 503);
    let body = "<Error><Code>503</Code><Detail>too &lt;busy&gt;</Detail></Error>";
    assert_eq!(answer.text(), body);
    assert_eq!(rest.send("q", &[], "hello").status, 201);
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn a_fault_with_status_204_or_304_has_no_http_body() {
    let bus = Bus::with_queues(&["q"]);
    for status in [204, 304] {
        let effect = json!({"answer": {"status": status, "description": "nothing"}});
        let fault = json!({"operation": "http", "name": "POST", "entity": "q", "effect": effect});
        bus.script(&fault);
        let answer = bus.rest().send("q", &[], "hello");
        assert_eq!((answer.status, answer.text()), (status, ""));
        assert_eq!(answer.header("content-length"), None, "{status}");
    }
}

#[test]
fn a_fault_drops_an_http_request_before_or_after_it_is_applied() {
    for (effect, stored) in [
        (json!("drop"), 0),
        (json!({"drop": {"when": "after"}}), 1),
        (json!("lose-reply"), 1),
    ] {
        let bus = Bus::with_queues(&["q"]);
        let id = bus.script(&json!({"operation": "http", "effect": effect}));
        let pending = bus.rest().begin("POST", "/q/messages", &[], b"hello");
        assert!(pending.ends_unanswered(), "{effect}");
        assert_eq!(hits(&bus, &id), 1);
        assert_eq!(bus.http.held("q"), (stored, 0), "{effect}");
    }
}

#[test]
fn a_delayed_http_request_waits_for_the_clock() {
    let bus = Bus::with_queues(&["q"]);
    let fault = json!({"operation": "http", "effect": {"delay": {"seconds": 30}}});
    let id = bus.script(&fault);
    let pending = bus.rest().begin("POST", "/q/messages", &[], b"hello");
    until("the request is seen", || hits(&bus, &id) == 1);
    assert_eq!(bus.http.held("q"), (0, 0));
    let within = json!({"within": 0.1});
    let settled = bus.http.post("~/settled", &within);
    assert_eq!(settled.status, 408);
    assert_contains(&settled.body.to_string(), "requests held by faults: 1");
    bus.http.advance(30.0);
    assert_eq!(pending.answer().status, 201);
    bus.http.post("~/settled", &json!({"within": 30})).ok();
}

#[test]
fn the_deadline_of_a_delayed_http_request_ends_with_its_client() {
    let bus = Bus::with_queues(&["q"]);
    let id = bus.script(&json!({"operation": "http", "effect": {"delay": {"seconds": 30}}}));
    let pending = bus.rest().begin("DELETE", "/q/messages/head", &[], b"");
    until("the request is seen", || hits(&bus, &id) == 1);
    let due = || bus.http.get("~/due").ok()["due"].clone();
    until("its deadline", || due()[0]["kind"] == "fault-delay");
    drop(pending);
    until("nothing due", || due() == json!([]));
}

#[test]
fn a_delayed_http_request_is_answered_when_its_namespace_is_removed() {
    let bus = Bus::with_queues(&["q"]);
    bus.http.freeze();
    let id = bus.script(&json!({"operation": "http", "effect": {"delay": {"seconds": 3600}}}));
    let pending = bus.rest().begin("POST", "/q/messages", &[], b"hello");
    eventually("the request is seen", || {
        (hits(&bus, &id) == 1).then_some(())
    });
    let namespaces = "/$emulator/v1/namespaces";
    let other = bus
        .http
        .put(&format!("{namespaces}/other"), &json!({"queues": []}));
    assert_eq!(other.status, 201);
    let removed = bus.http.delete(&format!("{namespaces}/sbemulatorns"));
    assert_eq!(removed.status, 204);
    assert_eq!(pending.answer().status, 401);
}
