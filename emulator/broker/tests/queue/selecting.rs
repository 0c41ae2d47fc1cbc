//! Receivers with selectors skip messages that do not match, and keep the order of the others (JMS 2.0, 3.8.1).

use servicebus_broker::filter::Value;

use crate::bus::{Bus, bus, ids, message, secs};

impl Bus {
    /// Messages with their numbers as property `n` and as ids.
    fn send_numbered(&mut self, numbers: std::ops::Range<i64>) {
        for number in numbers {
            let numbered = message(&number.to_string()).property("n", &Value::Signed(number));
            self.post(&numbered).unwrap();
        }
    }
}

#[test]
fn a_selecting_receiver_gets_only_its_matches_in_order() {
    let mut bus = bus();
    let even = bus.selecting("n / 2 * 2 = n");
    bus.send_numbered(0..4);
    bus.credit(even, 10);
    bus.send_numbered(4..8);
    assert_eq!(ids(&bus.take(even)), ["0", "2", "4", "6"]);
    assert!(bus.is_drained(even));
    let all = bus.receiver_with_credit(10);
    assert_eq!(ids(&bus.take(all)), ["1", "3", "5", "7"]);
}

#[test]
fn overlapping_selecting_receivers_share_common_matches_in_turn() {
    let mut bus = bus();
    let low = bus.selecting("n < 6");
    let high = bus.selecting("n >= 4");
    let all = bus.receiver();
    for receiver in [low, high] {
        bus.credit(receiver, 10);
    }
    bus.send_numbered(0..8);
    let (low, high) = (ids(&bus.take(low)), ids(&bus.take(high)));
    assert_eq!((low.len(), high.len()), (5, 3), "{low:?} {high:?}");
    bus.credit(all, 10);
    assert!(bus.take(all).is_empty());
}

#[test]
fn a_selecting_receiver_evaluates_returned_messages_again() {
    let mut bus = bus();
    bus.send_numbered(0..3);
    let all = bus.receiver_with_credit(3);
    let taken = bus.take(all);
    let second = bus.selecting("n = 1");
    bus.credit(second, 5);
    assert!(bus.take(second).is_empty());
    for delivery in &taken {
        bus.release(delivery).unwrap();
    }
    assert_eq!(ids(&bus.take(second)), ["1"]);
    // No other receiver is there that would have it.
    let again = bus.selecting("n = 2");
    bus.credit(again, 1);
    let delivery = bus.receive_one(again);
    bus.credit(again, 1);
    bus.abandon(&delivery).unwrap();
    assert_eq!(ids(&bus.take(again)), ["2"]);
}

#[test]
fn a_selector_may_compare_the_delivery_count() {
    let mut bus = bus();
    bus.send_numbered(0..2);
    let all = bus.receiver_with_credit(1);
    let first = bus.receive_one(all);
    bus.abandon(&first).unwrap();
    let again = bus.selecting("JMSXDeliveryCount = 2");
    bus.credit(again, 5);
    assert_eq!(ids(&bus.take(again)), ["0"]);
}

#[test]
fn a_selecting_receiver_whose_lock_ended_is_served_last() {
    let mut bus = bus();
    let first = bus.selecting("n = 0");
    bus.credit(first, 1);
    bus.send_numbered(0..1);
    assert_eq!(ids(&bus.take(first)), ["0"]);
    let other = bus.selecting("n > 5");
    let second = bus.selecting("n = 0");
    for receiver in [first, other, second] {
        bus.credit(receiver, 5);
    }
    bus.advance(secs(60));
    assert!(bus.take(first).is_empty());
    assert!(bus.take(other).is_empty());
    assert_eq!(ids(&bus.take(second)), ["0"]);
}

#[test]
fn one_operation_evaluates_a_limited_number_of_messages() {
    let mut bus = bus();
    bus.send_numbered(0..5_000);
    let last = bus.selecting("n = 4999");
    bus.credit(last, 1);
    assert!(!bus.is_drained(last), "it has not seen all of them");
    assert_eq!(bus.reserved(last), 0);
    let mut operations = 0;
    let taken = loop {
        let taken = bus.take(last);
        if !taken.is_empty() {
            break taken;
        }
        operations += 1;
        assert!(!bus.is_drained(last) || bus.reserved(last) > 0);
    };
    assert_eq!(ids(&taken), ["4999"]);
    assert!((3..=5).contains(&operations), "{operations}");
}

#[test]
fn many_returned_messages_are_all_evaluated_again() {
    let mut bus = bus();
    bus.send_numbered(0..3_000);
    let all = bus.receiver_with_credit(3_000);
    let mut taken = Vec::new();
    while taken.len() < 3_000 {
        taken.extend(bus.take(all));
    }
    let last = bus.selecting("n = 0 OR n = 2999");
    bus.credit(last, 5);
    for delivery in taken.iter().rev() {
        bus.release(delivery).unwrap();
    }
    let mut found = Vec::new();
    while !bus.is_drained(last) {
        found.extend(ids(&bus.take(last)));
    }
    found.sort();
    assert_eq!(found, ["0", "2999"]);
}

#[test]
fn selecting_receivers_that_must_rescan_are_notified_one_by_one() {
    let mut bus = bus();
    bus.send_numbered(0..3_000);
    let all = bus.receiver_with_credit(3_000);
    while bus.counts().locked < 3_000 {
        bus.take(all);
    }
    let selecting: Vec<_> = (0..20).map(|_| bus.selecting("n = -1")).collect();
    for &receiver in &selecting {
        bus.credit(receiver, 1);
    }
    bus.woken();
    bus.close(all);
    bus.advance(secs(60));
    let mut operations = 0;
    loop {
        let woken = bus.woken();
        let Some(&id) = woken.first() else { break };
        assert_eq!(woken.len(), 1);
        operations += 1;
        bus.take(*selecting.iter().find(|receiver| receiver.id == id).unwrap());
    }
    assert!(selecting.iter().all(|&receiver| bus.is_drained(receiver)));
    assert!((50..70).contains(&operations), "{operations}");
}

/// As where faults are scripted, and each delivery is looked at before it is taken.
#[test]
fn a_receiver_that_checks_before_acquiring_continues_when_notified() {
    let mut bus = bus();
    bus.send_numbered(0..5_000);
    let last = bus.selecting("n = 4999");
    bus.credit(last, 1);
    let mut is_there = false;
    while !bus.woken().is_empty() {
        is_there =
            bus.operate(|entity, cx| entity.next_reserved(cx, last.store, last.id).is_some());
    }
    assert!(is_there);
    assert_eq!(ids(&bus.take(last)), ["4999"]);
}
