//! Parses a client's description by the table of properties; errors of types name the property.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use servicebus_broker::{
    Audience, ClientAffinity, EntityDescription, EntityKind, EntityPath, EntityStatus, Property,
    PropertyType, PropertyValue, Tier,
};
use servicebus_config::descriptions::{
    AUTHORIZATION_RULES, CLIENT_AFFINE_PROPERTIES, IS_CLIENT_AFFINE,
};
use servicebus_config::sizes;

use super::super::refusal::ServiceError;
use super::authorization::{KeyGenerator, read_rules};
use crate::config::duration;
use crate::namespace::{AdminMetadata, AuthorizationRule};
use crate::xml::Element;

/// Properties that clients write in a form of their own.
const MAX_SIZE: &str = "MaxSizeInMegabytes";
const MAX_MESSAGE_SIZE: &str = "MaxMessageSizeInKilobytes";

/// The maximum length of a forwarding target or the id of a client: names have at most 260 characters.
const MAX_TEXT_BYTES: usize = 1024;

/// The entity that a client wants.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) entity: EntityDescription,
    pub(crate) admin_metadata: AdminMetadata,
}

/// Parses a description. Omitted properties get their defaults; those that clients of old versions do not know, or that are
/// fixed, stay as in `current`.
pub(crate) fn read_entity(
    element: &Element,
    kind: EntityKind,
    current: Option<&Wanted>,
    tier: Tier,
    keys: &KeyGenerator<'_>,
) -> Result<Wanted, ServiceError> {
    let fields = Fields { element };
    let before = current.map(|current| &current.entity);
    let mut entity = EntityDescription::of_tier(tier);
    for property in Property::all_of(kind) {
        let kept = before.filter(|_| property.is_kept);
        if let Some(kept) = kept.and_then(|before| property.get(before)) {
            property.set(&mut entity, kept);
        }
        match fields.value(property)? {
            Some(PropertyValue::Flag(true)) if property.name == IS_CLIENT_AFFINE => {
                let client = fields.client(before, tier)?;
                entity.client = Some(client.ok_or_else(|| no_client(property.name))?);
            }
            Some(PropertyValue::Flag(true)) if property.audience == Audience::Unsupported => {
                return Err(unsupported(property.name));
            }
            // Clients send back the value that the tier determines.
            Some(PropertyValue::Number(size))
                if property.name == MAX_MESSAGE_SIZE
                    && size.saturating_mul(1024) == tier.max_message_size() =>
            {
                entity.max_message_size_in_kilobytes = None;
            }
            Some(value) => property.set(&mut entity, value),
            None => {}
        }
    }
    if kind != EntityKind::Subscription
        && let Some(size) = fields.number(MAX_SIZE)?
    {
        let is_partitioned = entity.enable_partitioning;
        let size = sizes::requested_size(size, is_partitioned, before, tier);
        let written = fields.text(MAX_SIZE).unwrap_or_default().trim();
        entity.max_size_in_megabytes = size.map_err(|known| other_size(written, known))?;
    }
    // The client of a subscription is unchanged, whatever the request has.
    if let Some(before) = before {
        entity.client.clone_from(&before.client);
    }
    let before = current.map_or(&[][..], |current| {
        &current.admin_metadata.authorization_rules
    });
    Ok(Wanted {
        entity,
        admin_metadata: admin_metadata(&fields, kind, before, keys)?,
    })
}

/// Refuses a property that the emulator does not support, instead of ignoring it.
fn unsupported(name: &str) -> ServiceError {
    let text = format!("The property '{name}' is not supported by the emulator; allowed: false.");
    ServiceError::parameter(text, name, "true")
}

fn no_client(name: &str) -> ServiceError {
    let text = format!(
        "The property '{name}' needs '{CLIENT_AFFINE_PROPERTIES}' and a namespace of the 'Premium' tier; allowed: false."
    );
    ServiceError::parameter(text, name, "true")
}

/// Returns the error for a size that the tier does not have; `known` are those that it has.
fn other_size(written: &str, known: &[u64]) -> ServiceError {
    let known: Vec<String> = known.iter().map(u64::to_string).collect();
    let text = format!(
        "The specified value '{written}' is invalid. The property 'MaxSizeInMegabytes', must be one of the following \
         values: {}.",
        known.join(";")
    );
    ServiceError::parameter(text, MAX_SIZE, written)
}

fn admin_metadata(
    fields: &Fields<'_>,
    kind: EntityKind,
    before: &[AuthorizationRule],
    keys: &KeyGenerator<'_>,
) -> Result<AdminMetadata, ServiceError> {
    let target = |property: &Property| {
        let is_target = property.value_type == PropertyType::Target;
        let text = fields.text(property.name).filter(|_| is_target)?.trim();
        (!text.is_empty()).then(|| (property.name, target_text(text)))
    };
    let rules = fields.element.part(AUTHORIZATION_RULES);
    let rules = rules.filter(|_| kind != EntityKind::Subscription);
    let rules = rules.map(|rules| read_rules(rules, before, keys));
    Ok(AdminMetadata {
        targets: Property::of(kind).filter_map(target).collect(),
        authorization_rules: rules.transpose()?.unwrap_or_default(),
    })
}

/// A description of an entity.
#[derive(Debug, Clone, Copy)]
struct Fields<'a> {
    element: &'a Element,
}

