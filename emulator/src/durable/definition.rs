//! The definition of an entity as a row: its properties in the form of a configuration file, its rules, and its metadata.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use servicebus_arm_template::collected;
use servicebus_broker::filter::Rule;
use servicebus_broker::{
    ClientAffinity, Entity, EntityDescription, EntityKind, EntityPath, Property, PropertyValue,
    Tier, Timestamp,
};

use super::rule::RuleRow;
use crate::auth::{Claim, Claims};
use crate::config::{Config, properties_json, read_properties};
use crate::namespace::{AdminMetadata, AuthorizationRule, EntityMetadata};

/// The stored state of an entity beside its messages.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) kind: EntityKind,
    pub(crate) path: EntityPath,
    pub(crate) description: EntityDescription,
    /// Of a topic, the rules of each of its subscriptions.
    pub(crate) rules: Vec<(EntityPath, Vec<Rule>)>,
    pub(crate) metadata: EntityMetadata,
    /// Whether it is deleted with its link.
    pub(crate) is_temporary: bool,
}

const KINDS: [(&str, EntityKind); 3] = [
    ("queue", EntityKind::Queue),
    ("topic", EntityKind::Topic),
    ("subscription", EntityKind::Subscription),
];

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    kind: String,
    path: String,
    properties: Value,
    /// Properties that only the administration API has.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    administration: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    subscriptions: Vec<Subscription>,
    /// When it was created, changed, and last used.
    times: (i64, i64, Option<i64>),
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    targets: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<KeyPair>,
    /// The JMS client of a client-affine subscription.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<Client>,
    /// Whether it is deleted with its link.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    temporary: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Subscription {
    path: String,
    #[serde(default)]
    exact: Vec<RuleRow>,
    /// In the form of a configuration file, up to version 4 of the format.
    #[serde(default, skip_serializing)]
    rules: Vec<Value>,
    /// When each of these was created.
    #[serde(default, skip_serializing)]
    created: Vec<i64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Client(#[serde(with = "ClientFields")] ClientAffinity);

#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "ClientAffinity", rename_all = "camelCase")]
struct ClientFields {
    #[serde(rename = "id")]
    client_id: Box<str>,
    is_durable: bool,
    is_shared: bool,
    selector: Option<Box<str>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeyPair {
    name: String,
    claims: Vec<String>,
    keys: (String, String),
    times: (Option<Box<str>>, Option<Box<str>>),
}

impl Definition {
    pub(crate) fn row(entity: &Entity, metadata: &EntityMetadata, is_temporary: bool) -> Vec<u8> {
        let kind = KINDS.iter().find(|(_, kind)| *kind == entity.kind());
        let subscriptions = entity.subscriptions();
        let (created_at, changed_at, used_before) = metadata.times();
        let given = metadata.admin_metadata();
        let targets = given.targets.into_iter();
        let row = Row {
            kind: kind.map_or("", |(word, _)| word).to_owned(),
            path: entity.path().to_string(),
            properties: properties_json(entity.kind(), entity.description()),
            administration: administration(entity),
            subscriptions: (subscriptions.iter())
                .map(|path| Subscription::of(entity, path))
                .collect(),
            times: (
                created_at.as_millis(),
                changed_at.as_millis(),
                used_before.map(Timestamp::as_millis),
            ),
            targets: targets
                .map(|(name, text)| (name.to_owned(), text))
                .collect(),
            keys: given.authorization_rules.iter().map(KeyPair::of).collect(),
            client: entity.description().client.as_deref().cloned().map(Client),
            temporary: is_temporary,
        };
        // Maps with other keys than texts cannot be written as JSON; there are none.
        serde_json::to_vec(&row).unwrap_or_default()
    }

    /// Reads what [`Definition::row`] wrote. The tier may have changed since; the highest one accepts what the others accept.
    pub(crate) fn read(row: &[u8]) -> Result<Self, String> {
        let row: Row = serde_json::from_slice(row).map_err(|error| error.to_string())?;
        let path = path_of(&row.path)?;
        let about = |what: String| format!("{path}: {what}");
        let kind = KINDS.iter().find(|(word, _)| *word == row.kind);
        let &(_, kind) = kind.ok_or_else(|| about(format!("the kind {:?}", row.kind)))?;
        let text = row.properties.to_string();
        let description = read_properties(&text, kind, &path, None, Tier::Premium);
        let mut description = EntityDescription {
            client: row.client.map(|Client(client)| Box::new(client)),
            ..description.map_err(|error| about(error.to_string()))?
        };
        for property in Property::of_administration(kind) {
            match row.administration.get(property.name) {
                Some(Value::Bool(flag)) => {
                    property.set(&mut description, PropertyValue::Flag(*flag))
                }
                Some(Value::String(text)) => {
                    let text = Some(text.as_str().into());
                    property.set(&mut description, PropertyValue::Text(text));
                }
                _ => {}
            }
        }
        let rules = row.subscriptions.into_iter().map(Subscription::read);
        let rules = rules.collect::<Result<Vec<_>, _>>().map_err(about)?;
        let known = |name: &str| Property::of(kind).find(|property| property.name == name);
        let targets = row.targets.into_iter();
        let targets = targets.filter_map(|(name, text)| Some((known(&name)?.name, text)));
        let (created_at, changed_at, used_before) = row.times;
        let at = Timestamp::from_millis;
        let mut metadata =
            EntityMetadata::of_times(at(created_at), at(changed_at), used_before.map(at));
        metadata.set_admin_metadata(AdminMetadata {
            targets: targets.collect(),
            authorization_rules: row.keys.into_iter().map(KeyPair::read).collect(),
        });
        Ok(Self {
            kind,
            path,
            description,
            rules,
            metadata,
            is_temporary: row.temporary,
        })
    }
}

fn administration(entity: &Entity) -> Map<String, Value> {
    let properties = Property::of_administration(entity.kind());
    let given = properties.filter_map(|property| {
        let value = match property.get(entity.description())? {
            PropertyValue::Flag(flag) => flag.into(),
            PropertyValue::Text(text) => text?.into_string().into(),
            PropertyValue::Number(_)
            | PropertyValue::Duration(_)
            | PropertyValue::Endless(_)
            | PropertyValue::Status(_)
            | PropertyValue::Target(_) => return None,
        };
        Some((property.name.to_owned(), value))
    });
    collected(given)
}

/// The row of the authorization rules that were added to a namespace.
pub(crate) fn keys_row(rules: &[AuthorizationRule]) -> Vec<u8> {
    let pairs: Vec<KeyPair> = rules.iter().map(KeyPair::of).collect();
    serde_json::to_vec(&pairs).unwrap_or_default()
}

/// Reads what [`keys_row`] wrote.
pub(crate) fn read_keys(row: &[u8]) -> Result<Vec<AuthorizationRule>, String> {
    let pairs = serde_json::from_slice::<Vec<KeyPair>>(row).map_err(|error| error.to_string())?;
    Ok(pairs.into_iter().map(KeyPair::read).collect())
}

impl Subscription {
    fn of(topic: &Entity, path: &EntityPath) -> Self {
        Self {
            path: path.to_string(),
            exact: topic.rules_of(path).map(|rule| RuleRow::of(rule)).collect(),
            rules: Vec::new(),
            created: Vec::new(),
        }
    }

    fn read(self) -> Result<(EntityPath, Vec<Rule>), String> {
        let path = path_of(&self.path)?;
        if self.rules.is_empty() {
            let rules = self.exact.into_iter().map(RuleRow::read);
            return Ok((path, rules.collect::<Result<_, _>>()?));
        }
        let subscription = json!({"Name": "s", "Rules": self.rules});
        let topic = json!({"Name": "t", "Subscriptions": [subscription]});
        let namespace = json!({"Name": "n", "Topics": [topic]});
        let text = json!({"UserConfig": {"Namespaces": [namespace]}}).to_string();
        let config = Config::parse(&text).map_err(|error| error.to_string())?;
        let topics = config.namespaces.into_iter().flat_map(|own| own.topics);
        let rules = topics
            .flat_map(|own| own.subscriptions)
            .flat_map(|own| own.rules);
        let created = self.created.into_iter().map(Timestamp::from_millis);
        let rules = rules
            .zip(created)
            .map(|(rule, created_at)| Rule { created_at, ..rule });
        Ok((path, rules.collect()))
    }
}

impl KeyPair {
    fn of(rule: &AuthorizationRule) -> Self {
        let claims = rule.claims.names().into_iter();
        Self {
            name: rule.key_name.clone(),
            claims: claims.map(str::to_owned).collect(),
            keys: (rule.primary_key.clone(), rule.secondary_key.clone()),
            times: (rule.created_time.clone(), rule.modified_time.clone()),
        }
    }

    fn read(self) -> AuthorizationRule {
        let held = Claim::ALL.into_iter();
        let held = held.filter(|claim| self.claims.iter().any(|name| name == claim.name()));
        let (primary_key, secondary_key) = self.keys;
        let (created_time, modified_time) = self.times;
        AuthorizationRule {
            key_name: self.name,
            claims: held.collect::<Claims>(),
            primary_key,
            secondary_key,
            created_time,
            modified_time,
        }
    }
}

fn path_of(text: &str) -> Result<EntityPath, String> {
    EntityPath::of_address(text).ok_or_else(|| format!("the name {text:?}"))
}
