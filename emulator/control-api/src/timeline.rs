//! What happened to the messages of a namespace.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::IntoDeserializer as _;
use serde::de::value::{self, StrDeserializer};
use serde::{Deserialize, Serialize};

use crate::AppliedEffect;
#[cfg(feature = "schema")]
use crate::encoding::DateTime;
use crate::encoding::{instant, optional_instant};

/// What happened in a namespace or an entity.
///
/// The emulator writes events and messages piece by piece behind the rest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Timeline {
    /// How many of the oldest events are not kept any more.
    #[serde(default)]
    pub dropped: u64,
    /// How often each kind of event happened, those that were dropped included.
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
    /// Of one entity, where one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sends_unsettled: Option<UnsettledSends>,
    /// Where a part was asked for and more events are wanted: where to go on, `after` it, or `before` it where the
    /// newest were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Oldest first.
    pub events: Vec<Event>,
    /// Where they were asked for and are kept: the messages as they came in, encoded, in base64. Events name them by their
    /// place in this list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<String>>,
}

/// Sends over AMQP to one entity that wait for their outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct UnsettledSends {
    /// How many do now.
    pub now: u64,
    /// The most that ever did at once.
    pub most: u64,
}

/// What kind of thing happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum EventKind {
    /// A message came in.
    Sent,
    /// A message was delivered to a receiver.
    Delivered,
    /// A receiver settled a message as done.
    Completed,
    /// A receiver abandoned a message, and the delivery counts.
    Abandoned,
    /// A message moved to the dead-letter queue.
    DeadLettered,
    /// A receiver released a message, and the delivery does not count.
    Released,
    /// A message was deferred, to be received by its sequence number.
    Deferred,
    /// A lock was renewed.
    LockRenewed,
    /// A lock ran out.
    LockExpired,
    /// A message expired and was dropped.
    Expired,
    /// A message came in, to become active later.
    Scheduled,
    /// A scheduled message became active, under a new number.
    Activated,
    /// A scheduled message was cancelled.
    Cancelled,
    /// A message came in whose id was seen before, and was dropped.
    DuplicateDropped,
    /// A rule of a subscription matched a message, which is in the subscription from then on.
    Matched,
    /// A message of a topic has come to every subscription that wanted it.
    Published,
    /// A message was forwarded to another queue or topic.
    Forwarded,
    /// A message could not go on, and moved to the transfer dead-letter queue.
    TransferDeadLettered,
    /// A client deleted a message without receiving it.
    Deleted,
    /// The queue was deleted with everything in it.
    EntityDeleted,
    /// A message was received and deleted at once.
    ReceivedAndDeleted,
    /// A message was removed by a reset.
    Removed,
    /// An operation was refused; settling by a lock that was lost is one of these.
    Refused,
    /// A test moved the clock.
    ClockAdvanced,
    /// A receiver has a session for itself.
    SessionAccepted,
    /// The lock of a session was renewed.
    SessionLockRenewed,
    /// The lock of a session ran out or was taken away, and what was received under it counts as failed.
    SessionLockExpired,
    /// A receiver let a session go.
    SessionReleased,
    /// Something is kept with a session, or nothing any longer.
    SessionStateSet,
    /// A message was sent or scheduled in a transaction, and is accepted when that is committed.
    SendEnlisted,
    /// A message was settled in a transaction, which happens when that is committed.
    SettlementEnlisted,
    /// A transaction was committed that had work here.
    TransactionCommitted,
    /// A transaction was rolled back that had work here.
    TransactionRolledBack,
    /// Something went wrong because a test had scripted it.
    Fault,
    /// The emulator ended in good order and was started again, with what its data directory held.
    Restarted,
    /// The emulator was killed and started again, with what its data directory held.
    Crashed,
    /// Something this version has no name for.
    #[serde(untagged)]
    Other(String),
}

impl EventKind {
    /// Returns the name by which the control API knows the kind.
    pub fn name(&self) -> String {
        self.to_string()
    }

    /// Returns the kind of this name.
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

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
#[non_exhaustive]
pub struct Event {
    /// When it happened, on the clock of the namespace.
    #[serde(with = "instant")]
    #[cfg_attr(feature = "schema", schemars(with = "DateTime"))]
    pub at: SystemTime,
    /// When it happened, in seconds since the namespace was started.
    #[serde(default)]
    pub offset: f64,
    /// Its place in the record, where a part of that was asked for: the first event ever has 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// What happened: the name of one of the counters.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: EventKind,
    /// The queue, topic, subscription or sub-queue it happened in; empty where it happened to the namespace.
    pub entity: Option<String>,
    /// The message's sequence number there; none before it has one.
    pub sequence_number: Option<i64>,
    /// The message's id.
    pub message_id: Option<String>,
    /// The client that did it, by the name it gave its connection; null where the emulator did.
    pub client: Option<String>,
    /// Which delivery of the message it was.
    pub delivery_count: Option<u32>,
    /// Until when the message was locked.
    #[serde(default, with = "optional_instant")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<DateTime>"))]
    pub locked_until: Option<SystemTime>,
    /// Why.
    pub reason: Option<String>,
    /// A description.
    pub detail: Option<String>,
    /// The session it happened to, when it is not about a message.
    pub session: Option<String>,
    /// What the client asked for that was refused, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Of a fault: the operation that it was applied to, and its effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<AppliedEffect>,
    /// Which of the messages of the answer it happened to, where they were asked for and this one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<usize>,
    /// The event as a line of text, where lines were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

impl Event {
    /// An event of which nothing more is known.
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

    /// Returns the event as JSON, with the fields of the control API.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns for how long the message was locked.
    pub fn lock(&self) -> Option<Duration> {
        self.locked_until?.duration_since(self.at).ok()
    }

    /// Returns when a message that was scheduled becomes active, on the clock of the namespace.
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
    fn a_kind_is_known_by_its_name_and_an_unknown_one_keeps_it() {
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
