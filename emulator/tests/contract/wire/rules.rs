//! `add-rule`, `remove-rule` and `enumerate-rules` (wire.md §6.2), the messages that rules select, and the changes of their
//! actions (semantics §13, decisions D11, D12, D13).

use serde_amqp::Value;
use serde_json::json;

use crate::support::*;

const RULE: u64 = 0x0000_0137_0000_0004;
const EMPTY_ACTION: u64 = 0x0000_0137_0000_0005;
const SQL_ACTION: u64 = 0x0000_0137_0000_0006;
const SQL_FILTER: u64 = 0x0000_0013_7000_0006;
const TRUE_FILTER: u64 = 0x0000_0013_7000_0007;
const FALSE_FILTER: u64 = 0x0000_0013_7000_0008;
const CORRELATION_FILTER: u64 = 0x0000_0013_7000_0009;
const ARGUMENT: &str = "com.microsoft:argument-error";

/// The subscription `s` of the topic `t`, and a client that manages its rules.
fn ruled(subscription: serde_json::Value) -> (Bus, Peer, Node) {
    let (bus, mut peer) = Bus::configured(&topic(&json!({}), &[("s", subscription)])).with_client();
    let node = peer.node("t/Subscriptions/s/$management");
    (bus, peer, node)
}

fn expression(expression: &str) -> Value {
    map([(text("expression"), text(expression))])
}

fn sql_filter(filter: &str) -> Value {
    map([(text("sql-filter"), expression(filter))])
}

fn correlation(conditions: Value) -> Value {
    map([(text("correlation-filter"), conditions)])
}

fn add(peer: &mut Peer, node: &Node, name: &str, description: Value) -> Reply {
    let body = map([
        (text("rule-name"), text(name)),
        (text("rule-description"), description),
    ]);
    peer.call(node, "add-rule", body)
}

fn added(peer: &mut Peer, node: &Node, name: &str, description: Value) {
    let reply = add(peer, node, name, description);
    assert_eq!(
        (reply.status(), &reply.body),
        (200, &Value::Null),
        "{name}: {}",
        reply.text()
    );
}

fn remove(peer: &mut Peer, node: &Node, name: &str) -> Reply {
    peer.call(node, "remove-rule", map([(text("rule-name"), text(name))]))
}

/// The rules from `skip` on: filter, action, name and instant of each.
fn enumerate(peer: &mut Peer, node: &Node, skip: i32, top: i32) -> Vec<[Value; 4]> {
    let body = map([
        (text("skip"), Value::Int(skip)),
        (text("top"), Value::Int(top)),
    ]);
    let reply = peer.call(node, "enumerate-rules", body);
    if reply.status() == 204 {
        assert_eq!(reply.body, Value::Null);
        return Vec::new();
    }
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let Value::List(rules) = reply.field("rules") else {
        panic!("rules are a list: {reply:?}");
    };
    let rule = |entry: &Value| match entry {
        Value::Map(map) if map.len() == 1 => {
            let rule = map.get(&text("rule-description"));
            let (code, fields) = described_list(rule.expect("an entry is a description"));
            assert_eq!(code, RULE);
            <[Value; 4]>::try_from(fields.to_vec()).expect("a rule has four fields")
        }
        other => panic!("an entry is {other:?}"),
    };
    rules.iter().map(rule).collect()
}

fn names(peer: &mut Peer, node: &Node, skip: i32, top: i32) -> Vec<String> {
    let name = |[_, _, name, _]: [Value; 4]| match name {
        Value::String(name) => name,
        other => panic!("a name is {other:?}"),
    };
    let rules = enumerate(peer, node, skip, top);
    rules.into_iter().map(name).collect()
}

/// Sends messages to the topic; returns those that the subscription got.
fn selected(bus: &Bus, messages: &[Message]) -> Vec<String> {
    delivered(bus, messages).iter().map(Received::id).collect()
}

fn delivered(bus: &Bus, messages: &[Message]) -> Vec<Received> {
    let (mut peer, sender) = bus.sender("t");
    for message in messages {
        peer.send(&sender, message);
    }
    let receiver = peer.attached(&Attach::deleting("t/Subscriptions/s"));
    let all = peer.drain(&receiver, 100);
    all.into_iter().map(|delivery| delivery.message).collect()
}

