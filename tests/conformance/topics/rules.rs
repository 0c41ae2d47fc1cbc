//! The rules of a subscription, as its rule manager makes, shows and removes them.
//!
//! Source: topic-filters, service-bus-amqp-request-response (add, remove and enumerate rules).

use std::fmt::Debug;
use std::future::Future;
use std::time::{Duration, SystemTime};

use servicebus_harness::azservicebus::ServiceBusRuleManager;
use servicebus_harness::azservicebus::administration::{
    CorrelationRuleFilter, FalseRuleFilter, RuleAction, RuleFilter, RuleProperties, SqlRuleAction,
    SqlRuleFilter, TrueRuleFilter,
};

use super::{bus, change, expect, price, property};
use crate::conformance::client::{
    Client, assert_refused, bodies, complete_all, connected, done, receive, receive_nothing, send,
    subscriber,
};

#[tokio::test]
async fn configured_and_default_rules_are_listed() {
    let (_servicebus, mut client) = connected(bus()).await;
    let all = rules_of(&mut client, "prices", "all").await;
    assert_eq!(names(&all), [RuleProperties::DEFAULT_RULE_NAME]);
    assert_eq!(all[0].filters, RuleFilter::True(TrueRuleFilter));
    assert!(matches!(all[0].actions, RuleAction::Empty(_)), "{all:?}");
    let created: SystemTime = all[0].created_at.expect("it was created once").into();
    let age = created.elapsed().unwrap_or_default();
    assert!(age < Duration::from_secs(60), "created {age:?} ago");

    let cheap = rules_of(&mut client, "prices", "cheap").await;
    assert_eq!(names(&cheap), ["below-ten"]);
    assert_eq!(expression(&cheap[0]), "price < 10");
    let eu = rules_of(&mut client, "prices", "eu").await;
    assert_eq!(names(&eu), ["of-the-eu"]);
    assert_eq!(eu[0].filters, RuleFilter::Correlation(of_region("eu")));
    let marked = rules_of(&mut client, "alarms", "marked").await;
    let raised = marked.iter().find(|rule| rule.name == "raised");
    let RuleAction::Sql(action) = &raised.expect("it is configured").actions else {
        panic!("{marked:?}");
    };
    assert!(action.expression.starts_with("SET level = level + 1;"));
}

#[tokio::test]
async fn added_rules_are_listed_unchanged() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut manager = manager(&mut client, "prices", "all").await;
    let whole = CorrelationRuleFilter::builder()
        .correlation_id("c")
        .message_id("m")
        .to("t")
        .reply_to("r")
        .subject("s")
        .session_id("i")
        .reply_to_session_id("ri")
        .content_type("text/plain")
        .properties(
            [
                ("text".to_owned(), "x".to_owned().into()),
                ("number".to_owned(), 5_i32.into()),
                ("long".to_owned(), 5_i64.into()),
                ("yes".to_owned(), true.into()),
            ]
            .into_iter()
            .collect(),
        )
        .build();
    let halve = SqlRuleAction::new("SET price = price / 2;");
    let by_price = SqlRuleFilter::new("Price >= 10 AND [my region] LIKE 'e%'");
    added(manager.create_rule("by-price", by_price)).await;
    added(manager.create_rule("halved", (SqlRuleFilter::new("price = 4"), halve))).await;
    added(manager.create_rule("whole", whole.clone())).await;
    added(manager.create_rule("always", TrueRuleFilter)).await;
    added(manager.create_rule("never", FalseRuleFilter)).await;

    let rules = shown(&mut manager).await;
    let of = |name| {
        let rule = rules.iter().find(|rule| rule.name == name);
        rule.unwrap_or_else(|| panic!("{name} is shown: {rules:?}"))
    };
    assert_eq!(rules.len(), 6);
    assert_eq!(
        expression(of("by-price")),
        "Price >= 10 AND [my region] LIKE 'e%'"
    );
    assert_eq!(expression(of("halved")), "price = 4");
    assert!(matches!(&of("halved").actions, RuleAction::Sql(action)
        if action.expression == "SET price = price / 2;"));
    assert_eq!(of("whole").filters, RuleFilter::Correlation(whole));
    assert!(matches!(of("whole").actions, RuleAction::Empty(_)));
    // The SDK sends both of them as expressions.
    assert_eq!(expression(of("always")), "1=1");
    assert_eq!(expression(of("never")), "1=0");
}

#[tokio::test]
async fn rules_apply_to_later_messages() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut manager = manager(&mut client, "prices", "all").await;
    send(&mut client, "prices", [price("before", 50)]).await;
    remove(&mut manager, RuleProperties::DEFAULT_RULE_NAME).await;
    // The SDK takes the answer that there are none, 204, for an error.
    assert_refused(manager.get_rules(), &[]).await;
    send(&mut client, "prices", [price("none", 50)]).await;
    added(manager.create_rule("very-dear", SqlRuleFilter::new("price > 30"))).await;
    added(manager.create_rule("uk", of_region("uk"))).await;
    let messages = [price("dear", 31), change("eu", "eu"), change("uk", "uk")];
    send(&mut client, "prices", messages).await;
    remove(&mut manager, "very-dear").await;
    send(&mut client, "prices", [price("too late", 31)]).await;
    expect(&mut client, "all", &["before", "dear", "uk"]).await;
}

