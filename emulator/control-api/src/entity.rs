//! Queues, topics and subscriptions, as they are listed.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The settings of an entity by their names in the official emulator's configuration: an object.
pub type Properties = Value;

/// All queues of a namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Queues {
    /// In the order of their paths.
    pub queues: Vec<Queue>,
}

/// All topics of a namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Topics {
    /// In the order of their paths.
    pub topics: Vec<Topic>,
}

/// All subscriptions of a namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Subscriptions {
    /// In the order of their paths.
    pub subscriptions: Vec<Subscription>,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Queue {
    /// Its path.
    pub name: String,
    /// The effective settings; a largest message that the tier decides is left out.
    #[cfg_attr(
        feature = "schema",
        schemars(schema_with = "crate::openapi::queue_settings")
    )]
    pub properties: Properties,
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Topic {
    /// Its path.
    pub name: String,
    /// The effective settings; a largest message that the tier decides is left out.
    #[cfg_attr(
        feature = "schema",
        schemars(schema_with = "crate::openapi::topic_settings")
    )]
    pub properties: Properties,
    /// The names of its subscriptions.
    pub subscriptions: Vec<String>,
}

/// A subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Subscription {
    /// Its path: `topic/Subscriptions/name`.
    pub name: String,
    /// The effective settings.
    #[cfg_attr(
        feature = "schema",
        schemars(schema_with = "crate::openapi::subscription_settings")
    )]
    pub properties: Properties,
    /// Its rules by name, each as the `Properties` of a rule in the official emulator's configuration.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::openapi::rules"))]
    pub rules: Vec<Value>,
}
