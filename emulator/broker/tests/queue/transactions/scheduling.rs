//! What is scheduled in a transaction has a number at once and is there from the commit.

use servicebus_broker::{SequenceNumber, SubQueue};

use crate::bus::{START, message, rules, secs};
use crate::world::World;

const NUMBER: fn(u64) -> SequenceNumber = SequenceNumber;

fn later(id: &str) -> crate::bus::MessageBuilder {
    message(id).scheduled_at(START + secs(60))
}

#[test]
fn numbers_are_told_at_once_and_hold_after_the_commit() {
    let mut world = World::chain(&["q"]);
    world.send("q", "a");
    let mut transaction = world.transaction();
    let messages = [later("b"), later("c")];
    let numbers = world.schedule_in(&mut transaction, "q", &messages);
    assert_eq!(numbers, Ok(vec![NUMBER(2), NUMBER(3)]));
    assert_eq!(world.send("q", "d"), NUMBER(4));
    let cancel = |world: &mut World, number| {
        world.operate("q", |entity, cx| entity.cancel_scheduled(cx, &[number]))
    };
    assert!(
        cancel(&mut world, NUMBER(2)).is_err(),
        "it is not there yet"
    );
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["a", "b", "c", "d"]);
    assert_eq!(world.entity("q").counts(SubQueue::Active).scheduled, 2);
    cancel(&mut world, NUMBER(2)).unwrap();
    world.advance(secs(60));
    assert_eq!(world.queued("q"), ["a", "d", "c"]);
}

#[test]
fn a_rollback_leaves_a_gap() {
    let mut world = World::chain(&["q"]);
    let mut transaction = world.transaction();
    world
        .schedule_in(&mut transaction, "q", &[later("a")])
        .unwrap();
    world.roll_back(transaction);
    assert_eq!(world.send("q", "b"), NUMBER(2));
    world.advance(secs(60));
    assert_eq!(world.queued("q"), ["b"]);
}

#[test]
fn what_has_become_due_meanwhile_is_active_at_once() {
    let mut world = World::chain(&["q"]);
    let mut transaction = world.transaction();
    world
        .schedule_in(&mut transaction, "q", &[later("a")])
        .unwrap();
    world.advance(secs(90));
    world.send("q", "b");
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["b", "a"]);
    let (broker_properties, _) = world.peek("q", SubQueue::Active).remove(1);
    assert_eq!(broker_properties.sequence_number, NUMBER(3));
    assert_eq!(broker_properties.enqueued_at, START + secs(90));
    assert!(world.receive("q").is_some());
}

#[test]
fn a_number_may_come_back_long_after_those_behind_it_have_gone() {
    let mut world = World::chain(&["q"]);
    let mut transaction = world.transaction();
    world
        .schedule_in(&mut transaction, "q", &[later("a")])
        .unwrap();
    for id in 0..500 {
        world.send("q", &id.to_string());
        world.receive("q").unwrap();
    }
    world.commit(transaction).unwrap();
    let (broker_properties, _) = world.the_only("q", SubQueue::Active);
    assert_eq!(broker_properties.sequence_number, NUMBER(1));
    world.advance(secs(60));
    assert_eq!(world.receive("q").unwrap().message.id(), "a");
}

#[test]
fn the_number_of_a_duplicate_belongs_to_no_message() {
    let mut world = World::new();
    world.declare("q", rules().duplicate_detection(secs(600)));
    let mut transaction = world.transaction();
    let messages = [later("a"), later("a"), later("b")];
    let numbers = world.schedule_in(&mut transaction, "q", &messages);
    assert_eq!(numbers, Ok(vec![NUMBER(1), NUMBER(2), NUMBER(3)]));
    world.commit(transaction).unwrap();
    let seen = world.peek("q", SubQueue::Active);
    let held: Vec<_> = seen
        .iter()
        .map(|(broker_properties, _)| broker_properties.sequence_number)
        .collect();
    assert_eq!(held, [NUMBER(1), NUMBER(3)]);
}
