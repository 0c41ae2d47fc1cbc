//! The messages that a store forwards, in order.
//!
//! Only one batch is in transfer at a time, which keeps the order whichever task transfers it (decision D3, semantics §11).

use std::collections::{BTreeMap, BTreeSet};

use super::{MessageStore, State};
use crate::ids::{EntityPath, Offset};
use crate::time::Timestamp;

/// Offsets of entries whose state is [`State::Forwarding`].
#[derive(Debug, Default)]
pub(crate) struct Forwards {
    /// Entries that wait.
    waiting: BTreeSet<Offset>,
    in_transfer: BTreeSet<Offset>,
    /// Destinations of single entries that were sent via this store, instead of the store's target (semantics §12).
    #[expect(
        clippy::box_collection,
        reason = "few entities have any, and each pays for the place"
    )]
    destinations: Option<Box<BTreeMap<Offset, EntityPath>>>,
    progress: Progress,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// No effect has announced the waiting entries.
    #[default]
    Quiet,
    /// An effect has announced the waiting entries.
    Announced,
    /// The target refused the first entry: forwarding is paused until then (decision D22).
    PausedUntil(Timestamp),
}

impl Forwards {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.in_transfer.len()
    }

    pub(crate) fn is_in_transfer(&self, offset: Offset) -> bool {
        self.in_transfer.contains(&offset)
    }

    /// Returns whether an effect must announce waiting entries; true once.
    fn must_announce(&mut self) -> bool {
        let idle = !self.waiting.is_empty() && self.in_transfer.is_empty();
        let must = idle && self.progress == Progress::Quiet;
        if must {
            self.progress = Progress::Announced;
        }
        must
    }

    /// Returns when refused forwarding is retried.
    pub(crate) fn retry_at(&self) -> Option<Timestamp> {
        match self.progress {
            Progress::PausedUntil(at) => Some(at),
            Progress::Quiet | Progress::Announced => None,
        }
    }

    /// Returns the entry's own destination.
    pub(crate) fn destination(&self, offset: Offset) -> Option<&EntityPath> {
        self.destinations.as_ref()?.get(&offset)
    }

    /// Removes an entry that leaves the store.
    pub(crate) fn remove(&mut self, offset: Offset) {
        self.stop_forwarding(offset);
        self.take_destination(offset);
    }

    /// Removes and returns the entry's own destination.
    pub(crate) fn take_destination(&mut self, offset: Offset) -> Option<EntityPath> {
        self.destinations.as_mut()?.remove(&offset)
    }

    /// Stops forwarding an entry.
    fn stop_forwarding(&mut self, offset: Offset) {
        self.waiting.remove(&offset);
        self.in_transfer.remove(&offset);
    }

    pub(crate) fn all(&self) -> BTreeSet<Offset> {
        self.waiting.union(&self.in_transfer).copied().collect()
    }

    /// Returns the waiting entries without and with a destination of their own.
    #[cfg(any(test, feature = "check"))]
    pub(crate) fn by_target(&self) -> (BTreeSet<Offset>, BTreeSet<Offset>) {
        let destinations = self.destinations.iter();
        let own: BTreeSet<_> = destinations.flat_map(|own| own.keys().copied()).collect();
        (&self.waiting - &own, own)
    }
}

impl MessageStore {
    /// Marks an entry as waiting to be forwarded. It must be in no other index but that of expiries.
    pub(crate) fn mark_for_forwarding(&mut self, offset: Offset) {
        if let Some(entry) = self.entries.get_mut(offset) {
            entry.state = State::Forwarding;
            self.forwards.waiting.insert(offset);
        }
    }

    pub(crate) fn forwards(&self) -> &Forwards {
        &self.forwards
    }

    /// Returns whether an effect must announce waiting entries; true once.
    pub(crate) fn must_announce(&mut self) -> bool {
        self.forwards.must_announce()
    }

    /// Removes and returns the entry's own destination.
    pub(crate) fn take_destination(&mut self, offset: Offset) -> Option<EntityPath> {
        self.forwards.take_destination(offset)
    }

