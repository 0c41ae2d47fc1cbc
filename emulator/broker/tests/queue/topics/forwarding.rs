//! Subscriptions that forward, topics as forwarding targets, and rules that only apply then (semantics §11, §13.2, decision
//! D3).

use servicebus_broker::filter::{Filter, Value};
use servicebus_broker::{EntityPath, EntityStatus, SequenceNumber, SubQueue};

use super::{A, B};
use crate::bus::{START, annotation, message, millis, rules, secs, text};
use crate::world::{World, acting, rule, sql};

fn path(name: &str) -> Option<EntityPath> {
    EntityPath::of_address(name)
}

/// A topic whose subscription forwards to queue `q`.
fn world() -> World {
    let mut world = World::topic(&[]);
    world.declare("q", rules());
    world.subscribe(A, |own| own.forward_to = path("q"));
    world
}

/// A topic whose subscription forwards to queue `q` what an action has changed.
fn acted(action: &str) -> World {
    let mut world = world();
    world.remove_rule(A, "$Default").unwrap();
    world
        .add_rule(A, acting("r", Filter::True, action))
        .unwrap();
    world
}

#[test]
fn a_subscription_forwards_all_messages_in_order() {
    let mut world = world();
    let messages: Vec<_> = ["1", "2", "3"].map(message).into();
    world.post_all("t", &messages).unwrap();
    assert_eq!(world.queued("q"), ["1", "2", "3"]);
    assert_eq!(world.queued(A), [""; 0]);
    let seen = world.peek("q", SubQueue::Active);
    let numbers = seen
        .iter()
        .filter_map(|(properties, _)| Some(properties.enqueued_sequence_number?.0));
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 2, 3], "those of the topic");
}

#[test]
fn the_rules_of_a_topic_apply_to_forwarded_messages() {
    let mut world = World::topic(&[A]);
    world.select(B, [rule("r", sql("n = 1"))]);
    world.declare("q", rules().forward_to("t"));
    world.send("q", "1");
    world
        .post("q", &message("2").property("n", &Value::Signed(1)))
        .unwrap();
    assert_eq!(world.queued(A), ["1", "2"]);
    assert_eq!(world.queued(B), ["2"]);
    assert_eq!(world.queued("q"), [""; 0]);
}

/// Topics `t0` to `t5`, each with a subscription that forwards to the next.
fn chain_of_topics() -> World {
    let mut world = World::new();
    for at in (0..6).rev() {
        world.declare_topic(&format!("t{at}"), |_| {});
        let next = (at < 5).then(|| path(&format!("t{}", at + 1)).unwrap());
        world.subscribe(&format!("t{at}/Subscriptions/s"), |own| {
            own.forward_to = next
        });
    }
    world
}

#[test]
fn a_forward_from_a_subscription_is_one_hop() {
    let mut world = chain_of_topics();
    world.send("t1", "four hops");
    assert_eq!(world.queued("t5/Subscriptions/s"), ["four hops"]);
    world.send("t0", "five hops");
    assert_eq!(world.queued("t5/Subscriptions/s"), ["four hops"]);
    let last = "t4/Subscriptions/s";
    assert_eq!(world.transfer_dead_letters(last), ["five hops"]);
    let reasons = world.reasons(last, SubQueue::TransferDeadLetter);
    assert_eq!(reasons, ["MaxTransferHopCountExceeded"]);
}

#[test]
fn publishing_by_a_topic_does_not_count_as_a_hop() {
    let mut world = World::topic(&[]);
    for (from, to) in [("q1", "q2"), ("q2", "q3"), ("q3", "t"), ("q4", "q5")] {
        world.declare(from, rules().forward_to(to));
    }
    world.declare("q5", rules());
    world.subscribe(A, |own| own.forward_to = path("q4"));
    world.subscribe(B, |own| own.forward_to = path("q5"));
    world.send("q1", "1");
    assert_eq!(
        world.queued("q5"),
        ["1"],
        "by way of the other subscription"
    );
    assert_eq!(world.transfer_dead_letters("q4"), ["1"], "a fifth hop");
}

#[test]
fn a_forwarding_cycle_through_topics_ends_at_the_hop_limit() {
    let mut world = World::topic(&[]);
    world.subscribe(A, |own| own.forward_to = path("t"));
    world.send("t", "1");
    assert_eq!(world.transfer_dead_letters(A), ["1"]);
    assert_eq!(world.everything(), ["1"]);
}

#[test]
fn a_failed_forward_is_a_transfer_dead_letter_of_the_subscription() {
    let mut world = world();
    world.update("q", |queue| queue.status = EntityStatus::Disabled);
    world.send("t", "1");
    world.delete("q");
    world.send("t", "2");
    let reasons = world.reasons(A, SubQueue::TransferDeadLetter);
    let expected = [
        "MessagingEntityDisabledException",
        "MessagingEntityNotFoundException",
    ];
    assert_eq!(reasons, expected);
}

#[test]
fn a_disabled_topic_refuses_forwarded_messages() {
    let mut world = World::topic(&[A]);
    world.declare("q", rules().forward_to("t"));
    world.update("t", |topic| topic.status = EntityStatus::SendDisabled);
    world.send("q", "1");
    assert_eq!(world.transfer_dead_letters("q"), ["1"]);
}

