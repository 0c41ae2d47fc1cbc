//! Inspection of messages by an operator, and actions on them by sequence number.

use std::time::Duration;

use servicebus_broker::{
    InspectedMessage, Message, MessageAction, MessageActionError, MessageLocation, MessageState,
    ResubmitError, SendError, SequenceNumber, SplitMix64, SubQueue, resubmit,
};

use crate::bus::{Bus, DROPPED, START, bus, ids, message, name, rules, secs, sessions};

const ACTIVE: SubQueue = SubQueue::Active;
const DEAD: SubQueue = SubQueue::DeadLetter;
const FIRST: SequenceNumber = SequenceNumber(1);
const LAST: SequenceNumber = SequenceNumber(u64::MAX);

fn act(bus: &mut Bus, number: SequenceNumber, act: &MessageAction) -> Result<(), String> {
    let done = bus.operate(|entity, cx| entity.apply_action(cx, ACTIVE, number, act));
    done.map_err(|error| error.to_string())
}

fn one(bus: &Bus, number: SequenceNumber) -> InspectedMessage {
    let found = bus.entity().inspect_one(ACTIVE, number);
    found.expect("it is there")
}

fn refused(text: &str) -> Result<(), String> {
    Err(text.to_owned())
}

#[test]
fn an_inspected_message_shows_its_state() {
    let mut bus = bus();
    let deferred = bus.send_deferred("deferred");
    let scheduled = bus.schedule("scheduled", START + secs(90));
    let locked = bus.send_with_ttl("locked", secs(30));
    let (receiver, delivery) = bus.receive_first();
    let active = bus.send("active");
    let seen = bus.entity().inspect(ACTIVE, FIRST, false, 0);
    let seen = seen.map(|seen| (seen.broker_properties.sequence_number, seen.state));
    let expected = [
        (deferred, MessageState::Deferred),
        (scheduled, MessageState::Scheduled),
        (locked, MessageState::Locked),
        (active, MessageState::Active),
    ];
    assert_eq!(Vec::from_iter(seen), expected);
    let (_, until) = delivery.broker_properties.lock.expect("a lock");
    assert_eq!(one(&bus, locked).lock, Some((receiver.id, Some(until))));
    assert_eq!(one(&bus, locked).expires_at, Some(START + secs(30)));
    assert_eq!(one(&bus, scheduled).activates_at, Some(START + secs(90)));
    let backwards = bus.entity().inspect(ACTIVE, LAST, true, 1);
    let backwards = backwards.map(|seen| seen.message.id().into_owned());
    assert_eq!(
        Vec::from_iter(backwards),
        ["locked", "scheduled", "deferred"]
    );
    assert!(
        bus.entity()
            .inspect_one(ACTIVE, SequenceNumber(9))
            .is_none()
    );
}

#[test]
fn a_message_under_a_session_shows_the_lock_of_the_session() {
    let mut bus = sessions();
    let number = bus.send_to("s", "a");
    let receiver = bus.accept("s");
    bus.receive_one(receiver);
    let lock = one(&bus, number).lock;
    assert_eq!(lock, Some((receiver.id, Some(START + secs(60)))));
    let text = "message 1 is locked by its session, whose lock can be taken away";
    assert_eq!(
        act(&mut bus, number, &MessageAction::LoseLock),
        refused(text)
    );
}

#[test]
fn a_message_can_be_deleted_unless_it_is_locked() {
    let mut bus = bus().with(&["a", "b"]);
    bus.receive_first();
    let text = "message 1 is locked; it must be neither locked nor about to be forwarded";
    assert_eq!(act(&mut bus, FIRST, &MessageAction::Delete), refused(text));
    assert_eq!(
        act(&mut bus, SequenceNumber(2), &MessageAction::Delete),
        Ok(())
    );
    assert_eq!(bus.queued(), ["a"]);
    let again = act(&mut bus, SequenceNumber(2), &MessageAction::Delete);
    assert_eq!(again, refused("there is no message 2"));
}

#[test]
fn acting_on_a_scheduled_message_restarts_the_window_of_its_id() {
    for (action, since) in [(MessageAction::Delete, 0), (MessageAction::Activate, 10)] {
        let mut bus = rules().duplicate_detection(secs(60)).bus();
        let number = bus.schedule("a", START + secs(1000));
        bus.advance(secs(10));
        assert_eq!(act(&mut bus, number, &action), Ok(()));
        bus.advance(secs(since + 60 - 10) - Duration::from_millis(1));
        assert_eq!(bus.send("a"), DROPPED, "{action:?}");
        bus.advance(Duration::from_millis(1));
        assert_ne!(bus.send("a"), DROPPED, "{action:?}");
    }
}

#[test]
fn a_reserved_message_can_be_deleted() {
    let mut bus = bus();
    let receiver = bus.receiver_with_credit(2);
    let number = bus.send("a");
    assert_eq!(bus.reserved(receiver), 1);
    assert_eq!(act(&mut bus, number, &MessageAction::Delete), Ok(()));
    bus.send("b");
    assert_eq!(ids(&bus.take(receiver)), ["b"]);
}

