//! State at the topic: scheduled messages, duplicates, size, updates (semantics §8, §9, decisions D17, D25).
//!
//! Of a topic's and a subscription's time to live the smaller one applies (semantics §4).

use std::time::Duration;

use servicebus_broker::filter::{Filter, Value};
use servicebus_broker::{
    BrokerProperties, Counts, EntityStatus, Message, ReceiveMode, SendError, SequenceNumber,
    SubQueue, Timestamp,
};

use super::{A, B};
use crate::bus::{START, message, millis, secs};
use crate::world::{World, acting, rule, sql};

#[test]
fn a_topic_holds_scheduled_messages_until_their_time() {
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
    let (properties, _) = world.the_only(A, SubQueue::Active);
    assert_eq!(
        properties.enqueued_sequence_number,
        Some(SequenceNumber(2)),
        "its number once active"
    );
    assert_eq!(properties.enqueued_at, START + secs(10));
}

#[test]
fn scheduled_messages_of_a_topic_are_filtered_at_activation() {
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
fn messages_activated_together_have_the_order_of_their_times() {
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
fn a_topic_drops_a_duplicate_for_all_subscriptions() {
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
    assert_eq!(world.queued(B), ["1", "1"], "copies are not duplicates");
    world.advance(secs(60));
    world.send("t", "1");
    assert_eq!(world.queued(A), ["1", "1"]);
}

#[test]
fn scheduled_messages_fill_a_topic() {
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

/// More than one operation expires.
#[test]
fn a_subscription_deleted_during_a_mass_expiry_no_longer_counts() {
    let mut world = World::topic(&[A, B]);
    world.send("t", "left");
    let left = world.entity("t").whole_size();
    let expiring: Vec<_> = (0..5_000)
        .map(|number| message(&number.to_string()).time_to_live(secs(10)))
        .collect();
    world.post_all("t", &expiring).unwrap();
    assert!(world.entity("t").whole_size() > left);
    world.now = START + secs(10);
    world.delete(A);
    world.advance(secs(0));
    assert_eq!(world.entity("t").whole_size(), left / 2);
}

#[test]
fn an_update_of_a_topic_keeps_rules_and_scheduled_messages() {
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
fn an_update_during_publishing_applies_to_later_messages() {
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
fn subscription_locks_can_be_ended_on_request() {
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
fn copies_of_a_partitioned_topic_have_its_partition_in_their_numbers() {
    let mut world = World::new();
    world.declare_topic("t", |topic| topic.enable_partitioning = true);
    world.subscribe(A, |_| {});
    let number = world.post("t", &message("1").partition_key("k")).unwrap();
    let partition = number.0 >> 48;
    assert_ne!(partition, 0, "otherwise this shows nothing");
    let (properties, _) = world.the_only(A, SubQueue::Active);
    assert_eq!(properties.enqueued_sequence_number, Some(number));
    assert_eq!(properties.sequence_number.0, partition << 48 | 1);
}

fn world(topic: Option<u64>, subscription: Option<u64>) -> World {
    let mut world = World::new();
    let seconds = |seconds: Option<u64>| seconds.map(secs);
    world.declare_topic("t", |settings| {
        settings.default_message_time_to_live = seconds(topic)
    });
    world.subscribe(A, |own| {
        own.default_message_time_to_live = seconds(subscription)
    });
    world
}

/// When the only copy expires that was published at the start, as a receiver sees it.
fn expiry(world: &mut World) -> Option<Timestamp> {
    let taken = world.take(A, SubQueue::Active, ReceiveMode::PeekLock);
    assert!(taken.is_some(), "there is a copy");
    let time_to_live = taken?.broker_properties.time_to_live;
    time_to_live.map(|after| START + millis(after))
}

#[test]
fn the_smallest_of_three_times_to_live_applies() {
    let table = [
        [None, None, None, None],
        [None, None, Some(50), Some(50)],
        [Some(30), None, None, Some(30)],
        [None, Some(30), None, Some(30)],
        [Some(30), None, Some(50), Some(30)],
        [None, Some(30), Some(50), Some(30)],
        [Some(40), Some(30), None, Some(30)],
        [Some(30), Some(40), Some(50), Some(30)],
        [Some(30), Some(40), Some(20), Some(20)],
    ];
    for [topic, subscription, own, expected] in table {
        let mut world = world(topic, subscription);
        let mut sent = message("1");
        if let Some(own) = own {
            sent = sent.time_to_live(secs(own));
        }
        world.post("t", &sent).unwrap();
        let expected = expected.map(|seconds| START + secs(seconds));
        let found = expiry(&mut world);
        assert_eq!(found, expected, "{topic:?} {subscription:?} {own:?}");
    }
}

#[test]
fn each_copy_expires_at_its_own_instant() {
    let mut world = world(Some(30), Some(20));
    world.subscribe(B, |own| own.dead_lettering_on_message_expiration = true);
    world.send("t", "1");
    world.advance(secs(20) - millis(1));
    assert_eq!(world.queued(A), ["1"]);
    world.advance(millis(1));
    assert_eq!((world.queued(A).len(), world.dead_letters(A).len()), (0, 0));
    world.advance(secs(10) - millis(1));
    assert_eq!(world.queued(B), ["1"]);
    world.advance(millis(1));
    assert_eq!(world.queued(B), [""; 0]);
    assert_eq!(
        world.reasons(B, SubQueue::DeadLetter),
        ["TTLExpiredException"]
    );
}

#[test]
fn the_topics_time_to_live_does_not_apply_after_a_forward() {
    let mut world = world(Some(30), None);
    world.declare("q", crate::bus::rules());
    world.update(A, |own| own.forward_to = Some("q".parse().unwrap()));
    world
        .post("t", &message("1").time_to_live(secs(50)))
        .unwrap();
    world.send("t", "2");
    let seen = world.peek("q", SubQueue::Active);
    let shown: Vec<_> = seen
        .iter()
        .map(|(properties, _)| properties.time_to_live)
        .collect();
    assert_eq!(shown, [Some(50_000), None], "what their senders gave");
}

#[test]
fn a_peeked_copy_shows_no_time_to_live_that_its_sender_did_not_set() {
    let mut world = world(Some(30), None);
    world.send("t", "1");
    assert_eq!(world.the_only(A, SubQueue::Active).0.time_to_live, None);
    let received = world.take(A, SubQueue::Active, ReceiveMode::PeekLock);
    let received = received.expect("there is a copy").broker_properties;
    assert_eq!(received.time_to_live, Some(30_000));
}

#[test]
fn a_dead_letter_shows_the_time_to_live_of_its_sender() {
    let mut world = world(Some(30), None);
    world.subscribe(B, |own| own.dead_lettering_on_message_expiration = true);
    world
        .post("t", &message("1").time_to_live(secs(50)))
        .unwrap();
    assert_eq!(
        world.the_only(B, SubQueue::Active).0.time_to_live,
        Some(30_000)
    );
    world.advance(secs(30));
    let (properties, _): (BrokerProperties, Message) = world.the_only(B, SubQueue::DeadLetter);
    assert_eq!(properties.time_to_live, Some(50_000));
}

#[test]
fn a_changed_time_to_live_of_a_topic_applies_to_later_messages() {
    let mut world = world(Some(30), None);
    world.send("t", "1");
    world.update("t", |topic| {
        topic.default_message_time_to_live = Some(secs(60))
    });
    world.send("t", "2");
    world.advance(secs(30));
    assert_eq!(world.queued(A), ["2"]);
    world.advance(secs(30));
    assert_eq!(world.queued(A), [""; 0]);
}

#[test]
fn the_time_to_live_at_a_topic_begins_at_activation() {
    let mut world = world(Some(30), None);
    world
        .post("t", &message("1").scheduled_at(START + secs(100)))
        .unwrap();
    world.advance(secs(129));
    assert_eq!(world.queued(A), ["1"]);
    world.advance(secs(1));
    assert_eq!(world.queued(A), [""; 0]);
}

#[test]
fn messages_of_a_disabled_subscription_expire() {
    let mut world = world(Some(30), None);
    world.update(A, |own| own.status = EntityStatus::Disabled);
    world.send("t", "1");
    world.advance(Duration::from_secs(30));
    assert_eq!(world.queued(A), [""; 0]);
}
