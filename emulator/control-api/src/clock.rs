//! The clock of a namespace, and waiting until it is idle.

use std::time::SystemTime;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::encoding::DateTime;
use crate::encoding::instant;

/// What the clock of a namespace shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Clock {
    /// The time of the namespace, in UTC.
    #[serde(with = "instant")]
    #[cfg_attr(feature = "schema", schemars(with = "DateTime"))]
    pub now: SystemTime,
    /// How far it is ahead of real time, in seconds.
    pub offset_seconds: f64,
    /// Whether it stands still.
    pub frozen: bool,
    /// Whether it steps to the next deadline by itself when nothing moves.
    #[serde(default)]
    pub auto: bool,
}

/// Keeps an automatic clock from stepping, because something is under way that the emulator does not see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HoldClock {
    /// After how many seconds of real time it ends unless it is released.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 600.0)))]
    pub seconds: f64,
}

/// A hold that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct ClockHold {
    /// By which it is released.
    pub id: u64,
}

/// Moves the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Advance {
    /// How many seconds to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 3_162_240_000.0)))]
    pub seconds: Option<f64>,
    /// Instead of seconds where to go: to the next instant at which something is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<AdvanceTo>,
    /// Most deadlines to stop at on the way; 1,000,000 when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 1_000_000)))]
    pub steps: Option<u32>,
}

/// An instant that is known by what happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum AdvanceTo {
    /// When something is due next.
    Next,
}

/// What time brings about next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Due {
    /// In order.
    pub due: Vec<DueEvent>,
}

/// Something that time brings about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct DueEvent {
    /// When, on the clock of the namespace.
    #[serde(with = "instant")]
    #[cfg_attr(feature = "schema", schemars(with = "DateTime"))]
    pub at: SystemTime,
    /// In how many seconds.
    pub in_seconds: f64,
    /// `lock-end`, `session-lock-end`, `expiry`, `activation` of a scheduled message, `forward-retry`, `auto-delete` of an
    /// idle entity, or `fault-delay`, which is that of an operation.
    pub kind: String,
    /// The address of where it happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// Of which message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// Of which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Waits until a namespace is idle.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Settle {
    /// How many seconds of real time to wait; 5 unless set.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 600.0)))]
    pub within: Option<f64>,
    /// Whose locks count; all unless set. An address as clients write it: a queue, a topic, `topic/Subscriptions/name`, or
    /// one of their dead-letter queues such as `orders/$DeadLetterQueue`.
    pub entity: Option<String>,
    /// Whether it is a refusal that something is busy; false has the answer tell that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuse: Option<bool>,
}

/// Whether the namespace is idle, and nothing is locked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Settled {
    /// Whether it is.
    pub settled: bool,
    /// Why not, as a test should print it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}
