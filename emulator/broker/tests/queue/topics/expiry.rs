//! A topic's and a subscription's time to live: the smaller one counts (semantics §4).

use std::time::Duration;

use servicebus_broker::{
    BrokerProperties, EntityStatus, Message, ReceiveMode, SubQueue, Timestamp,
};

use super::{A, B};
use crate::bus::{START, message, millis, secs};
use crate::world::World;

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
fn of_three_times_to_live_the_smallest_counts() {
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
fn a_copy_leaves_at_its_instant_and_others_stay() {
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
fn the_topics_ceiling_does_not_go_on_with_the_copy() {
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
        .map(|(broker_properties, _)| broker_properties.time_to_live)
        .collect();
    assert_eq!(shown, [Some(50_000), None], "what their senders gave");
}

#[test]
fn a_dead_letter_shows_what_its_sender_gave() {
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
    let (broker_properties, _): (BrokerProperties, Message) =
        world.the_only(B, SubQueue::DeadLetter);
    assert_eq!(broker_properties.time_to_live, Some(50_000));
}

#[test]
fn a_changed_ceiling_of_the_topic_concerns_what_is_sent_later() {
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
fn a_scheduled_message_begins_to_live_when_it_is_published() {
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
fn nothing_expires_differently_because_the_subscription_is_disabled() {
    let mut world = world(Some(30), None);
    world.update(A, |own| own.status = EntityStatus::Disabled);
    world.send("t", "1");
    world.advance(Duration::from_secs(30));
    assert_eq!(world.queued(A), [""; 0]);
}
