//! Which rules select a message, and the number of copies (semantics §13.1, decisions D11, D12).

use servicebus_broker::filter::{Correlation, Encoded, Filter, Value};
use servicebus_broker::{ChangeRuleError, RuleChange};

use super::{A, B};
use crate::bus::{MessageBuilder, message, secs, text};
use crate::world::{World, acting, correlation, rule, sql};

/// Whether a filter selects a message, as a subscription sees it.
fn selects(filter: Filter, message: &MessageBuilder) -> bool {
    let mut world = World::topic(&[]);
    world.select(A, [rule("r", filter)]);
    world.post("t", message).unwrap();
    !world.queued(A).is_empty()
}

fn on_user(name: &str, value: &Value<'_>) -> Filter {
    correlation(Correlation {
        properties: vec![(name.into(), Encoded::from(value))],
        ..Correlation::default()
    })
}

#[test]
fn rules_without_action_share_one_copy() {
    let mut world = World::topic(&[]);
    let filters = [
        sql("a = 1"),
        sql("b = 1"),
        Filter::False,
        on_user("b", &Value::Signed(1)),
    ];
    let names = ["1", "2", "3", "4"];
    world.select(A, names.into_iter().zip(filters).map(|(n, f)| rule(n, f)));
    let one = Value::Signed(1);
    world.post("t", &message("a").property("a", &one)).unwrap();
    world.post("t", &message("b").property("b", &one)).unwrap();
    let both = message("both").property("a", &one).property("b", &one);
    world.post("t", &both).unwrap();
    world.send("t", "neither");
    assert_eq!(world.queued(A), ["a", "b", "both"]);
}

#[test]
fn every_rule_with_an_action_creates_its_own_copy() {
    let mut world = World::topic(&[]);
    world.select(
        A,
        [
            rule("plain", Filter::True),
            rule("other", Filter::True),
            acting("red", Filter::True, "SET color = 'red'"),
            acting("blue", sql("1 = 1"), "SET color = 'blue'"),
            acting("never", Filter::False, "SET color = 'green'"),
        ],
    );
    world.send("t", "1");
    let copies = world.peek(A, servicebus_broker::SubQueue::Active);
    let mut seen: Vec<_> = copies
        .iter()
        .map(|(_, copy)| (text(copy, "RuleName"), text(copy, "color")))
        .collect();
    seen.sort();
    let pair = |rule: &str, color: &str| (Some(rule.to_owned()), Some(color.to_owned()));
    let expected = [(None, None), pair("blue", "blue"), pair("red", "red")];
    assert_eq!(seen, expected);
}

#[test]
fn copies_of_one_message_keep_its_order_among_others() {
    let mut world = World::topic(&[]);
    let red = acting("red", Filter::True, "SET color = 'red'");
    world.select(A, [rule("plain", Filter::True), red]);
    let messages: Vec<_> = ["1", "2", "3"].map(message).into();
    world.post_all("t", &messages).unwrap();
    assert_eq!(world.queued(A), ["1", "1", "2", "2", "3", "3"]);
}

#[test]
fn filters_see_the_sequence_number_of_the_topic() {
    let mut world = World::topic(&[]);
    world.select(
        A,
        [rule("r", sql("sys.SequenceNumber = 2 AND sys.Label = 'x'"))],
    );
    world.post("t", &message("1").label("x")).unwrap();
    world.post("t", &message("2").label("x")).unwrap();
    assert_eq!(world.queued(A), ["2"]);
}

#[test]
fn a_forwarded_message_has_the_number_of_the_topic_in_filters() {
    let mut world = World::topic(&[]);
    world.select(
        A,
        [rule(
            "r",
            sql("sys.SequenceNumber = 1 AND sys.EnqueuedSequenceNumber = 2"),
        )],
    );
    world.declare("q", crate::bus::rules());
    world.send("q", "stays");
    world.receive("q");
    world.update("q", |queue| queue.forward_to = Some("t".parse().unwrap()));
    world.send("q", "1");
    assert_eq!(world.queued(A), ["1"]);
}

#[test]
fn changed_rules_apply_to_later_messages() {
    let mut world = World::topic(&[A]);
    world.send("t", "1");
    world.remove_rule(A, "$default").unwrap();
    assert_eq!(world.queued(A), ["1"], "what is there stays");
    world.send("t", "2");
    world
        .add_rule(A, rule("x", on_user("n", &Value::Signed(1))))
        .unwrap();
    world
        .post("t", &message("3").property("n", &Value::Signed(1)))
        .unwrap();
    world.remove_rule(A, "X").unwrap();
    world
        .post("t", &message("4").property("n", &Value::Signed(1)))
        .unwrap();
    assert_eq!(world.queued(A), ["1", "3"]);
}

#[test]
fn a_rule_removed_during_publishing_still_applies_to_that_message() {
    let mut world = World::topic(&[A, B]);
    world.interrupt_before(A, |world| world.remove_rule(B, "$Default").unwrap());
    world.send("t", "1");
    world.send("t", "2");
    assert_eq!(world.queued(B), ["1"]);
}

#[test]
fn rule_names_are_unique_case_insensitively() {
    let mut world = World::topic(&[A, B]);
    world.add_rule(A, rule("Mine", Filter::False)).unwrap();
    let refused = world.add_rule(A, rule("mINE", Filter::True));
    assert_eq!(refused, Err(ChangeRuleError::Exists("mINE".into())));
    world.add_rule(B, rule("mine", Filter::True)).unwrap();
    assert_eq!(world.rules(A), ["$Default", "Mine"]);
    world.remove_rule(A, "MINE").unwrap();
    let missing = world.remove_rule(A, "mine");
    assert_eq!(missing, Err(ChangeRuleError::NotFound("mine".into())));
    assert_eq!(
        world.rules(B),
        ["$Default", "mine"],
        "another subscription's"
    );
}

#[test]
fn a_rule_cannot_be_added_to_a_deleted_subscription() {
    let mut world = World::topic(&[A]);
    let path = servicebus_broker::EntityPath::of_address(B).unwrap();
    let added = world.operate("t", |entity, cx| {
        entity.change_rule(cx, &path, RuleChange::Add(rule("late", Filter::True)))
    });
    assert!(added.is_err());
    world.subscribe(B, |_| {});
    assert_eq!(world.rules(B), ["$Default"]);
}

#[test]
fn a_condition_reads_system_properties_of_the_broker() {
    for condition in [
        "sys.ExpiresAtUtc > sys.EnqueuedTimeUtc",
        "sys.Size > 0",
        "sys.TimeToLive IS NOT NULL",
        "sys.ForcePersistence = TRUE",
        "sys.SequenceNumber = sys.EnqueuedSequenceNumber",
    ] {
        let sent = message("1").time_to_live(secs(10));
        assert!(selects(sql(condition), &sent), "{condition}");
    }
}

#[test]
fn a_condition_reads_the_durable_flag_of_the_header() {
    // A header with nothing but `durable` in it.
    let header = |durable: u8| [0x00, 0x53, 0x70, 0xc0, 0x02, 0x01, durable];
    for (durable, selected) in [(0x41, 0), (0x42, 1), (0x40, 0)] {
        let mut world = World::topic(&[]);
        world.select(A, [rule("r", sql("sys.ForcePersistence = FALSE"))]);
        let encoded = [&header(durable)[..], &message("1").encoded()].concat();
        world.send_encoded("t", &encoded);
        assert_eq!(world.queued(A).len(), selected, "{durable:x}");
    }
}
