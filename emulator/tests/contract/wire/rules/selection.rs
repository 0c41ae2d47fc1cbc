//! What rules select, and what their actions change (semantics §13, decisions D11, D12, D13).

use serde_amqp::Value;
use serde_json::json;

use super::{
    EMPTY_ACTION, added, correlation, delivered, enumerate, expression, remove, ruled, selected,
};
use crate::support::*;

#[test]
fn correlation_compares_values_with_their_types() {
    let (bus, mut peer, node) = ruled(rules(&[sql("none", "1=0", "")]));
    let conditions = map([
        (text("label"), text("Order")),
        (
            text("properties"),
            map([
                (text("count"), Value::Double(2.0.into())),
                (text("sure"), Value::Bool(true)),
            ]),
        ),
    ]);
    added(&mut peer, &node, "typed", correlation(conditions));
    let message = |id, label, count, sure| {
        let message = Message::new(id).property(3, text(label));
        let message = message.application("count", count);
        message.application("sure", sure)
    };
    let yes = Value::Bool(true);
    let messages = [
        message("int", "Order", Value::Int(2), yes.clone()),
        message("long", "Order", long(2), yes.clone()),
        message("double", "Order", Value::Double(2.0.into()), yes.clone()),
        message("text", "Order", text("2"), yes.clone()),
        message("case", "order", Value::Int(2), yes.clone()),
        message("three", "Order", Value::Int(3), yes),
        message("said", "Order", Value::Int(2), text("true")),
        Message::new("bare").property(3, text("Order")),
    ];
    assert_eq!(selected(&bus, &messages), ["int", "long", "double"]);
    // The other way round: a filter's string is no number.
    let conditions = map([(text("properties"), map([(text("count"), text("2"))]))]);
    assert_eq!(remove(&mut peer, &node, "typed").status(), 200);
    added(&mut peer, &node, "text", correlation(conditions));
    assert_eq!(selected(&bus, &messages), ["text"]);
}

#[test]
fn correlation_sees_every_system_property() {
    for (name, index) in [
        ("message-id", 0),
        ("to", 2),
        ("label", 3),
        ("reply-to", 4),
        ("correlation-id", 5),
        ("content-type", 6),
        ("session-id", 10),
        ("reply-to-session-id", 12),
    ] {
        let (bus, mut peer, node) = ruled(rules(&[sql("none", "1=0", "")]));
        added(
            &mut peer,
            &node,
            "r",
            correlation(map([(text(name), text("x"))])),
        );
        let value = |value| match index {
            6 => symbol(value),
            _ => text(value),
        };
        let message =
            |id| Message::new(id).property(index, value(if id == "x" { "x" } else { "y" }));
        assert_eq!(
            selected(&bus, &[message("x"), message("y")]),
            ["x"],
            "{name}"
        );
    }
}

#[test]
fn strings_and_numbers_neither_match_nor_fail() {
    let (bus, _peer, _) = ruled(rules(&[sql("many", "Quantity > 10", "")]));
    let message = |id, quantity| Message::new(id).application("quantity", quantity);
    let messages = [
        message("int", Value::Int(11)),
        message("ulong", ulong(11)),
        message("text", text("11")),
        message("few", Value::Int(10)),
        Message::new("none"),
    ];
    assert_eq!(selected(&bus, &messages), ["int", "ulong"]);
    assert_eq!(bus.http.held("t/Subscriptions/s"), (0, 0));
}

#[test]
fn an_action_may_be_left_out_in_three_ways() {
    let (bus, mut peer, node) = ruled(rules(&[sql("none", "1=0", "")]));
    for (name, action) in [
        ("null", Value::Null),
        ("empty", map([])),
        ("null-text", map([(text("expression"), Value::Null)])),
    ] {
        let description = map([
            (text("sql-filter"), expression("1=1")),
            (text("sql-rule-action"), action),
        ]);
        added(&mut peer, &node, name, description);
    }
    for rule in enumerate(&mut peer, &node, 0, 10) {
        assert_eq!(rule[1], composite(EMPTY_ACTION, []));
    }
    let [message] = delivered(&bus, &[Message::new("m")])
        .try_into()
        .expect("one copy");
    assert_eq!(message.application("RuleName"), Value::Null);
}

