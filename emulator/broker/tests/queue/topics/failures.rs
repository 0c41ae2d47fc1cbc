//! Filters and actions that fail, and copies that exceed their limits (semantics §3.2, §13.1, decisions D6, D23).
//!
//! Messages of clients with unusual encodings: everything that is accepted is published, filtered and changed.

use proptest::prelude::*;
use servicebus_broker::filter::{Action, Filter, Parameters, Rule, Value};
use servicebus_broker::{Entities, Message, SequenceNumber, SplitMix64, SubQueue};

use super::{A, B};
use crate::bus::{MessageBuilder, START, message, text};
use crate::world::{World, acting, rule, sql};

/// A condition that cannot be evaluated for a message that [`fails`].
const FAILING: &str = "n / 0 = 1";
/// More bytes than all headers may have.
const LARGE: usize = 30 * 1024;

fn fails(id: &str) -> MessageBuilder {
    message(id).property("n", &Value::Signed(1))
}

/// A subscription with these rules that keeps or drops what fails.
fn world(keeps: bool, rules: impl IntoIterator<Item = Rule>) -> World {
    let mut world = World::topic(&[B]);
    let change = |subscription: &mut servicebus_broker::EntityDescription| {
        subscription.dead_lettering_on_filter_evaluation_exceptions = keeps;
    };
    world.subscribe_by(A, change, rules);
    world
}

/// Reason and description of the only dead letter.
fn reason_and_description(world: &World) -> [Option<String>; 2] {
    let (_, message) = world.the_only(A, SubQueue::DeadLetter);
    ["DeadLetterReason", "DeadLetterErrorDescription"].map(|name| text(&message, name))
}

#[test]
fn a_filter_failure_is_dead_lettered_with_rule_and_operands() {
    let mut world = world(true, [rule("bad", sql(FAILING))]);
    world.post("t", &fails("1")).unwrap();
    assert_eq!(world.queued(A), [""; 0]);
    let [reason, description] = reason_and_description(&world);
    assert_eq!(reason.as_deref(), Some("FilterException"));
    let description = description.unwrap();
    for part in ["bad", "n / 0", "1"] {
        assert!(description.contains(part), "{part} in {description}");
    }
    assert_eq!(world.queued(B), ["1"], "others get it");
    assert_eq!(world.dead_letters(B), [""; 0]);
}

#[test]
fn an_action_failure_dead_letters_the_message_as_sent() {
    let action = "SET color = 'red'; SET x = n / 0";
    let mut world = world(true, [acting("bad", Filter::True, action)]);
    world.post("t", &fails("1")).unwrap();
    assert_eq!(world.queued(A), [""; 0]);
    let [reason, description] = reason_and_description(&world);
    assert_eq!(reason.as_deref(), Some("RuleActionException"));
    assert!(description.unwrap().contains("bad"));
    let (properties, message) = world.the_only(A, SubQueue::DeadLetter);
    assert_eq!(text(&message, "color"), None, "nothing is half done");
    assert_eq!(text(&message, "RuleName"), None);
    assert_eq!(properties.enqueued_sequence_number, Some(SequenceNumber(1)));
}

#[test]
fn a_filter_failure_is_dropped_if_not_configured_to_dead_letter() {
    let failing = [
        rule("bad", sql(FAILING)),
        acting("worse", Filter::True, "SET x = n / 0"),
    ];
    let mut world = world(false, failing);
    world.post("t", &fails("1")).unwrap();
    assert_eq!(world.queued(A), [""; 0]);
    assert_eq!(world.dead_letters(A), [""; 0]);
    assert_eq!(world.queued(B), ["1"]);
}

#[test]
fn dead_lettering_on_filter_failures_can_be_changed() {
    let mut world = world(false, [rule("bad", sql(FAILING))]);
    world.post("t", &fails("1")).unwrap();
    world.operate(A, |entity, cx| {
        let mut description = entity.description().clone();
        assert!(!description.dead_lettering_on_filter_evaluation_exceptions);
        description.dead_lettering_on_filter_evaluation_exceptions = true;
        entity.update(cx, description);
    });
    world.post("t", &fails("2")).unwrap();
    assert_eq!(world.dead_letters(A), ["2"]);
}