#[test]
fn a_new_subscription_has_one_default_rule_with_a_true_filter() {
    let (_bus, mut peer, node) = ruled(json!({}));
    let [[filter, action, name, created]] = enumerate(&mut peer, &node, 0, i32::MAX)
        .try_into()
        .expect("one rule");
    assert_eq!(filter, composite(TRUE_FILTER, []));
    assert_eq!(action, composite(EMPTY_ACTION, []));
    assert_eq!(name, text("$Default"));
    let Value::Timestamp(created) = created else {
        panic!("created at {created:?}");
    };
    assert!((created.milliseconds() - client_now()).abs() < 60_000);
}

#[test]
fn rules_are_listed_with_the_types_of_the_service() {
    let never = json!({"Name": "4-never", "Properties": {"FilterType": "False"}});
    let (bus, mut peer, node) = ruled(rules(&[never]));
    bus.http.advance(7200.0);
    added(&mut peer, &node, "1-sql", sql_filter("a > 1"));
    let both = map([
        (text("sql-filter"), expression("b = 'x'")),
        (text("sql-rule-action"), expression("SET c = 2; REMOVE d")),
        (text("rule-name"), text("2-action")),
    ]);
    added(&mut peer, &node, "2-action", both);
    let conditions = map([
        (text("correlation-id"), text("c")),
        (text("message-id"), Value::Null),
        (text("to"), text("to")),
        (text("reply-to"), text("r")),
        (text("label"), text("l")),
        (text("session-id"), text("s")),
        (text("reply-to-session-id"), text("rs")),
        (text("content-type"), text("ct")),
        (
            text("properties"),
            map([
                (text("n"), Value::Double(2.0.into())),
                (text("t"), text("2")),
                (text("at"), timestamp(7)),
            ]),
        ),
    ]);
    added(&mut peer, &node, "3-correlation", correlation(conditions));
    let all = enumerate(&mut peer, &node, 0, i32::MAX);
    let parts: Vec<_> = all.iter().map(|rule| (&rule[0], &rule[1])).collect();
    let none = composite(EMPTY_ACTION, []);
    let twenty = Value::Int(20);
    let filter = |code, expression| composite(code, [text(expression), twenty.clone()]);
    let fields = composite(
        CORRELATION_FILTER,
        [
            text("c"),
            Value::Null,
            text("to"),
            text("r"),
            text("l"),
            text("s"),
            text("rs"),
            text("ct"),
            map([
                (text("n"), Value::Double(2.0.into())),
                (text("t"), text("2")),
                (text("at"), timestamp(7)),
            ]),
        ],
    );
    assert_eq!(
        parts,
        [
            (&filter(SQL_FILTER, "a > 1"), &none),
            (
                &filter(SQL_FILTER, "b = 'x'"),
                &filter(SQL_ACTION, "SET c = 2; REMOVE d")
            ),
            (&fields, &none),
            (&composite(FALSE_FILTER, []), &none),
        ]
    );
    // In the client's time, a rule of the configuration is two hours old.
    let age = |rule: &[Value; 4]| match &rule[3] {
        Value::Timestamp(created) => (client_now() - created.milliseconds() + 30_000) / 60_000,
        other => panic!("created at {other:?}"),
    };
    assert_eq!((age(&all[0]), age(&all[3])), (0, 120));
}

#[test]
fn rules_are_enumerated_in_pages() {
    let (_bus, mut peer, node) = ruled(json!({}));
    for name in ["b", "A", "c"] {
        added(&mut peer, &node, name, sql_filter("1=1"));
    }
    assert_eq!(names(&mut peer, &node, 0, 2), ["$Default", "A"]);
    assert_eq!(names(&mut peer, &node, 2, 2), ["b", "c"]);
    assert!(names(&mut peer, &node, 4, 2).is_empty());
    assert!(names(&mut peer, &node, 0, 0).is_empty());
    let reply = peer.call(&node, "enumerate-rules", map([]));
    assert_eq!(reply.status(), 200);
    for (skip, condition) in [
        (Value::Int(-1), "com.microsoft:argument-out-of-range"),
        (text("1"), ARGUMENT),
    ] {
        let body = map([(text("skip"), skip), (text("top"), uint(1))]);
        refused_with(&peer.call(&node, "enumerate-rules", body), 400, condition);
    }
    for name in ["$default", "a", "B", "c"] {
        assert_eq!(remove(&mut peer, &node, name).status(), 200);
    }
    let reply = peer.call(&node, "enumerate-rules", map([]));
    assert_eq!((reply.status(), &reply.body), (204, &Value::Null));
}