impl<'a> Fields<'a> {
    /// Returns the value of a property in the description, if present.
    fn value(&self, property: &Property) -> Result<Option<PropertyValue>, ServiceError> {
        let name = property.name;
        Ok(match property.value_type {
            PropertyType::Flag => self.flag(name)?.map(PropertyValue::Flag),
            PropertyType::Number => self.number(name)?.map(PropertyValue::Number),
            PropertyType::Duration => self.duration(name)?.map(PropertyValue::Duration),
            PropertyType::Endless => {
                let duration = self.duration(name)?;
                duration.map(|duration| PropertyValue::Endless(duration::ending(duration)))
            }
            PropertyType::Status => self.status(name)?.map(PropertyValue::Status),
            PropertyType::Target => Some(PropertyValue::Target(self.target(name)?)),
            PropertyType::Text => Some(PropertyValue::Text(self.text(name).map(Box::from))),
        })
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.element.part(name).map(|part| part.text.as_str())
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, ServiceError> {
        let allowed = "true or false";
        self.parsed(name, allowed, |text| match text {
            "1" => Some(true),
            "0" => Some(false),
            _ if text.eq_ignore_ascii_case("true") => Some(true),
            _ if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        })
    }

    /// Returns a number; a negative one becomes 0 and one that is too large the maximum: both are out of bounds everywhere.
    fn number(&self, name: &str) -> Result<Option<u64>, ServiceError> {
        self.parsed(name, "a whole number", |text| {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| match text.starts_with('-') {
                true => 0,
                false => digits.parse().unwrap_or(u64::MAX),
            })
        })
    }

    fn duration(&self, name: &str) -> Result<Option<Duration>, ServiceError> {
        let allowed = "an ISO 8601 duration such as PT1M30S";
        self.parsed(name, allowed, |text| {
            let duration = duration::parse(text).ok()?;
            // As precise as .NET's.
            let ticks = duration.subsec_nanos() / 100;
            Some(Duration::new(duration.as_secs(), ticks * 100))
        })
    }

    /// Returns the JMS 2.0 client of a subscription, if it has one already or the tier supports them.
    fn client(
        &self,
        before: Option<&EntityDescription>,
        tier: Tier,
    ) -> Result<Option<Box<ClientAffinity>>, ServiceError> {
        if let Some(before) = before {
            return Ok(before.client.clone());
        }
        let written = self.element.part(CLIENT_AFFINE_PROPERTIES);
        let Some(element) = written.filter(|_| tier == Tier::Premium) else {
            return Ok(None);
        };
        let fields = Fields { element };
        Ok(Some(Box::new(ClientAffinity {
            client_id: fields.client_id()?.into(),
            is_durable: fields.flag("IsDurable")?.unwrap_or(true),
            is_shared: fields.flag("IsShared")?.unwrap_or_default(),
            selector: None,
        })))
    }

    fn client_id(&self) -> Result<&'a str, ServiceError> {
        let (name, text) = ("ClientId", self.text("ClientId").unwrap_or_default());
        match text.len() <= MAX_TEXT_BYTES {
            true => Ok(text),
            false => {
                let message = format!(
                    "The value of '{name}' has {} bytes; allowed: at most {MAX_TEXT_BYTES}.",
                    text.len()
                );
                Err(ServiceError::parameter(message, name, text))
            }
        }
    }

    fn status(&self, name: &str) -> Result<Option<EntityStatus>, ServiceError> {
        let names = EntityStatus::ALL.map(EntityStatus::name);
        let allowed = names.join(", ");
        self.parsed(name, &allowed, |text| {
            let mut all = EntityStatus::ALL.into_iter();
            all.find(|status| status.name().eq_ignore_ascii_case(text))
        })
    }

    /// Returns a forwarding target: a name, or a URI of which only the path counts.
    fn target(&self, name: &str) -> Result<Option<EntityPath>, ServiceError> {
        if self.text(name).is_none_or(|text| text.trim().is_empty()) {
            return Ok(None);
        }
        let allowed =
            "the name of a queue or topic, or a URI that ends in one, of at most 1024 bytes";
        self.parsed(name, allowed, |text| {
            let is_short = text.len() <= MAX_TEXT_BYTES;
            target(text).filter(|_| is_short)
        })
    }

    fn parsed<T>(
        &self,
        name: &str,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ServiceError> {
        let Some(text) = self.text(name).map(str::trim) else {
            return Ok(None);
        };
        let wrong = || {
            let message =
                format!("The value of '{name}' cannot be understood; allowed: {allowed}.");
            ServiceError::parameter(message, name, text)
        };
        parse(text).map(Some).ok_or_else(wrong)
    }
}

/// Returns the entity of a target.
pub(crate) fn target(text: &str) -> Option<EntityPath> {
    let path = match text.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => text,
    };
    let path = percent_decode_str(path).decode_utf8().ok()?;
    path.trim_matches('/').parse().ok()
}

/// Returns a target for display: scheme and host of a URI in lower case (observed 28), everything else as given.
fn target_text(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{}://{}{path}", scheme.to_lowercase(), host.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_and_host_of_a_forwarding_target_become_lower_case() {
        for (text, shown) in [
            ("SB://Host:5300/A/Q2", "sb://host:5300/A/Q2"),
            (
                "Https://NS.servicebus.windows.net",
                "https://ns.servicebus.windows.net",
            ),
            ("A/Q2", "A/Q2"),
        ] {
            assert_eq!(target_text(text), shown);
        }
    }

    #[test]
    fn the_path_of_a_forwarding_target_names_the_entity() {
        let wanted: EntityPath = "a/q2".parse().unwrap();
        for text in [
            "a/q2",
            "/a/q2/",
            "sb://localhost:5300/a/q2",
            "https://ns.servicebus.windows.net/A/Q2/",
            "http://other/a%2Fq2",
        ] {
            assert_eq!(target(text).as_ref(), Some(&wanted), "{text}");
        }
        for text in ["sb://localhost", "a b", "%ff", "t/Subscriptions/s"] {
            assert_eq!(target(text), None, "{text}");
        }
    }
}
