//! The order of service: receivers with credit take turns (spec/observed.md 17).

use servicebus_broker::{ReceiveMode, SequenceNumber, SubQueue};

use crate::bus::{bus, ids, millis, secs};

#[test]
fn messages_are_delivered_in_order_of_arrival() {
    let mut bus = bus();
    let numbers = bus.send_all(&["a", "b"]);
    assert_eq!(numbers, [SequenceNumber(1), SequenceNumber(2)]);
    assert_eq!(bus.send("c").0, 3);
    let receiver = bus.receiver();
    assert_eq!(ids(&bus.receive(receiver, 2)), ["a", "b"]);
    assert_eq!(ids(&bus.receive(receiver, 2)), ["c"]);
}

#[test]
fn a_receiver_gets_no_more_messages_than_its_credit() {
    let mut bus = bus();
    let receiver = bus.receiver_with_credit(2);
    bus.send_all(&["a", "b", "c"]);
    assert_eq!(ids(&bus.take(receiver)), ["a", "b"]);
    assert!(bus.take(receiver).is_empty());
    bus.credit(receiver, 1);
    assert_eq!(ids(&bus.take(receiver)), ["c"]);
}

#[test]
fn the_first_receiver_with_credit_is_served_first() {
    let mut bus = bus();
    let (first, second) = (bus.receiver(), bus.receiver());
    bus.credit(second, 1);
    bus.credit(first, 1);
    bus.send_all(&["a", "b"]);
    assert_eq!(ids(&bus.take(second)), ["a"]);
    assert_eq!(ids(&bus.take(first)), ["b"]);
}

#[test]
fn receivers_with_credit_are_served_round_robin() {
    let mut bus = bus();
    let first = bus.receiver_with_credit(100);
    let second = bus.receiver_with_credit(2);
    bus.send_all(&["a", "b", "c", "d", "e", "f"]);
    assert_eq!(ids(&bus.take(first)), ["a", "c", "e", "f"]);
    assert_eq!(ids(&bus.take(second)), ["b", "d"]);
    bus.credit(second, 1);
    bus.send_all(&["g", "h"]);
    assert_eq!(ids(&bus.take(first)), ["g"]);
    assert_eq!(ids(&bus.take(second)), ["h"]);
}

#[test]
fn a_message_whose_lock_expired_goes_to_other_receivers_first() {
    let mut bus = bus();
    let first = bus.receiver_with_credit(100);
    bus.send_all(&["a", "b", "c"]);
    bus.take(first);
    let second = bus.receiver_with_credit(2);
    bus.advance(secs(60));
    assert_eq!(ids(&bus.take(second)), ["a", "b"]);
    assert_eq!(ids(&bus.take(first)), ["c"], "the other has no credit left");
}

#[test]
fn a_message_whose_lock_expired_is_redelivered_to_the_only_receiver() {
    let mut bus = bus();
    let first = bus.receiver_with_credit(100);
    bus.send("a");
    bus.take(first);
    bus.advance(secs(60));
    let again = bus.take(first);
    assert_eq!(ids(&again), ["a"]);
    bus.release(&again[0]).unwrap();
    assert_eq!(ids(&bus.take(first)), ["a"]);
}

#[test]
fn lowering_credit_drops_the_latest_credit_first() {
    let mut bus = bus();
    let first = bus.receiver_with_credit(1);
    let second = bus.receiver_with_credit(1);
    bus.credit(first, 2);
    bus.credit(first, 1);
    bus.send_all(&["a", "b", "c"]);
    assert_eq!(ids(&bus.take(first)), ["a"]);
    assert_eq!(ids(&bus.take(second)), ["b"]);
    assert_eq!(bus.queued().len(), 3);
}

#[test]
fn lowering_credit_releases_reserved_messages() {
    let mut bus = bus().with(&["a", "b", "c"]);
    let first = bus.receiver_with_credit(3);
    let second = bus.receiver_with_credit(5);
    assert_eq!((bus.reserved(first), bus.reserved(second)), (3, 0));
    bus.credit(first, 1);
    assert_eq!((bus.reserved(first), bus.reserved(second)), (1, 2));
    assert_eq!(ids(&bus.take(second)), ["b", "c"]);
    bus.credit(first, 0);
    assert!(bus.take(first).is_empty());
    assert_eq!(ids(&bus.take(second)), ["a"]);
}

#[test]
fn raising_the_credit_counts_reserved_messages() {
    let mut bus = bus().with(&["a", "b"]);
    let receiver = bus.receiver_with_credit(2);
    bus.credit(receiver, 3);
    bus.send_all(&["c", "d"]);
    assert_eq!(ids(&bus.take(receiver)), ["a", "b", "c"]);
}