#[test]
fn a_rule_failure_does_not_affect_copies_of_other_rules() {
    for keeps in [false, true] {
        let rules = [
            rule("bad", sql(FAILING)),
            rule("good", Filter::True),
            acting("red", Filter::True, "SET color = 'red'"),
            acting("worse", Filter::True, "SET x = n / 0"),
        ];
        let mut world = world(keeps, rules);
        world.post("t", &fails("1")).unwrap();
        assert_eq!(world.queued(A), ["1", "1"]);
        assert_eq!(world.dead_letters(A).len(), if keeps { 2 } else { 0 });
    }
}

#[test]
fn several_failing_filters_create_one_dead_letter_naming_the_first() {
    let bad = ["1st", "2nd", "3rd"].map(|name| rule(name, sql(FAILING)));
    let mut world = world(true, bad);
    world.post("t", &fails("1")).unwrap();
    let [_, description] = reason_and_description(&world);
    assert!(description.unwrap().contains("1st"));
}

#[test]
fn an_unknown_filter_result_is_not_a_failure() {
    let mut world = world(
        true,
        [rule("r", sql("missing > 1 OR n LIKE 'a%' OR n > 'x'"))],
    );
    world.post("t", &fails("1")).unwrap();
    assert_eq!(world.queued(A), [""; 0]);
    assert_eq!(world.dead_letters(A), [""; 0]);
}

#[test]
fn dead_letters_of_filter_failures_are_forwarded() {
    let mut world = world(true, []);
    world.declare("failed", crate::bus::rules());
    world.update(A, |subscription| {
        subscription.forward_dead_lettered_messages_to = Some("failed".parse().unwrap());
    });
    world.add_rule(A, rule("bad", sql(FAILING))).unwrap();
    world.post("t", &fails("1")).unwrap();
    assert_eq!(
        world.reasons("failed", SubQueue::Active),
        ["FilterException"]
    );
}

#[test]
fn a_copy_over_the_header_limit_is_always_dead_lettered() {
    let double = || acting("grow", Filter::True, "SET copy = big");
    for keeps in [false, true] {
        let mut world = world(keeps, [double(), rule("plain", Filter::True)]);
        let [big, more] = ["x".repeat(LARGE), "y".repeat(6000)];
        let sent = message("1").property("big", &Value::text(&big));
        world
            .post("t", &sent.property("more", &Value::text(&more)))
            .unwrap();
        assert_eq!(world.queued(A), ["1"], "the copy that did not grow");
        let [reason, description] = reason_and_description(&world);
        assert_eq!(reason.as_deref(), Some("HeaderSizeExceeded"));
        let expected = "The size quota for this stream has been exceeded.";
        assert_eq!(description.as_deref(), Some(expected));
    }
}

#[test]
fn one_property_over_its_limit_dead_letters_a_copy() {
    let mut world = world(false, [acting("grow", Filter::True, "SET big = big + big")]);
    let big = "x".repeat(17 * 1024);
    world
        .post("t", &message("1").property("big", &Value::text(&big)))
        .unwrap();
    assert_eq!(world.queued(A), [""; 0]);
    assert_eq!(
        world.reasons(A, SubQueue::DeadLetter),
        ["HeaderSizeExceeded"]
    );
}

#[test]
fn annotations_set_by_an_action_count_towards_the_header_limit() {
    let big = "x".repeat(LARGE);
    let sent = message("1")
        .property("a", &Value::text(&big))
        .property("b", &Value::text(&big));
    let used = sent
        .message(&mut SplitMix64(0))
        .application_properties()
        .len();
    let room = 64 * 1024 - used - 300;
    let sent = sent.property("c", &Value::text(&"y".repeat(room)));
    let key = "k".repeat(128);
    let action = format!("SET sys.PartitionKey = '{key}'; SET sys.ViaPartitionKey = '{key}'");
    let mut world = world(false, [acting("grow", Filter::True, &action)]);
    world.post("t", &sent).unwrap();
    assert_eq!(
        world.reasons(A, SubQueue::DeadLetter),
        ["HeaderSizeExceeded"]
    );
}

