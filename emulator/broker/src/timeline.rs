//! The bounded record of a namespace's events, and counters that stay exact when it overflows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Bound, Range};

use crate::event::{Counter, Event};
use crate::events::Events;
use crate::ids::{EntityId, SubQueue};

type Tally = [u64; Counter::ALL.len()];

/// A ring of events with counters.
#[derive(Debug)]
pub struct Timeline {
    events: Events,
    capacity: usize,
    dropped: u64,
    tallies: BTreeMap<(EntityId, SubQueue), Tally>,
    /// Deleted entities that still have counters of their own, the oldest first.
    deleted: VecDeque<EntityId>,
}

impl Timeline {
    /// How many deleted entities keep counters of their own: a namespace may create and delete them without end.
    const DELETED: usize = 1_024;

    /// The default number of events that a namespace keeps (harness.md §6).
    pub const CAPACITY: usize = 65_536;

    /// Creates a timeline of at most `capacity` events.
    pub fn new(capacity: usize) -> Self {
        Self {
            events: Events::new(),
            capacity,
            dropped: 0,
            tallies: BTreeMap::new(),
            deleted: VecDeque::new(),
        }
    }

    /// Takes and counts the events of `batch`; drops the oldest events that no longer fit.
    pub fn absorb(&mut self, batch: &mut Events) {
        self.tally(batch);
        // Trims before appending, so that the ring never grows to twice its size.
        let excess = batch.len().saturating_sub(self.capacity);
        batch.forget(excess);
        self.trim(self.capacity.saturating_sub(batch.len()));
        self.dropped += excess as u64;
        self.events.absorb(batch);
        self.trim(self.capacity);
    }

    /// Counts events; most of them are of the same store as the one before.
    fn tally(&mut self, batch: &Events) {
        let place = |event: &Event| (event.entity, event.store);
        let mut events = batch.iter().peekable();
        while let Some(first) = events.peek().map(|event| place(event)) {
            let tally = self.tallies.entry(first);
            let tally = tally.or_insert([0; Counter::ALL.len()]);
            while let Some(event) = events.next_if(|event| place(event) == first) {
                let counter = Counter::from(&event.kind);
                tally[counter as usize] += 1;
                if counter == Counter::EntityDeleted {
                    self.deleted.push_back(event.entity);
                }
            }
        }
        while self.deleted.len() > Self::DELETED {
            if let Some(gone) = self.deleted.pop_front() {
                for kind in SubQueue::ALL {
                    self.tallies.remove(&(gone, kind));
                }
            }
        }
    }

    /// Drops the oldest events until at most `kept` are left.
    fn trim(&mut self, kept: usize) {
        let excess = self.events.len().saturating_sub(kept);
        self.events.forget(excess);
        self.dropped += excess as u64;
    }

    /// Returns the kept events.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Returns the position of the latest event; positions begin with 1.
    pub fn last_position(&self) -> u64 {
        self.dropped + self.events.len() as u64
    }

    /// Copies the events at these positions that `takes` chooses, with their positions; returns the position from which to
    /// continue.
    pub fn copy(
        &self,
        range: Range<u64>,
        takes: impl Fn(&Event) -> bool,
        copy: &mut Events,
        positions: &mut Vec<u64>,
    ) -> u64 {
        let first = self.dropped + 1;
        let index = |position: u64| {
            let index = usize::try_from(position.saturating_sub(first)).unwrap_or(usize::MAX);
            index.min(self.events.len())
        };
        let indexes = index(range.start)..index(range.end.max(range.start));
        self.events.copy_to(indexes, takes, copy, |index| {
            positions.push(first + index as u64);
        });
        range.end.max(first)
    }

    /// Adds the entities of up to `max` events from position `from` on; returns the position from which to continue.
    pub fn entities(&self, from: u64, max: usize, entities: &mut BTreeSet<EntityId>) -> u64 {
        let first = self.dropped + 1;
        let start = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        let events = self.events.iter().skip(start).take(max);
        let count = events.len() as u64;
        entities.extend(events.map(|event| event.entity));
        from.max(first) + count.max(1)
    }

