//! What a store that forwards has to send on, in order.
//!
//! One batch is on its way at a time, so that order is kept whichever task carries it (decision D3, semantics §11).

use std::collections::{BTreeMap, BTreeSet};

use super::{MessageStore, State};
use crate::ids::{EntityPath, Offset};
use crate::time::Timestamp;

/// Numbers of entries whose state is [`State::Forwarding`].
#[derive(Debug, Default)]
pub(crate) struct Forwards {
    /// Those that wait.
    waiting: BTreeSet<Offset>,
    /// Those that are carried right now.
    in_transfer: BTreeSet<Offset>,
    /// Where single entries go, not to the target of the store: they were sent to go there (semantics §12).
    #[expect(
        clippy::box_collection,
        reason = "few entities have any, and each pays for the place"
    )]
    destinations: Option<Box<BTreeMap<Offset, EntityPath>>>,
    progress: Progress,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// No effect was produced for what waits.
    #[default]
    Quiet,
    /// An effect says that something waits.
    Announced,
    /// The target entity refused what came first: nothing goes on until then (decision D22).
    PausedUntil(Timestamp),
}

impl Forwards {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.in_transfer.len()
    }

    pub(crate) fn is_in_transfer(&self, offset: Offset) -> bool {
        self.in_transfer.contains(&offset)
    }

    /// Whether an effect must say that there is something to carry; true once.
    fn must_announce(&mut self) -> bool {
        let idle = !self.waiting.is_empty() && self.in_transfer.is_empty();
        let must = idle && self.progress == Progress::Quiet;
        if must {
            self.progress = Progress::Announced;
        }
        must
    }

    /// When forwarding is tried again that the target entity refused.
    pub(crate) fn retry_at(&self) -> Option<Timestamp> {
        match self.progress {
            Progress::PausedUntil(at) => Some(at),
            Progress::Quiet | Progress::Announced => None,
        }
    }

    /// Where an entry goes by itself.
    pub(crate) fn destination(&self, offset: Offset) -> Option<&EntityPath> {
        self.destinations.as_ref()?.get(&offset)
    }

    /// Forgets an entry that leaves the store.
    pub(crate) fn remove(&mut self, offset: Offset) {
        self.halt(offset);
        self.take_destination(offset);
    }

    /// Forgets where an entry goes by itself, and returns it.
    pub(crate) fn take_destination(&mut self, offset: Offset) -> Option<EntityPath> {
        self.destinations.as_mut()?.remove(&offset)
    }

    /// Takes an entry off its way.
    fn halt(&mut self, offset: Offset) {
        self.waiting.remove(&offset);
        self.in_transfer.remove(&offset);
    }

    pub(crate) fn all(&self) -> BTreeSet<Offset> {
        self.waiting.union(&self.in_transfer).copied().collect()
    }

    /// What waits without a destination of its own, and what has one.
    #[cfg(any(test, feature = "check"))]
    pub(crate) fn by_target(&self) -> (BTreeSet<Offset>, BTreeSet<Offset>) {
        let destinations = self.destinations.iter();
        let own: BTreeSet<_> = destinations.flat_map(|own| own.keys().copied()).collect();
        (&self.waiting - &own, own)
    }
}

impl MessageStore {
    /// Marks an entry as on its way. It must be in no other index but that of expiries.
    pub(crate) fn await_forward(&mut self, offset: Offset) {
        if let Some(entry) = self.entries.get_mut(offset) {
            entry.state = State::Forwarding;
            self.forwards.waiting.insert(offset);
        }
    }

    /// Where single messages go by themselves, and which are on their way.
    pub(crate) fn forwards(&self) -> &Forwards {
        &self.forwards
    }

    /// Whether an effect must say that there is something to carry; true once.
    pub(crate) fn must_announce(&mut self) -> bool {
        self.forwards.must_announce()
    }

    /// Forgets where an entry goes by itself, and returns it.
    pub(crate) fn take_destination(&mut self, offset: Offset) -> Option<EntityPath> {
        self.forwards.take_destination(offset)
    }

    /// Lets the entry that comes next at this offset go to a destination of its own.
    pub(crate) fn address(&mut self, offset: Offset, destination: EntityPath) {
        let destinations = self.forwards.destinations.get_or_insert_default();
        destinations.insert(offset, destination);
    }

    /// Whether an entry that is not locked is on its way from here.
    pub(crate) fn auto_forwards(&self, offset: Offset, stays: bool) -> bool {
        let by_store = self.policy.forwards() && !stays && self.forwards.retry_at().is_none();
        by_store || self.forwards.destination(offset).is_some()
    }

    /// The next entries to carry to the same place, at most `max`; none while others are carried.
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
                self.protect(offset, entry.expires_at);
            }
        }
        offsets
    }

    /// Keeps a carried entry here for good, ready.
    pub(crate) fn keep(&mut self, offset: Offset) {
        if let Some(entry) = self.entries.get_mut(offset) {
            entry.stays = true;
        }
        self.note_changed(offset);
        self.abort_transfer(offset);
    }

    /// Takes an entry off its way: where it goes from here is as the store now is.
    pub(crate) fn abort_transfer(&mut self, offset: Offset) {
        self.forwards.halt(offset);
        self.put_back(offset);
    }

    /// Stops forwarding until `retry_at` or [`MessageStore::resume_forwards`]: everything on its way is ready again.
    pub(crate) fn pause_forwards(&mut self, retry_at: Timestamp) {
        self.forwards.progress = Progress::PausedUntil(retry_at);
        for offset in self.forwards.all() {
            self.abort_transfer(offset);
        }
    }

    /// Puts on its way what is ready and may go on, and takes off its way what may not; what is carried right now
    /// is left to the task that carries it.
    pub(crate) fn resume_forwards(&mut self) {
        if self.forwards.retry_at().is_some() {
            self.forwards.progress = Progress::Quiet;
        }
        if !self.policy.forwards() {
            // The task that was told finds nothing to carry, and must be told again when there is.
            self.forwards.progress = Progress::Quiet;
            for offset in std::mem::take(&mut self.forwards.waiting) {
                self.put_back(offset);
            }
            return;
        }
        let entries = &self.entries;
        let goes = |offset: &Offset| entries.get(*offset).is_some_and(|e| !e.stays);
        let going: Vec<_> = self.ready_of(None).filter(goes).collect();
        for offset in going {
            self.take_from_ready(offset);
            self.await_forward(offset);
        }
    }
}
