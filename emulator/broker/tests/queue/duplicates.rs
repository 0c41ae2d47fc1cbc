//! Ids that were seen of late (semantics §9).

use servicebus_broker::{EventKind, SequenceNumber};

use crate::bus::{Bus, DROPPED, START, message, millis, rules, secs};

/// A queue that remembers ids for a minute.
fn bus() -> Bus {
    rules().duplicate_detection(secs(60)).bus()
}

#[test]
fn a_duplicate_is_accepted_and_dropped() {
    let mut bus = bus();
    assert_eq!(bus.send("a"), SequenceNumber(1));
    assert_eq!(bus.send("a"), DROPPED);
    assert_eq!(bus.send("b"), SequenceNumber(2), "it has used no number");
    assert_eq!(bus.queued(), ["a", "b"]);
    let EventKind::DuplicateDropped { message_id } = bus.history()[1].1 else {
        panic!("dropped: {:?}", bus.history());
    };
    assert_eq!(bus.events.read(message_id), "a");
}

#[test]
fn where_nothing_is_detected_nothing_is_dropped() {
    let mut bus = crate::bus::bus();
    bus.send_all(&["a", "a"]);
    assert_eq!(bus.queued(), ["a", "a"]);
}

#[test]
fn an_id_is_remembered_when_its_message_is_gone() {
    let mut bus = bus();
    bus.send("a");
    let receiver = bus.deleting_receiver();
    bus.receive_one(receiver);
    assert_eq!(bus.send("a"), DROPPED);
}

#[test]
fn the_window_ends_at_its_instant_and_is_not_renewed_by_duplicates() {
    let mut bus = bus();
    bus.send("a");
    bus.advance(secs(30));
    assert_eq!(bus.send("a"), DROPPED);
    bus.advance(secs(30) - millis(1));
    assert_eq!(bus.send("a"), DROPPED);
    bus.advance(millis(1));
    assert_eq!(bus.send("a"), SequenceNumber(2));
}

#[test]
fn ids_are_compared_exactly() {
    let mut bus = bus();
    bus.send_all(&["a", "A", "a ", ""]);
    assert_eq!(bus.queued(), ["a", "A", "a ", ""]);
}

#[test]
fn a_batch_is_searched_for_duplicates_of_its_own() {
    let mut bus = bus();
    bus.send("a");
    let numbers = bus.send_all(&["b", "a", "b", "c"]);
    assert_eq!(numbers, [2, 0, 0, 3].map(SequenceNumber));
    assert_eq!(bus.queued(), ["a", "b", "c"]);
}

#[test]
fn a_refused_batch_leaves_no_trace() {
    let mut bus = rules()
        .duplicate_detection(secs(60))
        .of_one_megabyte()
        .bus();
    let messages = ["a", "b"].map(|id| message(id).body(600_000));
    bus.post_all(&messages).unwrap_err();
    assert_eq!(bus.post(&messages[0]), Ok(SequenceNumber(1)));
}

#[test]
fn scheduled_messages_take_part_in_both_directions() {
    let mut bus = bus();
    bus.schedule("scheduled", START + secs(500));
    assert_eq!(bus.send("scheduled"), DROPPED);
    bus.send("active");
    assert_eq!(bus.schedule("active", START + secs(50)), DROPPED);
    assert_eq!(bus.queued(), ["scheduled", "active"]);
}

#[test]
fn the_window_of_a_scheduled_message_counts_from_its_activation() {
    let mut bus = bus();
    bus.schedule("a", START + secs(500));
    bus.advance(secs(499));
    assert_eq!(bus.send("a"), DROPPED, "before");
    bus.advance(secs(60));
    assert_eq!(bus.send("a"), DROPPED, "after");
    bus.advance(secs(1));
    assert_eq!(bus.send("a"), SequenceNumber(3));
}

#[test]
fn the_window_of_a_cancelled_message_counts_from_its_arrival() {
    let mut bus = bus();
    let number = bus.schedule("a", START + secs(500));
    bus.advance(secs(59));
    bus.cancel(&[number]).unwrap();
    assert_eq!(bus.send("a"), DROPPED);
    bus.advance(secs(1));
    assert_eq!(bus.send("a"), SequenceNumber(2));
}

#[test]
fn a_changed_window_holds_for_what_was_seen_before() {
    let mut bus = bus();
    bus.send_all(&["a", "b"]);
    bus.update(|queue| queue.duplicate_detection_history_time_window = secs(120));
    bus.advance(secs(119));
    assert_eq!(bus.send("a"), DROPPED);
    bus.update(|queue| queue.duplicate_detection_history_time_window = secs(60));
    assert_eq!(bus.send("a"), SequenceNumber(3));
}

#[test]
fn other_updates_leave_the_memory_alone() {
    let mut bus = bus();
    bus.send("a");
    bus.update(|queue| queue.max_delivery_count = 3);
    assert_eq!(bus.send("a"), DROPPED);
}

#[test]
fn a_reset_forgets() {
    let mut bus = bus();
    bus.send("a");
    bus.reset();
    assert_eq!(bus.send("a"), SequenceNumber(2));
}

#[test]
fn at_a_partitioned_queue_the_key_is_part_of_the_id() {
    let mut bus = rules().duplicate_detection(secs(60)).partitioned().bus();
    for message in [
        message("a").partition_key("x"),
        message("a").partition_key("y"),
        message("a").session("z"),
        message("a"),
    ] {
        assert_ne!(bus.post(&message), Ok(DROPPED));
        assert_eq!(bus.post(&message), Ok(DROPPED));
    }
}

#[test]
fn elsewhere_it_is_not() {
    let mut bus = bus();
    bus.send("a");
    let other = message("a").session("z").partition_key("y");
    assert_eq!(bus.post(&other), Ok(DROPPED));
}