    /// Returns the counts of each kind of event in up to `max` stores behind `after`.
    pub fn tallies(
        &self,
        after: Option<(EntityId, SubQueue)>,
        max: usize,
    ) -> impl Iterator<Item = (&(EntityId, SubQueue), &[u64])> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let stores = self.tallies.range((from, Bound::Unbounded)).take(max);
        stores.map(|(store, tally)| (store, tally.as_slice()))
    }

    /// Returns the events of one entity, oldest first.
    pub fn of(&self, entity: EntityId) -> impl Iterator<Item = &Event> {
        self.events
            .iter()
            .filter(move |event| event.entity == entity)
    }

    /// Returns how many events were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns how often this happened in this store, dropped events included.
    pub fn count(&self, entity: EntityId, store: SubQueue, counter: Counter) -> u64 {
        self.tallies
            .get(&(entity, store))
            .map_or(0, |tally| tally[counter as usize])
    }

    /// Returns the sums of counts in the stores that `takes` chooses, dropped events included.
    pub fn totals(
        &self,
        takes: impl Fn(EntityId, SubQueue) -> bool,
    ) -> impl Iterator<Item = (Counter, u64)> {
        let mut totals = [0; Counter::ALL.len()];
        for ((entity, store), tally) in &self.tallies {
            if takes(*entity, *store) {
                let both = totals.iter_mut().zip(tally);
                both.for_each(|(total, count)| *total += count);
            }
        }
        Counter::ALL.iter().copied().zip(totals)
    }

    /// Removes all events and counts.
    pub fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;
    use crate::ids::{ClientId, SequenceNumber};
    use crate::time::Timestamp;

    fn event(kind: EventKind) -> Event {
        let place = (EntityId(7), SubQueue::Active);
        let number = Some(SequenceNumber(1));
        Event::new(Timestamp::default(), place, ClientId(1), number, kind)
    }

    #[test]
    fn only_the_latest_deleted_entities_keep_their_own_counters() {
        let mut timeline = Timeline::new(3);
        let entities = Timeline::DELETED as u32 * 2;
        for id in 0..entities {
            let mut batch = Events::new();
            for kind in [EventKind::Completed, EventKind::EntityDeleted] {
                let mut event = event(kind);
                event.entity = EntityId(id);
                batch.push(event);
            }
            timeline.absorb(&mut batch);
        }
        assert_eq!(timeline.tallies.len(), Timeline::DELETED);
        let of = |id| timeline.count(EntityId(id), SubQueue::Active, Counter::Completed);
        assert_eq!((of(0), of(entities - 1)), (0, 1));
    }

    #[test]
    fn a_batch_beyond_the_capacity_does_not_grow_the_timeline() {
        let capacity = 64;
        let mut timeline = Timeline::new(capacity);
        let mut batch = Events::new();
        for _ in 0..1000 * capacity {
            batch.push(event(EventKind::Completed));
        }
        timeline.absorb(&mut batch);
        let room = timeline.events.room();
        assert!(room <= 2 * capacity, "room for {room} events");
        let dropped = (999 * capacity) as u64;
        assert_eq!(
            (timeline.events.len(), timeline.dropped()),
            (capacity, dropped)
        );
        let completed = timeline.count(EntityId(7), SubQueue::Active, Counter::Completed);
        assert_eq!(completed, (1000 * capacity) as u64);
    }

    #[test]
    fn the_oldest_events_are_dropped_and_counters_stay_exact() {
        let mut timeline = Timeline::new(3);
        let mut batch = Events::new();
        for id in ["a", "bb", "ccc", "dddd", "eeeee"] {
            let message_id = batch.text(id);
            batch.push(event(EventKind::Enqueued {
                message_id,
                bytes: 0,
                expires_at: None,
            }));
            batch.push(event(EventKind::Completed));
            timeline.absorb(&mut batch);
        }
        assert_eq!(timeline.dropped(), 7);
        let count = |counter| timeline.count(EntityId(7), SubQueue::Active, counter);
        assert_eq!(
            (count(Counter::Enqueued), count(Counter::Completed)),
            (5, 5)
        );
        let sum = |takes: bool| timeline.totals(|_, _| takes).map(|(_, count)| count).sum();
        assert_eq!((sum(true), sum(false)), (10_u64, 0_u64));
        let ids: Vec<String> = timeline
            .of(EntityId(7))
            .filter_map(|event| {
                let EventKind::Enqueued { message_id, .. } = event.kind else {
                    return None;
                };
                Some(timeline.events().read(message_id))
            })
            .collect();
        assert_eq!(ids, ["eeeee"]);
        assert_eq!(timeline.events().len(), 3);
    }
}
