//! Tests of topics, subscriptions and rules: a file is parsed completely, and an export parses to the same.

use std::time::Duration;

use proptest::option;
use proptest::prelude::*;
use servicebus_broker::filter::{
    Action, Correlation, CorrelationFilter, Encoded, Filter, Parameters, SqlFilter, Value,
};
use servicebus_broker::{EntityKind, EntityStatus};

use super::super::*;
use super::properties::legal;
use super::valid;

const HOUR: Duration = Duration::from_secs(3600);

fn path(text: &str) -> EntityPath {
    text.parse().expect("a legal name")
}

/// Parses the properties of a topic `t`, or of a subscription.
fn read(
    text: &str,
    kind: EntityKind,
    current: Option<&EntityDescription>,
    tier: Tier,
) -> Result<EntityDescription, ConfigError> {
    read_properties(text, kind, &path("t"), current, tier)
}

fn rule(name: &str, filter: Filter) -> Rule {
    Rule {
        name: name.into(),
        filter,
        action: None,
        created_at: Timestamp::from_millis(0),
    }
}

fn correlation(correlation: Correlation) -> Filter {
    Filter::Correlation(CorrelationFilter::new(correlation))
}

fn sql(text: &str, parameters: &[(&str, i64)]) -> Filter {
    let parameters = with(
        parameters
            .iter()
            .map(|&(name, value)| (name, Value::Signed(value))),
    );
    Filter::Sql(SqlFilter::parse(text, parameters).expect("a legal filter"))
}

fn with<'a>(values: impl Iterator<Item = (&'a str, Value<'a>)>) -> Parameters {
    let mut parameters = Parameters::new();
    values.for_each(|(name, value)| parameters.add(name, Encoded::from(&value)));
    parameters
}

/// Returns a file with one subscription that has these rules.
fn with_rules(rules: &str) -> String {
    format!(
        r#"{{"UserConfig":{{"Namespaces":[{{"Name":"a","Topics":[{{"Name":"t","Subscriptions":[
            {{"Name":"s","Rules":{rules}}}]}}]}}]}}}}"#
    )
}

fn read_rules(rules: &str) -> Result<Vec<Rule>, ConfigError> {
    let mut config = Config::parse(&with_rules(rules))?;
    let subscription = config
        .namespaces
        .remove(0)
        .topics
        .remove(0)
        .subscriptions
        .remove(0);
    Ok(subscription.rules)
}

/// Exports a rule and parses it again.
fn read_again(rule: &Rule) -> Result<Vec<Rule>, ConfigError> {
    let written = serde_json::json!([{"Name": &*rule.name, "Properties": rule_json(rule)}]);
    read_rules(&written.to_string())
}

