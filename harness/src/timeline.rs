//! What happened to a queue and to its messages, as the emulator recorded it.
//!
//! The record is bounded: the oldest events go first, the counters stay exact. Kinds of events that this
//! version does not know are kept and shown by name, and nothing is concluded from them.

mod display;
pub(crate) mod instant;

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use serde::Deserialize;

pub use display::Shown;

/// What kind of thing happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// A message came in.
    Sent,
    /// A message went out to a consumer.
    Delivered,
    /// A consumer settled a message as done.
    Completed,
    /// A consumer gave a message back, and the delivery counts.
    Abandoned,
    /// A message moved to the dead-letter queue.
    DeadLettered,
    /// A consumer gave a message back, and the delivery does not count.
    Released,
    /// A message was put aside, to be received by its number.
    Deferred,
    /// A lock was prolonged.
    LockRenewed,
    /// A lock ran out.
    LockExpired,
    /// A message expired and was dropped.
    Expired,
    /// A message came in, to become active later.
    Scheduled,
    /// A scheduled message became active, under a new number.
    Activated,
    /// A scheduled message was taken back.
    Cancelled,
    /// A message came in whose id was seen before, and was dropped.
    DuplicateDropped,
    /// A message went on to another queue.
    Forwarded,
    /// A message could not go on, and moved to the transfer dead-letter queue.
    TransferDeadLettered,
    /// Somebody deleted a message without receiving it.
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
    /// Something this version has no name for.
    Other(String),
}

/// One thing that happened.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// When it happened, on the clock of the namespace.
    #[serde(with = "instant")]
    pub at: SystemTime,
    /// When it happened, in seconds since the record began.
    #[serde(default)]
    pub offset: f64,
    /// What happened.
    #[serde(deserialize_with = "kind")]
    pub kind: EventKind,
    /// The queue or sub-queue it happened in.
    pub entity: Option<String>,
    /// The message's number there.
    pub sequence_number: Option<i64>,
    /// The message's id.
    pub message_id: Option<String>,
    /// The client that did it, by the name it gave its connection.
    pub client: Option<String>,
    /// Which delivery of the message it was.
    pub delivery_count: Option<u32>,
    /// Until when the message was locked.
    #[serde(default, with = "instant::optional")]
    pub locked_until: Option<SystemTime>,
    /// Why it was dead-lettered.
    pub reason: Option<String>,
    /// More words.
    pub detail: Option<String>,
}

impl Event {
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
        instant::parsed(instant)
    }

    /// Tells whether it happened at this address, whatever the letter case.
    pub(crate) fn is_at(&self, path: &str) -> bool {
        let entity = self.entity.as_deref();
        entity.is_some_and(|entity| entity.eq_ignore_ascii_case(path))
    }
}

/// The events of one queue, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    entity: String,
    events: Vec<Event>,
    dropped: u64,
    counters: BTreeMap<String, u64>,
    max_delivery_count: Option<u32>,
}

impl Timeline {
    /// Returns the queue the record is about.
    pub fn entity(&self) -> &str {
        &self.entity
    }

    /// Returns what is still on record, oldest first.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns how many events the record no longer holds.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns how often something happened; exact also when events were dropped.
    pub fn count(&self, kind: &EventKind) -> u64 {
        match self.counters.get(kind.name()) {
            Some(count) => *count,
            None => {
                let events = self.events.iter();
                events.filter(|event| event.kind == *kind).count() as u64
            }
        }
    }

    /// Returns the events of one message, with the moves of the clock since the first.
    pub fn of_message(&self, id: &str) -> Self {
        let is_of = |event: &Event| event.message_id.as_deref() == Some(id);
        let since = self.events.iter().skip_while(|event| !is_of(event));
        let events = since.filter(|event| is_of(event) || event.kind == EventKind::ClockAdvanced);
        Self {
            events: events.cloned().collect(),
            counters: BTreeMap::new(),
            ..self.clone()
        }
    }

    pub(crate) fn new(entity: &str, answer: Answer, max_delivery_count: Option<u32>) -> Self {
        Self {
            entity: entity.to_owned(),
            events: answer.events,
            dropped: answer.dropped,
            counters: answer.counters,
            max_delivery_count,
        }
    }
}

/// The record as the control API sends it.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Answer {
    #[serde(default)]
    dropped: u64,
    events: Vec<Event>,
    #[serde(default)]
    counters: BTreeMap<String, u64>,
}

impl EventKind {
    /// Every kind with a name of its own, and the name by which the control API knows it.
    const NAMES: [(Self, &'static str); 22] = [
        (Self::Sent, "sent"),
        (Self::Delivered, "delivered"),
        (Self::Completed, "completed"),
        (Self::Abandoned, "abandoned"),
        (Self::DeadLettered, "dead-lettered"),
        (Self::Released, "released"),
        (Self::Deferred, "deferred"),
        (Self::LockRenewed, "lock-renewed"),
        (Self::LockExpired, "lock-expired"),
        (Self::Expired, "expired"),
        (Self::Scheduled, "scheduled"),
        (Self::Activated, "activated"),
        (Self::Cancelled, "cancelled"),
        (Self::DuplicateDropped, "duplicate-dropped"),
        (Self::Forwarded, "forwarded"),
        (Self::TransferDeadLettered, "transfer-dead-lettered"),
        (Self::Deleted, "deleted"),
        (Self::EntityDeleted, "entity-deleted"),
        (Self::ReceivedAndDeleted, "received-and-deleted"),
        (Self::Removed, "removed"),
        (Self::Refused, "refused"),
        (Self::ClockAdvanced, "clock-advanced"),
    ];

    /// Returns the name by which the control API knows the kind.
    pub fn name(&self) -> &str {
        match self {
            Self::Other(name) => name,
            known => Self::NAMES
                .iter()
                .find_map(|(kind, name)| (kind == known).then_some(*name))
                .unwrap_or_default(),
        }
    }

    fn named(name: &str) -> Self {
        Self::NAMES
            .iter()
            .find_map(|(kind, known)| (*known == name).then(|| kind.clone()))
            .unwrap_or_else(|| Self::Other(name.to_owned()))
    }
}

fn kind<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<EventKind, D::Error> {
    String::deserialize(deserializer).map(|name| EventKind::named(&name))
}

#[cfg(test)]
mod tests;
