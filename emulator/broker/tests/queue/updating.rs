//! Settings that change while a queue is in use (semantics §2.4; decisions D7, D17).

use servicebus_broker::{EventKind, SettleError, SubQueue};

use crate::bus::{START, bus, ids, message, rules, secs};

#[test]
fn an_update_ends_all_locks_and_counts_the_deliveries() {
    let mut bus = bus().with(&["a", "b", "dead"]);
    let receiver = bus.receiver();
    let taken = bus.receive(receiver, 3);
    bus.dead_letter(&taken[2]).unwrap();
    let dead_letters = bus.dead_letter_receiver();
    let dead = bus.receive_one(dead_letters);
    bus.update(|queue| queue.lock_duration = secs(30));
    assert_eq!(bus.counts().locked, 0);
    assert_eq!(bus.complete(&taken[0]), Err(SettleError::LockLost));
    let settled = bus.settle(
        SubQueue::DeadLetter,
        dead.token,
        servicebus_broker::Outcome::Complete,
    );
    assert_eq!(settled, Err(SettleError::LockLost));
    let again = bus.receive(receiver, 2);
    assert_eq!(ids(&again), ["a", "b"], "at their old places");
    assert!(
        again
            .iter()
            .all(|d| d.broker_properties.delivery_count == 1)
    );
    let (_, until) = again[0].broker_properties.lock.unwrap();
    assert_eq!(until, START + secs(30), "the new duration");
}

#[test]
fn an_update_without_changes_keeps_locks() {
    let mut bus = bus().with(&["a"]);
    let (_, delivery) = bus.receive_first();
    bus.update(|_| ());
    assert_eq!(bus.complete(&delivery), Ok(()));
}

#[test]
fn an_update_of_status_and_another_property_ends_locks() {
    let mut bus = bus().with(&["a"]);
    bus.receive_first();
    bus.update(|queue| {
        queue.status = servicebus_broker::EntityStatus::SendDisabled;
        queue.lock_duration = secs(30);
    });
    assert_eq!(bus.counts().locked, 0);
}

#[test]
fn an_update_dead_letters_locked_messages_at_the_delivery_limit() {
    let mut bus = rules().max_delivery_count(1).bus().with(&["a"]);
    bus.receive_first();
    bus.update(|queue| queue.lock_duration = secs(30));
    let (_, reason, _) = bus.the_dead_letter();
    assert_eq!(reason.as_deref(), Some("MaxDeliveryCountExceeded"));
}

#[test]
fn an_update_keeps_locked_deferred_messages_deferred() {
    let mut bus = bus();
    let number = bus.send_deferred("a");
    bus.receive_deferred(&[number]).unwrap();
    bus.update(|queue| queue.lock_duration = secs(30));
    let again = bus.receive_deferred(&[number]).unwrap().remove(0);
    assert_eq!(again.broker_properties.delivery_count, 2);
}

#[test]
fn an_update_keeps_reserved_messages() {
    let mut bus = bus().with(&["a", "b"]);
    let first = bus.receiver_with_credit(1);
    let second = bus.receiver_with_credit(1);
    bus.update(|queue| queue.lock_duration = secs(30));
    assert_eq!(ids(&bus.take(first)), ["a"]);
    assert_eq!(ids(&bus.take(second)), ["b"]);
}

#[test]
fn a_lowered_delivery_limit_applies_to_past_deliveries() {
    let mut bus = bus().with(&["twice", "once", "never"]);
    let receiver = bus.receiver();
    for count in [2, 1] {
        for delivery in bus.receive(receiver, count) {
            bus.abandon(&delivery).unwrap();
        }
    }
    let deferred = bus.defer_next();
    bus.update(|queue| queue.max_delivery_count = 2);
    assert_eq!(bus.queued(), ["once", "never"]);
    let (properties, reason, description) = bus.the_dead_letter();
    assert_eq!(properties.enqueued_sequence_number, Some(deferred));
    assert_eq!(properties.delivery_count, 3);
    assert_eq!(reason.as_deref(), Some("MaxDeliveryCountExceeded"));
    let text = "Message could not be consumed after 2 delivery attempts.";
    assert_eq!(description.as_deref(), Some(text));
}

#[test]
fn a_raised_delivery_limit_allows_more_deliveries() {
    let mut bus = rules().max_delivery_count(2).bus().with(&["a"]);
    let (receiver, delivery) = bus.receive_first();
    bus.abandon(&delivery).unwrap();
    bus.update(|queue| queue.max_delivery_count = 3);
    let delivery = bus.receive_one(receiver);
    bus.abandon(&delivery).unwrap();
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn a_new_default_time_to_live_applies_to_messages_without_their_own() {
    let mut bus = bus().with(&["none"]);
    bus.send_with_ttl("own", secs(100));
    assert_eq!(bus.next_deadline(), Some(START + secs(100)));
    bus.update(|queue| queue.default_message_time_to_live = Some(secs(50)));
    bus.advance(secs(50));
    assert_eq!(bus.queued(), ["own"], "its instant is fixed");
    bus.advance(secs(50));
    assert!(bus.queued().is_empty());
}

#[test]
fn a_removed_default_time_to_live_keeps_messages() {
    let mut bus = rules().default_time_to_live(secs(50)).bus().with(&["none"]);
    bus.send_with_ttl("own", secs(100));
    bus.update(|queue| queue.default_message_time_to_live = None);
    bus.advance(secs(49));
    assert_eq!(bus.queued(), ["none", "own"]);
    bus.advance(secs(1));
    assert_eq!(bus.queued(), ["none"], "the other was cut when it came");
}

#[test]
fn an_update_expires_messages_older_than_the_new_default() {
    let mut bus = rules().dead_lettering_on_expiration().bus().with(&["a"]);
    bus.advance(secs(100));
    bus.update(|queue| queue.default_message_time_to_live = Some(secs(50)));
    assert_eq!(bus.dead_letters(), ["a"]);
    let history = bus.history().into_iter();
    let at = history.filter(|(_, kind)| matches!(kind, EventKind::DeadLettered { .. }));
    let at: Vec<_> = at.map(|(at, _)| at).collect();
    assert_eq!(at, [START + secs(100)], "not in the past");
}

#[test]
fn a_scheduled_message_has_the_default_time_to_live_of_its_activation() {
    let mut bus = bus();
    bus.post(&message("a").scheduled_at(START + secs(100)))
        .unwrap();
    bus.update(|queue| queue.default_message_time_to_live = Some(secs(50)));
    bus.advance(secs(100));
    assert_eq!(bus.next_deadline(), Some(START + secs(150)));
}

#[test]
fn a_new_default_time_to_live_applies_to_deferred_messages() {
    let mut bus = bus();
    let number = bus.send_deferred("a");
    bus.update(|queue| queue.default_message_time_to_live = Some(secs(50)));
    bus.advance(secs(100));
    assert_eq!(bus.queued(), ["a"]);
    assert!(bus.receive_deferred(&[number]).is_err());
    assert!(bus.queued().is_empty());
}

#[test]
fn dead_lettering_on_expiration_applies_from_the_update() {
    let mut bus = bus().with_ttl("a", secs(10));
    bus.send_with_ttl("b", secs(20));
    bus.advance(secs(10));
    bus.update(|queue| queue.dead_lettering_on_message_expiration = true);
    bus.advance(secs(10));
    assert_eq!(bus.dead_letters(), ["b"]);
}