#[test]
fn an_optional_key_with_null_is_as_if_absent() {
    // As serializers write it (azure-service-bus-emulator-installer 96).
    let nulls = r#"{"UserConfig":{"Logging":null,"Namespaces":[{"Name":"a","Queues":null,"Emulator":null,"Topics":[
        {"Name":"t","Properties":null,"Subscriptions":[{"Name":"s","Properties":{"ForwardTo":null,"LockDuration":null},
            "Rules":[{"Name":"r","Properties":{"Action":null,"SqlFilter":null,"FilterType":"Correlation",
                "CorrelationFilter":{"Label":"l","To":null,"Properties":null}}}]}]}]}]}}"#;
    let absent = r#"{"UserConfig":{"Namespaces":[{"Name":"a","Topics":[{"Name":"t","Subscriptions":[{"Name":"s",
        "Rules":[{"Name":"r","Properties":{"FilterType":"Correlation","CorrelationFilter":{"Label":"l"}}}]}]}]}]}}"#;
    assert_eq!(Config::parse(nulls), Config::parse(absent));
    // What a filter of this type must have.
    for (kind, filter) in [
        ("Correlation", r#""CorrelationFilter":null"#),
        ("Correlation", r#""CorrelationFilter":{"Label":null}"#),
        ("Sql", r#""SqlFilter":null"#),
        ("Sql", r#""SqlFilter":{"SqlExpression":null}"#),
    ] {
        let rule = format!(r#"[{{"Name":"r","Properties":{{"FilterType":"{kind}",{filter}}}}}]"#);
        let error = read_rules(&rule).expect_err(filter);
        assert_eq!(error.problems.len(), 1, "{error}");
    }
}

#[test]
fn the_default_file_of_the_official_emulator_is_parsed() {
    let config = valid("topics.json");
    let [topic] = &config.namespaces[0].topics[..] else {
        panic!("one topic is declared: {config:?}");
    };
    assert_eq!(topic.path.as_str(), "topic.1");
    assert_eq!(topic.description.default_message_time_to_live, Some(HOUR));
    let names = topic
        .subscriptions
        .iter()
        .map(|subscription| &*subscription.name);
    let expected = [
        "subscription.1",
        "subscription.2",
        "subscription.3",
        "subscription.4",
    ];
    assert!(names.eq(expected), "{topic:?}");
    let expected = EntityDescription {
        max_delivery_count: 3,
        default_message_time_to_live: Some(HOUR),
        ..EntityDescription::default()
    };
    assert_eq!(topic.subscriptions[0].description, expected);
    assert_eq!(
        topic.subscriptions[1].description,
        EntityDescription::default()
    );
    let mut by_expression = rule(
        "by-expression",
        sql("sys.MessageId = '123456' AND userProp1 = 'value1'", &[]),
    );
    by_expression.action = Action::parse("SET sys.To = 'Entity'", Parameters::new()).ok();
    let rules = [
        rule(
            "by-content-type",
            correlation(Correlation {
                content_type: Some("application/json".into()),
                ..Correlation::default()
            }),
        ),
        rule(
            "by-property",
            correlation(Correlation {
                properties: vec![("prop1".into(), "value1".into())],
                ..Correlation::default()
            }),
        ),
        rule("$Default", Filter::True),
        by_expression,
    ];
    let found = topic
        .subscriptions
        .iter()
        .flat_map(|subscription| &subscription.rules);
    assert!(found.eq(&rules), "{topic:?}");
}

#[test]
fn every_property_of_topics_and_subscriptions_is_parsed() {
    let config = valid("all-settings.json");
    let [prices, empty, other] = &config.namespaces[0].topics[..] else {
        panic!("three topics are declared: {config:?}");
    };
    let expected = EntityDescription {
        default_message_time_to_live: Some(24 * HOUR),
        status: EntityStatus::SendDisabled,
        requires_duplicate_detection: true,
        duplicate_detection_history_time_window: Duration::from_secs(5),
        auto_delete_on_idle: Some(Duration::from_secs(600)),
        max_size_in_megabytes: 1,
        max_message_size_in_kilobytes: Some(1024),
        enable_partitioning: true,
        ..EntityDescription::default()
    };
    assert_eq!(prices.description, expected);
    let expected = EntityDescription {
        requires_session: false,
        lock_duration: Duration::from_secs(5),
        max_delivery_count: 1,
        default_message_time_to_live: Some(HOUR),
        dead_lettering_on_message_expiration: true,
        dead_lettering_on_filter_evaluation_exceptions: false,
        status: EntityStatus::ReceiveDisabled,
        forward_to: Some(path("prices")),
        forward_dead_lettered_messages_to: Some(path("dead")),
        auto_delete_on_idle: Some(Duration::from_secs(300)),
        ..EntityDescription::default()
    };
    assert_eq!(prices.subscriptions[0].description, expected);
    let [_, us, asia] = &prices.subscriptions[..] else {
        panic!("three subscriptions are declared: {prices:?}");
    };
    for subscription in [us, asia] {
        assert_eq!(subscription.rules, [rule("$Default", Filter::True)]);
    }
    assert_eq!(
        (&empty.description, &empty.subscriptions[..]),
        (&EntityDescription::default(), &[][..])
    );
    assert_eq!(other.subscriptions, []);
}

#[test]
fn every_form_of_a_rule_is_parsed() {
    let config = valid("all-settings.json");
    let rules = &config.namespaces[0].topics[0].subscriptions[0].rules;
    let text = |text: &str| Some(text.into());
    let id = "01234567-89ab-cdef-0123-456789abcdef"
        .parse()
        .expect("a GUID");
    let values = [
        ("text", Value::text("2")),
        ("whole", Value::Signed(2)),
        ("huge", Value::Unsigned(u64::MAX)),
        ("half", Value::Float(-0.5)),
        ("yes", Value::Bool(true)),
        ("id", Value::Guid(id)),
    ];
    let values = values.into_iter();
    let mut first = rule(
        "$Default",
        correlation(Correlation {
            content_type: text("text/plain"),
            correlation_id: text("c"),
            label: text("l"),
            message_id: text("m"),
            reply_to: text("r"),
            reply_to_session_id: text("rs"),
            session_id: text("s"),
            to: text("t"),
            properties: values
                .map(|(name, value)| (name.into(), Encoded::from(&value)))
                .collect(),
        }),
    );
    let parameters = with([("@a", Value::Float(1.0))].into_iter());
    first.action = Action::parse("SET a = @a; REMOVE b", parameters).ok();
    let expected = [
        first,
        rule("sql", sql("a > @least", &[("@least", 7)])),
        rule("all", Filter::True),
        rule("none", Filter::False),
    ];
    assert_eq!(rules[..], expected);
}

#[test]
fn a_declared_rule_is_created_at_the_given_time() {
    let config = valid("topics.json");
    let subscription = &config.namespaces[0].topics[0].subscriptions[2];
    let now = Timestamp::from_millis(1_700_000_000_000);
    let rules: Vec<Rule> = subscription.rules_at(now).collect();
    assert_eq!(rules, [Rule::default_rule(now)]);
}

#[test]
fn an_invalid_rule_is_reported_with_its_position() {
    let text = r#"[{"Name":"r","Properties":{"FilterType":"Sql","SqlFilter":{"SqlExpression":"a == 1"}}}]"#;
    let error = read_rules(text).expect_err("this is not SQL");
    let [problem] = &error.problems[..] else {
        panic!("one problem: {error}");
    };
    let path = "UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules[0].Properties.SqlFilter.SqlExpression";
    assert_eq!(problem.path, path);
    let line = with_rules(text)
        .lines()
        .nth(1)
        .expect("two lines")
        .to_owned();
    let column = line.find("== 1").expect("it is there") + 2;
    assert_eq!(problem.position, Some(Position { line: 2, column }));
    assert_eq!(problem.value.as_deref(), Some(r#""a == 1""#));
    assert!(
        problem.message.contains("column 4: expected a value"),
        "{error}"
    );
}

#[test]
fn more_sql_filters_than_a_topic_may_have_are_refused() {
    let rule = |n| {
        format!(
            r#"{{"Name":"r{n}","Properties":{{"FilterType":"Sql","SqlFilter":{{"SqlExpression":"a = {n}"}}}}}}"#
        )
    };
    let rules = |count| (0..count).map(rule).collect::<Vec<_>>().join(",");
    let error = read_rules(&format!("[{}]", rules(2001))).expect_err("one too many");
    let problems: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "UserConfig.Namespaces[0].Topics[0]: the topic has 2001 SQL filters; allowed: at most 2000"
        ]
    );
    assert!(read_rules(&format!("[{}]", rules(2000))).is_ok());
}

#[test]
fn problems_of_a_topic_or_subscription_have_the_texts_of_a_file() {
    let words = |error: ConfigError| -> Vec<String> {
        error.problems.iter().map(ToString::to_string).collect()
    };
    let text = r#"{"LockDuration":"PT1M","Status":"Active","EnablePartitioning":true}"#;
    let current = EntityDescription::default();
    let error = read(text, EntityKind::Topic, Some(&current), Tier::Standard).expect_err("fixed");
    let found = words(error);
    assert!(
        found[0].starts_with("LockDuration: unknown key; known here: "),
        "{found:?}"
    );
    assert_eq!(
        found[1..],
        ["EnablePartitioning: true is not allowed; allowed: false, as it was created"]
    );
    let error = read("{}", EntityKind::Topic, None, Tier::Basic).expect_err("no topics");
    assert_eq!(
        words(error),
        ["Topic: t is not allowed; allowed: none: the basic tier has no topics"]
    );
    let current = EntityDescription {
        forward_to: Some(path("q")),
        ..EntityDescription::default()
    };
    let text = r#"{"RequiresSession":true,"ForwardTo":"","MaxDeliveryCount":0}"#;
    let error = read(
        text,
        EntityKind::Subscription,
        Some(&current),
        Tier::Standard,
    );
    assert_eq!(
        words(error.expect_err("fixed when it was made")),
        [
            "RequiresSession: true is not allowed; allowed: false, as it was created",
            "MaxDeliveryCount: 0 is not allowed; allowed: 1 to 2147483647",
        ]
    );
    let changed = read(
        r#"{"ForwardTo":""}"#,
        EntityKind::Subscription,
        Some(&current),
        Tier::Standard,
    );
    assert_eq!(changed, Ok(EntityDescription::default()));
}

fn values() -> impl Strategy<Value = Encoded> {
    let value = prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Signed),
        any::<f64>().prop_map(Value::Float),
        "\\PC{0,8}".prop_map(|text| Value::Text(text.into())),
        any::<i64>().prop_map(|milliseconds| Value::instant(milliseconds / 10_000)),
        any::<i64>().prop_map(Value::Span),
        proptest::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| Value::Binary(bytes.into())),
        Just(Value::Null),
        any::<u64>().prop_map(Value::Unsigned),
        (0..9_u64).prop_map(Value::Unsigned),
        // An int, a float and a symbol.
        any::<[u8; 4]>().prop_map(|digits| Value::Other([&[0x71], &digits[..]].concat().into())),
        any::<[u8; 4]>().prop_map(|digits| Value::Other([&[0x72], &digits[..]].concat().into())),
        Just(Value::Other(b"\xa3\x01a".into())),
    ];
    value
        .prop_map(|value| Encoded::from(&value))
        .prop_filter("one primitive", |value| {
            Encoded::from_amqp(value.as_amqp()).is_ok()
        })
}

#[test]
fn a_sql_filter_of_a_jms_subscription_is_its_selector_where_it_can_be_one() {
    for (expression, selector) in [
        (" n > 3", Some("n > 3")),
        ("EXISTS(a)", None),
        ("1 = 1", Some("1 = 1")),
    ] {
        let text = format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Name":"n","Emulator":{{"Tier":"premium"}},"Topics":[{{"Name":"t",
                "Subscriptions":[{{"Name":"d","Properties":{{"IsClientAffine":true,
                    "ClientAffineProperties":{{"ClientId":"c","IsDurable":true,"IsShared":false}}}},
                "Rules":[{{"Name":"r","Properties":{{"FilterType":"Sql","SqlFilter":{{"SqlExpression":"{expression}"}}}}}}]}}]}}]}}]}}}}"#
        );
        let config = Config::parse(&text).unwrap();
        let subscription = &config.namespaces[0].topics[0].subscriptions[0];
        let client = subscription.description.client.as_ref().unwrap();
        assert_eq!(client.selector.as_deref(), selector);
    }
}

