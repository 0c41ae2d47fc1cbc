//! The short form of a topology that packages for other languages use: `{"queues":["orders"],"topics":[…],"settings":{…}}`.
//!
//! It is converted into a configuration, which is validated as any other. Properties may be in snake case or camel case, and
//! durations may be seconds.

use std::collections::HashMap;

use axum::http::StatusCode;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::error::ApiError;
use crate::config::repeated_key;

const PARTS: [&str; 3] = ["queues", "topics", "settings"];
const RULE: [&str; 4] = ["name", "sql", "correlation", "action"];
/// Properties whose numbers are seconds.
const DURATIONS: [&str; 4] = [
    "LockDuration",
    "DefaultMessageTimeToLive",
    "DuplicateDetectionHistoryTimeWindow",
    "AutoDeleteOnIdle",
];

type Members = Map<String, Value>;

/// Converts a short topology into a configuration; returns any other text unchanged.
pub(super) fn expand(text: String) -> Result<String, ApiError> {
    // At first without the values, which may be large in a configuration.
    let Ok(parts) = serde_json::from_str::<HashMap<String, IgnoredAny>>(&text) else {
        return Ok(text);
    };
    if parts.contains_key("UserConfig") {
        return Ok(text);
    }
    let known = "queues, topics and settings, or UserConfig";
    if parts.is_empty() {
        let text = format!(
            "a topology has {known}, and this one has none of them; {{\"queues\":[]}} declares no entities"
        );
        return Err(refused(text));
    }
    if let Some(key) = repeated_key(&text) {
        return Err(refused(format!("an object has {key} twice")));
    }
    // Numbers and texts that no value can have, and deep nesting.
    let mut short: Members =
        serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
    let [queues, topics, settings] = PARTS.map(|part| short.remove(part).unwrap_or_default());
    refuse_others("a topology", known, short.keys())?;
    let mut namespace = json!({
        "Name": "tests",
        "Queues": listed("queues", queues, entity)?,
        "Topics": listed("topics", topics, entity)?,
    });
    if !settings.is_null() {
        namespace["Emulator"] = settings;
    }
    Ok(json!({"UserConfig": {"Namespaces": [namespace]}}).to_string())
}

fn listed(
    name: &str,
    items: Value,
    read: fn(Value) -> Result<Value, ApiError>,
) -> Result<Value, ApiError> {
    if items.is_null() {
        return Ok(json!([]));
    }
    match items.as_array() {
        Some(items) => items.iter().cloned().map(read).collect(),
        None => Err(refused(format!("{name} is a list: [{items}], not {items}"))),
    }
}

/// Returns the members of a short declaration; returns one in the form of a configuration unchanged.
fn short(declared: Value) -> Result<Members, Value> {
    if let Some(name) = declared.as_str() {
        return Err(json!({ "Name": name }));
    }
    match declared.as_object().cloned() {
        Some(members) if !members.contains_key("Name") => Ok(members),
        _ => Err(declared),
    }
}

/// Converts a queue, a topic or a subscription.
fn entity(declared: Value) -> Result<Value, ApiError> {
    let members = match short(declared) {
        Ok(members) => members,
        Err(whole) => return Ok(whole),
    };
    let (mut whole, mut properties) = (Members::new(), Members::new());
    let given = members.into_iter().filter(|(_, value)| !value.is_null());
    for (name, value) in given {
        match name.as_str() {
            "name" => whole.insert("Name".into(), value),
            "subscriptions" => whole.insert("Subscriptions".into(), listed(&name, value, entity)?),
            "rules" => whole.insert("Rules".into(), listed(&name, value, rule)?),
            _ => {
                let name = in_pascal_case(&name);
                let seconds = value.as_f64();
                let seconds = seconds.filter(|_| DURATIONS.contains(&name.as_str()));
                // Formatted as a number of this type: 30, not 30.0, and without an exponent.
                let value = seconds.map_or(value, |seconds| format!("PT{seconds}S").into());
                if properties.contains_key(&name) {
                    return Err(refused(format!("an object has {name} twice")));
                }
                properties.insert(name, value)
            }
        };
    }
    whole.insert("Properties".into(), properties.into());
    Ok(whole.into())
}

fn rule(declared: Value) -> Result<Value, ApiError> {
    let mut members = match short(declared) {
        Ok(members) => members,
        Err(whole) => return Ok(whole),
    };
    let [name, sql, correlation, action] =
        RULE.map(|member| members.remove(member).filter(|value| !value.is_null()));
    let what = name.as_ref();
    let what = what.map_or_else(|| "a rule".to_owned(), |name| format!("the rule {name}"));
    refuse_others(&what, "name, sql, correlation and action", members.keys())?;
    let kind = match (&correlation, &sql) {
        (Some(_), _) => "Correlation",
        (None, Some(_)) => "Sql",
        (None, None) => "True",
    };
    let expression = |text: Option<Value>| text.map(|text| json!({ "SqlExpression": text }));
    let parts = [
        ("CorrelationFilter", correlation),
        ("SqlFilter", expression(sql)),
        ("Action", expression(action)),
    ];
    let mut properties = json!({ "FilterType": kind });
    for (part, value) in parts {
        if let Some(value) = value {
            properties[part] = value;
        }
    }
    Ok(json!({ "Name": name, "Properties": properties }))
}

fn in_pascal_case(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let mut characters = word.chars();
        let first = characters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(characters).collect::<String>()
    });
    words.collect()
}

fn refuse_others<'a>(
    what: &str,
    known: &str,
    others: impl Iterator<Item = &'a String>,
) -> Result<(), ApiError> {
    let others = Vec::from_iter(others.map(String::as_str)).join(", ");
    match others.is_empty() {
        true => Ok(()),
        false => Err(refused(format!("{what} has {known}, not {others}"))),
    }
}

fn refused(message: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid-argument", message)
}
