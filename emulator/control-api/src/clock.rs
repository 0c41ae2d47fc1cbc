//! The clock of a namespace, and waiting for an idle namespace.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
use crate::encoding::DateTime;
use crate::encoding::instant;

/// The state of a namespace's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clock {
    /// The time of the namespace, in UTC.
    #[serde(with = "instant")]
    #[cfg_attr(feature = "schema", schemars(with = "DateTime"))]
    pub now: SystemTime,
    /// How far the clock is ahead of real time, in seconds.
    pub offset_seconds: f64,
    /// Whether the clock is frozen.
    pub frozen: bool,
    /// Whether the clock steps to the next deadline by itself when the namespace is idle.
    #[serde(default)]
    pub auto: bool,
}

/// Holds an automatic clock, because something is under way that the emulator does not see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HoldClock {
    /// The hold ends after this number of seconds of real time, unless it is released before.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 600.0)))]
    pub seconds: f64,
}

/// A hold of the clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockHold {
    /// The id, which releases it.
    pub id: u64,
}

/// Advances the clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advance {
    /// The number of seconds to advance. The clock counts milliseconds: a fraction of one is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 3_162_240_000.0)))]
    pub seconds: Option<f64>,
    /// Advances to the next deadline, instead of by a number of seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<AdvanceTo>,
    /// The maximum number of deadlines to stop at on the way; 1,000,000 unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 1_000_000)))]
    pub steps: Option<u32>,
}

/// An instant, named by what happens then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AdvanceTo {
    /// The next deadline.
    Next,
}

/// The next deadlines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Due {
    /// The deadlines, in order.
    pub due: Vec<DueEvent>,
}

/// What happens at a deadline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DueEvent {
    /// When, by the clock of the namespace.
    #[serde(with = "instant")]
    #[cfg_attr(feature = "schema", schemars(with = "DateTime"))]
    pub at: SystemTime,
    /// The number of seconds until then.
    pub in_seconds: f64,
    /// `lock-end`, `session-lock-end`, `expiry`, `activation` of a scheduled message, `forward-retry`, `auto-delete` of an
    /// idle entity, or `fault-delay` of an operation.
    pub kind: String,
    /// The address of the entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// The sequence number of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<u64>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Waits until a namespace is idle and nothing is locked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settle {
    /// The maximum number of seconds of real time to wait; 5 unless set.
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 600.0)))]
    pub within: Option<f64>,
    /// The entity whose locks count; all unless set. An address as clients write it: a queue, a topic,
    /// `topic/Subscriptions/name`, or one of their dead-letter queues such as `orders/$DeadLetterQueue`.
    pub entity: Option<String>,
    /// Whether a busy namespace is an error response; with false the answer describes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuse: Option<bool>,
}

/// Whether the namespace is idle, and nothing is locked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settled {
    /// Whether the namespace is idle.
    pub settled: bool,
    /// Why it is not, as a test should print it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}
