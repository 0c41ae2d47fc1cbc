//! What happened to a queue, topic or subscription and to its messages, as the emulator recorded it.
//!
//! The record is bounded: the oldest events go first, the counters stay exact. Kinds of events that this
//! version does not know are kept and shown by name, and nothing is concluded from them.

mod display;
pub(crate) mod instant;
mod json;

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, SystemTime},
};

use serde::Deserialize;

pub use display::TitledTimeline;

use crate::received_message::ReceivedMessage;

/// What kind of thing happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
    /// The queue, topic, subscription or sub-queue it happened in.
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
    /// A description.
    pub detail: Option<String>,
    /// The session it happened to, when it is not about a message.
    pub session: Option<String>,
    /// Which of the messages of the answer it happened to.
    #[serde(default)]
    message: Option<usize>,
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

    /// Returns whether it happened at this address, whatever the case.
    pub(crate) fn is_at(&self, path: &str) -> bool {
        let entity = self.entity.as_deref();
        entity.is_some_and(|entity| entity.eq_ignore_ascii_case(path))
    }
}

/// The events of one queue, topic or subscription, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    entity: String,
    events: Vec<Event>,
    dropped: u64,
    counters: BTreeMap<String, u64>,
    max_delivery_count: Option<u32>,
    /// Of those that were asked for and are still kept.
    messages: Option<Vec<ReceivedMessage>>,
    most_unsettled_sends: Option<u64>,
}

impl Timeline {
    /// Returns the entity the record is about.
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
        self.about(|event| event.message_id.as_deref() == Some(id))
    }

    /// Returns what happened to one session, with the moves of the clock since the first.
    pub fn of_session(&self, id: &str) -> Self {
        self.about(|event| event.session.as_deref() == Some(id))
    }

    fn about(&self, is_about: impl Fn(&Event) -> bool) -> Self {
        let since = self.events.iter().skip_while(|event| !is_about(event));
        let events =
            since.filter(|event| is_about(event) || event.kind == EventKind::ClockAdvanced);
        Self {
            events: events.cloned().collect(),
            counters: BTreeMap::new(),
            ..self.clone()
        }
    }

    pub(crate) fn new(entity: &str, answer: Answer, max_delivery_count: Option<u32>) -> Self {
        Self {
            entity: entity.to_owned(),
            events: identified(answer.events),
            dropped: answer.dropped,
            counters: answer.counters,
            max_delivery_count,
            messages: None,
            most_unsettled_sends: answer.sends_unsettled.map(|sends| sends.most),
        }
    }

    /// Adds the messages that the events are about.
    pub(crate) fn with_messages(self, messages: Option<Vec<ReceivedMessage>>) -> Self {
        Self { messages, ..self }
    }

    pub(crate) fn has_messages(&self) -> bool {
        self.messages.is_some()
    }

    /// Returns the message that an event is about, where it was asked for and is kept.
    pub(crate) fn message(&self, event: &Event) -> Option<&ReceivedMessage> {
        self.messages.as_ref()?.get(event.message?)
    }

    /// Returns how many sends to the entity ever waited for their outcome at once, over all connections.
    pub fn most_unsettled_sends(&self) -> Option<u64> {
        self.most_unsettled_sends
    }
}

/// Gives a match the id of its message, which the record tells only of what came in: right after the match.
fn identified(mut events: Vec<Event>) -> Vec<Event> {
    let mut ids = HashMap::new();
    for event in events.iter_mut().rev() {
        let Some(number) = event.sequence_number else {
            continue;
        };
        let place = (event.entity.clone(), number);
        match &event.message_id {
            Some(id) => drop(ids.insert(place, id.clone())),
            None if event.kind == EventKind::Matched => event.message_id = ids.get(&place).cloned(),
            None => {}
        }
    }
    events
}

/// The record as the control API sends it.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Answer {
    #[serde(default)]
    dropped: u64,
    pub(crate) events: Vec<Event>,
    #[serde(default)]
    counters: BTreeMap<String, u64>,
    /// Encoded, in base64; only where they were asked for and are kept.
    #[serde(default)]
    pub(crate) messages: Option<Vec<String>>,
    #[serde(default)]
    sends_unsettled: Option<Sends>,
}

/// Sends that wait for their outcome.
#[derive(Debug, Deserialize)]
struct Sends {
    most: u64,
}

impl EventKind {
    /// Every kind with a name of its own, and the name by which the control API knows it.
    const NAMES: [(Self, &'static str); 34] = [
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
        (Self::Matched, "matched"),
        (Self::Published, "published"),
        (Self::Forwarded, "forwarded"),
        (Self::TransferDeadLettered, "transfer-dead-lettered"),
        (Self::Deleted, "deleted"),
        (Self::EntityDeleted, "entity-deleted"),
        (Self::ReceivedAndDeleted, "received-and-deleted"),
        (Self::Removed, "removed"),
        (Self::Refused, "refused"),
        (Self::ClockAdvanced, "clock-advanced"),
        (Self::SessionAccepted, "session-accepted"),
        (Self::SessionLockRenewed, "session-lock-renewed"),
        (Self::SessionLockExpired, "session-lock-expired"),
        (Self::SessionReleased, "session-released"),
        (Self::SessionStateSet, "session-state-set"),
        (Self::SendEnlisted, "send-enlisted"),
        (Self::SettlementEnlisted, "settlement-enlisted"),
        (Self::TransactionCommitted, "transaction-committed"),
        (Self::TransactionRolledBack, "transaction-rolled-back"),
        (Self::Fault, "fault"),
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
