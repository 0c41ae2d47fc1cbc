//! Scheduled messages (semantics §4, §8, §20.2).

use servicebus_broker::{CancelError, EventKind, SequenceNumber, SubQueue};

use crate::bus::{Bus, START, bus, ids, message, millis, rules, secs};

/// Number, state and time of enqueueing of the only message.
fn the_only(bus: &mut Bus) -> (u64, Option<i32>, u64) {
    let seen = bus.peek(SubQueue::Active);
    assert_eq!(seen.len(), 1);
    let properties = &seen[0].0;
    let enqueued = properties.enqueued_at.since(START).as_secs();
    (properties.sequence_number.0, properties.state, enqueued)
}

#[test]
fn a_scheduled_message_is_not_received_before_its_time() {
    let mut bus = bus();
    let receiver = bus.receiver_with_credit(2);
    bus.schedule("later", START + secs(60));
    bus.send("now");
    assert_eq!(ids(&bus.take(receiver)), ["now"]);
    assert_eq!(bus.next_deadline(), Some(START + secs(60)), "both");
    bus.advance(secs(60) - millis(1));
    assert!(bus.take(receiver).is_empty());
    bus.advance(millis(1));
    assert!(bus.woken().contains(&receiver.id));
    assert_eq!(
        ids(&bus.take(receiver)),
        ["now"],
        "first come, its lock over"
    );
    bus.credit(receiver, 1);
    assert_eq!(ids(&bus.take(receiver)), ["later"]);
}

#[test]
fn a_scheduled_message_can_be_peeked_and_is_counted_as_scheduled() {
    let mut bus = bus();
    bus.advance(secs(1));
    let number = bus.schedule("a", START + secs(60));
    assert_eq!(the_only(&mut bus), (number.0, Some(2), 1));
    let counts = bus.counts();
    assert_eq!((counts.active, counts.scheduled), (0, 1));
    assert!(counts.size > 0);
}

#[test]
fn an_activated_message_has_a_new_sequence_number() {
    let mut bus = bus();
    let number = bus.schedule("a", START + secs(60));
    let between = bus.send("b");
    assert_eq!((number.0, between.0), (1, 2));
    bus.advance(secs(60));
    let receiver = bus.receiver();
    assert_eq!(ids(&bus.receive(receiver, 2)), ["b", "a"]);
    let seen = bus.peek(SubQueue::Active);
    let properties = &seen[1].0;
    assert_eq!(properties.sequence_number, SequenceNumber(3));
    assert_eq!(properties.enqueued_sequence_number, None);
    assert_eq!(properties.enqueued_at, START + secs(60));
    assert_eq!(properties.state, Some(0));
    let counts = bus.counts();
    assert_eq!((counts.active, counts.scheduled), (2, 0));
}

#[test]
fn messages_scheduled_for_one_instant_are_activated_in_send_order() {
    let mut bus = bus();
    for (id, at) in [("b", 20), ("c", 20), ("a", 10), ("d", 20)] {
        bus.schedule(id, START + secs(at));
    }
    bus.advance(secs(30));
    let receiver = bus.receiver();
    assert_eq!(ids(&bus.receive(receiver, 4)), ["a", "b", "c", "d"]);
}

#[test]
fn the_time_to_live_of_a_scheduled_message_begins_at_activation() {
    let mut bus = bus();
    let at = START + secs(300);
    let scheduled = message("a").scheduled_at(at).time_to_live(secs(600));
    bus.post(&scheduled).unwrap();
    bus.advance(secs(300));
    assert_eq!(the_only(&mut bus).2, 300);
    bus.advance(secs(600) - millis(1));
    let (_, delivery) = bus.receive_first();
    assert_eq!(delivery.broker_properties.time_to_live, Some(600_000));
    bus.release(&delivery).unwrap();
    bus.advance(millis(1));
    assert!(bus.queued().is_empty());
}

#[test]
fn a_scheduled_message_does_not_expire_before_activation() {
    let mut bus = rules().default_time_to_live(secs(10)).bus();
    bus.schedule("a", START + secs(300));
    bus.advance(secs(299));
    assert_eq!(bus.queued(), ["a"]);
    bus.advance(secs(10));
    assert_eq!(the_only(&mut bus).2, 300);
    bus.advance(secs(1));
    assert!(bus.queued().is_empty());
}

