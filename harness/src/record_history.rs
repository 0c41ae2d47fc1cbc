//! The record from before the emulator's restarts, which the emulator itself does not store.
//!
//! The harness fetches it just before the emulator ends, and puts it before the new record in every answer. What a crash
//! undid is marked: the last event of a message that contradicts the data directory. No client received an outcome for it,
//! so assertions do not count it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use servicebus_assertions::{EntityAddress, EntityKind, is_at};
use servicebus_control_api::{Event, EventKind, Timeline, UnsettledSends};

use crate::{backend::TimelineQuery, running::Termination};

/// The suffixes of an entity's sub-queues, which have counters of their own.
pub(crate) const SUB_QUEUE_SUFFIXES: [&str; 3] =
    ["/$Transfer/$DeadLetterQueue", "/$DeadLetterQueue", ""];

/// The record of all earlier emulators.
#[derive(Debug, Default)]
pub(crate) struct RecordHistory(Mutex<Record>);

#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    /// The record of the whole namespace, with messages.
    pub(crate) whole: Timeline,
    /// The counters at each address (in lower case).
    pub(crate) counted: BTreeMap<String, Timeline>,
}

/// The position of a message: its address in lower case, and its sequence number there.
pub(crate) type MessagePosition = (String, i64);

impl RecordHistory {
    /// Appends the record of an emulator to those of the earlier ones.
    pub(crate) fn add(&self, mut record: Record) {
        let mut earlier = self.0.lock();
        let query = TimelineQuery {
            entity: "",
            sequence_number: None,
            messages: true,
        };
        earlier.whole = earlier.prepend_to(query, record.whole);
        for (address, counted) in std::mem::take(&mut record.counted) {
            let sum = earlier.counted.entry(address).or_default();
            *sum = add_counters(sum, &counted);
        }
    }

    /// Removes the record of all earlier emulators.
    pub(crate) fn clear(&self) {
        *self.0.lock() = Record::default();
    }

    /// Appends the event of the restart.
    pub(crate) fn add_restart(&self, termination: Termination, now: SystemTime) {
        let mut earlier = self.0.lock();
        let offset = now.duration_since(earlier.origin().unwrap_or(now));
        let offset = offset.unwrap_or_default().as_secs_f64();
        let kind = match termination {
            Termination::Stop => EventKind::Restarted,
            Termination::Crash => EventKind::Crashed,
        };
        let event = Event::new(now, offset, kind);
        earlier.whole.events.push(event);
    }

    /// Marks what a crash undid. `present` has the current messages, `later` the events since the restart.
    pub(crate) fn mark_undone(&self, present: &BTreeSet<MessagePosition>, later: &[Event]) {
        let mut earlier = self.0.lock();
        let Record { whole, counted } = &mut *earlier;
        // With dropped events, the last event of a message is unknown.
        if whole.dropped > 0 {
            return;
        }
        let known = present.iter().cloned();
        let known = known.chain(later.iter().filter_map(position)).collect();
        for index in undone_events(&whole.events, present, &known) {
            let event = &mut whole.events[index];
            let name = event.kind.name();
            let address = event.entity.as_deref().unwrap_or_default().to_lowercase();
            let counters = counted.get_mut(&address);
            if let Some(count) = counters.and_then(|counted| counted.counters.get_mut(&name)) {
                *count = count.saturating_sub(1);
            }
            event.kind = EventKind::Other(format!("undone-{name}"));
        }
    }

    /// Puts the earlier record in front of an emulator's answer.
    pub(crate) fn prepend_to(&self, query: TimelineQuery<'_>, answer: Timeline) -> Timeline {
        let earlier = self.0.lock();
        if earlier.whole.events.is_empty() {
            return answer;
        }
        earlier.prepend_to(query, answer)
    }
}

impl Record {
    fn prepend_to(&self, query: TimelineQuery<'_>, mut answer: Timeline) -> Timeline {
        if let Some(origin) = self.origin() {
            for event in &mut answer.events {
                let offset = event.at.duration_since(origin).unwrap_or_default();
                event.offset = offset.as_secs_f64();
            }
        }
        let none = Timeline::default();
        let counted = self.counted.get(&query.entity.to_lowercase());
        let head = add_counters(&answer, counted.unwrap_or(&none));
        let mut earlier = self.whole.messages.clone().unwrap_or_default();
        let events = self.whole.events.iter();
        let events = events.filter(|event| query.selects(event));
        let mut events: Vec<Event> = events.cloned().collect();
        let (first, known) = (earlier.len(), self.first_events());
        for event in &mut answer.events {
            event.message = event.message.map(|index| first + index);
            if let Some(sent) = position(event).and_then(|number| known.get(&number)) {
                event.message_id = event.message_id.take().or_else(|| sent.message_id.clone());
                event.message = event.message.or(sent.message);
            }
        }
        events.append(&mut answer.events);
        let messages = answer.messages.take().filter(|_| query.messages);
        if messages.is_none() {
            events.iter_mut().for_each(|event| event.message = None);
        }
        Timeline {
            dropped: self.whole.dropped + answer.dropped,
            messages: messages.map(|mut messages| {
                earlier.append(&mut messages);
                earlier
            }),
            events,
            ..head
        }
    }

