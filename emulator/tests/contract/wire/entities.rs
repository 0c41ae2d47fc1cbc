//! Queues are changed, deleted and become idle while clients use them (semantics §5, §14, decisions D17, D27).

use serde_json::json;

use crate::support::*;

const DISABLED: &str = "com.microsoft:entity-disabled";

/// A queue with a message, and a client that has all its links on it and the message under a lock.
struct Attached {
    bus: Bus,
    peer: Peer,
    sender: Link,
    receiver: Link,
    node: Node,
    held: Delivery,
}

fn attached(properties: &str) -> Attached {
    let (bus, mut peer, sender, receiver) =
        Bus::configured(&queues("", &[("q", properties), ("other", "")])).with_links("q");
    let node = peer.node("q/$management");
    peer.send(&sender, &Message::new("m"));
    let held = peer.receive_one(&receiver);
    Attached {
        bus,
        peer,
        sender,
        receiver,
        node,
        held,
    }
}

impl Attached {
    fn settle(&mut self, status: &str) -> Reply {
        let body = disposition(status, &[self.held.token()]);
        self.peer.call(&self.node, "update-disposition", body)
    }

    fn renew(&mut self) -> Reply {
        let body = map([tokens(&[self.held.token()])]);
        self.peer.call(&self.node, "renew-lock", body)
    }
}

/// Asserts that a link is gone for this reason.
fn assert_detached(peer: &mut Peer, link: &Link, condition: &str, words: &str) {
    let frame = peer.detached(link);
    assert!(frame.flag(1), "closed: {frame:?}");
    let refusal = frame.refusal(2);
    assert_eq!(refusal.condition, condition);
    assert_starts_with(refusal.words(), words);
}

#[test]
fn disabling_receives_detaches_receivers_and_keeps_locks() {
    for status in ["ReceiveDisabled", "Disabled"] {
        let mut all = attached("");
        all.bus.http.set_status("q", status);
        let words = "Messaging entity 'sb://localhost/q' is currently disabled.";
        assert_detached(&mut all.peer, &all.receiver, DISABLED, words);
        refused_with(&all.settle("completed"), 400, DISABLED);
        refused_with(&all.renew(), 400, DISABLED);
        let by_number = receive_by(&[1], 1);
        let reply = all
            .peer
            .call(&all.node, "receive-by-sequence-number", by_number);
        refused_with(&reply, 400, DISABLED);
        for address in ["q", "q/$DeadLetterQueue"] {
            let refusal = all.peer.refused(&Attach::receiver(address).named("late"));
            assert_eq!(refusal.condition, DISABLED);
        }
        assert_eq!(all.bus.http.counts("q")["locked"], 1, "{status}");
        // The lock continued and is still valid.
        all.bus.http.advance(30.0);
        all.bus.http.set_status("q", "Active");
        assert_eq!(all.renew().status(), 200);
        assert_eq!(all.settle("completed").status(), 200);
        all.peer.send(&all.sender, &Message::new("next"));
        let receiver = all.peer.receiver("q");
        assert_eq!(all.peer.receive_one(&receiver).id(), "next");
    }
}

/// The client has not read the detach yet. On a session with other links it gets no answer, because go-amqp would end that
/// session.
#[test]
fn a_settlement_crossing_a_detach_is_refused_with_the_reason_unless_other_links_share_the_session()
{
    for (is_deleted, condition) in [(false, DISABLED), (true, "com.microsoft:message-lock-lost")] {
        let Attached {
            bus,
            mut peer,
            sender,
            held,
            ..
        } = attached("");
        peer.begin(1);
        let alone = peer.attached(&Attach::receiver("q").named("alone").on(1));
        peer.credit(&alone, 1);
        peer.send(&sender, &Message::new("n"));
        let held_alone = peer.receive_one(&alone);
        match is_deleted {
            true => drop(bus.http.queue("DELETE", "q", None).ok()),
            false => bus.http.set_status("q", "Disabled"),
        }
        peer.dispose(0, held.id, held.id, false, accepted());
        peer.assert_no_frame(|frame| frame.code == DISPOSITION);
        peer.assert_settle_refused(&held_alone, accepted(), condition);
        if !is_deleted {
            assert_eq!(bus.http.counts("q")["locked"], 2);
        }
    }
}

#[test]
fn disabling_sends_rejects_messages_and_keeps_sender_links() {
    for (status, refuses) in [
        ("SendDisabled", true),
        ("Disabled", true),
        ("ReceiveDisabled", false),
    ] {
        let mut all = attached("");
        all.bus.http.set_status("q", status);
        let id = all
            .peer
            .transfer(&all.sender, 0, false, &Message::new("n").encode());
        match all.peer.outcome(&all.sender, id) {
            Ok(()) => assert!(!refuses, "{status}"),
            Err(refusal) => assert_eq!(refusal.condition, DISABLED, "{status}"),
        }
        let late = all.peer.attach(&Attach::sender("q").named("late"));
        assert_eq!(late.is_err(), refuses, "{status}");
        all.bus.http.set_status("q", "Active");
        all.peer.send(&all.sender, &Message::new("o"));
    }
}

