//! Entities that are not active (semantics §14, decision D27); peeking (semantics §10), and sequence numbers (§8).

use servicebus_broker::{
    EntityStatus, ReceiveDeferredError, RenewError, SendError, SettleError, SubQueue,
};

use crate::bus::{Bus, START, bus, ids, rules, secs};

const TEXT: &str = "Messaging entity 'orders' is currently disabled. For more information please see \
                    https://aka.ms/ServiceBusExceptions .";

fn set(bus: &mut Bus, status: EntityStatus) {
    bus.update(|queue| queue.status = status);
}

#[test]
fn each_entity_status_allows_its_operations() {
    for (status, sends, receives) in [
        (EntityStatus::Active, true, true),
        (EntityStatus::SendDisabled, false, true),
        (EntityStatus::ReceiveDisabled, true, false),
        (EntityStatus::Disabled, false, false),
    ] {
        let mut bus = bus().with(&["before"]);
        set(&mut bus, status);
        let sent = bus.post(&crate::bus::message("a"));
        assert_eq!(sent.is_ok(), sends, "{status:?}");
        if let Err(refused) = sent {
            assert!(matches!(refused, SendError::Disabled(_)));
            assert_eq!(refused.to_string(), TEXT);
        }
        let receiver = bus.receiver();
        let received = bus.receive(receiver, 5).len();
        let expected = usize::from(receives) * (1 + usize::from(sends));
        assert_eq!(received, expected, "{status:?}");
    }
}

#[test]
fn a_declared_status_applies_from_creation() {
    let mut bus = rules()
        .status(EntityStatus::ReceiveDisabled)
        .bus()
        .with(&["a"]);
    let receiver = bus.receiver_with_credit(1);
    assert_eq!(bus.reserved(receiver), 0);
}

#[test]
fn disabling_withdraws_reservations_and_keeps_credit() {
    let mut bus = bus().with(&["a", "b"]);
    let first = bus.receiver_with_credit(1);
    let second = bus.receiver_with_credit(1);
    set(&mut bus, EntityStatus::Disabled);
    assert_eq!((bus.reserved(first), bus.reserved(second)), (0, 0));
    assert!(bus.take(first).is_empty());
    bus.woken();
    set(&mut bus, EntityStatus::Active);
    assert!(bus.woken().contains(&first.id), "told again");
    assert_eq!(ids(&bus.take(first)), ["a"]);
    assert_eq!(ids(&bus.take(second)), ["b"]);
}

#[test]
fn locks_of_a_disabled_queue_keep_running_and_cannot_be_settled() {
    for status in [EntityStatus::Disabled, EntityStatus::ReceiveDisabled] {
        let mut bus = bus().with(&["a"]);
        let (_, delivery) = bus.receive_first();
        set(&mut bus, status);
        assert_eq!(bus.complete(&delivery), Err(SettleError::Disabled));
        assert_eq!(bus.renew(&[delivery.token]), Err(RenewError::Disabled));
        assert_eq!(bus.counts().locked, 1);
        bus.advance(secs(30));
        set(&mut bus, EntityStatus::Active);
        assert_eq!(bus.complete(&delivery), Ok(()), "{status:?}");
    }
}

#[test]
fn locks_of_a_disabled_queue_expire() {
    let mut bus = bus().with(&["a"]);
    let (receiver, delivery) = bus.receive_first();
    set(&mut bus, EntityStatus::Disabled);
    bus.advance(secs(60));
    assert_eq!(bus.counts().locked, 0);
    set(&mut bus, EntityStatus::Active);
    assert_eq!(bus.complete(&delivery), Err(SettleError::LockLost));
    assert_eq!(
        bus.receive_one(receiver).broker_properties.delivery_count,
        1
    );
}

#[test]
fn deliveries_can_be_settled_while_sending_is_disabled() {
    let mut bus = bus().with(&["a"]);
    let (_, delivery) = bus.receive_first();
    set(&mut bus, EntityStatus::SendDisabled);
    assert!(bus.renew(&[delivery.token]).is_ok());
    assert_eq!(bus.complete(&delivery), Ok(()));
}

#[test]
fn deferred_messages_of_a_disabled_queue_cannot_be_received() {
    let mut bus = bus();
    let number = bus.send_deferred("a");
    set(&mut bus, EntityStatus::ReceiveDisabled);
    let refused = bus.receive_deferred(&[number]);
    assert_eq!(refused.unwrap_err(), ReceiveDeferredError::Disabled);
    set(&mut bus, EntityStatus::Active);
    assert_eq!(bus.receive_deferred(&[number]).unwrap().len(), 1);
}

#[test]
fn the_dead_letter_queue_has_the_status_of_its_queue() {
    let mut bus = bus().with(&["a"]);
    let (_, delivery) = bus.receive_first();
    bus.dead_letter(&delivery).unwrap();
    set(&mut bus, EntityStatus::ReceiveDisabled);
    let dead_letters = bus.dead_letter_receiver();
    assert!(bus.receive(dead_letters, 1).is_empty());
    set(&mut bus, EntityStatus::SendDisabled);
    assert_eq!(ids(&bus.receive(dead_letters, 1)), ["a"]);
}

#[test]
fn messages_of_a_disabled_queue_expire_and_activate() {
    let mut bus = bus();
    bus.schedule("later", START + secs(10));
    bus.send_with_ttl("short", secs(10));
    set(&mut bus, EntityStatus::Disabled);
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["later"]);
    assert_eq!(bus.counts().scheduled, 0);
    assert_eq!(
        bus.peek(SubQueue::Active)[0].0.enqueued_at,
        START + secs(10)
    );
}

fn numbers(bus: &mut Bus, from: u64, max: usize) -> Vec<u64> {
    let seen = bus.peek_from(SubQueue::Active, from, max);
    seen.iter()
        .map(|(properties, _)| properties.sequence_number.0)
        .collect()
}

#[test]
fn a_peek_shows_messages_in_order_including_locked_ones() {
    let mut bus = bus().with(&["locked", "reserved", "ready"]);
    bus.receive_first();
    bus.receiver_with_credit(1);
    assert_eq!(bus.queued(), ["locked", "reserved", "ready"]);
}

#[test]
fn a_peek_starts_at_the_given_number_and_ends_at_the_count() {
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
fn a_peek_changes_no_message() {
    let mut bus = bus().with(&["a"]);
    let before = bus.events.len();
    for _ in 0..3 {
        let (properties, _) = bus.peek(SubQueue::Active).pop().unwrap();
        assert_eq!(properties.delivery_count, 0);
        assert_eq!(properties.lock, None);
        assert_eq!(properties.state, Some(0));
    }
    assert_eq!(bus.events.len(), before);
}

#[test]
fn a_received_message_has_no_state() {
    let mut bus = bus().with(&["a"]);
    let receiver = bus.receiver();
    assert_eq!(bus.receive_one(receiver).broker_properties.state, None);
}

#[test]
fn a_peek_omits_expired_messages_before_the_timer_fires() {
    let mut bus = bus().with_ttl("a", secs(1));
    bus.pass(secs(1));
    assert!(bus.queued().is_empty());
}

#[test]
fn sequence_numbers_are_never_reused() {
    let mut bus = bus();
    let receiver = bus.deleting_receiver();
    for number in 1..=130 {
        assert_eq!(bus.send("a").0, number);
        bus.receive_one(receiver);
    }
    bus.reset();
    assert_eq!(bus.send("a").0, 131);
}
