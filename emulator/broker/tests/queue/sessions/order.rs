//! Within a session messages come in the order in which they were sent, even when some come back.

use servicebus_broker::{Outcome, SubQueue};

use crate::bus::{START, ids, message, rules, secs, sessions};

#[test]
fn an_abandoned_message_is_next() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2", "3"]);
    let receiver = bus.accept("a");
    let first = bus.receive_one(receiver);
    bus.abandon(&first).unwrap();
    let again = bus.receive_one(receiver);
    assert_eq!(again.message.id(), "1");
    assert_eq!(again.broker_properties.delivery_count, 1);
}

#[test]
fn so_it_is_when_what_stands_behind_it_is_assigned_already() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2", "3"]);
    let receiver = bus.accept_with_credit("a", 3);
    let first = bus.take_up_to(receiver, 1).remove(0);
    assert_eq!(bus.reserved(receiver), 2);
    bus.credit(receiver, 2);
    bus.abandon(&first).unwrap();
    assert_eq!(bus.reserved(receiver), 2, "there is no credit for more");
    assert_eq!(ids(&bus.take(receiver)), ["1", "2"]);
}

#[test]
fn a_released_message_is_next_and_the_delivery_does_not_count() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2"]);
    let receiver = bus.accept("a");
    let both = bus.receive(receiver, 2);
    bus.release(&both[1]).unwrap();
    bus.release(&both[0]).unwrap();
    let again = bus.receive(receiver, 2);
    assert_eq!(ids(&again), ["1", "2"]);
    assert_eq!(again[0].broker_properties.delivery_count, 0);
}

#[test]
fn after_a_lost_lock_the_next_holder_begins_where_the_last_one_stood() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2", "3", "4"]);
    let receiver = bus.accept_with_credit("a", 3);
    let taken = bus.take_up_to(receiver, 2);
    bus.complete(&taken[0]).unwrap();
    bus.advance(secs(60));
    let next = bus.accept("a");
    let again = bus.receive(next, 5);
    assert_eq!(ids(&again), ["2", "3", "4"]);
    let counts = again
        .iter()
        .map(|delivery| delivery.broker_properties.delivery_count);
    assert!(counts.eq([1, 0, 0]), "only what was taken was delivered");
}

#[test]
fn a_deferred_message_is_passed_over() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2"]);
    let receiver = bus.accept("a");
    let first = bus.receive_one(receiver);
    bus.defer(&first).unwrap();
    assert_eq!(ids(&bus.receive(receiver, 5)), ["2"]);
}

#[test]
fn a_scheduled_message_stands_where_it_became_active() {
    let mut bus = sessions();
    let later = message("later").session("a");
    bus.post(&later.scheduled_at(START + secs(10))).unwrap();
    bus.send_to("a", "1");
    bus.advance(secs(10));
    bus.send_to("a", "2");
    let receiver = bus.accept("a");
    assert_eq!(ids(&bus.receive(receiver, 5)), ["1", "later", "2"]);
}

#[test]
fn a_scheduled_message_joins_a_session_that_is_held() {
    let mut bus = sessions();
    let later = message("later").session("a");
    bus.post(&later.scheduled_at(START + secs(10))).unwrap();
    let receiver = bus.accept_with_credit("a", 1);
    bus.advance(secs(10));
    assert_eq!(ids(&bus.take(receiver)), ["later"]);
}

#[test]
fn too_many_deliveries_let_the_next_message_through() {
    let mut bus = rules().sessions().max_delivery_count(2).bus();
    bus.send_all_to("a", &["bad", "good"]);
    let receiver = bus.accept("a");
    for _ in 0..2 {
        let bad = bus.receive_one(receiver);
        assert_eq!(bad.message.id(), "bad");
        bus.abandon(&bad).unwrap();
    }
    let good = bus.receive_one(receiver);
    assert_eq!(good.message.id(), "good");
    assert_eq!(bus.dead_letters(), ["bad"]);
}

#[test]
fn an_expired_message_lets_the_next_one_through() {
    let mut bus = sessions();
    let short = message("short").session("a").time_to_live(secs(10));
    bus.post(&short).unwrap();
    bus.send_to("a", "long");
    let receiver = bus.accept_with_credit("a", 1);
    assert_eq!(bus.reserved(receiver), 1);
    bus.advance(secs(10));
    assert_eq!(ids(&bus.take(receiver)), ["long"], "its credit came back");
}

#[test]
fn sessions_of_a_partitioned_queue_have_one_partition_each() {
    let mut bus = rules().sessions().partitioned().bus();
    let numbers = bus.send_all_to("a", &["1", "2", "3"]);
    let partition = |number: u64| number >> 48;
    assert!(
        numbers
            .iter()
            .all(|n| partition(n.0) == partition(numbers[0].0))
    );
    let receiver = bus.accept("a");
    let taken = bus.receive(receiver, 5);
    assert_eq!(ids(&taken), ["1", "2", "3"]);
    bus.settle(SubQueue::Active, taken[0].token, Outcome::Release)
        .unwrap();
    assert_eq!(bus.receive_one(receiver).message.id(), "1");
}