    /// Returns the first event with a message id at each position: after a restart an emulator knows messages by their
    /// numbers only.
    fn first_events(&self) -> BTreeMap<MessagePosition, &Event> {
        let mut known = BTreeMap::new();
        for event in &self.whole.events {
            if let Some(number) = position(event).filter(|_| event.message_id.is_some()) {
                known.entry(number).or_insert(event);
            }
        }
        known
    }

    /// Returns when the first emulator started.
    fn origin(&self) -> Option<SystemTime> {
        let first = self.whole.events.first()?;
        let offset = Duration::try_from_secs_f64(first.offset).ok()?;
        first.at.checked_sub(offset)
    }
}

impl TimelineQuery<'_> {
    /// Returns whether the query selects an event. Events of the namespace itself belong to every entity.
    fn selects(self, event: &Event) -> bool {
        let is_selected = self
            .sequence_number
            .is_none_or(|number| event.sequence_number == Some(number));
        // The path of the owner does not depend on the kind.
        let address = EntityAddress::new(EntityKind::Queue, self.entity.to_owned());
        let own = address.owner_path();
        let mut places = SUB_QUEUE_SUFFIXES
            .iter()
            .map(|below| format!("{own}{below}"));
        let is_here = match event.entity.as_deref() {
            None | Some("") => true,
            Some(_) => own.is_empty() || places.any(|place| is_at(event, &place)),
        };
        is_selected && is_here
    }
}

/// Returns `later` with the counters of both.
fn add_counters(later: &Timeline, earlier: &Timeline) -> Timeline {
    let mut counters = later.counters.clone();
    for (kind, count) in &earlier.counters {
        *counters.entry(kind.clone()).or_default() += count;
    }
    let sends = match (later.sends_unsettled, earlier.sends_unsettled) {
        (Some(later), Some(earlier)) => Some(UnsettledSends {
            most: later.most.max(earlier.most),
            ..later
        }),
        (later, earlier) => later.or(earlier),
    };
    Timeline {
        counters,
        sends_unsettled: sends,
        ..Timeline::default()
    }
}

fn position(event: &Event) -> Option<MessagePosition> {
    Some((
        event.entity.as_ref()?.to_lowercase(),
        event.sequence_number?,
    ))
}

/// Returns the indices of events that a crash undid: the last events of messages that contradict `present`. A message at a
/// position in `known` exists, or existed when the emulator started.
fn undone_events(
    events: &[Event],
    present: &BTreeSet<MessagePosition>,
    known: &BTreeSet<MessagePosition>,
) -> Vec<usize> {
    let mut last: BTreeMap<MessagePosition, (usize, bool)> = BTreeMap::new();
    for (index, event) in events.iter().enumerate() {
        if let (Some(place), Some(is_there)) = (position(event), is_present_after(&event.kind)) {
            last.insert(place, (index, is_there));
        }
    }
    let differs = |place: &MessagePosition, is_there: bool| match is_there {
        true => !known.contains(place),
        false => present.contains(place),
    };
    let all = last.into_iter();
    all.filter(|(place, (_, is_there))| differs(place, *is_there))
        .map(|(_, (index, _))| index)
        .collect()
}

/// Returns whether a message is at its position after this event; `None` if the event does not change that.
fn is_present_after(kind: &EventKind) -> Option<bool> {
    let comes = matches!(kind, EventKind::Sent | EventKind::Scheduled);
    let goes = matches!(
        kind,
        EventKind::Completed
            | EventKind::DeadLettered
            | EventKind::Expired
            | EventKind::Activated
            | EventKind::Cancelled
            | EventKind::DuplicateDropped
            | EventKind::Published
            | EventKind::Forwarded
            | EventKind::TransferDeadLettered
            | EventKind::Deleted
            | EventKind::ReceivedAndDeleted
            | EventKind::Removed
    );
    (comes || goes).then_some(comes)
}

#[cfg(test)]
mod tests;
