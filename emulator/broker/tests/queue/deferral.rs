//! Deferred messages (semantics §7; decisions D9, D24).

use servicebus_broker::{
    Outcome, PropertyChanges, ReceiveDeferredError, ReceiveMode, SequenceNumber, SettleError,
    SubQueue,
};

use crate::bus::{START, bus, ids, message, rules, secs, text};

const NOT_FOUND: ReceiveDeferredError = ReceiveDeferredError::NotFound;
const DEAD: SubQueue = SubQueue::DeadLetter;

#[test]
fn a_deferred_message_is_not_delivered_and_keeps_its_sequence_number() {
    let mut bus = bus().with(&["a", "b"]);
    let number = bus.defer_next();
    assert_eq!(number, SequenceNumber(1));
    let receiver = bus.receiver();
    assert_eq!(ids(&bus.receive(receiver, 2)), ["b"]);
    let (properties, message) = bus.peek(SubQueue::Active).swap_remove(0);
    assert_eq!(message.id(), "a");
    assert_eq!(
        (properties.sequence_number, properties.state),
        (number, Some(1))
    );
    assert_eq!(properties.delivery_count, 1, "observed 10");
    let counts = bus.counts();
    assert_eq!((counts.active, counts.deferred), (2, 1));
}

#[test]
fn a_deferred_message_is_received_by_sequence_number_under_a_lock() {
    let mut bus = bus();
    let number = bus.send_deferred("a");
    bus.advance(secs(5));
    let delivery = bus.receive_deferred(&[number]).unwrap().remove(0);
    assert_eq!(delivery.message.id(), "a");
    assert_eq!(delivery.broker_properties.state, Some(1));
    assert_eq!(delivery.broker_properties.sequence_number, number);
    let (_, until) = delivery.broker_properties.lock.unwrap();
    assert_eq!(until, START + secs(65));
    let counts = bus.counts();
    assert_eq!((counts.locked, counts.deferred), (1, 1));
    assert!(bus.renew(&[delivery.token]).is_ok());
    assert_eq!(bus.complete(&delivery), Ok(()));
    assert!(bus.queued().is_empty());
    assert_eq!(bus.counts(), servicebus_broker::Counts::default());
}

#[test]
fn a_ready_message_is_seen_beside_a_locked_deferred_one() {
    let mut bus = bus();
    let number = bus.send_deferred("a");
    bus.receive_deferred(&[number]).unwrap();
    assert!(!bus.entity().has_ready(SubQueue::Active));
    bus.send("b");
    assert!(bus.entity().has_ready(SubQueue::Active));
}

#[test]
fn a_deferred_message_can_be_received_and_deleted() {
    let mut bus = bus();
    let number = bus.send_deferred("a");
    let mode = ReceiveMode::ReceiveAndDelete;
    let taken = bus.receive_deferred_from(SubQueue::Active, &[number], mode);
    let delivery = taken.unwrap().remove(0);
    assert_eq!(
        (
            delivery.broker_properties.lock,
            delivery.broker_properties.state
        ),
        (None, Some(1))
    );
    assert!(bus.queued().is_empty());
    assert_eq!(bus.counts().deferred, 0);
    assert_eq!(bus.receive_deferred(&[number]).unwrap_err(), NOT_FOUND);
}

#[test]
fn deferred_messages_are_received_in_the_requested_order() {
    let mut bus = bus();
    let numbers = ["a", "b", "c"].map(|id| bus.send_deferred(id));
    let requested = [numbers[2], numbers[0]];
    let taken = bus.receive_deferred(&requested).unwrap();
    assert_eq!(ids(&taken), ["c", "a"]);
}

#[test]
fn a_request_for_deferred_messages_receives_all_or_none() {
    let mut bus = bus();
    let deferred = bus.send_deferred("deferred");
    let locked = bus.send_deferred("locked");
    bus.receive_deferred(&[locked]).unwrap();
    let active = bus.send("active");
    let scheduled = bus.schedule("scheduled", START + secs(500));
    let unknown = SequenceNumber(99);
    for wrong in [locked, active, scheduled, unknown, deferred] {
        let refused = bus.receive_deferred(&[deferred, wrong]);
        assert_eq!(refused.unwrap_err(), NOT_FOUND, "{wrong}");
    }
    assert_eq!(bus.receive_deferred(&[deferred]).unwrap().len(), 1);
}

