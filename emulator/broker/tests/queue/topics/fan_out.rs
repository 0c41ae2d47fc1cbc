//! Publishing to subscriptions, after which the topic keeps nothing (semantics §8, §13.1, decision D25).

use servicebus_broker::filter::Filter;
use servicebus_broker::{
    Counts, EntityKind, EntityStatus, EventKind, ReceiveMode, SendError, SequenceNumber,
    SplitMix64, SubQueue,
};

use super::{A, B};
use crate::bus::{message, secs};
use crate::world::{World, rule};

#[test]
fn every_subscription_gets_its_own_copy() {
    let mut world = World::topic(&[A, B]);
    world.send("t", "1");
    assert_eq!(world.receive(A).unwrap().message.id(), "1");
    assert_eq!(world.queued(A), [""; 0]);
    assert_eq!(world.queued(B), ["1"], "what one receives the other keeps");
}

#[test]
fn copies_have_the_order_of_the_topic() {
    let mut world = World::topic(&[A, B]);
    let ids: Vec<String> = (0..200).map(|id| id.to_string()).collect();
    let messages: Vec<_> = ids.iter().map(|id| message(id)).collect();
    world.post_all("t", &messages).unwrap();
    assert_eq!(world.queued(A), ids);
    assert_eq!(world.queued(B), ids);
}

#[test]
fn a_copy_has_its_own_and_the_topics_sequence_number() {
    let mut world = World::topic(&[A]);
    world.send("t", "1");
    world.subscribe(B, |_| {});
    assert_eq!(world.send("t", "2"), SequenceNumber(2));
    let (late, _) = world.the_only(B, SubQueue::Active);
    assert_eq!(late.sequence_number, SequenceNumber(1));
    assert_eq!(late.enqueued_sequence_number, Some(SequenceNumber(2)));
    let numbers = |(properties, _): &(servicebus_broker::BrokerProperties, _)| {
        let origin = properties.enqueued_sequence_number.expect("a copy");
        (properties.sequence_number.0, origin.0)
    };
    let seen = world.peek(A, SubQueue::Active);
    assert_eq!(
        seen.iter().map(numbers).collect::<Vec<_>>(),
        [(1, 1), (2, 2)]
    );
}

#[test]
fn a_topic_without_subscriptions_drops_accepted_messages() {
    let mut world = World::topic(&[]);
    assert_eq!(world.send("t", "1"), SequenceNumber(1));
    assert_eq!(world.everything(), [""; 0]);
    world.subscribe(A, |_| {});
    assert_eq!(
        world.queued(A),
        [""; 0],
        "it is gone for those who come later"
    );
}

#[test]
fn a_subscription_without_rules_gets_no_messages() {
    let mut world = World::topic(&[A]);
    world.select(B, []);
    world.send("t", "1");
    assert_eq!(world.queued(A), ["1"]);
    assert_eq!(world.queued(B), [""; 0]);
}

#[test]
fn a_recreated_subscription_is_empty() {
    let mut world = World::topic(&[A, B]);
    world.send("t", "1");
    world.delete(B);
    world.send("t", "2");
    world.select(B, [rule("mine", Filter::True)]);
    assert_eq!(world.rules(B), ["mine"]);
    world.send("t", "3");
    assert_eq!(world.queued(A), ["1", "2", "3"]);
    assert_eq!(world.queued(B), ["3"]);
}

#[test]
fn a_subscription_deleted_during_publishing_gets_no_messages() {
    let mut world = World::topic(&[A, B]);
    world.interrupt_before(B, |world| world.delete(B));
    world.send("t", "1");
    assert!(!world.exists(B));
    assert_eq!(world.queued(A), ["1"]);
    assert_eq!(
        world.entity("t").counts(SubQueue::Active),
        Counts::default()
    );
}

#[test]
fn a_subscription_created_during_publishing_gets_later_messages() {
    let mut world = World::topic(&[A]);
    world.interrupt_before(A, |world| {
        world.subscribe(B, |_| {});
        world.send("t", "2");
    });
    world.send("t", "1");
    assert_eq!(world.queued(A), ["1", "2"]);
    assert_eq!(world.queued(B), ["2"]);
}

#[test]
fn a_message_sent_during_publishing_is_published_after_it() {
    let mut world = World::topic(&[A, B]);
    world.interrupt_before(B, |world| {
        world.send("t", "2");
        world.send("t", "3");
    });
    world.send("t", "1");
    assert_eq!(world.queued(A), ["1", "2", "3"]);
    assert_eq!(world.queued(B), ["1", "2", "3"]);
}

