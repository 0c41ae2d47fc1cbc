//! Tests what the builder writes, and that the emulator accepts it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use servicebus_broker::{EntityKind, Property};
use servicebus_config::config::Config;

use super::*;
use crate::message::PropertyValue;

const MINUTE: Duration = Duration::from_secs(60);

/// Returns the namespace that a topology writes.
fn namespace(topology: &Topology) -> Value {
    let document: Value = serde_json::from_str(&document::text(topology)).expect("JSON is written");
    document["UserConfig"]["Namespaces"][0].clone()
}

fn problems(topology: &Topology) -> Vec<String> {
    let error = topology.resolve().unwrap_err().to_string();
    let problems = error.strip_prefix("the topology is invalid:\n");
    let problems = problems.unwrap_or_else(|| panic!("it cannot be read: {error}"));
    problems.lines().map(str::to_owned).collect()
}

/// Returns a subscription with all properties set except `requires_session`, also of its rules.
fn eu() -> Subscription {
    let correlation = Correlation::new()
        .content_type("application/json")
        .correlation_id("c-1")
        .subject("changed")
        .message_id("m-1")
        .reply_to("answers")
        .reply_to_session_id("s-2")
        .session_id("s-1")
        .to("shop")
        .application_property("region", "eu")
        .application_property("level", 2)
        .application_property("rate", 0.5)
        .application_property("final", true);
    Subscription::new("eu")
        .lock_duration(MINUTE / 2)
        .max_delivery_count(1)
        .default_time_to_live(60 * MINUTE)
        .dead_lettering_on_message_expiration(true)
        .dead_lettering_on_filter_evaluation_exceptions(false)
        .forward_to("orders")
        .forward_dead_lettered_messages_to("dead")
        .auto_delete_on_idle(10 * MINUTE)
        .status(EntityStatus::ReceiveDisabled)
        .rule(Rule::sql("cheap", "price < 10").action("SET tag = 'cheap'"))
        .rule(Rule::correlation("exact", correlation))
        .rule(Rule::all("every"))
        .rule(Rule::none("never"))
}

/// Returns a topic with all properties set.
fn prices() -> Topic {
    Topic::new("prices")
        .default_time_to_live(60 * MINUTE)
        .requires_duplicate_detection(true)
        .duplicate_detection_window(5 * MINUTE)
        .auto_delete_on_idle(10 * MINUTE)
        .status(EntityStatus::SendDisabled)
        .max_size_in_megabytes(1)
        .max_message_size_in_kilobytes(2048)
        .enable_partitioning(true)
        .subscription(eu())
        .subscription(Subscription::new("all"))
}

/// Returns a queue with all properties set except `requires_session` and `forward_to`.
fn orders() -> Queue {
    Queue::new("orders")
        .max_delivery_count(3)
        .lock_duration(MINUTE / 2)
        .default_time_to_live(60 * MINUTE)
        .dead_lettering_on_message_expiration(true)
        .requires_duplicate_detection(true)
        .duplicate_detection_window(5 * MINUTE)
        .forward_dead_lettered_messages_to("dead")
        .auto_delete_on_idle(10 * MINUTE)
        .status(EntityStatus::SendDisabled)
        .max_size_in_megabytes(1)
        .max_message_size_in_kilobytes(2048)
        .enable_partitioning(true)
}

/// Returns a topology with all settings.
fn full() -> Topology {
    Topology::new()
        .queue(orders())
        .queue(Queue::new("inbox").forward_to("orders"))
        .queue(Queue::new("dead"))
        .topic(prices())
        .expiry(Expiry::OnReceive)
        .locks_on_detach(LocksOnDetach::Release)
        .failed_forwards(FailedForwards::DeadLetter)
        .forward_to_disabled(ForwardToDisabled::Deliver)
        .batch_limit(BatchLimit::Messages)
        .idle_timeouts(IdleTimeouts::Service)
        .tier(Tier::Premium)
}

/// Returns the names of the properties that a builder wrote.
fn written(properties: &Value) -> BTreeSet<&str> {
    let members = properties.as_object().expect("an object");
    members.keys().map(String::as_str).collect()
}

#[test]
fn the_builder_has_every_property_of_each_kind() {
    let known = |kind| BTreeSet::from_iter(Property::of(kind).map(|property| property.name));
    let queue = orders().requires_session(true).forward_to("dead");
    let subscription = eu().requires_session(true);
    assert_eq!(written(&queue.properties()), known(EntityKind::Queue));
    assert_eq!(written(&prices().properties()), known(EntityKind::Topic));
    let properties = subscription.properties();
    assert_eq!(written(&properties), known(EntityKind::Subscription));
}

