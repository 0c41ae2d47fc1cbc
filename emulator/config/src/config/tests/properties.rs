//! Tests each property of a queue: the errors are those of a file, and written values can be parsed again.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::option;
use proptest::prelude::*;
use servicebus_broker::{
    Audience, EntityKind, EntityStatus, PROPERTIES, Property, PropertyType, PropertyValue,
};

use super::super::duration::FOREVER;
use super::super::*;

fn path(text: &str) -> EntityPath {
    text.parse().expect("a legal name")
}

fn created(text: &str, tier: Tier) -> Result<EntityDescription, ConfigError> {
    read_properties(text, EntityKind::Queue, &path("q"), None, tier)
}

fn changed(text: &str, current: &EntityDescription) -> Result<EntityDescription, ConfigError> {
    read_properties(
        text,
        EntityKind::Queue,
        &path("q"),
        Some(current),
        Tier::Standard,
    )
}

fn problems(result: Result<EntityDescription, ConfigError>) -> Vec<String> {
    let error = result.expect_err("these properties are not legal");
    error.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn missing_properties_have_the_default_of_the_tier() {
    for tier in [Tier::Basic, Tier::Standard, Tier::Premium] {
        assert_eq!(created("{}", tier), Ok(EntityDescription::of_tier(tier)));
    }
}

#[test]
fn given_properties_replace_those_of_the_base() {
    let base = EntityDescription {
        max_delivery_count: 3,
        forward_to: Some(path("next")),
        forward_dead_lettered_messages_to: Some(path("dead")),
        default_message_time_to_live: Some(Duration::from_secs(60)),
        status: EntityStatus::Disabled,
        ..EntityDescription::default()
    };
    let text = r#"{"ForwardTo":"","DefaultMessageTimeToLive":"P10675199DT2H48M5.4775807S",
        "LockDuration":"PT30S","Status":"Active"}"#;
    let expected = EntityDescription {
        lock_duration: Duration::from_secs(30),
        forward_to: None,
        default_message_time_to_live: None,
        status: EntityStatus::Active,
        ..base.clone()
    };
    assert_eq!(changed(text, &base), Ok(expected));
    assert_eq!(changed("{}", &base), Ok(base));
}

#[test]
fn problems_of_properties_have_the_texts_of_a_file() {
    let text = r#"{"LockDurration":"PT1M","LockDuration":"PT6M","Status":1,
        "ForwardTo":"Orders","MaxDeliveryCount":0,"MaxMessageSizeInKilobytes":2048}"#;
    assert_eq!(
        problems(created(text, Tier::Standard)),
        [
            r#"LockDurration: unknown key; did you mean "LockDuration"?"#,
            r#"LockDuration: "PT6M" is not allowed; allowed: 5 s (PT5S) to 5 min (PT5M)"#,
            "Status: 1 is a number; allowed: a string",
            "MaxDeliveryCount: 0 is not allowed; allowed: 1 to 2147483647",
            "MaxMessageSizeInKilobytes: 2048 is not allowed; allowed: none: only the premium tier has large messages",
        ]
    );
    assert_eq!(problems(created("", Tier::Standard)), ["the text is empty"]);
    assert_eq!(
        problems(created("[]", Tier::Standard)),
        ["this is an array; allowed: an object"]
    );
}

#[test]
fn null_keeps_no_property_of_an_existing_entity() {
    let text = r#"{"ForwardTo":null}"#;
    assert!(created(text, Tier::Standard).is_ok());
    let current = EntityDescription {
        forward_to: Some(path("next")),
        ..EntityDescription::default()
    };
    let found = problems(changed(text, &current));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("ForwardTo: this is null"), "{found:?}");
}

#[test]
fn an_update_of_a_property_fixed_at_creation_is_refused() {
    let text = r#"{"RequiresDuplicateDetection":true,"EnablePartitioning":false,"RequiresSession":true,
        "MaxDeliveryCount":0}"#;
    assert_eq!(
        problems(changed(text, &EntityDescription::default())),
        [
            "RequiresDuplicateDetection: true is not allowed; allowed: false, as it was created",
            "RequiresSession: true is not allowed; allowed: false, as it was created",
            "MaxDeliveryCount: 0 is not allowed; allowed: 1 to 2147483647",
        ]
    );
}