#[test]
fn a_released_message_is_delivered_in_its_original_order() {
    let mut bus = bus().with(&["a", "b", "c"]);
    let (first, second) = (bus.receiver(), bus.receiver());
    let delivery = bus.receive_one(first);
    bus.credit(second, 5);
    bus.release(&delivery).unwrap();
    assert_eq!(ids(&bus.take(second)), ["a", "b", "c"]);
}

#[test]
fn a_receiver_whose_reserved_message_expired_is_served_last() {
    let mut bus = bus();
    for id in ["a", "b"] {
        bus.send_with_ttl(id, secs(10));
    }
    let first = bus.receiver_with_credit(1);
    let second = bus.receiver_with_credit(1);
    let third = bus.receiver_with_credit(1);
    bus.advance(secs(10));
    bus.send_all(&["c", "d", "e"]);
    assert_eq!(ids(&bus.take(third)), ["c"]);
    assert_eq!(ids(&bus.take(first)), ["d"]);
    assert_eq!(ids(&bus.take(second)), ["e"]);
}

#[test]
fn a_late_timer_serves_waiting_receivers_between_two_deadlines() {
    let mut bus = bus().with(&["a", "b"]);
    let (slow, first_taken) = bus.receive_first();
    bus.advance(millis(500));
    bus.receive_one(slow);
    bus.advance(millis(500));
    bus.renew(&[first_taken.token]).unwrap();
    let first = bus.receiver_with_credit(1);
    let second = bus.receiver_with_credit(1);
    bus.pass(secs(100));
    assert_eq!(ids(&bus.take(first)), ["b"], "its lock ended first");
    assert_eq!(ids(&bus.take(second)), ["a"]);
}

#[test]
fn acquiring_stops_after_the_message_that_exceeds_the_byte_limit() {
    let mut bus = bus().with(&["a", "b", "c"]);
    let receiver = bus.receiver_with_credit(3);
    assert_eq!(
        ids(&bus.take_bytes(receiver, 3, 0)),
        ["a"],
        "one always goes"
    );
    assert_eq!(bus.reserved(receiver), 2);
    assert_eq!(ids(&bus.take_bytes(receiver, 3, 100_000)), ["b", "c"]);
}

#[test]
fn a_receiver_is_notified_once_until_it_acquires() {
    let mut bus = bus();
    let receiver = bus.receiver_with_credit(5);
    bus.send("a");
    bus.send("b");
    assert_eq!(bus.woken(), [receiver.id]);
    assert_eq!(ids(&bus.take_up_to(receiver, 1)), ["a"]);
    assert_eq!(bus.reserved(receiver), 1, "it knows that there is more");
    assert!(bus.woken().is_empty());
    bus.send("c");
    assert_eq!(bus.woken(), [receiver.id]);
    assert_eq!(ids(&bus.take(receiver)), ["b", "c"]);
}

#[test]
fn a_receiver_is_notified_again_after_a_lost_notification() {
    let mut bus = bus();
    let receiver = bus.receiver_with_credit(1);
    bus.send_with_ttl("a", secs(10));
    assert_eq!(bus.woken(), [receiver.id]);
    bus.advance(secs(10));
    assert!(bus.take(receiver).is_empty());
    bus.send("b");
    assert_eq!(bus.woken(), [receiver.id]);
}

#[test]
fn a_receiver_is_notified_again_after_withdrawing_its_credit() {
    let mut bus = bus().with(&["a"]);
    let receiver = bus.receiver_with_credit(1);
    assert_eq!(bus.woken(), [receiver.id]);
    bus.credit(receiver, 0);
    bus.credit(receiver, 1);
    assert_eq!(bus.woken(), [receiver.id]);
}

#[test]
fn credit_raised_in_steps_of_one_is_used_completely() {
    let mut bus = bus();
    let (first, second) = (bus.receiver(), bus.receiver());
    for credit in 1..=1_000 {
        bus.credit(first, credit);
        bus.credit(second, credit);
    }
    let names: Vec<String> = (0..2_500).map(|n| n.to_string()).collect();
    bus.send_all(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!((bus.reserved(first), bus.reserved(second)), (1_000, 1_000));
    let taken = ids(&bus.take(first));
    assert_eq!(
        taken[..3],
        ["0", "2", "4"],
        "in turn, as far as the bound goes"
    );
}

#[test]
fn credit_for_a_detached_receiver_is_ignored() {
    let mut bus = bus().with(&["a"]);
    let receiver = bus.receiver();
    bus.close(receiver);
    bus.credit(receiver, 5);
    assert!(bus.take(receiver).is_empty());
    assert_eq!(bus.reserved(receiver), 0);
    bus.close(receiver);
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn credit_for_dead_letters_is_separate_from_active_messages() {
    let mut bus = bus();
    let receiver = bus.open(SubQueue::DeadLetter, ReceiveMode::PeekLock);
    bus.credit(receiver, 5);
    bus.send("a");
    assert_eq!(bus.reserved(receiver), 0);
}
