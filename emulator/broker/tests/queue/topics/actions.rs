//! The changes of an action on its copy (semantics §13.1, §13.2, decision D13).

use bytes::Bytes;
use servicebus_broker::filter::{Filter, Value};
use servicebus_broker::{BrokerProperties, Message, SubQueue};

use super::{A, B};
use crate::bus::{MessageBuilder, START, message, secs, text};
use crate::world::{World, acting, rule};

/// The only message of a subscription.
fn copy(world: &World, name: &str) -> (BrokerProperties, Message) {
    world.the_only(name, SubQueue::Active)
}

/// The copy that an action makes of a message.
fn changed(action: &str, message: &MessageBuilder) -> (BrokerProperties, Message) {
    let mut world = World::topic(&[]);
    world.select(A, [acting("r", Filter::True, action)]);
    world.post("t", message).unwrap();
    copy(&world, A)
}

/// Everything behind the annotations, and the part of it that is shared.
fn message_of((properties, message): &(BrokerProperties, Message)) -> (Vec<u8>, Bytes) {
    let mut head = Vec::new();
    let rest = message.encode(properties, 0, &mut head).unwrap();
    head.extend_from_slice(&rest);
    let mut reader = servicebus_codec::Reader::new(&head);
    while !reader.rest().starts_with(&[0x00, 0x53, 0x73]) {
        reader.skip().unwrap();
    }
    (reader.rest().to_vec(), rest)
}

/// What a client would have sent, had it sent the copy; an action adds `RuleName`.
fn as_sent(message: &MessageBuilder) -> Vec<u8> {
    message.encoded().to_vec()
}

#[test]
fn an_action_changes_user_properties_and_leaves_other_bytes() {
    let [one, red, x] = [Value::Signed(1), Value::text("red"), Value::text("x")];
    let sent = message("1")
        .label("l")
        .property("n", &one)
        .property("Color", &red)
        .property("gone", &x)
        .property("kept", &Value::Binary(vec![1, 2].into()));
    let action = "SET color = 'blue'; REMOVE GONE; SET fresh = 2; SET n = n + 1";
    let expected = message("1")
        .label("l")
        .property("kept", &Value::Binary(vec![1, 2].into()))
        .property("Color", &Value::text("blue"))
        .property("fresh", &Value::Signed(2))
        .property("n", &Value::Signed(2))
        .property("RuleName", &Value::text("r"));
    let (found, _) = message_of(&changed(action, &sent));
    assert_eq!(found, as_sent(&expected));
}

#[test]
fn a_copy_without_action_equals_the_sent_message() {
    let mut world = World::topic(&[A]);
    let sent = message("1").label("l").text("a").content_type("text/plain");
    world.post("t", &sent).unwrap();
    let (found, _) = message_of(&copy(&world, A));
    assert_eq!(found, as_sent(&sent));
    assert_eq!(text(&copy(&world, A).1, "RuleName"), None);
}

#[test]
fn an_action_leaves_the_copies_of_other_rules_unchanged() {
    let mut world = World::topic(&[B]);
    let action = acting(
        "r",
        Filter::True,
        "SET sys.Label = 'new'; SET color = 'blue'",
    );
    world.select(A, [action, rule("plain", Filter::True)]);
    let sent = message("1").label("old").text("t");
    world.post("t", &sent).unwrap();
    let (own, _) = message_of(&copy(&world, B));
    assert_eq!(own, as_sent(&sent));
    let copies = world.peek(A, SubQueue::Active);
    let plain = copies
        .iter()
        .map(message_of)
        .filter(|(found, _)| *found == own);
    assert_eq!((copies.len(), plain.count()), (2, 1));
}

#[test]
fn copies_of_a_message_share_its_body() {
    let (property, annotation) = ("SET color = 'blue'", "SET sys.PartitionKey = 'p'");
    let unscheduled = "REMOVE sys.ScheduledEnqueueTimeUtc";
    for (body, ahead, action) in [
        (100, 0, property),
        (100_000, 0, property),
        (1000, 60_000, property),
        (1000, 60_000, annotation),
        (1000, 60_000, unscheduled),
    ] {
        let mut world = World::topic(&[B]);
        world.ahead = ahead;
        world.select(A, [acting("r", Filter::True, action)]);
        let sent = message("1").scheduled_at(START).text("t").body(body);
        world.post("t", &sent).unwrap();
        let [(_, acted), (_, plain)] = [A, B].map(|name| message_of(&copy(&world, name)));
        assert!(acted.len() >= body);
        assert_eq!(acted.as_ptr_range().end, plain.as_ptr_range().end);
    }
}

#[test]
fn a_time_to_live_set_by_an_action_applies_to_the_copy() {
    let mut world = World::topic(&[B]);
    let action = "SET sys.TimeToLive = '00:00:10'";
    world.select(A, [acting("r", Filter::True, action)]);
    world.send("t", "1");
    assert_eq!(copy(&world, A).0.time_to_live, Some(10_000));
    world.advance(secs(10));
    assert_eq!((world.queued(A).len(), world.queued(B).len()), (0, 1));
}

#[test]
fn an_action_can_give_every_message_its_own_id() {
    let mut world = World::topic(&[]);
    world.select(A, [acting("r", Filter::True, "SET tag = newid()")]);
    let messages: Vec<_> = (0..100).map(|id| message(&id.to_string())).collect();
    world.post_all("t", &messages).unwrap();
    let copies = world.peek(A, SubQueue::Active);
    let mut tags: Vec<_> = copies
        .iter()
        .map(|(_, copy)| copy.application_properties().to_vec())
        .collect();
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 100);
}
