//! The properties of an entity in Azure Resource Manager: those of the broker's table, beginning with a lower-case letter.
//! Templates also write numbers and booleans as strings, and durations in .NET's format.

use std::time::Duration;

use serde_json::{Map, Value};
use servicebus_arm_template::{member, object, text};
use servicebus_broker::{
    Audience, ClientAffinity, EntityDescription, EntityKind, EntityStatus, Property, PropertyType,
    PropertyValue, Tier,
};

use crate::config::duration;
use crate::descriptions::IS_CLIENT_AFFINE;
use crate::sizes;

/// Read-only properties that clients send back, and names of the entity; in lower case.
const READ_ONLY: [&str; 8] = [
    "accessedat",
    "countdetails",
    "createdat",
    "messagecount",
    "path",
    "sizeinbytes",
    "subscriptioncount",
    "updatedat",
];

/// The properties in a resource.
#[derive(Debug)]
pub struct Written {
    /// The resulting description.
    pub description: EntityDescription,
    /// Unknown keys.
    pub(crate) unknown: Vec<String>,
    /// Keys of properties that are true, which the emulator does not support.
    pub unsupported: Vec<String>,
    /// Keys with invalid values, and what is allowed.
    pub wrong: Vec<(String, String)>,
}

const MAX_SIZE: &str = "maxSizeInMegabytes";
const WINDOW: &str = "duplicateDetectionHistoryTimeWindow";
/// The minimum window of duplicate detection in the service.
const MIN_WINDOW: Duration = Duration::from_secs(20);

/// The JMS 2.0 client of a subscription, an object of its own beside the table.
const CLIENT: &str = "clientAffineProperties";
const CLIENT_ID: &str = "clientId";
const IS_CLIENT: &str = "isClientAffine";
const IS_DURABLE: &str = "isDurable";
const IS_SHARED: &str = "isShared";

/// Returns the name of a property in Azure Resource Manager.
pub fn name(property: &Property) -> String {
    camel_case(property.name)
}

pub(crate) fn camel_case(name: &str) -> String {
    let mut name = name.to_owned();
    name[..1].make_ascii_lowercase();
    name
}

/// Reads properties over the defaults.
pub fn read(
    kind: EntityKind,
    written: &Map<String, Value>,
    description: EntityDescription,
    tier: Tier,
) -> Written {
    let before = description.clone();
    let mut read = Written {
        description,
        unknown: Vec::new(),
        unsupported: Vec::new(),
        wrong: Vec::new(),
    };
    for (key, value) in written {
        read.one(kind, key, value, tier);
    }
    // Terraform writes an empty client for every subscription.
    let is_client = written
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(IS_CLIENT));
    match is_client.and_then(|(_, value)| read_flag(value)) {
        Some(false) => read.description.client = before.client.clone(),
        Some(true) if kind == EntityKind::Subscription && read.description.client.is_none() => {
            let message = "true is not allowed; allowed: false: only premium namespaces have \
                           subscriptions of JMS clients, whose properties clientAffineProperties has";
            read.refuse(IS_CLIENT, message.to_owned());
        }
        _ => {}
    }
    read.check_size(kind, &before, tier);
    read.check_window(kind, &before);
    for problem in read.description.problems(kind, tier) {
        let known = Property::named(kind, problem.property);
        let key = known.map_or_else(|| problem.property.to_owned(), name);
        let is_size = known.is_some_and(|own| {
            use PropertyType::{Duration, Endless, Number};
            matches!(own.value_type, Number | Duration | Endless)
        });
        // As written: a number that does not fit its field has been stored as another one.
        let own = written
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(&key));
        let value = match own.filter(|_| is_size) {
            Some((_, own)) => text(own),
            None => problem.value,
        };
        let message = format!("{value} is not allowed; allowed: {}", problem.allowed);
        read.wrong.push((key, message));
    }
    read
}

/// Returns the client of a subscription.
pub fn show_client(client: &ClientAffinity) -> (String, Value) {
    let members = [
        (CLIENT_ID, (*client.client_id).into()),
        (IS_DURABLE, client.is_durable.into()),
        (IS_SHARED, client.is_shared.into()),
    ];
    (CLIENT.to_owned(), object(members))
}

impl Written {
    /// Converts the requested size, or rejects one that the tier does not have (observed 30, 48).
    fn check_size(&mut self, kind: EntityKind, before: &EntityDescription, tier: Tier) {
        // Terraform writes 0 for the default.
        let size = match self.description.max_size_in_megabytes {
            0 => before.max_size_in_megabytes,
            size => size,
        };
        self.description.max_size_in_megabytes = size;
        if kind == EntityKind::Subscription || size == before.max_size_in_megabytes {
            return;
        }
        let is_partitioned = self.description.enable_partitioning;
        match sizes::requested_size(size, is_partitioned, Some(before), tier) {
            Ok(size) => self.description.max_size_in_megabytes = size,
            Err(known) => {
                let known = Vec::from_iter(known.iter().map(u64::to_string)).join(", ");
                self.refuse(MAX_SIZE, format!("{size} is not allowed; allowed: {known}"));
                self.description.max_size_in_megabytes = before.max_size_in_megabytes;
            }
        }
    }

    /// Rejects a window that only a configuration may have (decision D15), unless the entity already has it.
    fn check_window(&mut self, kind: EntityKind, before: &EntityDescription) {
        let window = self.description.duplicate_detection_history_time_window;
        let is_kept = window == before.duplicate_detection_history_time_window;
        if kind != EntityKind::Subscription && !is_kept && window < MIN_WINDOW {
            let window = duration::format(window);
            self.refuse(
                WINDOW,
                format!("{window} is not allowed; allowed: 20 s (PT20S) to 7 days (P7D)"),
            );
        }
    }