#[test]
fn a_rule_name_can_be_added_once_and_removed_once() {
    let (bus, mut peer, node) = ruled(json!({}));
    added(&mut peer, &node, "Red", sql_filter("colour = 'red'"));
    for name in ["Red", "RED"] {
        let reply = add(&mut peer, &node, name, sql_filter("1=1"));
        let words = refused_with(&reply, 409, "com.microsoft:entity-already-exists");
        let named = format!("The messaging entity 'sbemulatorns:Topic:t|s|{name}' already exists.");
        assert_starts_with(&words, &named);
    }
    assert_eq!(remove(&mut peer, &node, "$Default").status(), 200);
    for name in ["$Default", "none"] {
        let reply = remove(&mut peer, &node, name);
        let words = refused_with(&reply, 404, "amqp:not-found");
        assert_contains(&words, name);
    }
    let colour = |id, colour| Message::new(id).application("colour", text(colour));
    let messages = [colour("1", "red"), colour("2", "blue")];
    assert_eq!(selected(&bus, &messages), ["1"]);
    assert_eq!(remove(&mut peer, &node, "red").status(), 200);
    assert!(selected(&bus, &messages).is_empty(), "no rule, no message");
}

#[test]
fn an_invalid_rule_is_refused_with_the_position() {
    let (bus, mut peer, node) = ruled(json!({}));
    assert_eq!(remove(&mut peer, &node, "$Default").status(), 200);
    let acting = |action| {
        map([
            (text("sql-filter"), expression("1=1")),
            (text("sql-rule-action"), map([(text("expression"), action)])),
        ])
    };
    let typed = |name, value| correlation(map([(text(name), value)]));
    let bare = map([
        (text("sql-filter"), expression("1=1")),
        (text("sql-rule-action"), text("SET a = 1")),
    ]);
    let two = map([
        (text("sql-filter"), expression("1=1")),
        (text("correlation-filter"), map([(text("to"), text("x"))])),
    ]);
    for (description, words) in [
        (
            sql_filter("a = "),
            "filter of the rule cannot be understood: column 5: expected",
        ),
        (sql_filter("a ==\n 'x'"), "column 4: expected"),
        (
            sql_filter("a = 1 AND\n sys.Nonsense = 1"),
            "line 2, column ",
        ),
        (sql_filter(""), "column 1: expected"),
        (
            acting(text("SET sys.SequenceNumber = 1")),
            "action of the rule",
        ),
        (acting(text("DELETE a")), "column 1: expected"),
        (acting(Value::Int(1)), "sql-rule-action.expression"),
        (bare, "sql-rule-action.expression"),
        (map([(text("sql-filter"), map([]))]), "'sql-filter' or"),
        (map([(text("sql-filter"), Value::Null)]), "'sql-filter' or"),
        (
            map([(text("sql-filter"), text("1=1"))]),
            "sql-filter.expression",
        ),
        (map([]), "'sql-filter' or"),
        (two, "either"),
        (correlation(map([])), "'correlation-filter'"),
        (correlation(text("x")), "names a property"),
        (typed("label", Value::Null), "names a property"),
        (typed("properties", map([])), "names a property"),
        (typed("label", Value::Int(1)), "correlation-filter.label"),
        (typed("properties", text("x")), "from strings"),
        (
            typed("properties", map([(text("a"), list([]))])),
            "primitive",
        ),
        (
            typed("properties", map([(uint(1), text("x"))])),
            "from strings",
        ),
    ] {
        let reply = add(&mut peer, &node, "wrong", description.clone());
        let description_text = refused_with(&reply, 400, ARGUMENT);
        assert!(
            description_text.contains(words),
            "{description:?}: {description_text}"
        );
    }
    assert!(enumerate(&mut peer, &node, 0, 10).is_empty());
    assert!(selected(&bus, &[Message::new("m")]).is_empty());
}

