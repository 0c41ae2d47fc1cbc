//! Requests to `$management`, `$cbs` and over HTTP.

use serde_json::json;

use super::{hits, script, told};
use crate::support::*;

#[test]
fn a_management_request_is_answered_with_a_status() {
    let bus = Bus::with_queues(&["q"]);
    let fault = json!({
        "operation": "management", "entity": "q", "name": "com.microsoft:peek-message",
        "effect": {"answer": {"status": 503, "condition": "com.microsoft:server-busy", "description": "later"}},
    });
    script(&bus, &fault);
    let mut peer = bus.client();
    let node = peer.node("q/$management");
    let reply = peer.call(&node, "get-message-sessions", map([]));
    assert_ne!(reply.status(), 503);
    let reply = peer.call(
        &node,
        "peek-message",
        peek_from(0, serde_amqp::Value::Int(1)),
    );
    refused_with(&reply, 503, "com.microsoft:server-busy");
    assert!(
        reply.text().starts_with("later TrackingId:"),
        "{}",
        reply.text()
    );
    assert_eq!(
        told(&bus, "q"),
        ["the management request was answered with the status 503"]
    );
}

#[test]
fn a_rejected_request_has_the_status_of_its_condition() {
    let bus = Bus::with_queues(&["q"]);
    let effect = json!({"reject": {"condition": "com.microsoft:timeout"}});
    script(&bus, &json!({"operation": "management", "effect": effect}));
    let mut peer = bus.client();
    let node = peer.node("q/$management");
    let reply = peer.call(
        &node,
        "peek-message",
        peek_from(0, serde_amqp::Value::Int(1)),
    );
    refused_with(&reply, 408, "com.microsoft:timeout");
}

#[test]
fn a_request_is_done_although_its_reply_is_lost() {
    let bus = Bus::with_queues(&["q"]);
    script(
        &bus,
        &json!({"operation": "settle", "effect": "lose-reply"}),
    );
    let mut peer = bus.client();
    let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
    peer.send(&sender, &Message::new("1"));
    let delivery = peer.receive_one(&receiver);
    let node = peer.node("q/$management");
    let body = disposition("completed", &[delivery.token()]);
    let request = Message::request(text("1"), text(&node.reply_to), body)
        .application("operation", text("com.microsoft:update-disposition"));
    peer.send(&node.requests, &request);
    let unasked = peer.settle_down();
    assert!(
        unasked.iter().all(|frame| frame.code != TRANSFER),
        "{unasked:?}"
    );
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_token_is_refused_and_the_next_is_not() {
    let bus = Bus::with_queues(&["q"]);
    let effect = json!({"answer": {"status": 401, "condition": "amqp:unauthorized-access"}});
    let id = script(&bus, &json!({"operation": "token", "effect": effect}));
    let mut peer = bus.stranger();
    let token = root_token("sb://localhost/");
    assert_eq!(peer.put_token("sb://localhost/", &token).cbs_status(), 401);
    let refusal = peer.refused(&Attach::sender("q"));
    assert_eq!(refusal.condition, "amqp:unauthorized-access");
    peer.let_in();
    peer.attached(&Attach::sender("q").named("again"));
    assert_eq!(hits(&bus, &id), 1);
}

#[test]
fn the_life_of_a_token_ends_after_an_operation() {
    let bus = Bus::with_queues(&["q"]);
    script(
        &bus,
        &json!({"operation": "send", "effect": "expire-token"}),
    );
    let mut peer = bus.client();
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("1"));
    let refusal = peer.detached(&sender).refusal(2);
    assert_eq!(refusal.condition, "amqp:unauthorized-access");
    assert_starts_with(&refusal.text, "ExpiredToken: ");
    peer.let_in();
    let again = peer.attached(&Attach::sender("q").named("again"));
    peer.send(&again, &Message::new("2"));
}

#[test]
fn an_http_request_is_answered_with_a_status() {
    let bus = Bus::with_queues(&["q"]);
    let fault = json!({
        "operation": "http", "name": "POST", "entity": "q",
        "effect": {"answer": {"status": 503, "description": "too <busy>"}},
    });
    script(&bus, &fault);
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
fn an_http_request_hears_nothing_and_may_have_been_done() {
    for (effect, stored) in [
        (json!("drop"), 0),
        (json!({"drop": {"when": "after"}}), 1),
        (json!("lose-reply"), 1),
    ] {
        let bus = Bus::with_queues(&["q"]);
        let id = script(&bus, &json!({"operation": "http", "effect": effect}));
        let pending = bus.rest().begin("POST", "/q/messages", &[], b"hello");
        assert!(pending.ends_unanswered(), "{effect}");
        assert_eq!(hits(&bus, &id), 1);
        assert_eq!(bus.http.held("q"), (stored, 0), "{effect}");
    }
}

#[test]
fn an_http_request_waits_for_the_clock() {
    let bus = Bus::with_queues(&["q"]);
    let fault = json!({"operation": "http", "effect": {"delay": {"seconds": 30}}});
    let id = script(&bus, &fault);
    let pending = bus.rest().begin("POST", "/q/messages", &[], b"hello");
    eventually("the request is seen", || {
        (hits(&bus, &id) == 1).then_some(())
    });
    assert_eq!(bus.http.held("q"), (0, 0));
    bus.http.advance(30.0);
    assert_eq!(pending.answer().status, 201);
}
