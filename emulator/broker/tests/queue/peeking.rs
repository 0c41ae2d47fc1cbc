//! Looking without taking (semantics §10), and the numbers of messages (§8).

use servicebus_broker::SubQueue;

use crate::bus::{Bus, bus, secs};

fn numbers(bus: &mut Bus, from: u64, max: usize) -> Vec<u64> {
    let seen = bus.peek_from(SubQueue::Active, from, max);
    seen.iter()
        .map(|(broker_properties, _)| broker_properties.sequence_number.0)
        .collect()
}

#[test]
fn peeking_shows_messages_in_order_locked_ones_included() {
    let mut bus = bus();
    bus.send_all(&["locked", "reserved", "ready"]);
    let busy = bus.receiver();
    bus.receive_one(busy);
    bus.receiver_with_credit(1);
    assert_eq!(bus.queued(), ["locked", "reserved", "ready"]);
}

#[test]
fn peeking_begins_at_the_number_asked_for_and_ends_with_the_count() {
    let mut bus = bus();
    for _ in 0..200 {
        bus.send("a");
    }
    let receiver = bus.deleting_receiver();
    bus.receive(receiver, 70);
    assert_eq!(numbers(&mut bus, 0, 2), [71, 72]);
    assert_eq!(numbers(&mut bus, 100, 3), [100, 101, 102]);
    assert_eq!(numbers(&mut bus, 199, 10), [199, 200]);
    assert!(numbers(&mut bus, 201, 10).is_empty());
    assert!(numbers(&mut bus, u64::MAX, 10).is_empty());
    assert!(numbers(&mut bus, 1, 0).is_empty());
}

#[test]
fn peeking_changes_nothing() {
    let mut bus = bus();
    bus.send("a");
    let before = bus.events.len();
    for _ in 0..3 {
        let (broker_properties, _) = bus.peek(SubQueue::Active).pop().unwrap();
        assert_eq!(broker_properties.delivery_count, 0);
        assert_eq!(broker_properties.lock, None);
        assert_eq!(broker_properties.state, Some(0));
    }
    assert_eq!(bus.events.len(), before);
}

#[test]
fn a_received_message_has_no_state() {
    let mut bus = bus();
    bus.send("a");
    let receiver = bus.receiver();
    assert_eq!(bus.receive_one(receiver).broker_properties.state, None);
}

#[test]
fn what_is_over_is_not_shown_even_when_no_timer_has_fired() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(1));
    bus.pass(secs(1));
    assert!(bus.queued().is_empty());
}

#[test]
fn numbers_are_never_given_twice() {
    let mut bus = bus();
    let receiver = bus.deleting_receiver();
    for number in 1..=130 {
        assert_eq!(bus.send("a").0, number);
        bus.receive_one(receiver);
    }
    bus.reset();
    assert_eq!(bus.send("a").0, 131);
}
