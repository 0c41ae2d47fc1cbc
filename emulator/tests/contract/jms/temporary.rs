//! Temporary queues and topics live as long as their link.

use crate::support::*;

const QUEUE: &str = "temporary-queue";
const TOPIC: &str = "temporary-topic";

#[test]
fn a_temporary_queue_can_be_received_from_and_sent_to() {
    let bus = Bus::premium(&["requests"]);
    let mut peer = bus.jms("c");
    let (creator, address) = peer.temporary("1", QUEUE);
    let (_, target) = described_list(creator.answer.field(6));
    assert_eq!(target[4], serde_amqp::Value::Bool(true));
    assert_eq!(target[6], symbols(&[QUEUE]));
    let receiver = peer.attached(&Attach::consumer(&address));
    let mut other = bus.jms("d");
    let sender = other.attached(&Attach::producer(&address, QUEUE));
    other.send(&sender, &Message::new("reply"));
    assert_eq!(peer.drain_ids(&receiver, 10), ["reply"]);
    peer.detach(&creator);
    peer.detached(&receiver);
    other.detached(&sender);
    let refusal = other.refused(&Attach::producer(&address, QUEUE).named("late"));
    assert_eq!(refusal.condition, "amqp:not-found");
}

#[test]
fn a_temporary_topic_can_be_subscribed_to() {
    let bus = Bus::premium(&[]);
    let mut peer = bus.jms("c");
    let (creator, address) = peer.temporary("1", TOPIC);
    let subscriber = Attach::subscriber("qpid-jms:receiver:ID:1", &address, false, &[]);
    let receiver = peer.attached(&subscriber);
    peer.send(&creator, &Message::new("one"));
    assert_eq!(peer.drain_ids(&receiver, 10), ["one"]);
    peer.detach(&creator);
    peer.detached(&receiver);
}

#[test]
fn temporary_entities_are_deleted_with_their_link() {
    let bus = Bus::premium(&[]);
    let is_gone = |address: &str| {
        eventually("it goes", || {
            let answer = bus.http.get(&format!("~/queues/{address}"));
            (answer.status == 404).then_some(())
        });
    };
    let mut peer = bus.jms("c");
    let (first, address) = peer.temporary("1", QUEUE);
    peer.leave(&first);
    is_gone(&address);
    let (_, address) = peer.temporary("2", QUEUE);
    peer.end(0);
    is_gone(&address);
    let mut peer = bus.jms("c");
    let (_, address) = peer.temporary("3", QUEUE);
    peer.close();
    is_gone(&address);
    let mut peer = bus.jms("c");
    let (_, address) = peer.temporary("4", QUEUE);
    drop(peer);
    is_gone(&address);
    let mut peer = bus.jms("c");
    let (link, address) = peer.temporary("5", QUEUE);
    bus.http.reset();
    peer.detached(&link);
    is_gone(&address);
}

#[test]
fn an_unsupported_lifetime_policy_is_refused() {
    let bus = Bus::premium(&[]);
    let mut peer = bus.jms("c");
    for policy in [0x2c, 0x2d, 0x2e, 0x99] {
        let refusal = peer.refused(&Attach::temporary("1", QUEUE, policy));
        assert_eq!(refusal.condition, "amqp:not-implemented");
        assert_contains(&refusal.text, "delete-on-close");
    }
}