#[test]
fn the_builder_writes_the_official_format() {
    let namespace = namespace(&full());
    assert_eq!(namespace["Name"], "sbemulatorns");
    assert_eq!(
        namespace["Queues"],
        json!([
            { "Name": "orders", "Properties": {
                "MaxDeliveryCount": 3,
                "LockDuration": "PT30S",
                "DefaultMessageTimeToLive": "PT1H",
                "DeadLetteringOnMessageExpiration": true,
                "RequiresDuplicateDetection": true,
                "DuplicateDetectionHistoryTimeWindow": "PT5M",
                "ForwardDeadLetteredMessagesTo": "dead",
                "AutoDeleteOnIdle": "PT10M",
                "Status": "SendDisabled",
                "MaxSizeInMegabytes": 1,
                "MaxMessageSizeInKilobytes": 2048,
                "EnablePartitioning": true,
            }},
            { "Name": "inbox", "Properties": { "ForwardTo": "orders" } },
            { "Name": "dead", "Properties": {} },
        ])
    );
    assert_eq!(
        namespace["Emulator"],
        json!({
            "Expiry": "on-receive",
            "LocksOnDetach": "release",
            "FailedForwards": "dead-letter",
            "ForwardToDisabled": "deliver",
            "BatchLimit": "messages",
            "IdleTimeouts": "service",
            "Tier": "premium",
        })
    );
}

#[test]
fn the_builder_writes_topics_in_the_official_format() {
    let namespace = namespace(&full());
    assert_eq!(
        namespace["Topics"],
        json!([{ "Name": "prices",
            "Properties": {
                "DefaultMessageTimeToLive": "PT1H",
                "RequiresDuplicateDetection": true,
                "DuplicateDetectionHistoryTimeWindow": "PT5M",
                "AutoDeleteOnIdle": "PT10M",
                "Status": "SendDisabled",
                "MaxSizeInMegabytes": 1,
                "MaxMessageSizeInKilobytes": 2048,
                "EnablePartitioning": true,
            },
            "Subscriptions": [
                { "Name": "eu",
                    "Properties": {
                        "LockDuration": "PT30S",
                        "MaxDeliveryCount": 1,
                        "DefaultMessageTimeToLive": "PT1H",
                        "DeadLetteringOnMessageExpiration": true,
                        "DeadLetteringOnFilterEvaluationExceptions": false,
                        "ForwardTo": "orders",
                        "ForwardDeadLetteredMessagesTo": "dead",
                        "AutoDeleteOnIdle": "PT10M",
                        "Status": "ReceiveDisabled",
                    },
                    "Rules": rules(),
                },
                { "Name": "all", "Properties": {}, "Rules": [] },
            ],
        }])
    );
}

/// The rules of [`prices`].
fn rules() -> Value {
    json!([
        { "Name": "cheap", "Properties": {
            "FilterType": "Sql",
            "SqlFilter": { "SqlExpression": "price < 10" },
            "Action": { "SqlExpression": "SET tag = 'cheap'" },
        }},
        { "Name": "exact", "Properties": {
            "FilterType": "Correlation",
            "CorrelationFilter": {
                "ContentType": "application/json",
                "CorrelationId": "c-1",
                "Label": "changed",
                "MessageId": "m-1",
                "ReplyTo": "answers",
                "ReplyToSessionId": "s-2",
                "SessionId": "s-1",
                "To": "shop",
                "Properties": { "region": "eu", "level": 2, "rate": 0.5, "final": true },
            },
        }},
        { "Name": "every", "Properties": { "FilterType": "True" } },
        { "Name": "never", "Properties": { "FilterType": "False" } },
    ])
}

#[test]
fn written_topologies_are_valid() {
    let resolved = full().resolve().expect("everything is legal");
    let namespace = &resolved.config.namespaces[0];
    assert_eq!(namespace.queues.len(), 3);
    let [eu, all] = &namespace.topics[0].subscriptions[..] else {
        panic!("two subscriptions are declared: {namespace:?}");
    };
    assert_eq!((eu.rules.len(), all.rules.len()), (4, 1));
}

