//! Queues, topics and subscriptions, as they are listed.
//!
//! Numbers of messages, as the service counts them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "schema")]
use schemars::JsonSchema;

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
    /// Its rules by name, each as in the official emulator's configuration: `Name` and `Properties`.
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::openapi::rules"))]
    pub rules: Vec<Value>,
    /// The client of JMS 2.0 that it belongs to, if one has made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<JmsClient>,
}

/// What a subscription has of the client of JMS 2.0 that made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct JmsClient {
    /// The client identifier; empty where clients share it without one.
    pub client_id: String,
    /// Whether it stays when nothing consumes it.
    pub is_durable: bool,
    /// Whether several consumers may have it at once.
    pub is_shared: bool,
}

/// A part of the entities of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Entities {
    /// In the order that was asked for.
    pub entities: Vec<EntitySummary>,
    /// How many there are whose paths contain what was asked for.
    pub total: u64,
    /// Where there are more: ask for those `after` this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What a list shows of an entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct EntitySummary {
    /// Its path.
    pub path: String,
    /// `queue`, `topic` or `subscription`.
    pub kind: String,
    /// Whether it takes messages and hands them out.
    pub status: String,
    /// Its messages.
    pub counts: Counts,
    /// How many receivers have asked for messages or wait for a session.
    pub receivers: u64,
    /// Whether its messages belong to sessions.
    pub requires_session: bool,
    /// Where its messages go on to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_to: Option<String>,
    /// Where its dead letters go on to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_dead_letters_to: Option<String>,
}

/// How many messages a queue holds, by what can be done with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
#[non_exhaustive]
pub struct Counts {
    /// In the queue and neither scheduled nor dead; locked and deferred ones are part of it.
    pub active: u64,
    /// In the dead-letter queue.
    pub dead_letter: u64,
    /// In the transfer dead-letter queue.
    pub transfer_dead_letter: u64,
    /// Waiting for their time.
    pub scheduled: u64,
    /// Waiting to be forwarded.
    pub transfer: u64,
    /// Received with a lock that still holds.
    pub locked: u64,
    /// Deferred.
    pub deferred: u64,
    /// The size of all of them in bytes.
    pub size_bytes: u64,
}

impl Counts {
    /// Returns how many can be received now.
    pub fn ready(&self) -> u64 {
        self.active.saturating_sub(self.locked + self.deferred)
    }

    /// Returns how many are in the queue itself, in any state.
    pub fn present(&self) -> u64 {
        self.active + self.scheduled
    }
}

/// What is there, without what is not: `2 active (1 locked), 1 dead-lettered`.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = [(self.locked, "locked"), (self.deferred, "deferred")];
        let mut active = format!("{} active", self.active);
        let within = listed(&within);
        if !within.is_empty() {
            active = format!("{active} ({within})");
        }
        let beside = listed(&[
            (self.scheduled, "scheduled"),
            (self.dead_letter, "dead-lettered"),
            (self.transfer_dead_letter, "transfer-dead-lettered"),
            (self.transfer, "waiting to be forwarded"),
        ]);
        match (self.active, beside.as_str()) {
            (0, "") => f.write_str("no messages"),
            (0, beside) => f.write_str(beside),
            (_, "") => f.write_str(&active),
            (_, beside) => write!(f, "{active}, {beside}"),
        }
    }
}

fn listed(numbers: &[(u64, &str)]) -> String {
    let present = numbers.iter().filter(|(number, _)| *number > 0);
    Vec::from_iter(present.map(|(number, word)| format!("{number} {word}"))).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_is_shown() {
        assert_eq!(Counts::default().to_string(), "no messages");
        let counts = Counts {
            active: 2,
            locked: 1,
            dead_letter: 1,
            ..Counts::default()
        };
        assert_eq!(counts.to_string(), "2 active (1 locked), 1 dead-lettered");
    }

    #[test]
    fn ready_is_neither_locked_nor_deferred() {
        let counts = Counts {
            active: 4,
            locked: 1,
            deferred: 2,
            ..Counts::default()
        };
        assert_eq!(counts.ready(), 1);
    }
}