#[test]
fn an_update_also_checks_the_unchanged_properties() {
    let current = EntityDescription {
        lock_duration: Duration::from_secs(400),
        ..EntityDescription::default()
    };
    let error = changed(r#" {"ForwardTo":"next"}"#, &current).expect_err("too long a lock");
    let [problem] = &error.problems[..] else {
        panic!("one problem: {error}");
    };
    assert_eq!(
        problem.to_string(),
        "LockDuration: 400 s is not allowed; allowed: 5 s (PT5S) to 5 min (PT5M)"
    );
    assert_eq!(problem.value.as_deref(), Some("400 s"));
    assert_eq!(problem.position, Some(Position { line: 1, column: 2 }));
}

#[test]
fn a_missing_target_is_reported_with_the_nearest_name() {
    let description = EntityDescription {
        forward_to: Some(path("biling")),
        forward_dead_lettered_messages_to: Some(path("Dead")),
        ..EntityDescription::default()
    };
    let names = ["billing", "dead", "orders"].map(path);
    let declared: BTreeSet<&EntityPath> = names.iter().collect();
    let found = missing_targets(Some(&path("orders")), description.targets(), &declared);
    let found: Vec<String> = found
        .into_iter()
        .map(|problem| ConfigProblem::from(problem).to_string())
        .collect();
    assert_eq!(
        found,
        [
            r#"ForwardTo: biling is not allowed; allowed: a queue or topic of the namespace; the nearest name is "billing""#
        ]
    );
}

/// Returns legal descriptions of entities of a kind in the premium tier.
pub(super) fn legal(kind: EntityKind) -> impl Strategy<Value = EntityDescription> {
    let seconds = |least: u64, most: u64| (least..=most).prop_map(Duration::from_secs);
    let target = || option::of("t[a-z]{0,3}".prop_map(|name| path(&name)));
    let durations = (
        seconds(5, 300),
        option::of((1_000_u64..10_000_000_000).prop_map(Duration::from_millis)),
        seconds(5, 604_800),
        option::of(seconds(300, FOREVER.as_secs())),
    );
    let numbers = (
        1..=2_147_483_647_u32,
        1..=81_920_u64,
        option::of(1024..=102_400_u32),
    );
    let flags = proptest::array::uniform5(any::<bool>());
    let status = proptest::sample::select(&EntityStatus::ALL[..]);
    let status = status.prop_filter("one of the kind", move |status| match kind {
        EntityKind::Queue => true,
        EntityKind::Topic => *status != EntityStatus::ReceiveDisabled,
        EntityKind::Subscription => *status != EntityStatus::SendDisabled,
    });
    (durations, numbers, flags, status, target(), target()).prop_map(
        move |(durations, numbers, flags, status, forward_to, dead)| {
            let has_no_target = forward_to.is_none() || kind == EntityKind::Topic;
            let drawn = EntityDescription {
                requires_session: flags[3] && has_no_target,
                lock_duration: durations.0,
                default_message_time_to_live: durations.1,
                duplicate_detection_history_time_window: durations.2,
                auto_delete_on_idle: durations
                    .3
                    .filter(|_| has_no_target || kind == EntityKind::Subscription),
                max_delivery_count: numbers.0,
                max_size_in_megabytes: numbers.1,
                max_message_size_in_kilobytes: numbers.2,
                dead_lettering_on_message_expiration: flags[0],
                dead_lettering_on_filter_evaluation_exceptions: flags[4],
                requires_duplicate_detection: flags[1],
                enable_partitioning: flags[2],
                status,
                forward_to,
                forward_dead_lettered_messages_to: dead,
                ..EntityDescription::default()
            };
            let mut description = EntityDescription::default();
            for property in Property::of(kind) {
                if let Some(value) = property.get(&drawn) {
                    property.set(&mut description, value);
                }
            }
            description
        },
    )
}

/// Returns a valid value that is not a default.
fn unusual(property: &Property) -> PropertyValue {
    let (least, most) = property.bounds.unwrap_or_default();
    let middle = least + most.min(100_000) / 2;
    match property.get(&EntityDescription::default()) {
        Some(PropertyValue::Flag(flag)) => PropertyValue::Flag(!flag),
        Some(PropertyValue::Number(_)) | None => PropertyValue::Number(middle),
        Some(PropertyValue::Duration(_)) => PropertyValue::Duration(Duration::from_secs(middle)),
        Some(PropertyValue::Endless(_)) => {
            PropertyValue::Endless(Some(Duration::from_secs(middle)))
        }
        Some(PropertyValue::Status(_)) => PropertyValue::Status(EntityStatus::Disabled),
        Some(PropertyValue::Target(_)) => PropertyValue::Target(Some(path("other"))),
        Some(PropertyValue::Text(_)) => PropertyValue::Text(Some("a remark".into())),
    }
}

/// Returns a namespace with one entity of each kind; those with the property have this value.
fn with(property: &Property, value: &PropertyValue) -> NamespaceConfig {
    let described = |kind| {
        let mut description = EntityDescription::default();
        if Property::named(kind, property.name).is_some() {
            property.set(&mut description, value.clone());
        }
        description
    };
    let subscription = SubscriptionConfig {
        name: "s".to_owned(),
        description: described(EntityKind::Subscription),
        rules: vec![Rule::default_rule(Timestamp::from_millis(0))],
    };
    let mut namespace = NamespaceConfig::new("a");
    namespace.settings.tier = Tier::Premium;
    namespace.queues = vec![
        (path("other"), EntityDescription::default()),
        (path("q"), described(EntityKind::Queue)),
    ];
    namespace.topics = vec![TopicConfig {
        path: path("t"),
        description: described(EntityKind::Topic),
        subscriptions: vec![subscription],
    }];
    namespace
}

/// Returns the properties of configurations.
fn configured() -> impl Iterator<Item = &'static Property> {
    let properties = PROPERTIES.iter();
    properties.filter(|property| property.audience == Audience::Everyone)
}