#[test]
fn a_topic_deleted_during_publishing_still_publishes() {
    let mut world = World::topic(&[A]);
    world.interrupt_before(A, |world| world.remove_alone("t"));
    let id = message("1").message(&mut SplitMix64(0));
    let path = "t".parse().unwrap();
    servicebus_broker::Entities::with_entity(&mut world, &path, |entity, cx| {
        entity.send(cx, id).unwrap();
    });
    servicebus_broker::forward(&mut world, usize::MAX);
    assert_eq!(world.queued(A), ["1"], "what was accepted is not lost");
}

#[test]
fn a_topic_is_empty_after_publishing() {
    let mut world = World::topic(&[A, B]);
    world.send("t", "1");
    assert_eq!(
        world.entity("t").counts(SubQueue::Active),
        Counts::default()
    );
    for name in [A, B] {
        let counts = world.entity(name).counts(SubQueue::Active);
        assert_eq!((counts.active, counts.transfer), (1, 0));
    }
}

#[test]
fn events_show_the_matched_rule_and_the_publication() {
    let mut world = World::topic(&[A]);
    world.send("t", "1");
    let kinds: Vec<EventKind> = world.events.iter().map(|event| event.kind).collect();
    let [
        EventKind::Enqueued { .. },
        EventKind::Matched { rule },
        EventKind::Enqueued { .. },
        EventKind::Published,
    ] = kinds[..]
    else {
        panic!("found {kinds:?}");
    };
    assert_eq!(world.events.read(rule), "$Default");
}

#[test]
fn every_entity_has_its_kind() {
    let mut world = World::topic(&[A]);
    world.declare("q", crate::bus::rules());
    let kinds = ["t", A, "q"].map(|name| world.entity(name).kind());
    let expected = [
        EntityKind::Topic,
        EntityKind::Subscription,
        EntityKind::Queue,
    ];
    assert_eq!(kinds, expected);
    assert!(world.entity(A).rules().is_none());
}

#[test]
fn a_disabled_topic_refuses_messages() {
    for status in [EntityStatus::Disabled, EntityStatus::SendDisabled] {
        let mut world = World::topic(&[A]);
        world.update("t", |topic| topic.status = status);
        let refused = world.post("t", &message("1")).unwrap_err();
        assert!(matches!(refused, SendError::Disabled(_)), "{refused:?}");
        world.update("t", |topic| topic.status = EntityStatus::Active);
        world.send("t", "2");
        assert_eq!(world.queued(A), ["2"]);
    }
}

#[test]
fn a_disabled_subscription_gets_messages_and_delivers_none() {
    for status in [EntityStatus::Disabled, EntityStatus::ReceiveDisabled] {
        let mut world = World::topic(&[A]);
        world.update(A, |subscription| subscription.status = status);
        world.send("t", "1");
        assert_eq!(world.queued(A), ["1"]);
        assert!(world.receive(A).is_none());
        world.update(A, |subscription| subscription.status = EntityStatus::Active);
        assert!(world.receive(A).is_some());
    }
}

#[test]
fn a_lock_in_one_subscription_does_not_affect_others() {
    let mut world = World::topic(&[A, B]);
    world.send("t", "1");
    world
        .take(A, SubQueue::Active, ReceiveMode::PeekLock)
        .unwrap();
    assert!(world.receive(B).is_some());
    world.advance(secs(60));
    let (properties, _) = world.the_only(A, SubQueue::Active);
    assert_eq!(properties.delivery_count, 1);
}

/// The properties have a field beyond those that are looked at on arrival whose descriptor is described itself.
const ODD: [u8; 26] = [
    0x00, 0x53, 0x73, 0xc0, 0x15, 0x0c, 0xa1, 0x01, b'm', 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40,
    0x40, 0x40, 0x40, 0x00, 0x00, 0x53, 0x01, 0x53, 0x02, 0x40,
];

#[test]
fn a_message_with_a_described_descriptor_is_published() {
    let mut world = World::topic(&[A]);
    world.send_encoded("t", &ODD);
    world.send("t", "after");
    assert_eq!(world.queued(A), ["m", "after"]);
    let odd = world.receive(A).unwrap();
    let mut encoded = Vec::new();
    let rest = odd
        .message
        .encode(&odd.broker_properties, 0, &mut encoded)
        .unwrap();
    encoded.extend_from_slice(&rest);
    assert!(encoded.ends_with(&ODD), "bit for bit");
}
