//! Namespaces as resources.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Value, json};
use servicebus_broker::Tier;

use super::call::{Call, NAMESPACE, invalid_content};
use super::resources::LOCATION;
use super::{Answer, Refusal, member};
use crate::admin::Frame;
use crate::config::{Arm, NAMESPACE_NAMES, NamespaceConfig, is_namespace_name};
use crate::namespace::Namespace;
use crate::namespaces::RemoveError;

const CAPACITY: &str = "capacity";
const PARTITIONS: &str = "premiumMessagingPartitions";
pub(crate) const PUBLIC_ACCESS: &str = "publicNetworkAccess";
/// What a namespace shows as it was given, and the allowed values in JSON; the first is the default. None has an effect.
const SHOWN: [(&str, &[&str]); 6] = [
    (CAPACITY, &["1", "2", "4", "8", "16"]),
    (PARTITIONS, &["1", "2", "4"]),
    ("disableLocalAuth", &["false", "true"]),
    ("zoneRedundant", &["false", "true"]),
    (
        "minimumTlsVersion",
        &[r#""1.2""#, r#""1.0""#, r#""1.1""#, r#""1.3""#],
    ),
    (
        PUBLIC_ACCESS,
        &[r#""Enabled""#, r#""Disabled""#, r#""SecuredByPerimeter""#],
    ),
];

/// The most tags of a resource, the longest name and the longest value of one.
const MAX_TAGS: usize = 50;
const MAX_TAG_NAME: usize = 512;
const MAX_TAG_VALUE: usize = 256;
/// The emulator's own limit, which bounds memory.
const MAX_LOCATION: usize = 256;

impl Call<'_> {
    pub(crate) fn list_namespaces(&self) -> Result<Answer, Refusal> {
        let namespaces = &self.shared.namespaces;
        let names = namespaces.names();
        let served: Vec<_> = names
            .iter()
            .filter_map(|name| namespaces.named(name))
            .filter(|namespace| namespace.config.arm == Arm::On)
            .collect();
        let group = match self.lower.get(2).map(String::as_str) {
            Some("resourcegroups") => &self.path[3],
            _ => "emulator",
        };
        let subscription = &self.path[1];
        self.page(&served, |namespace| {
            let id = format!(
                "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.ServiceBus/namespaces/{}",
                namespace.name()
            );
            self.show_namespace(namespace, id)
        })
    }

    pub(crate) async fn one_namespace(&self) -> Result<Answer, Refusal> {
        let name = &self.path[NAMESPACE];
        let show = |namespace: &Namespace| Answer::ok(self.show_namespace(namespace, self.id()));
        match self.head.method.as_str() {
            "GET" => Ok(show(&*self.namespace()?)),
            "PUT" | "PATCH" => {
                self.shared.resources.check(&self.id(), false)?;
                let tier = self.tier()?;
                let existing = self.shared.namespaces.named(name);
                let own = existing
                    .as_ref()
                    .map(|existing| existing.config.settings.tier);
                let shown = self.shown(name, tier.or(own).unwrap_or_default())?;
                if self.head.method == "PUT" && existing.is_none() {
                    self.create(name, tier.unwrap_or_default()).await?;
                }
                let namespace = self.namespace()?;
                let own = namespace.config.settings.tier;
                if tier.is_some_and(|tier| tier != own) {
                    let text = format!(
                        "The tier of the namespace '{name}' is {own:?} and cannot be changed while it is served."
                    );
                    return Err(Refusal::bad_request("BadRequest", text));
                }
                self.describe(&namespace, shown, self.head.method == "PUT");
                Ok(show(&namespace))
            }
            "DELETE" => {
                self.shared.resources.check(&self.id(), true)?;
                if self.shared.namespaces.named(name).is_some() {
                    self.namespace()?;
                }
                match self.shared.remove_namespace(name) {
                    Ok(listening) => {
                        if let Some(listening) = listening {
                            listening.close().await;
                        }
                        Ok(Answer::empty(StatusCode::OK))
                    }
                    Err(RemoveError::Unknown) => Ok(Answer::empty(StatusCode::NO_CONTENT)),
                    Err(last @ RemoveError::Last(_)) => Err(Refusal::new(
                        StatusCode::CONFLICT,
                        "Conflict",
                        last.to_string(),
                    )),
                }
            }
            other => Err(Refusal::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "MethodNotAllowed",
                format!("A namespace has no {other}."),
            )),
        }
    }

    async fn create(&self, name: &str, tier: Tier) -> Result<(), Refusal> {
        if !is_namespace_name(name) {
            let text =
                format!("The namespace name '{name}' is invalid; allowed: {NAMESPACE_NAMES}.");
            return Err(Refusal::bad_request("BadRequest", text));
        }
        let namespaces = &self.shared.namespaces;
        let creation = namespaces.begin(namespaces.permit().await);
        let config = NamespaceConfig::parse_as(name, "", tier, &|key| creation.has_key(key, name));
        let config =
            config.map_err(|error| Refusal::bad_request("BadRequest", error.to_string()))?;
        let created = creation.finish(config, |_| Ok(None));
        created
            .map(drop)
            .map_err(|error| Refusal::new(StatusCode::CONFLICT, "Conflict", error.to_string()))
    }

    /// Returns the tier in the body, if any.
    fn tier(&self) -> Result<Option<Tier>, Refusal> {
        let sku = member(&self.body, "sku").filter(|sku| !sku.is_null());
        let Some(name) = sku.and_then(|sku| member(sku, "name").or_else(|| member(sku, "tier")))
        else {
            return Ok(None);
        };
        let tier = name.as_str().and_then(Tier::named);
        tier.map(Some).ok_or_else(|| {
            let text = format!("The sku {name} is not allowed; allowed: Basic, Standard, Premium.");
            Refusal::bad_request("InvalidSku", text)
        })
    }

    /// Returns what the body gives of what a namespace shows.
    fn shown(&self, name: &str, tier: Tier) -> Result<Vec<(&'static str, Value)>, Refusal> {
        let mut shown = Vec::new();
        for (key, allowed) in SHOWN {
            let above = if key == CAPACITY { "sku" } else { "properties" };
            let given = member(&self.body, above).and_then(|above| member(above, key));
            let Some(given) = given.filter(|given| !given.is_null()) else {
                continue;
            };
            // Clients write 0 for other tiers.
            if [CAPACITY, PARTITIONS].contains(&key) && tier != Tier::Premium {
                continue;
            }
            let given = given.to_string();
            let known = allowed.iter().find(|own| own.eq_ignore_ascii_case(&given));
            let value = known.and_then(|own| own.parse().ok()).ok_or_else(|| {
                let text = format!(
                    "The value {given} of '{key}' of the namespace '{name}' is not allowed; allowed: {}.",
                    allowed.join(", ")
                );
                Refusal::bad_request("BadRequest", text)
            })?;
            shown.push((key, value));
        }
        for key in ["location", "tags"] {
            if let Some(given) = member(&self.body, key).filter(|given| !given.is_null()) {
                match key {
                    "tags" => check_tags(given)?,
                    _ => check_location(given)?,
                }
                shown.push((key, given.clone()));
            }
        }
        Ok(shown)
    }

    /// Keeps what a namespace shows, unless it was removed meanwhile. A PUT replaces all but the location, which never changes
    /// without a value.
    fn describe(&self, own: &Arc<Namespace>, shown: Vec<(&'static str, Value)>, replaces: bool) {
        let (name, served) = (own.name(), self.shared.namespaces.served());
        if !served.named(name).is_some_and(|now| Arc::ptr_eq(&now, own)) {
            return;
        }
        let mut described = self.shared.resources.described.lock();
        let own = described
            .entry(name.to_ascii_lowercase())
            .or_insert_with(|| json!({}));
        if let Some(own) = own.as_object_mut().filter(|_| replaces) {
            own.retain(|key, _| key == "location");
        }
        for (key, value) in shown {
            own[key] = value;
        }
        drop((described, served));
        self.shared.resources.keep();
    }

    /// Returns what a namespace was given under this key.
    pub(crate) fn kept(&self, name: &str, key: &str) -> Option<Value> {
        let described = self.shared.resources.described.lock();
        described.get(&name.to_ascii_lowercase())?.get(key).cloned()
    }

    /// Returns the location of a namespace, which everything in it has too.
    pub(crate) fn location(&self, name: &str) -> Value {
        let kept = self.kept(name, "location");
        kept.unwrap_or_else(|| LOCATION.into())
    }

    fn show_namespace(&self, namespace: &Namespace, id: String) -> Value {
        let name = namespace.name();
        let at = Frame::of(namespace).milliseconds(namespace.started_at);
        let tier = namespace.config.settings.tier.name();
        let mut sku = json!({ "name": tier, "tier": tier });
        let mut properties = json!({
            "provisioningState": "Succeeded",
            "status": "Active",
            "createdAt": at,
            "updatedAt": at,
            "serviceBusEndpoint": format!("https://{name}.servicebus.windows.net:443/"),
            "metricId": format!("{}:{name}", self.path[1]),
            PARTITIONS: 0,
        });
        for (key, allowed) in SHOWN {
            let usual = || allowed[0].parse().unwrap_or_default();
            let above = if key == CAPACITY {
                &mut sku
            } else {
                &mut properties
            };
            if tier == "Premium" || ![CAPACITY, PARTITIONS].contains(&key) {
                above[key] = self.kept(name, key).unwrap_or_else(usual);
            }
        }
        json!({
            "id": id,
            "name": name,
            "type": "Microsoft.ServiceBus/Namespaces",
            "location": self.location(name),
            "tags": self.kept(name, "tags").unwrap_or_else(|| json!({})),
            "sku": sku,
            "properties": properties,
        })
    }

    pub(crate) fn check_name(&self) -> Result<Answer, Refusal> {
        let name = member(&self.body, "name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let (reason, message) = if !is_namespace_name(name) {
            ("InvalidName", Some(format!("allowed: {NAMESPACE_NAMES}")))
        } else if self.shared.namespaces.named(name).is_some() {
            ("NameInUse", Some(format!("there is a namespace '{name}'")))
        } else {
            ("None", None)
        };
        Ok(Answer::ok(json!({
            "nameAvailable": message.is_none(),
            "reason": reason,
            "message": message,
        })))
    }
}

/// Refuses tags beyond the limits of Azure Resource Manager.
fn check_tags(given: &Value) -> Result<(), Refusal> {
    let refused = |code, text| Err(Refusal::bad_request(code, text));
    let Some(tags) = given.as_object() else {
        return Err(invalid_content("'tags' must be a JSON object"));
    };
    if tags.len() > MAX_TAGS {
        let text = format!("{} tags are given; allowed: {MAX_TAGS}.", tags.len());
        return refused("InvalidTags", text);
    }
    for (name, value) in tags {
        let Some(value) = value.as_str() else {
            return Err(invalid_content("the value of a tag must be a string"));
        };
        if length(name) > MAX_TAG_NAME {
            let text = format!("The tag name '{name}' has more than {MAX_TAG_NAME} characters.");
            return refused("InvalidTagName", text);
        }
        if length(value) > MAX_TAG_VALUE {
            let text = format!(
                "The value '{value}' of the tag '{name}' has more than {MAX_TAG_VALUE} characters."
            );
            return refused("InvalidTagValueLength", text);
        }
    }
    Ok(())
}

/// Accepts any name, because regions are added to Azure.
fn check_location(given: &Value) -> Result<(), Refusal> {
    let Some(location) = given.as_str() else {
        return Err(invalid_content("'location' must be a string"));
    };
    if length(location) <= MAX_LOCATION {
        return Ok(());
    }
    let text = format!(
        "The provided location '{location}' is not available for resource type 'Microsoft.ServiceBus/namespaces'; allowed: \
         up to {MAX_LOCATION} characters."
    );
    Err(Refusal::bad_request(
        "LocationNotAvailableForResourceType",
        text,
    ))
}

/// The length of a text in UTF-16 units, as Azure Resource Manager counts.
fn length(text: &str) -> usize {
    text.encode_utf16().count()
}
