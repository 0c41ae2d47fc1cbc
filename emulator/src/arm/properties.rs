//! The properties of an entity as Azure Resource Manager names them: those of the broker's table, beginning with a small
//! letter. Templates write numbers and booleans as strings too, and durations as .NET does.

use std::time::Duration;

use serde_json::{Map, Value};
use servicebus_broker::{
    EntityDescription, EntityKind, EntityStatus, Property, PropertyType, PropertyValue, Tier,
};

use crate::config::duration::{self, FOREVER};

/// What clients are shown and send back, and what only names the entity once more; in lower case.
const READ_ONLY: [&str; 9] = [
    "accessedat",
    "clientaffineproperties",
    "countdetails",
    "createdat",
    "messagecount",
    "path",
    "sizeinbytes",
    "subscriptioncount",
    "updatedat",
];

/// What was written of the properties of an entity.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) description: EntityDescription,
    /// Keys of which nothing is known.
    pub(crate) unknown: Vec<String>,
    /// Keys whose values are wrong, with what is allowed.
    pub(crate) wrong: Vec<(String, String)>,
}

/// The name that a property has here.
pub(crate) fn name(property: &Property) -> String {
    let mut name = property.name.to_owned();
    name[..1].make_ascii_lowercase();
    name
}

/// Reads what is written, on top of what holds where nothing is.
pub(crate) fn read(
    kind: EntityKind,
    written: &Map<String, Value>,
    description: EntityDescription,
    tier: Tier,
) -> Written {
    let mut read = Written {
        description,
        unknown: Vec::new(),
        wrong: Vec::new(),
    };
    for (key, value) in written {
        read.one(kind, key, value, tier);
    }
    for problem in read.description.problems(kind, tier) {
        let known = Property::named(kind, problem.property);
        let key = known.map_or_else(|| problem.property.to_owned(), name);
        let message = format!(
            "{} is not allowed; allowed: {}",
            problem.value, problem.allowed
        );
        read.wrong.push((key, message));
    }
    read
}

impl Written {
    fn one(&mut self, kind: EntityKind, key: &str, value: &Value, tier: Tier) {
        let mut known = Property::all_of(kind);
        let Some(property) = known.find(|known| known.name.eq_ignore_ascii_case(key)) else {
            if !READ_ONLY.contains(&key.to_ascii_lowercase().as_str()) {
                self.unknown.push(key.to_owned());
            }
            return;
        };
        // What the service shows of every entity, `az` sends back.
        let is_that_of_tier = || tier != Tier::Premium && value.as_u64() == Some(256);
        if value.is_null() || property.name == "MaxMessageSizeInKilobytes" && is_that_of_tier() {
            return;
        }
        match read_value(property.value_type, kind, value) {
            Ok(value) => property.set(&mut self.description, value),
            Err(allowed) => {
                let message = format!("{value} is not allowed; allowed: {allowed}");
                self.wrong.push((key.to_owned(), message));
            }
        }
    }
}

/// A value of a type; else what is allowed.
fn read_value(
    value_type: PropertyType,
    kind: EntityKind,
    value: &Value,
) -> Result<PropertyValue, String> {
    let text = value.as_str();
    let span = || text.and_then(read_duration);
    let durations = "a duration as in PT1M, or 00:01:00";
    let read = match value_type {
        PropertyType::Flag => read_flag(value)
            .map(PropertyValue::Flag)
            .ok_or("true or false"),
        PropertyType::Number => {
            let number = value.as_u64().or_else(|| text?.trim().parse().ok());
            number.map(PropertyValue::Number).ok_or("a whole number")
        }
        PropertyType::Duration => span().map(PropertyValue::Duration).ok_or(durations),
        PropertyType::Endless => {
            let endless = |span| PropertyValue::Endless((span < FOREVER).then_some(span));
            span().map(endless).ok_or(durations)
        }
        PropertyType::Status => return read_status(kind, text),
        PropertyType::Target => match text.map(str::trim) {
            Some("") => Ok(PropertyValue::Target(None)),
            named => {
                let path = named.and_then(|named| named.parse().ok());
                let target = path.map(|path| PropertyValue::Target(Some(path)));
                target.ok_or("the name of a queue or topic")
            }
        },
        PropertyType::Text => text
            .map(|text| PropertyValue::Text(Some(text.into())))
            .ok_or("a text"),
    };
    read.map_err(str::to_owned)
}

fn read_flag(value: &Value) -> Option<bool> {
    let word = || value.as_str().map(|word| word.trim().to_ascii_lowercase());
    let of_word = |word: String| word.parse().ok();
    value.as_bool().or_else(|| word().and_then(of_word))
}

fn read_status(kind: EntityKind, text: Option<&str>) -> Result<PropertyValue, String> {
    let statuses = EntityStatus::of(kind);
    let is_named =
        |status: &&EntityStatus| text.is_some_and(|text| text.eq_ignore_ascii_case(status.name()));
    let found = statuses.iter().find(is_named);
    found
        .map(|status| PropertyValue::Status(*status))
        .ok_or_else(|| {
            let names: Vec<&str> = statuses.iter().map(|status| status.name()).collect();
            names.join(", ")
        })
}

/// An ISO 8601 duration, or one as .NET writes it: `[days.]hours:minutes:seconds[.fraction]`.
fn read_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(duration) = duration::parse(text) {
        return Some(duration);
    }
    let mut parts = text.splitn(3, ':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let (days, hours) = hours.split_once('.').unwrap_or(("0", hours));
    duration::parse(&format!("P{days}DT{hours}H{minutes}M{seconds}S")).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_queue(written: Value) -> Written {
        let written = written.as_object().unwrap();
        read(
            EntityKind::Queue,
            written,
            EntityDescription::default(),
            Tier::Standard,
        )
    }

    #[test]
    fn values_are_read_as_templates_and_clients_write_them() {
        let read = read_queue(json!({
            "lockDuration": "00:00:30",
            "defaultMessageTimeToLive": "P1Y2M3DT3H11M2S",
            "autoDeleteOnIdle": "P10675199DT2H48M5.4775807S",
            "MaxDeliveryCount": "7",
            "requiresSession": "False",
            "enablePartitioning": "true",
            "maxMessageSizeInKilobytes": 256,
            "forwardTo": null,
            "status": "active",
            "countDetails": {"activeMessageCount": 3},
        }));
        assert_eq!((&read.wrong[..], &read.unknown[..]), (&[][..], &[][..]));
        let description = read.description;
        assert_eq!(description.lock_duration, Duration::from_secs(30));
        let life = description.default_message_time_to_live.unwrap();
        assert_eq!(duration::format(life), "P428DT3H11M2S");
        assert_eq!(description.auto_delete_on_idle, None);
        assert_eq!(description.max_delivery_count, 7);
        assert!(description.enable_partitioning && !description.requires_session);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_allowed() {
        let read = read_queue(json!({
            "lockDuration": "a minute",
            "maxDeliveryCount": 0,
            "status": "Gone",
            "colour": "red",
        }));
        assert_eq!(read.unknown, ["colour"]);
        let keys: Vec<&str> = read.wrong.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["lockDuration", "status", "maxDeliveryCount"]);
        assert!(
            read.wrong[2].1.contains("allowed: 1 to"),
            "{:?}",
            read.wrong
        );
    }
}