#[test]
fn every_exported_property_parses_to_itself() {
    for property in configured() {
        let namespace = with(property, &unusual(property));
        let exported = namespace.to_json().to_string();
        assert!(
            exported.contains(&format!("{:?}:", property.name)),
            "{exported}"
        );
        let read = Config::parse(&exported).expect("what is exported is legal");
        assert_eq!(read.namespaces, [namespace], "{}", property.name);
    }
}

#[test]
fn out_of_range_properties_are_reported_with_entity_and_value() {
    for property in configured() {
        let Some((least, most)) = property.bounds else {
            continue;
        };
        for (bound, beyond) in [(least, least.checked_sub(1)), (most, most.checked_add(1))] {
            let Some(beyond) = beyond else { continue };
            let is_number = property.value_type == PropertyType::Number;
            let (value, written) = match is_number {
                true => (PropertyValue::Number(beyond), beyond.to_string()),
                false => {
                    let duration = Duration::from_secs(beyond);
                    let value = match property.value_type == PropertyType::Endless {
                        true => PropertyValue::Endless(Some(duration)),
                        false => PropertyValue::Duration(duration),
                    };
                    (value, duration::format(duration))
                }
            };
            let exported = with(property, &value).to_json().to_string();
            let error = Config::parse(&exported).expect_err("it is out of bounds");
            let kinds = [
                EntityKind::Queue,
                EntityKind::Topic,
                EntityKind::Subscription,
            ];
            let having = kinds.map(|kind| Property::named(kind, property.name).is_some());
            let entities = ["Queues[1]", "Topics[0]", "Topics[0].Subscriptions[0]"];
            let entities = entities.into_iter().zip(having).filter(|(_, has)| *has);
            for ((entity, _), problem) in entities.clone().zip(&error.problems) {
                let location = format!(
                    "UserConfig.Namespaces[0].{entity}.Properties.{}",
                    property.name
                );
                assert_eq!(problem.path, location);
                assert_eq!(
                    problem.value.as_deref().map(|text| text.trim_matches('"')),
                    Some(&*written)
                );
                let allowed = problem.allowed.as_deref().unwrap_or_default();
                let bound = match is_number {
                    true => bound.to_string(),
                    false => duration::format(Duration::from_secs(bound)),
                };
                assert!(allowed.contains(&bound), "{bound}: {allowed}");
            }
            assert_eq!(error.problems.len(), entities.count(), "{error}");
        }
    }
}

proptest! {
    #[test]
    fn exported_queue_properties_parse_to_themselves(queue in legal(EntityKind::Queue)) {
        let text = properties_json(EntityKind::Queue, &queue).to_string();
        prop_assert_eq!(created(&text, Tier::Premium), Ok(queue));
    }

    #[test]
    fn random_properties_texts_do_not_panic(text in "\\PC*") {
        let _ = created(&text, Tier::Basic);
    }

    #[test]
    fn random_property_values_do_not_panic(
        property in proptest::sample::select(Vec::from_iter(Property::of(EntityKind::Queue))),
        value in prop_oneof!["-?(0|[1-9][0-9]{0,24})", "\"[PTDM0-9.]{0,8}\"", "\"[a-c]{0,2}\"", "true|null|\\{\\}"],
    ) {
        let key = property.name;
        if let Err(error) = created(&format!("{{\"{key}\":{value}}}"), Tier::Standard) {
            prop_assert!(error.problems.iter().all(|problem| problem.path == key), "{}", error);
        }
    }
}
