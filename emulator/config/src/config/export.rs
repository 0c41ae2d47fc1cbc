//! Exports a namespace as a configuration file that declares the same.

use serde_json::{Map, Value, json};
use servicebus_broker::filter::{Filter, Rule};
use servicebus_broker::{ClientAffinity, EntityKind};

use super::words::{self, word};
use super::{
    Address, Arm, NamespaceConfig, SubscriptionConfig, TopicConfig, properties_json, rule_json,
};
use crate::auth::{Jwt, Key};
use crate::descriptions::{CLIENT_AFFINE_PROPERTIES, IS_CLIENT_AFFINE};

/// The default rule of a subscription.
const DEFAULT_RULE: &str = "$Default";

/// Returns a file with this namespace and every effective value. A forward to an entity that no longer exists is written as
/// it is, and rejected when the file is parsed.
pub fn export(namespace: &NamespaceConfig) -> Value {
    json!({
        "UserConfig": {"Namespaces": [declaration(namespace)], "Logging": {"Type": "Console"}},
    })
}

/// Returns the element of `Namespaces`.
pub(crate) fn declaration(namespace: &NamespaceConfig) -> Value {
    let queues = namespace.queues.iter();
    let queues = queues
        .map(|(path, queue)| json!({"Name": path.as_str(), "Properties": properties_json(EntityKind::Queue, queue)}));
    json!({
        "Name": namespace.name,
        "Queues": queues.collect::<Vec<_>>(),
        "Topics": namespace.topics.iter().map(topic).collect::<Vec<_>>(),
        "Emulator": emulator(namespace),
    })
}

fn topic(topic: &TopicConfig) -> Value {
    json!({
        "Name": topic.path.as_str(),
        "Properties": properties_json(EntityKind::Topic, &topic.description),
        "Subscriptions": topic.subscriptions.iter().map(subscription).collect::<Vec<_>>(),
    })
}

fn subscription(subscription: &SubscriptionConfig) -> Value {
    let mut rules = declared_rules(&subscription.rules);
    if rules.is_empty() {
        // A subscription without rules in a file has the rule that selects everything.
        rules.push(json!({"Name": DEFAULT_RULE, "Properties": {"FilterType": "False"}}));
    }
    let mut properties = properties_json(EntityKind::Subscription, &subscription.description);
    if let Some(client) = &subscription.description.client {
        properties[IS_CLIENT_AFFINE] = true.into();
        properties[CLIENT_AFFINE_PROPERTIES] = client_json(client);
    }
    json!({
        "Name": subscription.name,
        "Properties": properties,
        "Rules": rules,
    })
}

/// Returns the client of a subscription.
pub(crate) fn client_json(client: &ClientAffinity) -> Value {
    json!({
        "ClientId": client.client_id,
        "IsDurable": client.is_durable,
        "IsShared": client.is_shared,
    })
}

/// Returns rules as a file declares them.
pub fn declared_rules<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> Vec<Value> {
    rules.into_iter().map(rule).collect()
}

fn rule(rule: &Rule) -> Value {
    let mut properties = rule_json(rule);
    if let Filter::Correlation(_) = rule.filter
        && let Some(members) = properties.as_object_mut()
        && members["CorrelationFilter"] == json!({})
    {
        // Over AMQP a filter may have no conditions; in a file that is an error.
        members.remove("CorrelationFilter");
        members.insert("FilterType".to_owned(), "True".into());
    }
    json!({"Name": rule.name, "Properties": properties})
}

/// Returns the `Emulator` block.
fn emulator(namespace: &NamespaceConfig) -> Value {
    let mut block = json!({
        "Keys": namespace.keys.iter().map(key).collect::<Vec<_>>(),
        "TokenCheck": word(&words::TOKEN_CHECK, &namespace.token_check),
    });
    for setting in &words::SETTINGS {
        block[setting.name] = (setting.word)(&namespace.settings).into();
    }
    if let Some(jwt) = jwt(&namespace.jwt) {
        block["Jwt"] = jwt;
    }
    if namespace.arm != Arm::default() {
        block["Arm"] = word(&words::ARM, &namespace.arm).into();
    }
    if let Some(address) = &namespace.address {
        block["Address"] = Address::to_string(address).into();
    }
    block
}

fn key(key: &Key) -> Value {
    json!({"Name": key.name, "Key": key.key, "Claims": key.claims.names()})
}

/// `None` if unset: where it is served decides.
fn jwt(jwt: &Jwt) -> Option<Value> {
    match jwt {
        Jwt::Unset | Jwt::Issued => None,
        Jwt::Accept | Jwt::Refuse => jwt.word().map(Value::from),
        Jwt::Check(keys) => {
            let mut check = Map::new();
            check.insert("Keys".to_owned(), keys.to_json());
            if let Some(audience) = &keys.audience {
                check.insert("Audience".to_owned(), audience.as_str().into());
            }
            Some(check.into())
        }
    }
}