#[test]
fn a_forwarded_dead_letter_has_its_subscription_as_source() {
    let mut world = World::topic(&[A]);
    world.declare("failed", rules());
    world.update(A, |own| {
        own.forward_dead_lettered_messages_to = path("failed")
    });
    world.send("t", "1");
    world.dead_letter_next(A, "tired");
    let (properties, message) = world.the_only("failed", SubQueue::Active);
    let source = annotation(&message, &properties, "x-opt-deadletter-source");
    assert_eq!(source.as_deref(), Some(A));
    assert_eq!(text(&message, "DeadLetterReason").as_deref(), Some("tired"));
    assert_eq!(world.dead_letters(A), [""; 0]);
}

#[test]
fn a_schedule_set_by_an_action_applies_after_the_forward() {
    let due = START + secs(100);
    let when = Value::instant(due.as_millis());
    let action = "SET sys.ScheduledEnqueueTimeUtc = due";
    let mut world = acted(action);
    world.select(B, [acting("r", Filter::True, action)]);
    world
        .post("t", &message("1").property("due", &when))
        .unwrap();
    assert_eq!(world.queued(B), ["1"]);
    assert!(
        world.receive(B).is_some(),
        "where it already is it changes nothing"
    );
    assert_eq!(world.entity("q").counts(SubQueue::Active).scheduled, 1);
    world.advance(secs(100) - millis(1));
    assert!(world.receive("q").is_none());
    world.advance(millis(1));
    let (properties, _) = world.the_only("q", SubQueue::Active);
    assert_eq!(properties.enqueued_at, due);
}

#[test]
fn a_message_id_set_by_an_action_applies_after_the_forward() {
    let mut world = acted("SET sys.MessageId = 'same'");
    world.delete("q");
    world.declare("q", rules().duplicate_detection(secs(60)));
    world.send("t", "1");
    world.send("t", "2");
    assert_eq!(world.queued("q"), ["same"]);
}

#[test]
fn the_duplicate_window_counts_from_a_time_set_by_an_action() {
    let due = START + secs(100);
    let when = Value::instant(due.as_millis());
    let mut world = acted("SET sys.ScheduledEnqueueTimeUtc = due");
    world.delete("q");
    world.declare("q", rules().duplicate_detection(secs(60)));
    world
        .post("t", &message("1").property("due", &when))
        .unwrap();
    world.advance(secs(120));
    assert_eq!(world.send("q", "1"), SequenceNumber(0));
    assert_eq!(world.queued("q"), ["1"]);
}

#[test]
fn a_session_id_set_by_an_action_is_forwarded() {
    let mut world = acted("SET sys.SessionId = 's'");
    world.send("t", "1");
    let (_, message) = world.the_only("q", SubQueue::Active);
    assert_eq!(message.session_id().as_deref(), Some("s"));
}

#[test]
fn rules_of_a_second_topic_see_changes_of_the_first() {
    let mut world = World::topic(&[]);
    world.declare_topic("u", |_| {});
    let end = "u/Subscriptions/s";
    world.select(
        end,
        [rule("r", sql("color = 'red' AND RuleName = 'paint'"))],
    );
    let paint = acting("paint", Filter::True, "SET color = 'red'");
    world.subscribe_by(A, |own| own.forward_to = path("u"), [paint]);
    world.send("t", "1");
    assert_eq!(world.queued(end), ["1"]);
}

/// `x-opt-deadletter-source` with the value `q`, and a message id.
const FORGED: [u8; 40] = [
    0x00, 0x53, 0x72, 0xc1, 0x1d, 0x02, 0xa3, 0x17, b'x', b'-', b'o', b'p', b't', b'-', b'd', b'e',
    b'a', b'd', b'l', b'e', b't', b't', b'e', b'r', b'-', b's', b'o', b'u', b'r', b'c', b'e', 0xa1,
    0x01, b'q', 0x00, 0x53, 0x73, 0xc0, 0x01, 0x00,
];

#[test]
fn filters_see_the_true_source_of_a_forwarded_dead_letter() {
    let mut world = World::topic(&[]);
    world.select(A, [rule("r", sql("sys.DeadLetterSource = 'q'"))]);
    world.send_encoded("t", &FORGED);
    assert_eq!(world.queued(A), [""; 0]);
    world.declare("q", rules().forward_dead_letters_to("t"));
    world.send("q", "1");
    world.dead_letter_next("q", "tired");
    assert_eq!(world.queued(A), ["1"]);
}

#[test]
fn a_message_scheduled_by_an_action_keeps_its_enqueued_number() {
    let mut world = World::topic(&[]);
    let action = "SET sys.ScheduledEnqueueTimeUtc = due";
    world.subscribe_by(
        A,
        |own| own.forward_to = path("end"),
        [acting("r", Filter::True, action)],
    );
    world.declare("end", rules());
    let when = Value::instant((world.now + secs(60)).as_millis());
    for _ in 0..3 {
        let later = message("1").property("due", &when);
        world.post("t", &later).unwrap();
    }
    world.advance(secs(60));
    let seen = world.peek("end", SubQueue::Active);
    let origins = seen
        .iter()
        .filter_map(|(properties, _)| Some(properties.enqueued_sequence_number?.0));
    assert_eq!(origins.collect::<Vec<_>>(), [1, 2, 3]);
}