#[test]
fn a_late_timer_does_not_change_activation_and_expiry_instants() {
    let mut bus = bus();
    let scheduled = message("a").scheduled_at(START + secs(10));
    bus.post(&scheduled.time_to_live(secs(5))).unwrap();
    bus.schedule("b", START + secs(12));
    bus.pass(secs(1_000));
    assert_eq!(bus.queued(), ["b"]);
    let history = bus.history().into_iter();
    let ends = history
        .filter(|(_, kind)| matches!(kind, EventKind::Activated { .. } | EventKind::Expired));
    let instants: Vec<u64> = ends.map(|(at, _)| at.since(START).as_secs()).collect();
    assert_eq!(instants, [10, 12, 15]);
}

#[test]
fn a_scheduled_time_in_the_past_or_present_activates_at_once() {
    let mut bus = bus();
    for at in [START - secs(10), START] {
        bus.schedule("a", at);
    }
    let counts = bus.counts();
    assert_eq!((counts.active, counts.scheduled), (2, 0));
    let seen = bus.peek(SubQueue::Active);
    assert!(
        seen.iter()
            .all(|(properties, _)| properties.enqueued_at == START)
    );
}

#[test]
fn sequence_numbers_of_a_scheduled_batch_ascend() {
    let mut bus = bus();
    let at = START + secs(60);
    let messages = [
        message("a").scheduled_at(at),
        message("b"),
        message("c").scheduled_at(at),
    ];
    let numbers = bus.post_all(&messages).unwrap();
    assert_eq!(numbers, [1, 2, 3].map(SequenceNumber));
    assert_eq!(bus.counts().scheduled, 2);
}

#[test]
fn a_cancelled_message_is_never_delivered() {
    let mut bus = bus();
    let numbers = ["a", "b", "c"].map(|id| bus.schedule(id, START + secs(60)));
    bus.cancel(&[numbers[2], numbers[0]]).unwrap();
    assert_eq!(bus.queued(), ["b"]);
    bus.advance(secs(60));
    assert_eq!(bus.queued(), ["b"]);
    let history = bus.history().into_iter();
    let cancelled = history.filter(|(_, kind)| *kind == EventKind::Cancelled);
    assert_eq!(cancelled.count(), 2);
}

#[test]
fn only_scheduled_messages_can_be_cancelled_all_or_none() {
    let mut bus = bus();
    let active = bus.send("active");
    let scheduled = bus.schedule("a", START + secs(60));
    let unknown = SequenceNumber(99);
    let refused = bus.cancel(&[active, scheduled, unknown]).unwrap_err();
    assert_eq!(refused, CancelError::NotFound(vec![active, unknown]));
    let text = "Messages not found. Missing sequence numbers: 1,99";
    assert_eq!(refused.to_string(), text);
    assert_eq!(bus.counts().scheduled, 1);
    assert_eq!(bus.cancel(&[scheduled]), Ok(()));
    let twice = bus.cancel(&[scheduled]);
    assert_eq!(twice, Err(CancelError::NotFound(vec![scheduled])));
    assert_eq!(bus.cancel(&[]), Ok(()));
}

#[test]
fn a_cancel_request_with_a_repeated_number_is_refused() {
    let mut bus = bus();
    let numbers = ["a", "b"].map(|id| bus.schedule(id, START + secs(60)));
    let refused = bus.cancel(&[numbers[0], numbers[1], numbers[0]]);
    let refused = refused.unwrap_err();
    assert_eq!(refused, CancelError::Twice(numbers[0]));
    let text = "The scheduled message with SequenceNumber = 1 is already being cancelled.";
    assert_eq!(refused.to_string(), text);
    assert_eq!(bus.counts().scheduled, 2);
}

#[test]
fn an_activated_message_cannot_be_cancelled_by_either_number() {
    let mut bus = bus();
    let number = bus.schedule("a", START + secs(60));
    bus.pass(secs(60));
    for number in [number, SequenceNumber(2)] {
        let refused = bus.cancel(&[number]);
        assert_eq!(refused, Err(CancelError::NotFound(vec![number])));
    }
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn a_reset_removes_scheduled_messages() {
    let mut bus = bus();
    bus.schedule("a", START + secs(60));
    bus.reset();
    assert_eq!(bus.next_deadline(), None);
    assert_eq!(bus.counts(), servicebus_broker::Counts::default());
}
