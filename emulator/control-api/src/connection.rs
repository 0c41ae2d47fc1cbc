//! Who is connected to a namespace, and what changes in it.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Clock, Counts, DueEvent};

/// The AMQP connections of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Connections {
    /// The oldest first.
    pub connections: Vec<Connection>,
}

/// A connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Connection {
    /// Its number within the emulator, as in the operation log.
    pub id: u32,
    /// What its client calls itself: the container id of AMQP.
    pub client: String,
    /// The library of the client, where it has said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// `tcp`, `tls`, `websocket` or `websocket-tls`.
    pub transport: String,
    /// The name of the key that it used first, where that is known: it is noted where faults or the operation log ask for it,
    /// and where the key has chosen the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub party: Option<String>,
    /// Its links, in the order in which they were attached.
    pub links: Vec<ConnectionLink>,
}

/// A link of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct ConnectionLink {
    /// What the client does there: `sender`, `receiver`, `waiting` for a session, `browser`, `coordinator` of transactions,
    /// `requests` or `replies` of a node.
    pub role: String,
    /// The address of what it is attached to; none for `$cbs` and coordinators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// `$management` or `$cbs`, where it is attached to a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// How many more messages a receiver has asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<u32>,
    /// How many messages a receiver has locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<u64>,
    /// The session that a receiver holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// What has changed in a namespace, as it is now: an event of the stream of changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Change {
    /// The position of the latest event of the record.
    pub position: u64,
    /// The clock.
    pub clock: Clock,
    /// What time brings about next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<DueEvent>,
    /// How many queues, topics and subscriptions there are.
    pub entities: u64,
    /// The entities in which something has happened.
    pub counts: Vec<ChangedEntity>,
    /// Whether more has happened than is told: everything is to be asked for again.
    pub many: bool,
}

/// An entity in which something has happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct ChangedEntity {
    /// Its path.
    pub path: String,
    /// Its messages.
    pub counts: Counts,
}
