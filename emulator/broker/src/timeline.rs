//! The bounded record of what happened in a namespace, and counters that stay exact when it overflows.

use std::collections::{BTreeMap, VecDeque};

use crate::{EntityId, Event, EventKind, Events, SubQueue};

/// What is counted for ever, per store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// Messages accepted.
    Sent,
    /// Deliveries under a lock.
    Delivered,
    /// Messages received and deleted.
    ReceivedAndDeleted,
    /// Messages completed.
    Completed,
    /// Deliveries abandoned.
    Abandoned,
    /// Deliveries released.
    Released,
    /// Locks renewed.
    LockRenewed,
    /// Locks that ran out.
    LockExpired,
    /// Messages dead-lettered.
    DeadLettered,
    /// Messages dropped because their time had passed.
    Expired,
    /// Messages removed by a reset.
    Removed,
    /// Messages accepted to become active later.
    Scheduled,
    /// Scheduled messages that became active.
    Activated,
    /// Scheduled messages taken back.
    Cancelled,
    /// Messages dropped as duplicates.
    DuplicateDropped,
    /// Deliveries deferred.
    Deferred,
    /// Messages moved to the transfer dead-letter store.
    TransferFailed,
    /// Messages that went on to another entity.
    Forwarded,
    /// Matches of rules.
    Matched,
    /// Messages that a topic has handed to its subscriptions.
    Published,
    /// Messages sent or scheduled in transactions, whether or not these were committed.
    SendEnlisted,
    /// Deliveries settled in transactions, whether or not these were committed.
    SettlementEnlisted,
    /// Transactions committed in which the entity took part.
    TransactionCommitted,
    /// Transactions rolled back in which the entity took part.
    TransactionRolledBack,
    /// Messages deleted by somebody.
    Deleted,
    /// Sessions accepted.
    SessionAccepted,
    /// Locks of sessions renewed.
    SessionLockRenewed,
    /// Locks of sessions that ran out.
    SessionLockExpired,
    /// Sessions whose holder went.
    SessionReleased,
    /// States of sessions set or cleared.
    SessionStateSet,
    /// Entities deleted.
    EntityDeleted,
    /// Times the clock was moved.
    ClockAdvanced,
    /// Faults that struck.
    Fault,
    /// Requests refused.
    Refused,
}

impl Counter {
    /// All of them, in order.
    pub const ALL: [Self; 34] = [
        Self::Sent,
        Self::Delivered,
        Self::ReceivedAndDeleted,
        Self::Completed,
        Self::Abandoned,
        Self::Released,
        Self::LockRenewed,
        Self::LockExpired,
        Self::DeadLettered,
        Self::Expired,
        Self::Removed,
        Self::Scheduled,
        Self::Activated,
        Self::Cancelled,
        Self::DuplicateDropped,
        Self::Deferred,
        Self::TransferFailed,
        Self::Forwarded,
        Self::Matched,
        Self::Published,
        Self::SendEnlisted,
        Self::SettlementEnlisted,
        Self::TransactionCommitted,
        Self::TransactionRolledBack,
        Self::Deleted,
        Self::SessionAccepted,
        Self::SessionLockRenewed,
        Self::SessionLockExpired,
        Self::SessionReleased,
        Self::SessionStateSet,
        Self::EntityDeleted,
        Self::ClockAdvanced,
        Self::Fault,
        Self::Refused,
    ];

    /// The word for it in timelines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::ReceivedAndDeleted => "received-and-deleted",
            Self::Completed => "completed",
            Self::Abandoned => "abandoned",
            Self::Released => "released",
            Self::LockRenewed => "lock-renewed",
            Self::LockExpired => "lock-expired",
            Self::DeadLettered => "dead-lettered",
            Self::Expired => "expired",
            Self::Removed => "removed",
            Self::Scheduled => "scheduled",
            Self::Activated => "activated",
            Self::Cancelled => "cancelled",
            Self::DuplicateDropped => "duplicate-dropped",
            Self::Deferred => "deferred",
            Self::TransferFailed => "transfer-dead-lettered",
            Self::Forwarded => "forwarded",
            Self::Matched => "matched",
            Self::Published => "published",
            Self::SendEnlisted => "send-enlisted",
            Self::SettlementEnlisted => "settlement-enlisted",
            Self::TransactionCommitted => "transaction-committed",
            Self::TransactionRolledBack => "transaction-rolled-back",
            Self::Deleted => "deleted",
            Self::SessionAccepted => "session-accepted",
            Self::SessionLockRenewed => "session-lock-renewed",
            Self::SessionLockExpired => "session-lock-expired",
            Self::SessionReleased => "session-released",
            Self::SessionStateSet => "session-state-set",
            Self::EntityDeleted => "entity-deleted",
            Self::ClockAdvanced => "clock-advanced",
            Self::Fault => "fault",
            Self::Refused => "refused",
        }
    }
}

