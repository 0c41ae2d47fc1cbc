//! Deferred messages of a session are received while a receiver holds it, and belong to that receiver.
//!
//! Expired messages make no session available (decision D1).

use servicebus_broker::{ClientId, ReceiveDeferredError, SequenceNumber, SubQueue};

use crate::bus::{Bus, START, ids, message, rules, secs, sessions};

const LOST: ReceiveDeferredError = ReceiveDeferredError::SessionLockLost;
const NOT_FOUND: ReceiveDeferredError = ReceiveDeferredError::NotFound;

/// Defers the only message of session `a`.
fn deferred(bus: &mut Bus) -> SequenceNumber {
    let number = bus.send_to("a", "1");
    let receiver = bus.accept("a");
    let delivery = bus.receive_one(receiver);
    bus.defer(&delivery).unwrap();
    bus.close(receiver);
    number
}

#[test]
fn receiving_deferred_messages_needs_their_session_lock() {
    let mut bus = sessions();
    let number = deferred(&mut bus);
    assert_eq!(
        bus.receive_deferred_of(Some("a"), &[number]).unwrap_err(),
        LOST
    );
    bus.accept("a");
    assert_eq!(bus.receive_deferred_of(None, &[number]).unwrap_err(), LOST);
    bus.accept("b");
    let of_another = bus.receive_deferred_of(Some("b"), &[number]);
    assert_eq!(of_another.unwrap_err(), NOT_FOUND);
    let received = bus.receive_deferred_of(Some("a"), &[number]).unwrap();
    assert_eq!(ids(&received), ["1"]);
}

#[test]
fn another_client_may_request_deferred_messages_for_the_session_holder() {
    let mut bus = sessions();
    let number = deferred(&mut bus);
    let holder = bus.accept("a");
    bus.client = ClientId(8);
    let received = bus.receive_deferred_of(Some("a"), &[number]).unwrap();
    assert_eq!(ids(&received), ["1"]);
    bus.close(holder);
    let counts = bus.counts();
    assert_eq!((counts.locked, counts.deferred), (0, 1));
}

#[test]
fn deferred_messages_are_locked_with_their_session() {
    let mut bus = sessions();
    let number = deferred(&mut bus);
    let receiver = bus.accept("a");
    bus.advance(secs(10));
    let taken = bus.receive_deferred_of(Some("a"), &[number]).unwrap();
    assert_eq!(taken[0].broker_properties.lock.unwrap().1, START + secs(60));
    bus.close(receiver);
    let counts = bus.counts();
    assert_eq!((counts.locked, counts.deferred), (0, 1));
    bus.accept("a");
    let taken = bus.receive_deferred_of(Some("a"), &[number]).unwrap();
    assert_eq!(taken[0].broker_properties.delivery_count, 1);
    bus.complete(&taken[0]).unwrap();
    assert!(bus.queued().is_empty());
}

#[test]
fn a_lost_session_keeps_messages_deferred_and_counts_a_delivery() {
    let mut bus = sessions();
    let number = deferred(&mut bus);
    bus.accept("a");
    bus.receive_deferred_of(Some("a"), &[number]).unwrap();
    bus.advance(secs(60));
    bus.accept("a");
    let taken = bus.receive_deferred_of(Some("a"), &[number]).unwrap();
    assert_eq!(taken[0].broker_properties.delivery_count, 2);
}

#[test]
fn an_expired_deferred_session_message_is_not_found_and_leaves() {
    let mut bus = sessions();
    let short = message("1").session("a").time_to_live(secs(10));
    let number = bus.post(&short).unwrap();
    let receiver = bus.accept("a");
    let delivery = bus.receive_one(receiver);
    bus.defer(&delivery).unwrap();
    bus.advance(secs(20));
    assert_eq!(bus.queued(), ["1"]);
    let late = bus.receive_deferred_of(Some("a"), &[number]);
    assert_eq!(late.unwrap_err(), NOT_FOUND);
    assert!(bus.queued().is_empty());
}

#[test]
fn a_session_id_selects_deferred_messages_of_a_plain_queue() {
    let mut bus = crate::bus::bus();
    bus.send_to("a", "1");
    let number = bus.defer_next();
    let other = bus.receive_deferred_of(Some("b"), &[number]);
    assert_eq!(other.unwrap_err(), NOT_FOUND);
    assert!(bus.receive_deferred_of(Some("a"), &[number]).is_ok());
}

#[test]
fn a_session_whose_messages_have_expired_is_not_available() {
    let mut bus = sessions();
    let short = message("1").session("a").time_to_live(secs(10));
    bus.post(&short).unwrap();
    bus.advance(secs(10));
    assert!(bus.known_sessions().is_empty());
    assert_eq!(bus.accept_next().1, None);
}

#[test]
fn a_receiver_waiting_for_a_session_is_active_for_expiry() {
    let mut bus = rules().sessions().expiry_on_receive().bus();
    let short = message("1").session("a").time_to_live(secs(10));
    bus.post(&short).unwrap();
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["1"]);
    assert_eq!(bus.accept_next().1, None);
    assert!(bus.queued().is_empty());
}

#[test]
fn a_session_receiver_with_credit_is_active_for_expiry() {
    let mut bus = rules().sessions().expiry_on_receive().bus();
    let short = message("1").session("a").time_to_live(secs(10));
    bus.post(&short).unwrap();
    let receiver = bus.accept("b");
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["1"]);
    bus.credit(receiver, 1);
    assert!(bus.queued().is_empty());
}

#[test]
fn dead_letters_do_not_belong_to_sessions() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2"]);
    let receiver = bus.accept("a");
    for delivery in bus.receive(receiver, 2) {
        bus.dead_letter(&delivery).unwrap();
    }
    assert_eq!(
        bus.peek_session(SubQueue::DeadLetter, "a", 1, 10),
        ["1", "2"]
    );
    let dead = bus.dead_letter_receiver();
    let taken = bus.receive(dead, 2);
    assert_eq!(taken[0].message.session_id().as_deref(), Some("a"));
    let (_, until) = taken[0].broker_properties.lock.unwrap();
    assert_eq!(until, bus.now + secs(60));
    bus.settle(
        SubQueue::DeadLetter,
        taken[0].token,
        servicebus_broker::Outcome::Complete,
    )
    .unwrap();
    bus.close(receiver);
    assert!(bus.known_sessions().is_empty());
}