    /// Gives the entry that will be stored at this offset a destination of its own.
    pub(crate) fn address(&mut self, offset: Offset, destination: EntityPath) {
        let destinations = self.forwards.destinations.get_or_insert_default();
        destinations.insert(offset, destination);
    }

    /// Returns whether an entry that is not locked is forwarded from here.
    pub(crate) fn auto_forwards(&self, offset: Offset, stays: bool) -> bool {
        let by_store = self.policy.forwards() && !stays && self.forwards.retry_at().is_none();
        by_store || self.forwards.destination(offset).is_some()
    }

    /// Begins to transfer the next entries with the same target, at most `max`; returns none while others are in transfer.
    pub(crate) fn begin_transfers(&mut self, max: usize) -> Vec<Offset> {
        if !self.forwards.in_transfer.is_empty() || self.forwards.retry_at().is_some() {
            return Vec::new();
        }
        self.forwards.progress = Progress::Quiet;
        let waiting = self.forwards.waiting.iter().copied();
        let destination = |offset: &Offset| self.forwards.destination(*offset);
        let first = waiting.clone().next().and_then(|n| destination(&n));
        let together = waiting.take_while(|offset| destination(offset) == first);
        let offsets: Vec<_> = together.take(max).collect();
        for &offset in &offsets {
            self.forwards.waiting.remove(&offset);
            self.forwards.in_transfer.insert(offset);
            if let Some(entry) = self.entries.get(offset) {
                self.suspend_expiry(offset, entry.expires_at);
            }
        }
        offsets
    }

    /// Keeps an entry in transfer here for good, ready.
    pub(crate) fn keep(&mut self, offset: Offset) {
        if let Some(entry) = self.entries.get_mut(offset) {
            entry.stays = true;
        }
        self.record_changed(offset);
        self.abort_transfer(offset);
    }

    /// Lets entries that were [kept](Self::keep) be forwarded again, unless they have been forwarded `max_hops` times.
    pub(crate) fn release_kept(&mut self, max_hops: u8) {
        let kept = self.entries.iter();
        let kept = kept.filter(|(_, entry)| entry.stays && entry.hops() < max_hops);
        let kept: Vec<Offset> = kept.map(|(offset, _)| offset).collect();
        for offset in kept {
            if let Some(entry) = self.entries.get_mut(offset) {
                entry.stays = false;
            }
            self.record_changed(offset);
        }
    }

    /// Aborts the transfer of an entry, which is forwarded again or not as the store now is.
    pub(crate) fn abort_transfer(&mut self, offset: Offset) {
        self.forwards.stop_forwarding(offset);
        self.requeue(offset);
    }

    /// Pauses forwarding until `retry_at` or [`MessageStore::resume_forwards`]: all waiting entries are ready again.
    pub(crate) fn pause_forwards(&mut self, retry_at: Timestamp) {
        self.forwards.progress = Progress::PausedUntil(retry_at);
        for offset in self.forwards.all() {
            self.abort_transfer(offset);
        }
    }

    /// Forwards ready entries that may go on, and stops forwarding those that may not; leaves entries in transfer to the
    /// task that transfers them.
    pub(crate) fn resume_forwards(&mut self) {
        if self.forwards.retry_at().is_some() {
            self.forwards.progress = Progress::Quiet;
        }
        if !self.policy.forwards() {
            // A task that was notified finds nothing to transfer, and must be notified again later.
            self.forwards.progress = Progress::Quiet;
            for offset in std::mem::take(&mut self.forwards.waiting) {
                self.requeue(offset);
            }
            return;
        }
        let entries = &self.entries;
        let goes = |offset: &Offset| entries.get(*offset).is_some_and(|e| !e.stays);
        let going: Vec<_> = self.ready_of(None).filter(goes).collect();
        for offset in going {
            self.take_from_ready(offset);
            self.mark_for_forwarding(offset);
        }
    }
}