#[test]
fn an_invalid_value_for_a_system_property_is_an_action_failure() {
    let mut world = world(
        true,
        [acting("bad", Filter::True, "SET sys.SessionId = id")],
    );
    let id = "x".repeat(129);
    world
        .post("t", &message("1").property("id", &Value::text(&id)))
        .unwrap();
    assert_eq!(
        world.reasons(A, SubQueue::DeadLetter),
        ["RuleActionException"]
    );
}

#[test]
fn a_topic_has_no_dead_letters_of_filter_failures() {
    let mut world = world(true, [rule("bad", sql(FAILING))]);
    world.post("t", &fails("1")).unwrap();
    let path = "t".parse().unwrap();
    let counts = world.with_entity(&path, |entity, _| entity.counts(SubQueue::Active));
    assert_eq!(counts, Some(servicebus_broker::Counts::default()));
}

#[test]
fn an_action_reads_its_parameters() {
    let mut parameters = Parameters::new();
    let value = servicebus_broker::filter::Encoded::from(&Value::text("blue"));
    parameters.add("@color", value);
    let action = Action::parse("SET color = @color", parameters).unwrap();
    let rule = Rule {
        action: Some(action),
        ..rule("r", Filter::True)
    };
    let mut world = world(true, [rule]);
    world.send("t", "1");
    let (_, copy) = world.the_only(A, SubQueue::Active);
    assert_eq!(text(&copy, "color").as_deref(), Some("blue"));
}

/// A message that has a bit of everything.
fn sample() -> Vec<u8> {
    let sent = message("id")
        .to("t")
        .label("l")
        .correlation_id("c")
        .content_type("x")
        .session("s")
        .scheduled_at(START)
        .partition_key("s")
        .property("a", &Value::Signed(1))
        .property("b", &Value::text("b"))
        .property("c", &Value::Float(1.5))
        .property("d", &Value::Guid(uuid()))
        .property("e", &Value::instant(0));
    sent.encoded().to_vec()
}

fn uuid() -> uuid::Uuid {
    uuid::Uuid::nil()
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 2_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_accepted_random_message_can_be_filtered_and_changed(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = sample();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let Ok(message) = Message::parse(bytes.into(), &mut SplitMix64(0)) else {
            return Ok(());
        };
        let keys = [message.session_id(), message.partition_key()];
        let differ = matches!(&keys, [Some(session), Some(key)] if session != key);
        let mut world = World::topic(&[A]);
        let action = "SET a = b; SET fresh = c; REMOVE d; SET sys.Label = 'x'; SET sys.To = sys.Label; \
                      SET sys.PartitionKey = 'k'; REMOVE sys.ScheduledEnqueueTimeUtc";
        let filter = sql("sys.Label IS NOT NULL OR b LIKE 'b%' OR EXISTS(a) OR TRUE = TRUE");
        world.select(B, [acting("r", filter, action), rule("plain", Filter::True)]);
        let sent = world.operate("t", |entity, cx| entity.send(cx, message));
        prop_assert_eq!(sent.is_err(), differ);
        if differ {
            return Ok(());
        }
        if world.entity("t").counts(SubQueue::Active).scheduled == 0 {
            prop_assert_eq!(world.peek(A, SubQueue::Active).len(), 1);
            let copies = world.peek(B, SubQueue::Active);
            let dead = world.peek(B, SubQueue::DeadLetter);
            prop_assert!(copies.len() + dead.len() >= 1);
            for (properties, copy) in copies.iter().chain(&dead) {
                copy.encode(properties, 0, &mut Vec::new()).unwrap();
            }
        }
    }
}
