//! The operation log of a namespace: what its clients did, as scripted faults see it.
//!
//! Each entry is an operation on which a fault could take effect. Its fields are those by which a fault can be narrowed to
//! it, and what else an exploration needs to know of it: whether an effect is feasible there, and how the entity was.

use std::time::SystemTime;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Operation;
#[cfg(feature = "schema")]
use crate::encoding::DateTime;
use crate::encoding::instant;

/// One operation of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct LoggedOperation {
    /// Its number in the log, counted from 1.
    pub number: u64,
    /// When it came, on the clock of the namespace.
    #[serde(with = "instant")]
    #[cfg_attr(feature = "schema", schemars(with = "DateTime"))]
    pub at: SystemTime,
    /// When it came, in seconds since the namespace was started.
    pub offset: f64,
    /// What it is, as precisely as a fault can ask for it: `complete` and not `settle`.
    pub operation: Operation,
    /// The operation of a management request, the method of an HTTP request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name of the key that its client used; null where it has used none yet.
    pub party: Option<String>,
    /// The client, by the name it gave its connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The connection's number within the emulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
    /// The link's number within its connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u64>,
    /// The address of what it concerns; of a discharge the first one.
    pub entity: Option<String>,
    /// The id of its message; of a batch that of the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The session of its message, or that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The sequence number of its message, where the message has one already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<i64>,
    /// Which delivery of its message it is, or is about, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<u32>,
    /// A hash of the body of its message, in hexadecimal digits, the same in every run and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_hash: Option<String>,
    /// How many messages it is about.
    pub messages: usize,
    /// Whether it has a lock that can be lost.
    pub locked: bool,
    /// Whether its message can come again although its settlement is confirmed.
    pub repeatable: bool,
    /// How its entity was just before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<EntityState>,
    /// What faults did to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<AppliedFault>,
}

/// What an entity held before an operation, as far as an exploration tells operations apart by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct EntityState {
    /// Messages that are ready to be received or set aside for a receiver.
    pub ready: u64,
    /// Messages that are locked.
    pub locked: u64,
    /// Receivers that have asked for messages.
    pub receivers: usize,
}

/// What a fault did to an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct AppliedFault {
    /// The id of the fault.
    pub fault: u64,
    /// The name of its effect.
    pub effect: String,
    /// What it did, as a sentence.
    pub detail: String,
}

/// The oldest operation that waits because of `postpone` goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Released {
    /// Whether there was one.
    pub released: bool,
    /// How many wait still.
    pub waiting: usize,
}

/// Switches the operation log of a namespace on or off. What it holds is dropped by that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RecordOperations {
    /// Whether operations are recorded from now on.
    pub recording: bool,
}

/// The operation log of a namespace, or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Operations {
    /// Whether operations are recorded.
    pub recording: bool,
    /// How many of the oldest are not kept any more.
    pub dropped: u64,
    /// Oldest first.
    pub operations: Vec<LoggedOperation>,
    /// Where there are more: ask for those after this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