#[test]
fn an_invalid_rule_is_reported_with_its_path() {
    let wrong = [
        Rule::sql("a", "a ="),
        Rule::all("b").action("SET a"),
        Rule::correlation("c", Correlation::new()),
        Rule::correlation(
            "d",
            Correlation::new().application_property("x", PropertyValue::Null),
        ),
        Rule::correlation("e", Correlation::new().application_property("x", f64::NAN)),
    ];
    let subscription = wrong
        .into_iter()
        .fold(Subscription::new("s"), Subscription::rule);
    let topology = Topology::new().topic(Topic::new("t").subscription(subscription));
    let found = problems(&topology);
    let at = "configuration: UserConfig.Namespaces[0].Topics[0].Subscriptions[0].Rules";
    let expected = [
        r#"[0].Properties.SqlFilter.SqlExpression: "a =" is not a valid SQL filter: column 4: "#,
        r#"[1].Properties.Action.SqlExpression: "SET a" is not a valid action: column 6: "#,
        "[2].Properties.CorrelationFilter: names no property",
        "[3].Properties.CorrelationFilter.Properties.x: this is null",
        "[4].Properties.CorrelationFilter.Properties.x: this is null",
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(&format!("{at}{expected}")), "{found}");
    }
}

#[test]
fn every_status_and_tier_is_accepted() {
    let queue = |status| Queue::new(format!("queue-{status:?}")).status(status);
    let basic = Topology::new()
        .queue(queue(EntityStatus::Active))
        .queue(queue(EntityStatus::Disabled))
        .queue(queue(EntityStatus::SendDisabled))
        .queue(queue(EntityStatus::ReceiveDisabled))
        .tier(Tier::Basic);
    let mut topics = basic.clone();
    for status in [EntityStatus::Active, EntityStatus::Disabled] {
        let subscription = Subscription::new("s").status(status);
        let topic = Topic::new(format!("topic-{status:?}")).status(status);
        topics = topics.topic(topic.subscription(subscription));
    }
    let standard = topics.clone().tier(Tier::Standard);
    for topology in [basic, standard, topics.tier(Tier::Premium)] {
        let resolved = topology.resolve();
        assert!(resolved.is_ok(), "{resolved:?}");
    }
}

#[test]
fn the_defaults_are_those_of_the_emulator() {
    let written = Topology::new()
        .expiry(Expiry::default())
        .locks_on_detach(LocksOnDetach::default())
        .failed_forwards(FailedForwards::default())
        .forward_to_disabled(ForwardToDisabled::default())
        .batch_limit(BatchLimit::default())
        .idle_timeouts(IdleTimeouts::default())
        .tier(Tier::default())
        .queue(Queue::new("queue.1").status(EntityStatus::default()));
    let resolved = written.resolve().expect("defaults are legal");
    assert_eq!(resolved.config, Config::default());
}

#[test]
fn unset_settings_are_not_written() {
    assert_eq!(namespace(&Topology::new()).get("Emulator"), None);
}

#[test]
fn builder_errors_equal_those_of_a_file() {
    let topology = Topology::new()
        .queue(
            Queue::new("orders")
                .forward_to("biling")
                .max_message_size_in_kilobytes(2048),
        )
        .queue(Queue::new("billing").max_size_in_megabytes(u64::MAX));
    let mut found = problems(&topology);
    found.sort();
    let at = "configuration: UserConfig.Namespaces[0].Queues";
    assert_eq!(
        found,
        [
            format!(
                r#"{at}[0].Properties.ForwardTo: "biling" is not allowed; allowed: a queue or topic of the namespace; the nearest name is "billing""#
            ),
            format!(
                "{at}[0].Properties.MaxMessageSizeInKilobytes: 2048 is not allowed; allowed: none: only the premium tier has large messages"
            ),
            format!(
                "{at}[1].Properties.MaxSizeInMegabytes: 18446744073709551615 is not allowed; allowed: 1 to 81920"
            ),
        ]
    );
}

#[test]
fn a_file_cannot_be_extended() {
    let extended = [
        Topology::file("a.json").queue(Queue::new("q")),
        Topology::file("a.json").topic(Topic::new("t")),
        Topology::file("a.json").tier(Tier::Basic),
        Topology::file("a.json").failed_forwards(FailedForwards::DeadLetter),
    ];
    for topology in extended {
        assert_eq!(
            topology.resolve().unwrap_err().to_string(),
            "the topology file a.json cannot be extended by the builder: declare everything in one of the two"
        );
    }
}
