//! What is decided or kept at the topic: scheduled messages, duplicates, size, updates (semantics §8, §9, decisions
//! D17, D25).

use servicebus_broker::filter::{Filter, Value};
use servicebus_broker::{Counts, ReceiveMode, SendError, SequenceNumber, SubQueue};

use super::{A, B};
use crate::bus::{START, message, millis, secs};
use crate::world::{World, acting, rule, sql};

#[test]
fn scheduled_messages_stay_at_the_topic_until_their_time() {
    let mut world = World::topic(&[A]);
    world
        .post("t", &message("1").scheduled_at(START + secs(10)))
        .unwrap();
    let counts = world.entity("t").counts(SubQueue::Active);
    assert_eq!((counts.scheduled, counts.active), (1, 0));
    world.advance(secs(10) - millis(1));
    assert_eq!(world.queued(A), [""; 0]);
    world.advance(millis(1));
    assert_eq!(world.queued(A), ["1"]);
    assert_eq!(
        world.entity("t").counts(SubQueue::Active),
        Counts::default()
    );
    let (broker_properties, _) = world.the_only(A, SubQueue::Active);
    assert_eq!(
        broker_properties.enqueued_sequence_number,
        Some(SequenceNumber(2)),
        "its number once active"
    );
    assert_eq!(broker_properties.enqueued_at, START + secs(10));
}

#[test]
fn they_are_filtered_when_they_become_active() {
    let mut world = World::topic(&[A]);
    let sent = message("1").property("n", &Value::Signed(1));
    world
        .post("t", &sent.scheduled_at(START + secs(10)))
        .unwrap();
    world.remove_rule(A, "$Default").unwrap();
    world.select(B, [rule("late", sql("n = 1"))]);
    world.advance(secs(10));
    assert_eq!(world.queued(A), [""; 0], "its rule has gone meanwhile");
    assert_eq!(world.queued(B), ["1"], "it came meanwhile");
}

#[test]
fn scheduled_messages_can_be_cancelled_at_the_topic() {
    let mut world = World::topic(&[A]);
    let sent = message("1").scheduled_at(START + secs(10));
    let number = world.post("t", &sent).unwrap();
    world
        .operate("t", |entity, cx| entity.cancel_scheduled(cx, &[number]))
        .unwrap();
    world.advance(secs(20));
    assert_eq!(world.everything(), [""; 0]);
}

#[test]
fn several_that_become_active_together_come_in_the_order_of_their_times() {
    let mut world = World::topic(&[A]);
    for (id, after) in [("3", 3), ("1", 1), ("2", 2)] {
        world
            .post("t", &message(id).scheduled_at(START + secs(after)))
            .unwrap();
    }
    world.now = START + secs(5);
    world.operate("t", |entity, cx| entity.handle_timeout(cx));
    assert_eq!(world.queued(A), ["1", "2", "3"]);
}

#[test]
fn a_duplicate_is_dropped_once_for_all_subscriptions() {
    let mut world = World::new();
    world.declare_topic("t", |topic| {
        topic.requires_duplicate_detection = true;
        topic.duplicate_detection_history_time_window = secs(60);
    });
    world.subscribe(A, |_| {});
    world.select(
        B,
        [
            rule("plain", Filter::True),
            acting("r", Filter::True, "SET a = 1"),
        ],
    );
    world.send("t", "1");
    assert_eq!(world.send("t", "1"), SequenceNumber(0));
    assert_eq!(world.queued(A), ["1"]);
    assert_eq!(world.queued(B), ["1", "1"], "copies are no duplicates");
    world.advance(secs(60));
    world.send("t", "1");
    assert_eq!(world.queued(A), ["1", "1"]);
}

#[test]
fn a_topic_is_full_when_what_it_holds_is_too_much() {
    let mut world = World::new();
    world.declare_topic("t", |topic| topic.max_size_in_megabytes = 1024);
    world.subscribe(A, |_| {});
    world.update("t", |topic| topic.max_size_in_megabytes = 1);
    let large = |id: &str| message(id).body(700 * 1024);
    world
        .post("t", &large("1").scheduled_at(START + secs(10)))
        .unwrap();
    let refused = world.post("t", &large("2")).unwrap_err();
    assert!(
        matches!(refused, SendError::QuotaExceeded { .. }),
        "{refused:?}"
    );
    // What has gone to a subscription is held there, and counts as the topic's until it is received.
    world.advance(secs(10));
    assert_eq!(world.queued(A), ["1"]);
    let refused = world.post("t", &large("3")).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("for Topic: 't'. Size of entity in bytes:7"),
        "{refused}"
    );
    world.receive(A).unwrap();
    world.post("t", &large("3")).unwrap();
    assert_eq!(world.queued(A), ["3"]);
}

#[test]
fn an_update_leaves_rules_and_scheduled_messages_alone() {
    let mut world = World::topic(&[A]);
    world
        .post("t", &message("1").scheduled_at(START + secs(10)))
        .unwrap();
    world.update("t", |topic| topic.max_size_in_megabytes = 2048);
    world.advance(secs(10));
    world.send("t", "2");
    assert_eq!(world.queued(A), ["1", "2"]);
}

#[test]
fn an_update_while_the_topic_publishes_changes_nothing_for_what_is_on_its_way() {
    let mut world = World::topic(&[A, B]);
    world.interrupt_before(B, |world| {
        world.update("t", |topic| {
            topic.default_message_time_to_live = Some(secs(1))
        });
        world.send("t", "2");
    });
    world.send("t", "1");
    world.advance(secs(1));
    assert_eq!(world.queued(A), ["1"]);
    assert_eq!(world.queued(B), ["1"]);
}

#[test]
fn subscriptions_lose_their_locks_when_they_are_told_to() {
    let mut world = World::topic(&[A]);
    world.send("t", "1");
    let taken = world
        .take(A, SubQueue::Active, ReceiveMode::PeekLock)
        .unwrap();
    world.operate(A, |entity, cx| entity.lose_locks(cx));
    let again = world
        .take(A, SubQueue::Active, ReceiveMode::PeekLock)
        .unwrap();
    assert_ne!(taken.token, again.token);
    assert_eq!(again.broker_properties.delivery_count, 1);
}

#[test]
fn a_partitioned_topic_keeps_partitions_in_the_numbers_of_its_own() {
    let mut world = World::new();
    world.declare_topic("t", |topic| topic.enable_partitioning = true);
    world.subscribe(A, |_| {});
    let number = world.post("t", &message("1").partition_key("k")).unwrap();
    let (broker_properties, _) = world.the_only(A, SubQueue::Active);
    assert_eq!(broker_properties.enqueued_sequence_number, Some(number));
    assert_eq!(broker_properties.sequence_number, SequenceNumber(1));
}
