//! The connections of a namespace, and its stream of changes.

use serde::{Deserialize, Serialize};

use crate::{Clock, Counts, DueEvent};

/// The AMQP connections of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Connections {
    /// The connections, the oldest first.
    pub connections: Vec<Connection>,
}

/// A connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Connection {
    /// Its number within the emulator, as in the operation log.
    pub id: u32,
    /// The container id of AMQP, which the client has chosen.
    pub client: String,
    /// The library of the client, if the client sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// `tcp`, `tls`, `websocket` or `websocket-tls`.
    pub transport: String,
    /// The name of the first key that it used; absent before its first token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub party: Option<String>,
    /// Its links, in order of attachment.
    pub links: Vec<ConnectionLink>,
}

/// A link of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConnectionLink {
    /// The role of the client: `sender`, `receiver`, `waiting` for a session, `browser`, `coordinator` of transactions,
    /// `requests` or `replies` of a node.
    pub role: String,
    /// The address of the entity; null for `$cbs` and coordinators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// `$management` or `$cbs`, for a link to a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The remaining credit of a receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credit: Option<u32>,
    /// The number of messages that a receiver has locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<u64>,
    /// The session that a receiver holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// An event of the stream of changes, with the current state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The position of the latest event of the record.
    pub position: u64,
    /// The clock.
    pub clock: Clock,
    /// The next deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<DueEvent>,
    /// The number of queues, topics and subscriptions.
    pub entities: u64,
    /// The changed entities.
    pub counts: Vec<ChangedEntity>,
    /// Whether more has changed than is listed, so that the client must fetch everything again.
    pub many: bool,
}

/// A changed entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedEntity {
    /// Its path.
    pub path: String,
    /// Its message counts.
    pub counts: Counts,
}
