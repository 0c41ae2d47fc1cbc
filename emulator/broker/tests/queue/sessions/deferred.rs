//! Deferred messages of a session are received by whoever holds it.

use servicebus_broker::{ClientId, ReceiveDeferredError, SequenceNumber};

use crate::bus::{Bus, START, ids, message, secs, sessions};

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
fn they_need_the_lock_of_the_session() {
    let mut bus = sessions();
    let number = deferred(&mut bus);
    assert_eq!(
        bus.receive_deferred_of(Some("a"), &[number]).unwrap_err(),
        LOST
    );
    bus.accept("a");
    assert_eq!(bus.receive_deferred_of(None, &[number]).unwrap_err(), LOST);
    bus.client = ClientId(8);
    assert_eq!(
        bus.receive_deferred_of(Some("a"), &[number]).unwrap_err(),
        LOST
    );
    bus.accept("b");
    let of_another = bus.receive_deferred_of(Some("b"), &[number]);
    assert_eq!(of_another.unwrap_err(), NOT_FOUND);
    bus.client = ClientId(7);
    let received = bus.receive_deferred_of(Some("a"), &[number]).unwrap();
    assert_eq!(ids(&received), ["1"]);
}

#[test]
fn they_are_locked_for_as_long_as_the_session_and_belong_to_its_holder() {
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
fn a_lost_session_leaves_them_deferred_and_the_delivery_counts() {
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
fn one_that_has_expired_is_not_found_and_leaves() {
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
fn where_there_are_no_sessions_a_session_id_selects_them() {
    let mut bus = crate::bus::bus();
    bus.send_to("a", "1");
    let number = bus.defer_next();
    let other = bus.receive_deferred_of(Some("b"), &[number]);
    assert_eq!(other.unwrap_err(), NOT_FOUND);
    assert!(bus.receive_deferred_of(Some("a"), &[number]).is_ok());
}