#[test]
fn an_abandoned_deferred_message_stays_deferred_and_is_counted() {
    let mut bus = bus();
    let number = bus.send_deferred("a");
    for count in 1..4 {
        let delivery = bus.receive_deferred(&[number]).unwrap().remove(0);
        assert_eq!(delivery.broker_properties.delivery_count, count);
        bus.abandon(&delivery).unwrap();
        let receiver = bus.receiver();
        assert!(bus.receive(receiver, 1).is_empty());
    }
    assert_eq!(bus.counts().deferred, 1);
}

#[test]
fn a_released_deferred_message_stays_deferred_and_is_not_counted() {
    let mut bus = bus();
    let number = bus.send_deferred("a");
    let delivery = bus.receive_deferred(&[number]).unwrap().remove(0);
    bus.release(&delivery).unwrap();
    let delivery = bus.receive_deferred(&[number]).unwrap().remove(0);
    assert_eq!(delivery.broker_properties.delivery_count, 1);
}

#[test]
fn a_deferred_message_whose_lock_expires_is_deferred_again_and_counted() {
    let mut bus = bus();
    let number = bus.send_deferred("a");
    let first = bus.receive_deferred(&[number]).unwrap().remove(0);
    bus.advance(secs(60));
    let counts = bus.counts();
    assert_eq!((counts.locked, counts.deferred), (0, 1));
    assert_eq!(bus.complete(&first), Err(SettleError::LockLost));
    let second = bus.receive_deferred(&[number]).unwrap().remove(0);
    assert_eq!(second.broker_properties.delivery_count, 2);
}

#[test]
fn a_deferred_message_can_be_deferred_again_and_dead_lettered() {
    let mut bus = bus();
    let number = bus.send_deferred("a");
    let delivery = bus.receive_deferred(&[number]).unwrap().remove(0);
    bus.defer(&delivery).unwrap();
    assert_eq!(bus.counts().deferred, 1);
    let delivery = bus.receive_deferred(&[number]).unwrap().remove(0);
    assert_eq!(delivery.broker_properties.delivery_count, 2);
    bus.dead_letter(&delivery).unwrap();
    assert_eq!(bus.dead_letters(), ["a"]);
    assert_eq!(bus.counts().deferred, 0);
}

#[test]
fn a_deferred_message_is_dead_lettered_at_the_delivery_limit() {
    let mut bus = rules().max_delivery_count(3).bus();
    let number = bus.send_deferred("a");
    let delivery = bus.receive_deferred(&[number]).unwrap().remove(0);
    bus.abandon(&delivery).unwrap();
    bus.receive_deferred(&[number]).unwrap();
    bus.advance(secs(60));
    let (properties, reason, _) = bus.the_dead_letter();
    assert_eq!(properties.delivery_count, 3);
    assert_eq!(reason.as_deref(), Some("MaxDeliveryCountExceeded"));
    assert_eq!(bus.receive_deferred(&[number]).unwrap_err(), NOT_FOUND);
}

/// Observed 10.
#[test]
fn deferring_at_the_delivery_limit_dead_letters() {
    let mut bus = rules().max_delivery_count(1).bus();
    let number = bus.send_deferred("a");
    let (properties, reason, _) = bus.the_dead_letter();
    assert_eq!((properties.delivery_count, properties.state), (1, Some(0)));
    assert_eq!(reason.as_deref(), Some("MaxDeliveryCountExceeded"));
    assert_eq!(bus.receive_deferred(&[number]).unwrap_err(), NOT_FOUND);
}

#[test]
fn properties_that_are_set_when_deferring_are_shown_on_retrieval() {
    let mut bus = bus().with(&["a"]);
    let (_, delivery) = bus.receive_first();
    let mut changes = PropertyChanges::new();
    changes.set_text("step", "2");
    let outcome = Outcome::Defer { changes };
    let store = SubQueue::Active;
    bus.settle(store, delivery.token, outcome).unwrap();
    let number = delivery.broker_properties.sequence_number;
    let message = bus.receive_deferred(&[number]).unwrap().remove(0).message;
    assert_eq!(text(&message, "step").as_deref(), Some("2"));
}

