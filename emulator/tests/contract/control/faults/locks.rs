//! Locks that are lost, and messages that come again.

use serde_json::{Value, json};

use super::{hits, script, told};
use crate::support::*;

const LOST: &str = "com.microsoft:message-lock-lost";

fn holding(fault: &Value) -> (Bus, Peer, Link, Delivery) {
    let bus = Bus::with_queues(&["q"]);
    script(&bus, fault);
    let mut peer = bus.client();
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("1"));
    let receiver = peer.receiver("q");
    let delivery = peer.receive_one(&receiver);
    (bus, peer, receiver, delivery)
}

#[test]
fn a_lock_is_lost_before_its_message_is_completed() {
    let (bus, mut peer, receiver, delivery) =
        holding(&json!({"operation": "complete", "effect": "lose-lock"}));
    let refusal = refused(&peer.settle(&delivery, accepted()));
    assert_eq!(refusal.condition, LOST);
    let again = peer.receive_one(&receiver);
    assert_eq!(again.message.header(4), uint(1), "a failed delivery");
    peer.complete(&again);
    assert_eq!(
        told(&bus, "q"),
        ["the lock of the message was lost at the completion"]
    );
}

#[test]
fn a_lock_is_lost_as_soon_as_its_message_is_delivered() {
    let (_bus, mut peer, receiver, delivery) =
        holding(&json!({"operation": "receive", "effect": "lose-lock"}));
    let again = peer.receive_one(&receiver);
    assert_eq!(again.id(), delivery.id());
    assert_eq!(refused(&peer.settle(&delivery, accepted())).condition, LOST);
    peer.complete(&again);
}

#[test]
fn a_lock_is_lost_before_it_is_renewed() {
    let (bus, mut peer, _, delivery) =
        holding(&json!({"operation": "renew-lock", "effect": "lose-lock"}));
    let node = peer.node("q/$management");
    let body = map([tokens(&[delivery.token()])]);
    assert_lock_lost(&peer.call(&node, "renew-lock", body));
    assert_eq!(bus.http.counts("q")["locked"], 0);
}

#[test]
fn a_session_is_lost_under_its_message() {
    for operation in ["receive", "settle"] {
        let bus = Bus::with_sessions();
        let fault =
            json!({"operation": operation, "session_id": "s", "effect": "lose-session-lock"});
        let id = script(&bus, &fault);
        let mut peer = bus.client();
        send_all(&mut peer, "q", &[("1", "s")]);
        let link = peer.accept("q", "s");
        let delivery = peer.receive_one(&link);
        if operation == "settle" {
            let refusal = refused(&peer.settle(&delivery, accepted()));
            assert_eq!(refusal.condition, "com.microsoft:session-lock-lost");
        }
        let refusal = peer.detached(&link).refusal(2);
        assert_eq!(refusal.condition, "com.microsoft:session-lock-lost");
        assert_eq!(hits(&bus, &id), 1);
        assert_eq!(bus.http.held("q"), (1, 0));
    }
}

#[test]
fn a_message_comes_again_although_it_was_completed() {
    for operation in ["receive", "complete", "settle"] {
        let fault = json!({"operation": operation, "effect": "deliver-twice"});
        let (bus, mut peer, receiver, delivery) = holding(&fault);
        peer.complete(&delivery);
        let again = peer.receive_one(&receiver);
        assert_eq!(again.id(), delivery.id(), "{operation}");
        peer.complete(&again);
        assert_eq!(bus.http.held("q"), (0, 0));
    }
}

#[test]
fn what_is_deleted_when_it_is_received_cannot_come_twice() {
    let bus = Bus::with_queues(&["q"]);
    let id = script(
        &bus,
        &json!({"operation": "receive", "effect": "deliver-twice"}),
    );
    let mut peer = bus.client();
    let sender = peer.sender("q");
    peer.send(&sender, &Message::new("1"));
    let deleting = peer.attached(&Attach::deleting("q"));
    peer.receive_one(&deleting);
    let fault = bus.http.get(&format!("{}/{id}", super::FAULTS)).ok();
    assert_eq!(
        (&fault["different"], &fault["hits"]),
        (&json!(1), &json!(0))
    );
}
