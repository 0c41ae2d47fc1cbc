//! Lists of queues, topics and subscriptions.
//!
//! Messages are counted as the service counts them.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The settings of an entity, an object with the names of the official emulator's configuration.
pub type Properties = Value;

/// All queues of a namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Queues {
    /// The queues, ordered by path.
    pub queues: Vec<Queue>,
}

/// All topics of a namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Topics {
    /// The topics, ordered by path.
    pub topics: Vec<Topic>,
}

/// All subscriptions of a namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Subscriptions {
    /// The subscriptions, ordered by path.
    pub subscriptions: Vec<Subscription>,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Queue {
    /// Its path.
    pub name: String,
    /// The effective settings; the maximum message size is left out if the tier determines it.
    #[cfg_attr(
        feature = "schema",
        schemars(schema_with = "crate::openapi::queue_settings")
    )]
    pub properties: Properties,
}

/// A topic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Topic {
    /// Its path.
    pub name: String,
    /// The effective settings; the maximum message size is left out if the tier determines it.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// The client of JMS 2.0 that created it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<JmsClient>,
}

/// The JMS 2.0 client of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JmsClient {
    /// The client identifier; empty if clients without one share the subscription.
    pub client_id: String,
    /// Whether the subscription remains without consumers.
    pub is_durable: bool,
    /// Whether it can have several consumers at once.
    pub is_shared: bool,
}

/// A part of the entities of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entities {
    /// The entities, in the requested order.
    pub entities: Vec<EntitySummary>,
    /// The number of entities whose paths contain the requested text.
    pub total: u64,
    /// If there are more: request those `after` this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A listed entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EntitySummary {
    /// Its path.
    pub path: String,
    /// `queue`, `topic` or `subscription`.
    pub kind: String,
    /// The status: whether it allows sending and receiving.
    pub status: String,
    /// Its message counts.
    pub counts: Counts,
    /// The number of receivers that have credit or wait for a session.
    pub receivers: u64,
    /// Whether its messages belong to sessions.
    pub requires_session: bool,
    /// The entity to which its messages are forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_to: Option<String>,
    /// The entity to which its dead letters are forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward_dead_letters_to: Option<String>,
}

/// The number of messages in a queue, by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Counts {
    /// Messages in the queue itself, neither scheduled nor dead-lettered; includes locked and deferred ones.
    pub active: u64,
    /// In the dead-letter queue.
    pub dead_letter: u64,
    /// In the transfer dead-letter queue.
    pub transfer_dead_letter: u64,
    /// Scheduled messages.
    pub scheduled: u64,
    /// Messages that wait to be forwarded.
    pub transfer: u64,
    /// Messages that are locked.
    pub locked: u64,
    /// Deferred messages.
    pub deferred: u64,
    /// The total size in bytes, like `SizeInBytes`: with the sends of open transactions and, of a topic, with the copies that its subscriptions hold.
    pub size_bytes: u64,
}

impl Counts {
    /// Returns the number of messages that can be received now.
    pub fn ready(&self) -> u64 {
        self.active.saturating_sub(self.locked + self.deferred)
    }

    /// Returns the number of messages in the queue itself, in any state.
    pub fn present(&self) -> u64 {
        self.active + self.scheduled
    }
}

/// Lists the counts that are not zero: `2 active (1 locked), 1 dead-lettered`.
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
    fn counts_of_zero_are_not_shown() {
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
    fn ready_messages_are_neither_locked_nor_deferred() {
        let counts = Counts {
            active: 4,
            locked: 1,
            deferred: 2,
            ..Counts::default()
        };
        assert_eq!(counts.ready(), 1);
    }
}