#[test]
fn an_expired_deferred_message_is_dropped_when_requested() {
    let mut bus = bus();
    let short = message("a").time_to_live(secs(10));
    bus.post(&short).unwrap();
    let number = bus.defer_next();
    bus.advance(secs(1_000));
    assert_eq!(bus.queued(), ["a"]);
    assert_eq!(bus.receive_deferred(&[number]).unwrap_err(), NOT_FOUND);
    assert!(bus.queued().is_empty());
    assert!(bus.dead_letters().is_empty());
}

#[test]
fn an_expired_deferred_message_is_dead_lettered_when_requested() {
    let mut bus = rules().dead_lettering_on_expiration().bus();
    bus.post(&message("short").time_to_live(secs(10))).unwrap();
    let short = bus.defer_next();
    let long = bus.send_deferred("long");
    bus.advance(secs(10));
    let refused = bus.receive_deferred(&[long, short]);
    assert_eq!(refused.unwrap_err(), NOT_FOUND);
    let (_, reason, _) = bus.the_dead_letter();
    assert_eq!(reason.as_deref(), Some("TTLExpiredException"));
    assert_eq!(bus.receive_deferred(&[long]).unwrap().len(), 1);
}

#[test]
fn a_lock_protects_a_deferred_message_from_expiry_and_leaves_it_deferred() {
    let mut bus = bus();
    bus.post(&message("a").time_to_live(secs(10))).unwrap();
    let number = bus.defer_next();
    let delivery = bus.receive_deferred(&[number]).unwrap().remove(0);
    bus.advance(secs(20));
    bus.abandon(&delivery).unwrap();
    assert_eq!(bus.queued(), ["a"], "not in the background");
    assert_eq!(bus.receive_deferred(&[number]).unwrap_err(), NOT_FOUND);
    assert!(bus.queued().is_empty());
}

#[test]
fn a_message_can_be_deferred_after_it_expired_under_its_lock() {
    let mut bus = bus();
    bus.post(&message("a").time_to_live(secs(10))).unwrap();
    let (_, delivery) = bus.receive_first();
    bus.advance(secs(20));
    bus.defer(&delivery).unwrap();
    assert_eq!(bus.counts().deferred, 1);
}

#[test]
fn dead_letters_can_be_deferred_and_never_expire() {
    let mut bus = bus();
    bus.post(&message("a").time_to_live(secs(100))).unwrap();
    let (_, delivery) = bus.receive_first();
    bus.dead_letter(&delivery).unwrap();
    let dead_letters = bus.dead_letter_receiver();
    let delivery = bus.receive_one(dead_letters);
    let changes = PropertyChanges::new();
    let outcome = Outcome::Defer { changes };
    bus.settle(DEAD, delivery.token, outcome).unwrap();
    bus.advance(secs(1_000));
    assert!(bus.receive(dead_letters, 1).is_empty());
    let numbers = [delivery.broker_properties.sequence_number];
    assert_eq!(bus.receive_deferred(&numbers).unwrap_err(), NOT_FOUND);
    let mode = ReceiveMode::PeekLock;
    let taken = bus.receive_deferred_from(DEAD, &numbers, mode).unwrap();
    assert_eq!(ids(&taken), ["a"]);
    let token = taken[0].token;
    bus.settle(DEAD, token, Outcome::Complete).unwrap();
    assert!(bus.dead_letters().is_empty());
}

#[test]
fn detaching_a_receiver_releases_the_deferred_messages_it_locked() {
    let mut bus = rules().release_on_detach().bus();
    let kept = bus.send_deferred("kept");
    bus.send("b");
    let (gone, delivery) = bus.receive_first();
    bus.defer(&delivery).unwrap();
    let held = bus.receive_deferred(&[kept]).unwrap().remove(0);
    bus.close(gone);
    assert_eq!(bus.counts().deferred, 2);
    assert_eq!(bus.complete(&held), Ok(()), "no link holds its lock");
    let number = delivery.broker_properties.sequence_number;
    let (store, mode) = (SubQueue::Active, ReceiveMode::PeekLock);
    let link = bus.receiver();
    let numbers = [number];
    bus.operate(|entity, cx| entity.receive_deferred(cx, store, &numbers, mode, link.id, None))
        .unwrap();
    bus.close(link);
    let counts = bus.counts();
    assert_eq!((counts.locked, counts.deferred), (0, 1), "deferred again");
    let again = bus.receive_deferred(&numbers).unwrap().remove(0);
    assert_eq!(again.broker_properties.delivery_count, 1);
}