    fn refuse(&mut self, key: &str, message: String) {
        self.wrong.push((key.to_owned(), message));
    }

    fn one(&mut self, kind: EntityKind, key: &str, value: &Value, tier: Tier) {
        if key.eq_ignore_ascii_case(CLIENT) {
            return self.client(kind, value, tier);
        }
        let mut known = Property::all_of(kind);
        let Some(property) = known.find(|known| known.name.eq_ignore_ascii_case(key)) else {
            if !READ_ONLY.contains(&key.to_ascii_lowercase().as_str()) {
                self.unknown.push(key.to_owned());
            }
            return;
        };
        // The service returns it for every entity, and `az` sends it back.
        let is_that_of_tier = || tier != Tier::Premium && read_number(value) == Some(256);
        if value.is_null() || property.name == "MaxMessageSizeInKilobytes" && is_that_of_tier() {
            return;
        }
        let is_unsupported =
            property.audience == Audience::Unsupported && property.name != IS_CLIENT_AFFINE;
        match read_value(property.value_type, kind, value) {
            Ok(PropertyValue::Flag(true)) if is_unsupported => {
                self.unsupported.push(key.to_owned())
            }
            Ok(value) => property.set(&mut self.description, value),
            Err(allowed) => {
                let message = format!("{value} is not allowed; allowed: {allowed}");
                self.wrong.push((key.to_owned(), message));
            }
        }
    }
}

impl Written {
    /// Only premium namespaces support JMS clients, and the client of a subscription never changes.
    fn client(&mut self, kind: EntityKind, value: &Value, tier: Tier) {
        let knows = kind == EntityKind::Subscription && tier == Tier::Premium;
        if !knows || value.is_null() || self.description.client.is_some() {
            return;
        }
        let mut flag = |name, usual| match member(value, name).map(|own| (own, read_flag(own))) {
            None => usual,
            Some((_, Some(flag))) => flag,
            Some((own, None)) => {
                let message = format!("{own} is not allowed; allowed: true or false");
                self.wrong.push((format!("{CLIENT}.{name}"), message));
                usual
            }
        };
        let (is_durable, is_shared) = (flag(IS_DURABLE, true), flag(IS_SHARED, false));
        let client_id = member(value, CLIENT_ID).and_then(Value::as_str);
        self.description.client = Some(Box::new(ClientAffinity {
            client_id: client_id.unwrap_or_default().into(),
            is_durable,
            is_shared,
            selector: None,
        }));
    }
}

/// Reads a value of a type; the error is what is allowed.
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
        PropertyType::Number => read_number(value)
            .map(PropertyValue::Number)
            .ok_or("a whole number"),
        PropertyType::Duration => span().map(PropertyValue::Duration).ok_or(durations),
        PropertyType::Endless => span()
            .map(|span| PropertyValue::Endless(duration::ending(span)))
            .ok_or(durations),
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

fn read_number(value: &Value) -> Option<u64> {
    let of_text = || value.as_str()?.trim().parse().ok();
    value.as_u64().or_else(of_text)
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

/// Parses an ISO 8601 duration, or one in .NET's format: `[days.]hours:minutes:seconds[.fraction]`.
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
    fn property_values_are_parsed_in_the_forms_of_templates_and_clients() {
        let read = read_queue(json!({
            "lockDuration": "00:00:30",
            "defaultMessageTimeToLive": "P1Y2M3DT3H11M2S",
            "autoDeleteOnIdle": "P10675199DT2H48M5.4775807S",
            "MaxDeliveryCount": "7",
            "requiresSession": "False",
            "enablePartitioning": "true",
            "maxMessageSizeInKilobytes": "256",
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
    fn a_size_of_0_is_the_default() {
        for (written, expected) in [
            (json!({"maxSizeInMegabytes": 0}), 1024),
            (
                json!({"enablePartitioning": true, "maxSizeInMegabytes": "0"}),
                16_384,
            ),
        ] {
            let read = read_queue(written);
            assert_eq!(read.wrong, []);
            assert_eq!(read.description.capacity_in_megabytes(), expected);
        }
    }

    #[test]
    fn the_jms_client_of_a_subscription_is_parsed_in_premium() {
        let read = |written: Value, tier| {
            let written = written.as_object().unwrap();
            let usual = EntityDescription::default();
            read(EntityKind::Subscription, written, usual, tier)
        };
        let own = json!({"isClientAffine": true, "clientAffineProperties": {"clientId": "desk", "isShared": "true"}});
        let client = read(own.clone(), Tier::Premium).description.client.unwrap();
        assert_eq!(
            (&*client.client_id, client.is_durable, client.is_shared),
            ("desk", true, true)
        );
        assert_eq!(
            show_client(&client).1,
            json!({"clientId": "desk", "isDurable": true, "isShared": true})
        );
        let elsewhere = read(own, Tier::Standard);
        assert_eq!(elsewhere.description.client, None);
        assert_eq!(elsewhere.wrong[0].0, "isClientAffine");
        let none = json!({"clientAffineProperties": {}, "isClientAffine": false});
        assert_eq!(read(none, Tier::Premium).description.client, None);
        let wrong = json!({"clientAffineProperties": {"isDurable": "perhaps"}});
        let wrong = read(wrong, Tier::Premium).wrong;
        let message = r#""perhaps" is not allowed; allowed: true or false"#;
        assert_eq!(
            wrong,
            [(
                "clientAffineProperties.isDurable".to_owned(),
                message.to_owned()
            )]
        );
    }

    #[test]
    fn problems_are_reported_with_the_allowed_values() {
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
