//! The messages that rules select, and the changes of their actions (semantics §13, decisions D11, D12, D13).

use serde_amqp::Value;

use super::{EMPTY_ACTION, added, correlation, delivered, enumerate, expression, ruled, selected};
use crate::support::*;

#[test]
fn a_correlation_filter_matches_every_system_property() {
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
fn an_action_may_be_omitted_in_three_ways() {
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
