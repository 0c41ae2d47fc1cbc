//! The events of a queue, topic or subscription and its messages, as the emulator recorded them.
//!
//! The record is bounded: the oldest events are dropped first, the counters stay exact. Unknown kinds of events are kept and
//! shown by name, but not interpreted.

mod display;

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use servicebus_control_api as api;

pub use display::{TitledTimeline, line, without_tracking};
pub(crate) use servicebus_control_api::{Event, EventKind};

use crate::message::Message;

/// The events of one queue, topic or subscription, oldest first.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    entity: String,
    events: Vec<Event>,
    dropped: u64,
    counters: BTreeMap<String, u64>,
    max_delivery_count: Option<u32>,
    /// The requested messages that are still recorded.
    messages: Option<Vec<Message>>,
    most_unsettled_sends: Option<u64>,
}

impl Timeline {
    /// Returns the entity of the record.
    pub fn entity(&self) -> &str {
        &self.entity
    }

    /// Returns the recorded events, oldest first.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the number of dropped events.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns how often an event happened; exact also when events were dropped.
    pub fn count(&self, kind: &EventKind) -> u64 {
        match self.counters.get(&kind.name()) {
            Some(count) => *count,
            None => {
                let events = self.events.iter();
                events.filter(|event| event.kind == *kind).count() as u64
            }
        }
    }

    /// Returns the events of one message, with clock advances and restarts since the first.
    pub fn of_message(&self, id: &str) -> Self {
        self.about(|event| event.message_id.as_deref() == Some(id))
    }

    /// Returns the events of one session, with clock advances since the first.
    pub fn of_session(&self, id: &str) -> Self {
        self.about(|event| event.session.as_deref() == Some(id))
    }

    fn about(&self, is_about: impl Fn(&Event) -> bool) -> Self {
        let since = self.events.iter().skip_while(|event| !is_about(event));
        let events = since.filter(|event| is_about(event) || is_of_all(event));
        Self {
            events: events.cloned().collect(),
            counters: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// Converts the record of an entity with this maximum delivery count.
    #[doc(hidden)]
    pub fn new(entity: &str, answer: api::Timeline, max_delivery_count: Option<u32>) -> Self {
        Self {
            entity: entity.to_owned(),
            events: with_message_ids(answer.events),
            dropped: answer.dropped,
            counters: answer.counters,
            max_delivery_count,
            messages: None,
            most_unsettled_sends: answer.sends_unsettled.map(|sends| sends.most),
        }
    }

    /// Returns the sum of the recorded clock advances, in seconds.
    pub(crate) fn advanced(&self) -> f64 {
        let moves = self
            .events
            .iter()
            .filter(|event| event.kind == EventKind::ClockAdvanced);
        let seconds = moves.filter_map(|event| {
            event
                .detail
                .as_deref()?
                .strip_suffix(" s")?
                .parse::<f64>()
                .ok()
        });
        seconds.sum()
    }

    /// Returns the timeline as JSON, for tools and for files of a failed run.
    ///
    /// The members are `entity`, `dropped`, `counters` and `events`; each event has the fields of the control API. Instants
    /// are RFC 3339 strings, and fields that do not apply are null.
    pub fn to_json(&self) -> Value {
        json!({
            "entity": self.entity,
            "dropped": self.dropped,
            "counters": self.counters,
            "events": Vec::from_iter(self.events.iter().map(Event::to_json)),
        })
    }

    /// Adds the messages of the events.
    #[doc(hidden)]
    pub fn with_messages(self, messages: Option<Vec<Message>>) -> Self {
        Self { messages, ..self }
    }

    pub(crate) fn has_messages(&self) -> bool {
        self.messages.is_some()
    }

    /// Returns the message of an event, if it was requested and is still recorded.
    pub(crate) fn message(&self, event: &Event) -> Option<&Message> {
        self.messages.as_ref()?.get(event.message?)
    }

    /// Returns the largest number of sends to the entity that awaited their outcome at once, over all connections.
    pub fn most_unsettled_sends(&self) -> Option<u64> {
        self.most_unsettled_sends
    }
}

/// Returns whether an event belongs to every message.
fn is_of_all(event: &Event) -> bool {
    matches!(
        event.kind,
        EventKind::ClockAdvanced | EventKind::Restarted | EventKind::Crashed
    )
}

/// Sets the message id of match events; the record has it only in the arrival event right after the match.
fn with_message_ids(mut events: Vec<Event>) -> Vec<Event> {
    let mut ids = HashMap::new();
    for event in events.iter_mut().rev() {
        let Some(number) = event.sequence_number else {
            continue;
        };
        let position = (event.entity.clone(), number);
        match &event.message_id {
            Some(id) => drop(ids.insert(position, id.clone())),
            None if event.kind == EventKind::Matched => {
                event.message_id = ids.get(&position).cloned()
            }
            None => {}
        }
    }
    events
}

/// Returns whether an event happened at this address, in any case.
pub fn is_at(event: &Event, path: &str) -> bool {
    let entity = event.entity.as_deref();
    entity.is_some_and(|entity| entity.eq_ignore_ascii_case(path))
}

#[cfg(test)]
mod tests;