#[test]
fn a_message_is_dead_lettered_with_reason_and_description() {
    let mut bus = bus();
    let number = bus.send_deferred("a");
    let dead_letter = MessageAction::DeadLetter {
        reason: Some("broken".into()),
        description: None,
    };
    assert_eq!(act(&mut bus, number, &dead_letter), Ok(()));
    let (_, reason, description) = bus.the_dead_letter();
    assert_eq!((reason.as_deref(), description), (Some("broken"), None));
    let again = bus.operate(|entity, cx| entity.apply_action(cx, DEAD, FIRST, &dead_letter));
    assert_eq!(again, Err(MessageActionError::DeadLetter(FIRST)));
}

#[test]
fn an_action_on_a_message_in_another_state_is_refused() {
    let mut bus = bus().with(&["a"]);
    let dead_letter = MessageAction::DeadLetter {
        reason: None,
        description: None,
    };
    let text = "message 1 is active; it must be scheduled or deferred";
    assert_eq!(
        act(&mut bus, FIRST, &MessageAction::Activate),
        refused(text)
    );
    bus.receive_first();
    let text = "message 1 is locked; it must be active or deferred";
    assert_eq!(act(&mut bus, FIRST, &dead_letter), refused(text));
    let scheduled = bus.schedule("b", START + secs(90));
    let text = "message 2 is scheduled; it must be active or deferred";
    assert_eq!(act(&mut bus, scheduled, &dead_letter), refused(text));
}

#[test]
fn losing_a_lock_counts_as_delivery_like_its_expiry() {
    let mut bus = bus().with(&["a"]);
    let (_, delivery) = bus.receive_first();
    assert_eq!(act(&mut bus, FIRST, &MessageAction::LoseLock), Ok(()));
    assert!(bus.complete(&delivery).is_err());
    assert_eq!(one(&bus, FIRST).broker_properties.delivery_count, 1);
    let text = "message 1 is active; it must be locked";
    assert_eq!(
        act(&mut bus, FIRST, &MessageAction::LoseLock),
        refused(text)
    );
}

#[test]
fn activated_scheduled_and_deferred_messages_can_be_received() {
    let mut bus = bus();
    let deferred = bus.send_deferred("deferred");
    let scheduled = bus.schedule("scheduled", START + secs(90));
    for number in [scheduled, deferred] {
        assert_eq!(act(&mut bus, number, &MessageAction::Activate), Ok(()));
    }
    let counts = bus.counts();
    assert_eq!((counts.deferred, counts.scheduled), (0, 0));
    let receiver = bus.receiver();
    assert_eq!(ids(&bus.receive(receiver, 2)), ["deferred", "scheduled"]);
}

#[test]
fn an_activated_deferred_message_returns_to_its_session() {
    let mut bus = sessions();
    let number = bus.send_to("s", "a");
    let receiver = bus.accept("s");
    let delivery = bus.receive_one(receiver);
    bus.defer(&delivery).expect("it is locked");
    assert_eq!(act(&mut bus, number, &MessageAction::Activate), Ok(()));
    assert_eq!(ids(&bus.receive(receiver, 1)), ["a"]);
    let sessions = bus.entity().snapshot_sessions();
    let deferred: Vec<_> = sessions
        .map(|seen| (seen.name.clone(), seen.deferred))
        .collect();
    assert_eq!(deferred, [(name("s"), 0)]);
}

/// Sends the message of the dead-letter queue with this number to the queue again.
fn send_again(bus: &mut Bus, message: Message) -> Result<SequenceNumber, ResubmitError> {
    let held = MessageLocation {
        entity: 0,
        kind: DEAD,
        number: FIRST,
    };
    bus.operate(|entity, cx| resubmit(&mut [entity], held, 0, message, cx))
}

fn dead_letter_first(bus: &mut Bus) -> Message {
    let act = MessageAction::DeadLetter {
        reason: None,
        description: None,
    };
    let buried = bus.operate(|entity, cx| entity.apply_action(cx, ACTIVE, FIRST, &act));
    buried.expect("it is active");
    let dead = bus.entity().inspect_one(DEAD, FIRST);
    dead.expect("a dead letter").message
}

#[test]
fn a_resubmitted_dead_letter_leaves_the_dead_letter_queue() {
    let mut bus = bus().with(&["a"]);
    let dead = dead_letter_first(&mut bus);
    assert_eq!(send_again(&mut bus, dead.clone()), Ok(SequenceNumber(2)));
    assert_eq!(bus.queued(), ["a"]);
    assert!(bus.dead_letters().is_empty());
    let again = send_again(&mut bus, dead);
    let missing = MessageActionError::NotFound(FIRST);
    assert_eq!(again, Err(ResubmitError::Source(missing)));
    assert_eq!(bus.queued(), ["a"], "nothing was sent for it");
}

#[test]
fn a_dead_letter_refused_by_the_target_stays() {
    let mut bus = rules().duplicate_detection(secs(600)).bus();
    bus.send("a");
    let dead = dead_letter_first(&mut bus);
    let refused = send_again(&mut bus, dead);
    assert_eq!(refused, Err(ResubmitError::Duplicate));
    let mut bus = sessions();
    bus.send_to("s", "a");
    dead_letter_first(&mut bus);
    let without_session = message("b").message(&mut SplitMix64(0));
    let refused = send_again(&mut bus, without_session);
    assert_eq!(refused, Err(ResubmitError::Target(SendError::NoSession)));
    assert_eq!(bus.dead_letters(), ["a"]);
}
