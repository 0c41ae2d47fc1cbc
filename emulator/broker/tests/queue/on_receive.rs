//! Expiry that waits for an active receiver (decision D1, `Expiry: on-receive`).

use servicebus_broker::{EventKind, Timestamp};

use crate::bus::{Bus, START, ids, millis, rules, secs};

fn bus() -> Bus {
    rules()
        .expiry_on_receive()
        .dead_lettering_on_expiration()
        .bus()
}

fn expired_at(bus: &Bus) -> Vec<Timestamp> {
    let history = bus.history().into_iter();
    let moved = history.filter(|(_, kind)| matches!(kind, EventKind::DeadLettered { .. }));
    moved.map(|(at, _)| at).collect()
}

#[test]
fn without_a_receiver_an_expired_message_stays_and_is_counted() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    bus.advance(secs(1_000));
    assert_eq!(
        bus.next_deadline(),
        None,
        "no receiver needs to be woken for it"
    );
    assert_eq!(bus.queued(), ["a"], "peeking is not receiving");
    assert_eq!(bus.counts().active, 1);
}

#[test]
fn a_link_without_credit_is_not_a_receiver() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    let receiver = bus.receiver();
    bus.credit(receiver, 0);
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn it_leaves_when_credit_comes_and_is_not_delivered() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    bus.send("b");
    let receiver = bus.receiver();
    bus.advance(secs(30));
    bus.credit(receiver, 1);
    assert_eq!(ids(&bus.take(receiver)), ["b"]);
    assert_eq!(
        expired_at(&bus),
        [START + secs(30)],
        "then, not in the past"
    );
    assert_eq!(bus.dead_letters(), ["a"]);
}

#[test]
fn with_an_active_receiver_it_leaves_at_its_instant() {
    let mut bus = bus();
    bus.receiver_with_credit(5);
    bus.send_with_ttl("a", secs(10));
    assert_eq!(
        bus.next_deadline(),
        Some(START + secs(10)),
        "the timer is set"
    );
    bus.advance(secs(10) - millis(1));
    assert!(expired_at(&bus).is_empty());
    bus.advance(millis(1));
    assert_eq!(expired_at(&bus), [START + secs(10)]);
}

#[test]
fn a_late_timer_does_not_move_the_instant_while_a_receiver_is_active() {
    let mut bus = bus();
    bus.receiver_with_credit(5);
    bus.send_with_ttl("a", secs(10));
    bus.pass(secs(30));
    assert!(bus.queued().is_empty());
    assert_eq!(expired_at(&bus), [START + secs(10)]);
}

#[test]
fn what_is_due_before_the_credit_goes_happens_before_it_goes() {
    let mut bus = bus();
    let receiver = bus.receiver_with_credit(5);
    bus.send_with_ttl("a", secs(10));
    bus.pass(secs(30));
    bus.credit(receiver, 0);
    assert_eq!(expired_at(&bus), [START + secs(10)]);
}

#[test]
fn the_receiver_who_got_everything_it_asked_for_is_active_no_longer() {
    let mut bus = bus();
    bus.send("b");
    bus.send_with_ttl("a", secs(10));
    let receiver = bus.receiver_with_credit(1);
    assert!(bus.next_deadline().is_some(), "reserved, and not taken yet");
    assert_eq!(ids(&bus.take(receiver)), ["b"]);
    assert_eq!(bus.next_deadline(), Some(START + secs(60)), "the lock of b");
    bus.advance(secs(20));
    assert_eq!(bus.queued(), ["b", "a"]);
}

#[test]
fn a_closed_receiver_is_not_active() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    let receiver = bus.receiver_with_credit(5);
    bus.close(receiver);
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn a_message_found_expired_when_its_lock_ends_leaves_at_once() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    bus.send_with_ttl("b", secs(10));
    let receiver = bus.receiver();
    let taken = bus.receive(receiver, 2);
    bus.advance(secs(20));
    bus.abandon(&taken[0]).unwrap();
    assert_eq!(bus.dead_letters(), ["a"]);
    bus.advance(secs(40));
    assert_eq!(bus.dead_letters(), ["a", "b"]);
    assert_eq!(expired_at(&bus), [START + secs(20), START + secs(60)]);
}

#[test]
fn receivers_of_dead_letters_are_not_receivers_of_the_queue() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    let receiver = bus.dead_letter_receiver();
    bus.credit(receiver, 5);
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn a_queue_that_begins_to_forward_lets_them_go_then_and_not_in_the_past() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    bus.advance(secs(30));
    assert_eq!(bus.queued(), ["a"]);
    bus.update(|queue| queue.forward_to = Some("elsewhere".parse().unwrap()));
    assert_eq!(bus.dead_letters(), ["a"]);
    assert_eq!(expired_at(&bus), [START + secs(30)]);
}