#[test]
fn a_jms_selector_is_parsed_in_its_own_syntax() {
    let with = |filter: &str| {
        format!(r#"[{{"Name":"r","Properties":{{"FilterType":"Sql","SqlFilter":{filter}}}}}]"#)
    };
    let read = read_rules(&with(r#"{"Selector":"a BETWEEN 1 AND 2"}"#)).unwrap();
    let Filter::Sql(filter) = &read[0].filter else {
        panic!("it is a SQL filter: {read:?}");
    };
    assert_eq!(filter.selector_text(), Some("a BETWEEN 1 AND 2"));
    assert_eq!(filter.text(), "a >= 1 AND a <= 2");
    for (filter, message) in [
        (
            r#"{"Selector":"a BETWEEN"}"#,
            "is not a valid selector: column 10",
        ),
        (
            r#"{"Selector":"a = 1","SqlExpression":"a = 2"}"#,
            "SqlExpression",
        ),
        (r#"{"Selector":1}"#, "1 is a number"),
        ("{}", "the key \"SqlExpression\" is missing"),
    ] {
        let error = read_rules(&with(filter))
            .expect_err("it is wrong")
            .to_string();
        assert!(error.contains(message), "{error}");
    }
}

proptest! {
    #[test]
    fn exported_topic_properties_parse_to_themselves(
        topic in legal(EntityKind::Topic),
        subscription in legal(EntityKind::Subscription),
    ) {
        let text = properties_json(EntityKind::Topic, &topic).to_string();
        let again = read(&text, EntityKind::Topic, None, Tier::Premium);
        prop_assert_eq!(again, Ok(topic));
        let text = properties_json(EntityKind::Subscription, &subscription).to_string();
        let again = read(&text, EntityKind::Subscription, None, Tier::Premium);
        prop_assert_eq!(again, Ok(subscription));
    }

    #[test]
    fn exported_rules_parse_to_themselves(
        label in option::of("\\PC{0,8}"),
        named in proptest::collection::btree_map("\\PC{1,4}", values(), 1..4),
        value in values(),
        action in any::<bool>(),
    ) {
        let properties = named.into_iter().map(|(name, value)| (name.into(), value));
        let mut parameters = Parameters::new();
        parameters.add("@a", value);
        let filters = [
            correlation(Correlation {
                label: label.map(Into::into),
                properties: properties.collect(),
                ..Correlation::default()
            }),
            Filter::Sql(SqlFilter::parse("a = @a\n\tOR \"é\"\"\" IS NULL", parameters.clone()).unwrap()),
            Filter::Sql(SqlFilter::selector(" NOT (a BETWEEN 1 AND 2)").unwrap()),
            Filter::True,
            Filter::False,
        ];
        for filter in filters {
            let mut written = rule("r", filter);
            if action {
                written.action = Action::parse("SET a = @a", parameters.clone()).ok();
            }
            let read = read_again(&written);
            prop_assert_eq!(read, Ok(vec![written]));
        }
    }

    #[test]
    fn random_rules_do_not_panic_and_none_is_dropped(
        kind in "\"(Sql|Correlation|True|False|[A-Z]{0,3})\"",
        expression in "\\PC{0,12}|[a-c@'() =<>+]{0,12}",
        value in prop_oneof!["-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,3})?", "\"\\PC{0,4}\"", "true|null|\\[\\]", "\\{\"Amqp\":\"[0-9a-g]{0,6}\"\\}"],
    ) {
        let expression = serde_json::json!(expression);
        let text = format!(
            r#"[{{"Name":"r","Properties":{{"FilterType":{kind},"SqlFilter":{{"SqlExpression":{expression}}},
                "CorrelationFilter":{{"Properties":{{"a":{value}}}}},"Action":{{"SqlExpression":{expression}}}}}}},
               {{"Name":"q","Properties":{{"FilterType":"Sql","SqlFilter":{{"SqlExpression":{expression}}}}}}}]"#
        );
        match read_rules(&text) {
            Ok(rules) => prop_assert_eq!(rules.len(), 2),
            Err(error) => {
                let positions = error.problems.iter().map(|problem| problem.position);
                prop_assert!(positions.is_sorted(), "{}", error);
            }
        }
    }
}