#[test]
fn an_update_of_other_properties_ends_every_lock() {
    let mut all = attached("");
    all.bus.http.put_queue("q", &json!({"MaxDeliveryCount": 3}));
    assert_lock_lost(&all.settle("completed"));
    assert_lock_lost(&all.renew());
    all.peer.assert_lock_lost(&all.held);
    // The link is still there, and has the message again.
    let again = all.peer.receive_one(&all.receiver);
    assert_eq!(
        (again.id().as_str(), again.message.header(4)),
        ("m", uint(1))
    );
    // An update without changes ends nothing.
    all.bus.http.put_queue("q", &json!({"MaxDeliveryCount": 3}));
    all.peer.complete(&again);
}

#[test]
fn a_changed_lock_duration_and_time_to_live_apply_at_once() {
    let mut all = attached("");
    all.bus.http.put_queue(
        "q",
        &json!({"LockDuration": "PT10S", "DefaultMessageTimeToLive": "PT1M"}),
    );
    let again = all.peer.receive_one(&all.receiver);
    let until = again.message.instant("x-opt-locked-until");
    assert!((until - client_now() - 10_000).abs() < 20_000, "{until}");
    all.bus.http.advance(61.0);
    assert_eq!(
        all.bus.http.held("q"),
        (0, 0),
        "it brought no time to live of its own"
    );
}

#[test]
fn deleting_a_queue_detaches_its_links() {
    let mut all = attached("");
    let elsewhere = all.peer.sender("other");
    all.bus.http.queue("DELETE", "q", None).ok();
    let words = "The messaging entity 'sb://localhost/q' could not be found.";
    for link in [&all.sender, &all.receiver] {
        assert_detached(&mut all.peer, link, "amqp:not-found", words);
    }
    for reply in [all.settle("completed"), all.renew()] {
        let text = refused_with(&reply, 404, "amqp:not-found");
        assert_starts_with(&text, words);
    }
    for attach in [Attach::sender("q"), Attach::receiver("q")] {
        assert_eq!(all.peer.refused(&attach).condition, "amqp:not-found");
    }
    all.peer.send(&elsewhere, &Message::new("x"));
    // The new one of the same name is another entity; the node finds it.
    all.bus.http.put_queue("q", &json!({}));
    assert_lock_lost(&all.settle("completed"));
    assert!(all.peer.peek_all(&all.node).is_empty());
    let sender = all.peer.sender("q");
    all.peer.send(&sender, &Message::new("new"));
    assert_eq!(ids(&all.peer.peek_all(&all.node)), ["new"]);
}

#[test]
fn an_idle_queue_is_deleted_with_its_messages() {
    let mut all = attached(r#""AutoDeleteOnIdle":"PT5M""#);
    all.peer.complete(&all.held);
    all.peer.send(&all.sender, &Message::new("left"));
    all.bus.http.freeze();
    all.bus.http.advance(290.0);
    assert_eq!(
        ids(&all.peer.peek_all(&all.node)),
        ["left"],
        "peeking is use"
    );
    all.bus.http.advance(290.0);
    assert_eq!(all.bus.http.queue("GET", "q", None).status, 200);
    all.bus.http.advance(11.0);
    assert_eq!(all.bus.http.queue("GET", "q", None).status, 404);
    for link in [&all.sender, &all.receiver] {
        let refusal = all.peer.detached(link).refusal(2);
        assert_eq!(refusal.condition, "amqp:not-found");
    }
    refused_with(&all.renew(), 404, "amqp:not-found");
    assert_eq!(all.bus.http.queue("GET", "other", None).status, 200);
}

#[test]
fn a_receiver_with_credit_or_a_scheduled_message_keeps_an_idle_queue() {
    let mut all = attached(r#""AutoDeleteOnIdle":"PT5M""#);
    all.peer.complete(&all.held);
    all.peer.credit(&all.receiver, 1);
    all.peer.settle_down();
    all.bus.http.advance(3600.0);
    assert_eq!(all.bus.http.queue("GET", "q", None).status, 200);
    let at = client_now() + 3_600_000;
    all.peer
        .send(&all.sender, &Message::new("later").scheduled_at(at));
    all.peer.detach(&all.receiver);
    all.bus.http.advance(3500.0);
    assert_eq!(all.bus.http.counts("q")["scheduled"], 1);
    all.bus.http.advance(500.0);
    assert_eq!(all.bus.http.queue("GET", "q", None).status, 404);
}

#[test]
fn deleting_an_idle_subscription_does_not_use_its_topic() {
    let idle = serde_json::json!({"AutoDeleteOnIdle": "PT10M"});
    let own = properties(&serde_json::json!({"AutoDeleteOnIdle": "PT5M"}));
    let bus = Bus::configured(&topic(&idle, &[("s", own)]));
    let status = |path: &str| bus.http.get(path).status;
    bus.http.advance(301.0);
    assert_eq!(status("~/subscriptions/t/Subscriptions/s"), 404);
    assert_eq!(status("~/topics/t"), 200);
    bus.http.advance(300.0);
    assert_eq!(status("~/topics/t"), 404);
}
