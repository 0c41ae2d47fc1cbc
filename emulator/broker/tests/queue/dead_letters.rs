//! How messages come into the dead-letter queue, and how it differs (semantics §3; D4, D5, D8, D32).

use servicebus_broker::{
    Outcome, PropertyChanges, ReceiveMode, SequenceNumber, SettleError, SubQueue,
};

use crate::bus::{Bus, START, bus, dead_letter, ids, rules, secs, text};

const DEAD: SubQueue = SubQueue::DeadLetter;

/// A queue whose only message was dead-lettered by a client.
fn with_dead_letter(bus: &mut Bus) {
    bus.send("a");
    let (_, delivery) = bus.receive_first();
    bus.dead_letter(&delivery).unwrap();
}

#[test]
fn an_abandon_at_the_delivery_limit_dead_letters_at_once() {
    let mut bus = rules().max_delivery_count(3).bus().with(&["a"]);
    let receiver = bus.receiver();
    for _ in 0..3 {
        assert_eq!(bus.counts().dead_letter, 0);
        let delivery = bus.receive_one(receiver);
        bus.abandon(&delivery).unwrap();
    }
    assert!(bus.receive(receiver, 1).is_empty());
    let (properties, reason, description) = bus.the_dead_letter();
    assert_eq!(
        properties.delivery_count, 3,
        "kept, and as many as are allowed"
    );
    assert_eq!(reason.as_deref(), Some("MaxDeliveryCountExceeded"));
    let text = "Message could not be consumed after 3 delivery attempts.";
    assert_eq!(description.as_deref(), Some(text));
}

#[test]
fn a_lock_expiry_at_the_delivery_limit_dead_letters() {
    let mut bus = rules().max_delivery_count(2).bus().with(&["a"]);
    let (receiver, delivery) = bus.receive_first();
    bus.abandon(&delivery).unwrap();
    bus.receive_one(receiver);
    bus.advance(secs(60));
    let (properties, reason, _) = bus.the_dead_letter();
    assert_eq!(properties.delivery_count, 2);
    assert_eq!(reason.as_deref(), Some("MaxDeliveryCountExceeded"));
}

#[test]
fn a_client_sets_reason_description_and_properties_of_a_dead_letter() {
    let mut bus = bus().with(&["a", "b"]);
    let receiver = bus.receiver();
    let delivery = bus.receive(receiver, 2).pop().unwrap();
    let mut changes = PropertyChanges::new();
    changes.set_text("node", "x");
    let outcome = Outcome::DeadLetter {
        reason: Some("bad".into()),
        description: Some("very bad".into()),
        changes,
    };
    bus.settle(SubQueue::Active, delivery.token, outcome)
        .unwrap();
    let (properties, reason, description) = bus.the_dead_letter();
    assert_eq!(
        (reason.as_deref(), description.as_deref()),
        (Some("bad"), Some("very bad"))
    );
    assert_eq!(text(&bus.peek(DEAD)[0].1, "node").as_deref(), Some("x"));
    assert_eq!(
        properties.delivery_count, 0,
        "dead-lettering is not a failed delivery"
    );
}

#[test]
fn a_dead_letter_without_given_reason_and_description_has_none() {
    let mut bus = bus();
    with_dead_letter(&mut bus);
    let (_, reason, description) = bus.the_dead_letter();
    assert_eq!((reason, description), (None, None));
}

#[test]
fn a_dead_letter_has_a_new_and_its_enqueued_sequence_number() {
    let mut bus = bus().with(&["a", "b", "c"]);
    let receiver = bus.receiver();
    let taken = bus.receive(receiver, 3);
    bus.advance(secs(5));
    bus.dead_letter(&taken[2]).unwrap();
    let (properties, ..) = bus.the_dead_letter();
    assert_eq!(properties.sequence_number, SequenceNumber(1));
    assert_eq!(properties.enqueued_sequence_number, Some(SequenceNumber(3)));
    assert_eq!(properties.enqueued_at, START);
}

