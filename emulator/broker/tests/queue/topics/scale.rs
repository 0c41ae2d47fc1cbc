//! As many subscriptions and filters as a topic may have (service-bus-quotas).

use servicebus_broker::filter::{Correlation, Encoded, Rule, Value};
use servicebus_broker::{ChangeRuleError, Context, Entity, EntityPath, RuleChange, SubQueue};

use crate::bus::message;
use crate::world::{World, correlation, rule, sql};

fn name(number: usize) -> String {
    format!("t/Subscriptions/s{number}")
}

fn on_number(number: usize) -> Rule {
    let filter = correlation(Correlation {
        properties: vec![("n".into(), Encoded::from(&Value::Signed(number as i64)))],
        ..Correlation::default()
    });
    rule(&format!("r{number}"), filter)
}

#[test]
fn two_thousand_subscriptions_get_a_message_each() {
    let mut world = World::topic(&[]);
    for number in 0..2_000 {
        world.subscribe(&name(number), |_| {});
    }
    let messages: Vec<_> = ["1", "2", "3"].map(|id| message(id).body(50_000)).into();
    world.post_all("t", &messages).unwrap();
    for number in 0..2_000 {
        assert_eq!(world.queued(&name(number)), ["1", "2", "3"]);
    }
}

#[test]
fn a_hundred_thousand_correlation_filters_select_one_message_each() {
    const SUBSCRIPTIONS: usize = 20;
    const EACH: usize = 5_000;
    let mut world = World::topic(&[]);
    for number in 0..SUBSCRIPTIONS {
        let rules = (0..EACH).map(|at| on_number(number * EACH + at));
        world.select(&name(number), rules);
    }
    for number in [0, 4_999, 5_000, 99_999] {
        let sent = message(&number.to_string()).property("n", &Value::Float(number as f64));
        world.post("t", &sent).unwrap();
    }
    world.send("t", "unwanted");
    assert_eq!(world.queued(&name(0)), ["0", "4999"]);
    assert_eq!(world.queued(&name(1)), ["5000"]);
    assert_eq!(world.queued(&name(19)), ["99999"]);
    assert_eq!(world.everything().len(), 4);
    for number in 0..SUBSCRIPTIONS {
        world.delete(&name(number));
    }
    let topic = world.entity("t");
    let rules = topic.rules().expect("a topic");
    assert_eq!(rules.subscriptions().count(), 0);
}

#[test]
fn rules_added_and_removed_one_by_one_leave_no_index_entries() {
    let mut world = World::topic(&[]);
    world.select(&name(0), []);
    let path = EntityPath::of_address(&name(0)).unwrap();
    let each = |entity: &mut Entity, cx: &mut Context<'_>| {
        for number in 0..2_000 {
            let added = RuleChange::Add(on_number(number));
            entity.change_rule(cx, &path, added).unwrap();
        }
        for number in 0..2_000 {
            entity
                .change_rule(cx, &path, RuleChange::Remove(format!("R{number}")))
                .unwrap();
        }
    };
    world.operate("t", each);
    world
        .post("t", &message("1").property("n", &Value::Signed(7)))
        .unwrap();
    assert!(world.rules(&name(0)).is_empty());
    assert!(world.peek(&name(0), SubQueue::Active).is_empty());
}

#[test]
fn a_topic_has_at_most_two_thousand_sql_filters_among_its_subscriptions() {
    let mut world = World::topic(&[]);
    let filters = |from: usize| (from..from + 1_000).map(|at| rule(&at.to_string(), sql("a = 1")));
    world.select(&name(0), filters(0));
    world.select(&name(1), filters(0));
    let one_more = || rule("more", sql("a = 1"));
    let refused = world.add_rule(&name(0), one_more());
    assert_eq!(refused, Err(ChangeRuleError::LimitReached(2_000)));
    let taken = world.add_rule(&name(0), rule("7", sql("a = 1")));
    assert_eq!(
        taken,
        Err(ChangeRuleError::Exists("7".into())),
        "more would not help"
    );
    world.add_rule(&name(0), on_number(1)).unwrap();
    world.delete(&name(1));
    world.add_rule(&name(0), one_more()).unwrap();
}

#[test]
fn a_rule_replacement_is_atomic() {
    let mut world = World::topic(&[]);
    let full = (0..2_000).map(|at| rule(&at.to_string(), sql("a = 1")));
    world.select(&name(0), full);
    world.add_rule(&name(0), on_number(1)).unwrap();
    let missing = world.replace_rule(&name(0), rule("more", sql("a = 1")));
    assert_eq!(missing, Err(ChangeRuleError::NotFound("more".into())));
    let refused = world.replace_rule(&name(0), rule("r1", sql("n = 2")));
    assert_eq!(refused, Err(ChangeRuleError::LimitReached(2_000)));
    let numbered = |number| message("m").property("n", &Value::Signed(number));
    world.post("t", &numbered(1)).unwrap();
    let held = |world: &World| world.peek(&name(0), SubQueue::Active).len();
    assert_eq!(held(&world), 1, "the rule is as it was");
    world
        .replace_rule(&name(0), rule("7", sql("n = 2")))
        .unwrap();
    world.post("t", &numbered(2)).unwrap();
    assert_eq!(held(&world), 2);
    assert_eq!(world.rules(&name(0)).len(), 2_001);
}

#[test]
fn many_rules_may_change_during_publishing() {
    let mut world = World::topic(&[]);
    world.select(&name(0), (0..20_000).map(on_number));
    for number in 0..10 {
        let own = name(0);
        world.interrupt_before(&name(0), move |world| {
            world.remove_rule(&own, &format!("r{number}")).unwrap();
        });
        let sent = message(&number.to_string()).property("n", &Value::Signed(number));
        world.post("t", &sent).unwrap();
        world.post("t", &sent).unwrap();
    }
    assert_eq!(
        world.queued(&name(0)).len(),
        10,
        "once by each rule while it was there"
    );
}