#[test]
fn each_rule_with_an_action_makes_a_copy_of_its_own() {
    let (bus, mut peer, node) = ruled(json!({}));
    let description = map([
        (text("sql-filter"), expression("Colour = 'red'")),
        (
            text("sql-rule-action"),
            expression(
                "SET COLOUR = 'green'; SET n = n + 1; SET extra = 1.5; SET sys.Label = 'painted'; \
                 SET sys.To = 'there'; REMOVE gone; REMOVE never",
            ),
        ),
    ]);
    added(&mut peer, &node, "paint", description);
    let description = map([
        (text("sql-filter"), expression("colour LIKE 'r_d'")),
        (
            text("sql-rule-action"),
            expression("SET sys.MessageId = 'renamed'"),
        ),
    ]);
    added(&mut peer, &node, "rename", description);
    let message = Message::new("m")
        .property(3, text("plain"))
        .application("colour", text("red"))
        .application("n", Value::Int(4))
        .application("gone", text("x"));
    let all = delivered(&bus, &[message]);
    let rule = |name: Value| {
        let mut found = all.iter().filter(|m| m.application("RuleName") == name);
        let first = found
            .next()
            .unwrap_or_else(|| panic!("no {name:?}: {all:?}"));
        assert!(found.next().is_none(), "{name:?} twice");
        first
    };
    assert_eq!(all.len(), 3);
    let plain = rule(Value::Null);
    assert_eq!(
        (plain.id().as_str(), plain.property(3)),
        ("m", text("plain"))
    );
    assert_eq!(plain.application("gone"), text("x"));
    let painted = rule(text("paint"));
    assert_eq!(
        painted.application("colour"),
        text("green"),
        "the spelling stays"
    );
    assert_eq!(painted.application("COLOUR"), Value::Null);
    assert_eq!(painted.application("n"), Value::Int(5), "the width stays");
    assert_eq!(painted.application("extra"), Value::Double(1.5.into()));
    assert_eq!(painted.application("gone"), Value::Null);
    assert_eq!(
        (painted.property(2), painted.property(3)),
        (text("there"), text("painted"))
    );
    assert_eq!(painted.data(), b"body");
    assert_eq!(rule(text("rename")).id(), "renamed");
    for message in &all {
        assert_eq!(message.annotation("x-opt-enqueue-sequence-number"), long(1));
    }
}

#[test]
fn a_filter_that_fails_is_a_dead_letter_if_that_is_wanted() {
    for wanted in [true, false] {
        let name = "DeadLetteringOnFilterEvaluationExceptions";
        let mut subscription = rules(&[sql("divide", "10 / n = 5", "")]);
        subscription["Properties"] = json!({ name: wanted });
        let (bus, mut peer, _) = ruled(subscription);
        let message = |id, n| Message::new(id).application("n", Value::Int(n));
        let messages = [message("fine", 2), message("fails", 0), message("other", 3)];
        assert_eq!(selected(&bus, &messages), ["fine"]);
        let path = "t/Subscriptions/s";
        assert_eq!(bus.http.held(path), (0, wanted.into()));
        if wanted {
            let dead = peer.receiver(&format!("{path}/$DeadLetterQueue"));
            let dead = peer.receive_one(&dead).message;
            assert_eq!(dead.id(), "fails");
            let reason = dead.dead_letter_reason();
            assert_eq!(reason, text("FilterException"));
            let Value::String(words) = dead.dead_letter_description() else {
                panic!("no description: {dead:?}");
            };
            assert!(
                words.contains("divide") && words.contains("zero"),
                "{words}"
            );
        }
    }
}

#[test]
fn an_action_that_fails_is_a_dead_letter_too() {
    let failing = sql("set", "1=1", "SET a = 1 / n");
    let (bus, mut peer, _) = ruled(rules(&[failing, sql("plain", "1=1", "")]));
    let messages = [Message::new("m").application("n", Value::Int(0))];
    assert_eq!(selected(&bus, &messages), ["m"]);
    let dead = peer
        .receive_from("t/Subscriptions/s/$DeadLetterQueue")
        .message;
    let reason = dead.dead_letter_reason();
    assert_eq!(reason, text("RuleActionException"));
    assert_eq!(dead.application("a"), Value::Null, "nothing is changed");
}
