//! The events of a namespace.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use serde::de::IntoDeserializer as _;
use serde::de::value::{self, StrDeserializer};
use serde::{Deserialize, Serialize};

use crate::AppliedEffect;
#[cfg(feature = "schema")]
use crate::encoding::DateTime;
use crate::encoding::{instant, optional_instant};

/// The events of a namespace or an entity.
///
/// The emulator writes events and messages incrementally after the other members.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timeline {
    /// The number of the oldest events that were dropped.
    #[serde(default)]
    pub dropped: u64,
    /// The number of events of each kind, dropped ones included.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
    /// The unsettled sends of the requested entity, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sends_unsettled: Option<UnsettledSends>,
    /// The position from which to continue, if the request asked for a part and there are more events: `after` it, or
    /// `before` it for the newest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The events, the oldest first.
    pub events: Vec<Event>,
    /// The messages as they arrived, encoded, in base64, if requested and still recorded. Events refer to them by index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<String>>,
}

/// Sends over AMQP to one entity that await their outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnsettledSends {
    /// The current number.
    pub now: u64,
    /// The largest number so far.
    pub most: u64,
}

/// The kind of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventKind {
    /// A message arrived.
    Sent,
    /// A message was delivered to a receiver.
    Delivered,
    /// A receiver completed a message.
    Completed,
    /// A receiver abandoned a message, and the delivery is counted.
    Abandoned,
    /// A message moved to the dead-letter queue.
    DeadLettered,
    /// A receiver released a message, and the delivery is not counted.
    Released,
    /// A message was deferred, to be received by its sequence number.
    Deferred,
    /// A lock was renewed.
    LockRenewed,
    /// A lock expired.
    LockExpired,
    /// A message expired and was dropped.
    Expired,
    /// A message arrived that becomes active later.
    Scheduled,
    /// A scheduled message became active, under a new sequence number.
    Activated,
    /// A scheduled message was cancelled.
    Cancelled,
    /// A message arrived whose id was seen before, and was dropped.
    DuplicateDropped,
    /// A rule of a subscription matched a message, which the subscription received.
    Matched,
    /// A topic has delivered a message to every subscription that selected it.
    Published,
    /// A message was forwarded to another queue or topic.
    Forwarded,
    /// A message could not be forwarded, and moved to the transfer dead-letter queue.
    TransferDeadLettered,
    /// A client deleted a message without receiving it.
    Deleted,
    /// The queue was deleted with its messages.
    EntityDeleted,
    /// A message was received and deleted.
    ReceivedAndDeleted,
    /// A message was removed by a reset.
    Removed,
    /// An operation was refused, such as a settlement after the lock was lost.
    Refused,
    /// A test advanced the clock.
    ClockAdvanced,
    /// A receiver accepted a session.
    SessionAccepted,
    /// The lock of a session was renewed.
    SessionLockRenewed,
    /// The lock of a session expired or was ended, and deliveries under it count as failed.
    SessionLockExpired,
    /// A receiver released a session.
    SessionReleased,
    /// The state of a session was set or cleared.
    SessionStateSet,
    /// A message was sent or scheduled in a transaction, to be accepted at the commit.
    SendEnlisted,
    /// A message was settled in a transaction, to be applied at the commit.
    SettlementEnlisted,
    /// A transaction with work here was committed.
    TransactionCommitted,
    /// A transaction with work here was rolled back.
    TransactionRolledBack,
    /// A scripted fault had an effect.
    Fault,
    /// The emulator was shut down gracefully and restarted with its data directory.
    Restarted,
    /// The emulator was killed and restarted with its data directory.
    Crashed,
    /// A kind that this version does not know.
    #[serde(untagged)]
    Other(String),
}

impl EventKind {
    /// Returns the name of the kind in the control API.
    pub fn name(&self) -> String {
        self.to_string()
    }

    /// Returns the kind with this name.
    pub fn named(name: &str) -> Self {
        let name: StrDeserializer<'_, value::Error> = name.into_deserializer();
        Self::deserialize(name).unwrap_or_else(|_| Self::Other(String::new()))
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Event {
    /// When it happened, by the clock of the namespace.
    #[serde(with = "instant")]
    #[cfg_attr(feature = "schema", schemars(with = "DateTime"))]
    pub at: SystemTime,
    /// When it happened, in seconds since the start of the namespace.
    #[serde(default)]
    pub offset: f64,
    /// Its position in the record, if the request asked for a part: the first event ever has 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// The kind: the name of a counter.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: EventKind,
    /// The queue, topic, subscription or sub-queue; empty for an event of the namespace.
    pub entity: Option<String>,
    /// The message's sequence number there; null until it has one.
    pub sequence_number: Option<i64>,
    /// The message's id.
    pub message_id: Option<String>,
    /// The client that caused it, by the name of its connection, or `the automatic clock`; null for the emulator.
    pub client: Option<String>,
    /// The number of the message's delivery.
    pub delivery_count: Option<u32>,
    /// The end of the message's lock.
    #[serde(default, with = "optional_instant")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<DateTime>"))]
    pub locked_until: Option<SystemTime>,
    /// The reason.
    pub reason: Option<String>,
    /// A description.
    pub detail: Option<String>,
    /// The session, for an event that is not about a message.
    pub session: Option<String>,
    /// The refused operation, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// For a fault: the operation and the effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<AppliedEffect>,
    /// The index of its message in the answer, if messages were requested and this one is still recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<usize>,
    /// The event as a line of text, if lines were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

impl Event {
    /// Creates an event without details.
    pub fn new(at: SystemTime, offset: f64, kind: EventKind) -> Self {
        Self {
            at,
            offset,
            position: None,
            kind,
            entity: None,
            sequence_number: None,
            message_id: None,
            client: None,
            delivery_count: None,
            locked_until: None,
            reason: None,
            detail: None,
            session: None,
            operation: None,
            fault: None,
            message: None,
            line: None,
        }
    }

    /// Returns the event as JSON, as the control API has it.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns how long the message was locked.
    pub fn lock(&self) -> Option<Duration> {
        self.locked_until?.duration_since(self.at).ok()
    }

    /// Returns when a scheduled message becomes active, by the clock of the namespace.
    pub fn scheduled_for(&self) -> Option<SystemTime> {
        if self.kind != EventKind::Scheduled {
            return None;
        }
        let (_size, instant) = self.detail.as_deref()?.split_once(", for ")?;
        instant
            .parse::<jiff::Timestamp>()
            .ok()
            .map(SystemTime::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_kind_round_trips_even_if_unknown() {
        let dead_lettered = (EventKind::DeadLettered, "dead-lettered");
        let unknown = (EventKind::Other("teleported".into()), "teleported");
        for (kind, name) in [dead_lettered, unknown] {
            assert_eq!(EventKind::named(name), kind);
            assert_eq!(kind.name(), name);
            let json = serde_json::Value::from(name);
            assert_eq!(serde_json::to_value(&kind).unwrap(), json);
            assert_eq!(serde_json::from_value::<EventKind>(json).unwrap(), kind);
        }
    }
}