#[tokio::test]
async fn an_action_modifies_its_copy_and_sets_the_rule_name() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut manager = manager(&mut client, "prices", "all").await;
    remove(&mut manager, RuleProperties::DEFAULT_RULE_NAME).await;
    let change = "SET sys.Label = 'half'; SET price = price / 2; SET region = 'eu'";
    let rule = (
        SqlRuleFilter::new("price >= 10"),
        SqlRuleAction::new(change),
    );
    added(manager.create_rule("halved", rule)).await;
    send(&mut client, "prices", [price("a", 30), price("b", 9)]).await;

    let mut receiver = subscriber(&mut client, "prices", "all").await;
    let messages = receive(&mut receiver, 1).await;
    assert_eq!(bodies(&messages), ["a"]);
    assert_eq!(messages[0].subject(), Some("half"));
    assert_eq!(property(&messages[0], "price"), "Some(Int(15))");
    assert_eq!(property(&messages[0], "region"), r#"Some(String("eu"))"#);
    assert_eq!(
        property(&messages[0], "RuleName"),
        r#"Some(String("halved"))"#
    );
    complete_all(&mut receiver, &messages).await;
    receive_nothing(&mut receiver).await;
}

#[tokio::test]
async fn a_duplicate_rule_name_is_refused() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut manager = manager(&mut client, "prices", "cheap").await;
    let adding = manager.create_rule("below-ten", TrueRuleFilter);
    assert_refused(adding, &["409"]).await;
    assert_eq!(expression(&shown(&mut manager).await[0]), "price < 10");
}

#[tokio::test]
async fn a_missing_rule_cannot_be_removed() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut manager = manager(&mut client, "prices", "all").await;
    assert_refused(manager.delete_rule("missing"), &["404"]).await;
    assert_eq!(shown(&mut manager).await.len(), 1);
}

#[tokio::test]
async fn an_invalid_filter_is_refused() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut manager = manager(&mut client, "prices", "all").await;
    for wrong in ["price <", "price = 'open", "sys.Nothing = 1", ""] {
        let adding = manager.create_rule("wrong", SqlRuleFilter::new(wrong));
        assert_refused(adding, &["400"]).await;
    }
    let rule = (SqlRuleFilter::new("1=1"), SqlRuleAction::new("DROP price"));
    assert_refused(manager.create_rule("wrong", rule), &["400"]).await;
    let rules = shown(&mut manager).await;
    assert_eq!(names(&rules), [RuleProperties::DEFAULT_RULE_NAME]);
}

#[tokio::test]
async fn only_a_subscription_that_exists_has_rules() {
    let (_servicebus, mut client) = connected(bus()).await;
    for (topic, subscription) in [("missing", "all"), ("prices", "missing")] {
        let opening = client.create_rule_manager(topic, subscription);
        assert_refused(opening, &["could not be found"]).await;
    }
}

async fn manager(client: &mut Client, topic: &str, subscription: &str) -> ServiceBusRuleManager {
    done(
        "the rule manager",
        client.create_rule_manager(topic, subscription),
    )
    .await
}

async fn rules_of(client: &mut Client, topic: &str, subscription: &str) -> Vec<RuleProperties> {
    let mut manager = manager(client, topic, subscription).await;
    let rules = shown(&mut manager).await;
    done("the rule manager's end", manager.dispose()).await;
    rules
}

async fn shown(manager: &mut ServiceBusRuleManager) -> Vec<RuleProperties> {
    done("the rules", manager.get_rules()).await
}

/// Waits for a rule to be added; the SDK has no name for what it takes as its filter.
async fn added<E: Debug>(adding: impl Future<Output = Result<(), E>>) {
    done("the answer", adding).await;
}

async fn remove(manager: &mut ServiceBusRuleManager, name: &str) {
    done("the answer", manager.delete_rule(name)).await;
}

fn names(rules: &[RuleProperties]) -> Vec<&str> {
    rules.iter().map(|rule| rule.name.as_str()).collect()
}

/// The condition of a rule that has one.
fn expression(rule: &RuleProperties) -> &str {
    let RuleFilter::Sql(filter) = &rule.filters else {
        panic!("{rule:?} has an expression");
    };
    &filter.expression
}

/// What `eu` has, for any region.
fn of_region(region: &str) -> CorrelationRuleFilter {
    CorrelationRuleFilter::builder()
        .subject("changed")
        .properties(
            [("region".to_owned(), region.to_owned().into())]
                .into_iter()
                .collect(),
        )
        .build()
}
