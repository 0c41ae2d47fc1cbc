//! The operation log of a namespace: the operations of its clients, as scripted faults see them.
//!
//! Each entry is an operation that a fault could affect. It has the fields on which a fault can have conditions, and what
//! else an exploration needs: whether an effect is possible there, and the state of the entity.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::Operation;
#[cfg(feature = "schema")]
use crate::encoding::DateTime;
use crate::encoding::instant;

/// One operation of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoggedOperation {
    /// Its number in the log, counted from 1.
    pub number: u64,
    /// When it arrived, by the clock of the namespace.
    #[serde(with = "instant")]
    #[cfg_attr(feature = "schema", schemars(with = "DateTime"))]
    pub at: SystemTime,
    /// When it arrived, in seconds since the start of the namespace.
    pub offset: f64,
    /// The most specific kind of operation: `complete` instead of `settle`.
    pub operation: Operation,
    /// The operation of a management request, or the method of an HTTP request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name of the key of its client; null until the client has used one.
    pub party: Option<String>,
    /// The client, by the name of its connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The connection's number within the emulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
    /// The link's number within its connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u64>,
    /// The address of its entity; for a discharge the first one.
    pub entity: Option<String>,
    /// The id of its message; for a batch that of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Its session, or that of its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The sequence number of its message, if the message already has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<i64>,
    /// The delivery of its message, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<u32>,
    /// A hexadecimal hash of its message's body, equal in every run and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_hash: Option<String>,
    /// The number of its messages.
    pub messages: usize,
    /// Whether it has the lock of a message, which can be lost.
    pub locked: bool,
    /// Whether it has the lock of a session, which can be lost; messages in sessions have no other.
    #[serde(default)]
    pub session_locked: bool,
    /// Whether its message can be delivered again although its settlement is confirmed.
    pub repeatable: bool,
    /// The state of its entity just before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<EntityState>,
    /// The effects of faults on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<AppliedFault>,
}

/// The state of an entity before an operation, by which an exploration distinguishes operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EntityState {
    /// Messages that are ready or reserved for a receiver.
    pub ready: u64,
    /// Messages that are locked.
    pub locked: u64,
    /// Receivers with credit.
    pub receivers: usize,
}

/// The effect of a fault on an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppliedFault {
    /// The id of the fault.
    pub fault: u64,
    /// The name of its effect.
    pub effect: String,
    /// A description of the effect.
    pub detail: String,
}

/// The result of releasing the oldest operation that `postpone` delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Released {
    /// Whether there was one.
    pub released: bool,
    /// The number of operations that still wait.
    pub waiting: usize,
}

/// Switches the operation log of a namespace on or off, and clears it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordOperations {
    /// Whether operations are recorded from now on.
    pub recording: bool,
}

/// The operation log of a namespace, or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Operations {
    /// Whether operations are recorded.
    pub recording: bool,
    /// The number of the oldest operations that were dropped.
    pub dropped: u64,
    /// The operations, the oldest first.
    pub operations: Vec<LoggedOperation>,
    /// If there are more: request those after this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