impl From<&EventKind> for Counter {
    fn from(kind: &EventKind) -> Self {
        match kind {
            EventKind::Enqueued { .. } => Self::Sent,
            EventKind::Delivered { .. } => Self::Delivered,
            EventKind::ReceivedAndDeleted => Self::ReceivedAndDeleted,
            EventKind::Completed => Self::Completed,
            EventKind::Abandoned { .. } => Self::Abandoned,
            EventKind::Released => Self::Released,
            EventKind::LockRenewed { .. } => Self::LockRenewed,
            EventKind::LockExpired { .. } => Self::LockExpired,
            EventKind::DeadLettered { .. } => Self::DeadLettered,
            EventKind::Expired => Self::Expired,
            EventKind::Removed => Self::Removed,
            EventKind::Scheduled { .. } => Self::Scheduled,
            EventKind::Activated { .. } => Self::Activated,
            EventKind::Cancelled => Self::Cancelled,
            EventKind::DuplicateDropped { .. } => Self::DuplicateDropped,
            EventKind::Deferred => Self::Deferred,
            EventKind::TransferFailed { .. } => Self::TransferFailed,
            EventKind::Forwarded { .. } => Self::Forwarded,
            EventKind::Matched { .. } => Self::Matched,
            EventKind::Published => Self::Published,
            EventKind::SendEnlisted { .. } => Self::SendEnlisted,
            EventKind::SettlementEnlisted { .. } => Self::SettlementEnlisted,
            EventKind::TransactionCommitted { .. } => Self::TransactionCommitted,
            EventKind::TransactionRolledBack { .. } => Self::TransactionRolledBack,
            EventKind::Deleted => Self::Deleted,
            EventKind::SessionAccepted { .. } => Self::SessionAccepted,
            EventKind::SessionLockRenewed { .. } => Self::SessionLockRenewed,
            EventKind::SessionLockExpired { .. } => Self::SessionLockExpired,
            EventKind::SessionReleased { .. } => Self::SessionReleased,
            EventKind::SessionStateSet { .. } => Self::SessionStateSet,
            EventKind::EntityDeleted => Self::EntityDeleted,
            EventKind::ClockAdvanced { .. } => Self::ClockAdvanced,
            EventKind::Fault { .. } => Self::Fault,
            EventKind::Refused { .. } => Self::Refused,
        }
    }
}

type Tally = [u64; Counter::ALL.len()];

/// A ring of events and a fold over them.
#[derive(Debug)]
pub struct Timeline {
    events: Events,
    capacity: usize,
    dropped: u64,
    tallies: BTreeMap<(EntityId, SubQueue), Tally>,
    /// Entities that were deleted and are still counted on their own, the oldest first.
    deleted: VecDeque<EntityId>,
}

impl Timeline {
    /// How many deleted entities are counted on their own: a namespace may make and delete them without end.
    const DELETED: usize = 1_024;

    /// How many events a namespace keeps unless told otherwise (harness.md §6).
    pub const CAPACITY: usize = 65_536;

    /// Keeps at most `capacity` events.
    pub fn new(capacity: usize) -> Self {
        Self {
            events: Events::new(),
            capacity,
            dropped: 0,
            tallies: BTreeMap::new(),
            deleted: VecDeque::new(),
        }
    }

    /// Takes everything from `batch`, counts it, and drops the oldest events that no longer fit.
    pub fn absorb(&mut self, batch: &mut Events) {
        self.tally(batch);
        // Before there is too much, so that the ring never grows to twice its size.
        self.trim(self.capacity.saturating_sub(batch.len()));
        self.events.absorb(batch);
        self.trim(self.capacity);
    }

    /// Counts events, most of which happened where the one before did.
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

    /// The events still held.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// The events of one entity, oldest first.
    pub fn of(&self, entity: EntityId) -> impl Iterator<Item = &Event> {
        self.events
            .iter()
            .filter(move |event| event.entity == entity)
    }

    /// How many events no longer fitted.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How often this happened in this store, dropped events included.
    pub fn count(&self, entity: EntityId, store: SubQueue, counter: Counter) -> u64 {
        self.tallies
            .get(&(entity, store))
            .map_or(0, |tally| tally[counter as usize])
    }

    /// How often things happened in those stores that `takes` chooses, dropped events included.
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
        Counter::ALL.into_iter().zip(totals)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::new(self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientId, SequenceNumber, Timestamp};

    fn event(kind: EventKind) -> Event {
        Event {
            at: Timestamp::from_millis(0),
            entity: EntityId(7),
            store: SubQueue::Active,
            client: ClientId(1),
            number: SequenceNumber(1),
            kind,
        }
    }

    #[test]
    fn of_deleted_entities_only_the_latest_are_counted_on_their_own() {
        let mut timeline = Timeline::new(3);
        let entities = Timeline::DELETED as u32 * 2;
        for id in 0..entities {
            let mut batch = Events::new();
            for kind in [EventKind::Completed, EventKind::EntityDeleted] {
                batch.push(Event {
                    entity: EntityId(id),
                    ..event(kind)
                });
            }
            timeline.absorb(&mut batch);
        }
        assert_eq!(timeline.tallies.len(), Timeline::DELETED);
        let of = |id| timeline.count(EntityId(id), SubQueue::Active, Counter::Completed);
        assert_eq!((of(0), of(entities - 1)), (0, 1));
    }

    #[test]
    fn the_oldest_are_dropped_and_the_counters_stay_exact() {
        let mut timeline = Timeline::new(3);
        let mut batch = Events::new();
        for id in ["a", "bb", "ccc", "dddd", "eeeee"] {
            let message_id = batch.text(id);
            batch.push(event(EventKind::Enqueued {
                message_id,
                bytes: 0,
                expires_at: Timestamp::NEVER,
            }));
            batch.push(event(EventKind::Completed));
            timeline.absorb(&mut batch);
        }
        assert_eq!(timeline.dropped(), 7);
        let count = |counter| timeline.count(EntityId(7), SubQueue::Active, counter);
        assert_eq!((count(Counter::Sent), count(Counter::Completed)), (5, 5));
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
