//! One transaction works on one queue, or on one topic and its subscriptions.

use servicebus_broker::{SubQueue, TransactError};

use crate::bus::{message, rules, secs};
use crate::world::{World, bury};

fn second(first: &str, second: &str) -> TransactError {
    TransactError::SecondEntity {
        first: first.parse().unwrap(),
        second: second.parse().unwrap(),
    }
}

#[test]
fn a_second_queue_is_refused_and_the_first_goes_on() {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.declare(name, rules());
    }
    world.send("b", "locked");
    let locked = world.lock("b");
    let mut transaction = world.transaction();
    world.send_in(&mut transaction, "a", "1");
    let error = second("a", "b");
    let refused = world.post_in(&mut transaction, "b", &[message("2")]);
    assert_eq!(refused, Err(error.clone()));
    let refused = world.complete_in(&mut transaction, "b", &locked);
    assert_eq!(refused, Err(error.clone()));
    let words =
        "Local transactions cannot span multiple top-level entities such as queue or topic.";
    assert!(error.to_string().starts_with(words), "{error}");
    world.send_in(&mut transaction, "A", "3");
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("a"), ["1", "3"]);
    assert_eq!(world.queued("b"), ["locked"]);
}

#[test]
fn a_topic_and_its_subscriptions_are_one_entity() {
    let mut world = World::topic(&["t/Subscriptions/one", "t/Subscriptions/two"]);
    world.send("t", "a");
    let (one, two) = (
        world.lock("t/Subscriptions/one"),
        world.lock("t/Subscriptions/two"),
    );
    let mut transaction = world.transaction();
    let settled = world.complete_in(&mut transaction, "t/Subscriptions/one", &one);
    settled.unwrap();
    let settled = world.settle_in(&mut transaction, "t/Subscriptions/two", &two, bury("why"));
    settled.unwrap();
    world.send_in(&mut transaction, "t", "b");
    for name in ["t/Subscriptions/one", "t/Subscriptions/two"] {
        assert_eq!(world.queued(name), ["a"]);
    }
    world.commit(transaction).unwrap();
    for name in ["t/Subscriptions/one", "t/Subscriptions/two"] {
        assert_eq!(world.queued(name), ["b"]);
    }
    assert_eq!(world.dead_letters("t/Subscriptions/two"), ["a"]);
}

#[test]
fn one_lost_lock_of_one_subscription_stops_everything() {
    let mut world = World::topic(&["t/Subscriptions/one", "t/Subscriptions/two"]);
    world.send("t", "a");
    let one = world.lock("t/Subscriptions/one");
    world.advance(secs(30));
    let two = world.lock("t/Subscriptions/two");
    let mut transaction = world.transaction();
    for (name, locked) in [("t/Subscriptions/two", two), ("t/Subscriptions/one", one)] {
        world.complete_in(&mut transaction, name, &locked).unwrap();
    }
    world.send_in(&mut transaction, "t", "b");
    world.advance(secs(30));
    world.commit(transaction).unwrap_err();
    for name in ["t/Subscriptions/one", "t/Subscriptions/two"] {
        assert_eq!(world.queued(name), ["a"]);
    }
    let counts = world.entity("t/Subscriptions/two").counts(SubQueue::Active);
    assert_eq!(counts.locked, 1);
}

#[test]
fn a_subscription_of_another_topic_is_another_entity() {
    let mut world = World::topic(&["t/Subscriptions/one"]);
    world.declare_topic("u", |_| {});
    let mut transaction = world.transaction();
    world.send_in(&mut transaction, "u", "1");
    world.send("t", "2");
    let locked = world.lock("t/Subscriptions/one");
    let refused = world.complete_in(&mut transaction, "t/Subscriptions/one", &locked);
    assert_eq!(refused, Err(second("u", "t")));
}

#[test]
fn what_is_scheduled_at_a_topic_is_published_when_it_becomes_active() {
    let mut world = World::topic(&["t/Subscriptions/one"]);
    let mut transaction = world.transaction();
    let later = message("a").scheduled_at(crate::bus::START + secs(60));
    world.schedule_in(&mut transaction, "t", &[later]).unwrap();
    world.commit(transaction).unwrap();
    assert!(world.queued("t/Subscriptions/one").is_empty());
    world.advance(secs(60));
    assert_eq!(world.queued("t/Subscriptions/one"), ["a"]);
}