#[test]
fn dead_letters_go_to_a_waiting_receiver() {
    let mut bus = bus();
    let dead_letters = bus.dead_letter_receiver();
    bus.credit(dead_letters, 1);
    with_dead_letter(&mut bus);
    assert!(bus.woken().contains(&dead_letters.id));
    assert_eq!(ids(&bus.take(dead_letters)), ["a"]);
}

#[test]
fn dead_letters_do_not_expire() {
    let mut bus = rules()
        .default_time_to_live(secs(100))
        .bus()
        .with_ttl("a", secs(10));
    let (_, delivery) = bus.receive_first();
    bus.dead_letter(&delivery).unwrap();
    bus.advance(secs(1_000_000));
    assert_eq!(bus.dead_letters(), ["a"]);
    let dead_letters = bus.dead_letter_receiver();
    let properties = bus.receive_one(dead_letters).broker_properties;
    assert_eq!(properties.time_to_live, Some(10_000), "as it was sent");
}

#[test]
fn abandoning_a_dead_letter_does_not_count_as_delivery() {
    let mut bus = rules().max_delivery_count(2).bus();
    with_dead_letter(&mut bus);
    let receiver = bus.dead_letter_receiver();
    for _ in 0..10 {
        let delivery = bus.receive_one(receiver);
        assert_eq!(delivery.broker_properties.delivery_count, 0);
        let changes = PropertyChanges::new();
        bus.settle(DEAD, delivery.token, Outcome::Abandon { changes })
            .unwrap();
    }
    assert_eq!(bus.dead_letters(), ["a"]);
}

#[test]
fn a_lock_expiry_of_a_dead_letter_does_not_count_as_delivery() {
    let mut bus = bus();
    with_dead_letter(&mut bus);
    let receiver = bus.dead_letter_receiver();
    for _ in 0..3 {
        let delivery = bus.receive_one(receiver);
        assert_eq!(delivery.broker_properties.delivery_count, 0);
        bus.advance(secs(60));
    }
}

#[test]
fn a_dead_letter_cannot_be_dead_lettered_and_stays_locked() {
    let mut bus = bus();
    with_dead_letter(&mut bus);
    let receiver = bus.dead_letter_receiver();
    let delivery = bus.receive_one(receiver);
    let outcome = dead_letter(Some("again"), None);
    let refused = bus.settle(DEAD, delivery.token, outcome);
    assert_eq!(refused, Err(SettleError::AlreadyDeadLettered));
    let (_, reason, _) = bus.the_dead_letter();
    assert_eq!(reason, None);
    assert_eq!(bus.settle(DEAD, delivery.token, Outcome::Complete), Ok(()));
}

#[test]
fn dead_lettering_a_dead_letter_without_its_lock_is_a_lost_lock() {
    let mut bus = bus();
    with_dead_letter(&mut bus);
    let receiver = bus.dead_letter_receiver();
    let delivery = bus.receive_one(receiver);
    bus.advance(secs(60));
    let refused = bus.settle(DEAD, delivery.token, dead_letter(None, None));
    assert_eq!(refused, Err(SettleError::LockLost));
}

#[test]
fn dead_letters_can_be_received_and_deleted_or_released() {
    let mut bus = bus();
    with_dead_letter(&mut bus);
    let receiver = bus.dead_letter_receiver();
    let delivery = bus.receive_one(receiver);
    bus.settle(DEAD, delivery.token, Outcome::Release).unwrap();
    let deleting = bus.open(DEAD, ReceiveMode::ReceiveAndDelete);
    assert_eq!(ids(&bus.receive(deleting, 1)), ["a"]);
    assert!(bus.dead_letters().is_empty());
}

#[test]
fn counts_distinguish_active_messages_and_dead_letters() {
    let mut bus = bus();
    with_dead_letter(&mut bus);
    bus.send_all(&["b", "c"]);
    bus.receive_first();
    let counts = bus.counts();
    assert_eq!(
        (counts.active, counts.locked, counts.dead_letter),
        (2, 1, 1)
    );
    assert!(counts.size > 0);
}
