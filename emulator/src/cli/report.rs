//! What `check` prints: a configuration as it takes effect, defaults written out.

use std::fmt::{self, Write as _};
use std::path::Path;

use serde_json::Value;
use servicebus_broker::Tier;
use servicebus_broker::filter::{Filter, Rule};

use crate::auth::Jwt;
use crate::config::words::{self, word};
use crate::config::{
    Config, ConfigError, NamespaceConfig, SubscriptionConfig, TopicConfig, duration,
    properties_json, rule_json, subscription_json, topic_json,
};

/// Width of the names of a namespace's settings: as those of its queues, the longest of which this is.
const WIDTH: usize = "DuplicateDetectionHistoryTimeWindow".len();

/// What a valid file declares; every problem of another.
pub fn run_check(path: &Path) -> Result<String, ConfigError> {
    Config::from_file(path).map(|config| describe(&config))
}

/// The configuration with every effective value, one line each.
pub fn describe(config: &Config) -> String {
    let mut text = String::new();
    for (index, namespace) in config.namespaces.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = write_namespace(&mut text, namespace);
    }
    text
}

fn write_namespace(text: &mut String, namespace: &NamespaceConfig) -> fmt::Result {
    let settings = &namespace.settings;
    writeln!(text, "namespace {}", namespace.name)?;
    let jwt = jwt(&namespace.jwt);
    let lines = [
        ("Tier", word(&words::TIERS, &settings.tier)),
        ("Expiry", word(&words::EXPIRY, &settings.expiry)),
        (
            "LocksOnDetach",
            word(&words::LOCKS_ON_DETACH, &settings.locks_on_detach),
        ),
        (
            "FailedForwards",
            word(&words::FAILED_FORWARDS, &settings.failed_forwards),
        ),
        (
            "ForwardToDisabled",
            word(&words::FORWARD_TO_DISABLED, &settings.forward_to_disabled),
        ),
        (
            "BatchLimit",
            word(&words::BATCH_LIMIT, &settings.batch_limit),
        ),
        (
            "IdleTimeouts",
            word(&words::IDLE_TIMEOUTS, &settings.idle_timeouts),
        ),
        (
            "TokenCheck",
            word(&words::TOKEN_CHECK, &namespace.token_check),
        ),
        ("Jwt", jwt.as_str()),
    ];
    for (name, value) in lines {
        writeln!(text, "  {name:WIDTH$}    {value}")?;
    }
    if let Some(address) = &namespace.address {
        writeln!(text, "  {:WIDTH$}    {address}", "Address")?;
    }
    for key in &namespace.keys {
        writeln!(text, "  key {}: {}", key.name, key.claims)?;
    }
    if namespace.queues.is_empty() {
        writeln!(text, "  no queues")?;
    }
    for (path, queue) in &namespace.queues {
        writeln!(text, "  queue {path}")?;
        let properties = with_message_size(properties_json(queue), settings.tier);
        write_properties(text, "    ", &properties)?;
    }
    for topic in &namespace.topics {
        write_topic(text, topic, settings.tier)?;
    }
    Ok(())
}

fn write_topic(text: &mut String, topic: &TopicConfig, tier: Tier) -> fmt::Result {
    writeln!(text, "  topic {}", topic.path)?;
    let properties = with_message_size(topic_json(&topic.description), tier);
    write_properties(text, "    ", &properties)?;
    for subscription in &topic.subscriptions {
        write_subscription(text, subscription)?;
    }
    Ok(())
}

fn write_subscription(text: &mut String, subscription: &SubscriptionConfig) -> fmt::Result {
    writeln!(text, "    subscription {}", subscription.name)?;
    let properties = subscription_json(&subscription.description);
    write_properties(text, "      ", &properties)?;
    for rule in &subscription.rules {
        writeln!(text, "      rule {}: {}", rule.name, selection(rule))?;
        if let Some(action) = &rule.action {
            let parameters = &rule_json(rule)["Action"]["Parameters"];
            let action = expression(action.text(), parameters);
            writeln!(text, "        action {action}")?;
        }
    }
    Ok(())
}

/// Which messages a rule selects.
fn selection(rule: &Rule) -> String {
    let properties = rule_json(rule);
    match &rule.filter {
        Filter::True => "every message".to_owned(),
        Filter::False => "no message".to_owned(),
        Filter::Sql(filter) => expression(filter.text(), &properties["SqlFilter"]["Parameters"]),
        Filter::Correlation(_) => correlation(&properties["CorrelationFilter"]),
    }
}

fn correlation(filter: &Value) -> String {
    let (user, system): (Vec<_>, Vec<_>) = filter
        .as_object()
        .into_iter()
        .flatten()
        .partition(|(name, _)| *name == "Properties");
    let user = user.into_iter().filter_map(|(_, user)| user.as_object());
    let system = system
        .into_iter()
        .map(|(name, value)| condition("sys.", name, value));
    let user = user
        .flatten()
        .map(|(name, value)| condition("", name, value));
    system.chain(user).collect::<Vec<_>>().join(" and ")
}

fn condition(scope: &str, name: &str, value: &Value) -> String {
    format!("{scope}{} is {value}", one_line(name))
}

/// An expression on one line, with the values of its parameters.
fn expression(text: &str, parameters: &Value) -> String {
    let text = one_line(text);
    if parameters.is_null() {
        return text;
    }
    format!("{text} with {parameters}")
}

/// A text with its line ends and the like as escapes.
fn one_line(text: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// The properties with the largest message of the tier, where they have none of their own.
fn with_message_size(mut properties: Value, tier: Tier) -> Value {
    let size = &mut properties["MaxMessageSizeInKilobytes"];
    if size.is_null() {
        *size = (tier.max_message_size() / 1024).into();
    }
    properties
}

fn write_properties(text: &mut String, indent: &str, properties: &Value) -> fmt::Result {
    let properties = properties.as_object();
    let names = properties
        .into_iter()
        .flat_map(|properties| properties.keys());
    let width = names.map(String::len).max().unwrap_or_default();
    for (name, value) in properties.into_iter().flatten() {
        writeln!(text, "{indent}{name:width$}  {}", readable(name, value))?;
    }
    Ok(())
}

/// A value as people say it, where the format has a code for it.
fn readable(name: &str, value: &Value) -> String {
    let Some(text) = value.as_str() else {
        return value.to_string();
    };
    let endless = text == duration::format(duration::FOREVER);
    match (name, text) {
        (_, "") => "none",
        ("AutoDeleteOnIdle", _) if endless => "never",
        _ if endless => "for ever",
        _ => text,
    }
    .to_owned()
}

fn jwt(jwt: &Jwt) -> String {
    match jwt {
        Jwt::Unset => "accept on loopback if every key has all rights, else refuse".to_owned(),
        Jwt::Accept => "accept".to_owned(),
        Jwt::Refuse => "refuse".to_owned(),
        Jwt::Check(keys) => {
            let audience = keys.audience.as_ref();
            let audience = audience.map_or_else(String::new, |audience| format!(" for {audience}"));
            match keys.len() {
                1 => format!("signed by a key{audience}"),
                several => format!("signed by one of {several} keys{audience}"),
            }
        }
    }
}