#[test]
fn a_rule_request_needs_a_name_and_a_description() {
    let (_bus, mut peer, node) = ruled(json!({}));
    for body in [
        map([]),
        Value::Null,
        map([(text("rule-name"), text("wrong"))]),
        map([(text("rule-description"), sql_filter("1=1"))]),
        map([
            (text("rule-name"), text("a/b")),
            (text("rule-description"), sql_filter("1=1")),
        ]),
    ] {
        refused_with(&peer.call(&node, "add-rule", body), 400, ARGUMENT);
    }
    let body = map([(text("rule-name"), text("a\"b"))]);
    let description_text = refused_with(&peer.call(&node, "remove-rule", body), 400, ARGUMENT);
    assert_starts_with(&description_text, "rule-name 'a\"b' must not");
    for name in [Value::Null, uint(1), text("")] {
        let body = map([(text("rule-name"), name)]);
        refused_with(&peer.call(&node, "remove-rule", body), 400, ARGUMENT);
    }
    assert_eq!(names(&mut peer, &node, 0, 10), ["$Default"]);
}

#[test]
fn only_a_subscription_has_rules() {
    let (_bus, mut peer, _) = ruled(json!({}));
    for address in ["q/$management", "t/$management"] {
        let node = peer.node(address);
        let reply = add(&mut peer, &node, "r", sql_filter("1=1"));
        let words = refused_with(&reply, 400, "amqp:not-allowed");
        assert_contains(&words, "is not a subscription");
        for operation in ["remove-rule", "enumerate-rules"] {
            let body = map([(text("rule-name"), text("r"))]);
            let reply = peer.call(&node, operation, body);
            refused_with(&reply, 400, "amqp:not-allowed");
        }
    }
}

#[test]
fn a_rule_change_applies_to_later_messages_until_a_reset() {
    let (bus, mut peer, node) = ruled(json!({}));
    assert_eq!(selected(&bus, &[Message::new("before")]), ["before"]);
    added(&mut peer, &node, "more", sql_filter("1=1"));
    assert_eq!(remove(&mut peer, &node, "$Default").status(), 200);
    assert_eq!(selected(&bus, &[Message::new("once")]), ["once"]);
    bus.http.reset();
    assert_eq!(names(&mut peer, &node, 0, 10), ["$Default"]);
    assert_eq!(selected(&bus, &[Message::new("after")]), ["after"]);
}

#[test]
fn a_dead_letter_queue_has_no_rules() {
    let (_bus, mut peer, node) = ruled(json!({}));
    let dead = peer.node("t/Subscriptions/s/$DeadLetterQueue/$management");
    let rule = map([
        (text("rule-name"), text("r")),
        (text("rule-description"), sql_filter("a = 1")),
    ]);
    let window = map([
        (text("skip"), Value::Int(0)),
        (text("top"), Value::Int(100)),
    ]);
    for (operation, body) in [
        ("add-rule", rule),
        ("remove-rule", map([(text("rule-name"), text("$Default"))])),
        ("enumerate-rules", window),
    ] {
        refused_with(&peer.call(&dead, operation, body), 400, "amqp:not-allowed");
    }
    assert_eq!(
        remove(&mut peer, &node, "$Default").status(),
        200,
        "it is there still"
    );
}

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

/// Those of 128 bits also in the layout of Microsoft's library (observed 8).
#[test]
fn filters_compare_decimals_of_every_width_by_value() {
    // `tenths` × 10⁻¹.
    let decimals = |tenths: u8| {
        let mut microsoft = (6175_u128 << 113 | u128::from(tenths)).to_be_bytes();
        let ieee = Value::Decimal128(microsoft.into());
        microsoft[0] = 0x0c;
        [
            Value::Decimal32((100_u32 << 23 | u32::from(tenths)).to_be_bytes().into()),
            Value::Decimal64((397_u64 << 53 | u64::from(tenths)).to_be_bytes().into()),
            ieee,
            Value::Decimal128(microsoft.into()),
            Value::Double((f64::from(tenths) / 10.0).into()),
        ]
    };
    let of = |id: &str, price: Value| Message::new(id).application("price", price);
    let low = decimals(95).map(|price| of("low", price));
    let high = decimals(105).map(|price| of("high", price));
    let messages = [low, high].concat();
    let is_low =
        |price: Value| correlation(map([(text("properties"), map([(text("price"), price)]))]));
    let filters = ["price < 10", "price = 9.5", "price IN (9.5)"].map(sql_filter);
    for filter in filters.into_iter().chain(decimals(95).map(is_low)) {
        let (bus, mut peer, node) = ruled(rules(&[sql("none", "1=0", "")]));
        added(&mut peer, &node, "r", filter.clone());
        assert_eq!(selected(&bus, &messages), ["low"; 5], "{filter:?}");
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
