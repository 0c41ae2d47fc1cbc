//! The deliveries of a session that the peer has not settled, by delivery id, and their states.
//!
//! A ring indexed by id serves the usual case, in which deliveries are settled roughly in order. Stragglers would make it
//! grow without end, so they move to an ordered map, each at most once. The memory is therefore proportional to the
//! unsettled deliveries, whose number has a limit: beyond it the oldest is forgotten, which its receiver sees as a lost
//! lock.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::error::Error;
use crate::ids::LinkId;

/// Maximum number of deliveries of a session. Two orders of magnitude above any prefetch of the SDKs.
const LIMIT: usize = 1 << 18;
/// How much longer than its contents the ring may be before stragglers are moved.
const SLACK: usize = 4096;

/// An unsettled delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) link: LinkId,
    pub(crate) tag: [u8; 16],
    /// Whether the owner knows the peer's outcome.
    pub(crate) notified: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Unsettled {
    /// Id of the first slot of the ring.
    base: u64,
    ring: VecDeque<Option<Entry>>,
    in_ring: usize,
    stragglers: BTreeMap<u64, Entry>,
}

impl Unsettled {
    /// Adds a delivery, whose id is higher than all before.
    pub(crate) fn insert(&mut self, id: u64, entry: Entry) {
        if self.ring.is_empty() {
            self.base = id;
        }
        let span = (id - self.base) as usize;
        if span > 8 * self.in_ring + SLACK {
            self.spill();
            self.base = id;
        }
        if self.len() >= LIMIT {
            self.forget_oldest();
        }
        if self.ring.is_empty() {
            self.base = id;
        }
        self.ring.resize((id - self.base) as usize, None);
        self.ring.push_back(Some(entry));
        self.in_ring += 1;
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Entry> {
        match self.slot(id) {
            Some(index) => self.ring[index].as_mut(),
            None => self.stragglers.get_mut(&id),
        }
    }

    /// Removes a delivery, if it is known.
    pub(crate) fn remove(&mut self, id: u64) {
        let Some(index) = self.slot(id) else {
            self.stragglers.remove(&id);
            return;
        };
        if self.ring[index].is_some() {
            self.ring[index] = None;
            self.in_ring -= 1;
        }
        if index == 0 {
            self.trim();
        }
    }

    /// Returns the first unsettled id at or above `id`, and how many places were visited.
    pub(crate) fn next_from(&self, id: u64) -> (Option<u64>, usize) {
        if let Some((&found, _)) = self.stragglers.range(id..).next() {
            return (Some(found), 1);
        }
        let start = id.max(self.base);
        let skip = usize::try_from(start - self.base).unwrap_or(usize::MAX);
        let offset = self.ring.iter().skip(skip).position(Option::is_some);
        match offset {
            Some(offset) => (Some(start + offset as u64), 1 + offset),
            None => (None, self.ring.len().saturating_sub(skip)),
        }
    }

    /// Removes all deliveries on `link`; returns how many places were visited.
    pub(crate) fn forget_link(&mut self, link: LinkId) -> usize {
        let places = self.ring.len() + self.stragglers.len();
        self.stragglers.retain(|_, entry| entry.link != link);
        for slot in &mut self.ring {
            if slot.is_some_and(|entry| entry.link == link) {
                *slot = None;
                self.in_ring -= 1;
            }
        }
        self.trim();
        places
    }

    pub(crate) fn len(&self) -> usize {
        self.in_ring + self.stragglers.len()
    }

    /// Returns its memory in bytes. Stragglers are in a tree, whose nodes may be half empty.
    pub(crate) fn held(&self) -> usize {
        let entry = size_of::<Option<Entry>>();
        self.ring.len() * entry + self.stragglers.len() * 2 * entry
    }

    fn slot(&self, id: u64) -> Option<usize> {
        let index = usize::try_from(id.checked_sub(self.base)?).ok()?;
        (index < self.ring.len()).then_some(index)
    }

    fn spill(&mut self) {
        let ids = self.base..;
        let entries = ids.zip(self.ring.drain(..));
        self.stragglers
            .extend(entries.filter_map(|(id, slot)| Some((id, slot?))));
        self.in_ring = 0;
    }

    fn forget_oldest(&mut self) {
        if self.stragglers.pop_first().is_none() {
            self.in_ring -= usize::from(self.ring.pop_front().flatten().is_some());
            self.base += 1;
            self.trim();
        }
    }

    fn trim(&mut self) {
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.base += 1;
        }
    }
}

/// The state that this side sends for a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryState {
    /// The outcome.
    Outcome(Outcome),
    /// The outcome once a transaction is committed (AMQP 1.0 §4.5.8).
    Transactional {
        /// The transaction's id.
        transaction: Bytes,
        /// The outcome of the delivery.
        outcome: Outcome,
    },
    /// The id of the transaction that the delivery declared (AMQP 1.0 §4.5.5).
    Declared(Bytes),
}

impl DeliveryState {
    /// Returns the state with an error that is `excess` bytes shorter.
    pub(crate) fn shortened(&self, excess: usize) -> Self {
        if let Self::Outcome(Outcome::Rejected { error: Some(error) }) = self {
            return Outcome::from(error.shortened(excess)).into();
        }
        self.clone()
    }
}

impl From<Outcome> for DeliveryState {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(outcome)
    }
}

/// A terminal delivery state (AMQP 1.0 §3.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted: complete, for a Service Bus receiver.
    Accepted,
    /// Released as if never delivered.
    Released,
    /// Returned with changes: abandon, or defer if `undeliverable_here` (spec/wire.md §4.4).
    Modified {
        /// Whether the attempt counts as failed.
        delivery_failed: bool,
        /// Whether this link should not get it again.
        undeliverable_here: bool,
        /// An encoded map of annotations to change.
        annotations: Option<Box<[u8]>>,
    },
    /// Rejected: dead-letter, for a Service Bus receiver.
    Rejected {
        /// The receiver's reason, if any; boxed, because few are rejected and all are moved.
        error: Option<Box<Error>>,
    },
}

impl Outcome {
    /// Returns the bytes of its annotations or error.
    pub fn bytes(&self) -> usize {
        let length = |map: &Option<Box<[u8]>>| map.as_ref().map_or(0, |map| map.len());
        match self {
            Self::Modified { annotations, .. } => length(annotations),
            Self::Rejected { error: Some(error) } => error.description.len() + length(&error.info),
            Self::Accepted | Self::Released | Self::Rejected { error: None } => 0,
        }
    }
}

impl From<Error> for Outcome {
    /// Creates a rejection with this error.
    fn from(error: Error) -> Self {
        Self::Rejected {
            error: Some(Box::new(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn entry(link: u32, tag: u8) -> Entry {
        Entry {
            link: LinkId::new(link, 0, 0),
            tag: [tag; 16],
            notified: false,
        }
    }

    #[test]
    fn one_old_delivery_does_not_grow_the_ring() {
        let mut unsettled = Unsettled::default();
        unsettled.insert(0, entry(1, 9));
        for id in 1..100_000 {
            unsettled.insert(id, entry(1, 1));
            assert!(unsettled.get_mut(id).is_some());
            unsettled.remove(id);
            assert!(unsettled.ring.len() <= SLACK + 16);
        }
        assert_eq!(unsettled.len(), 1);
        assert_eq!(unsettled.get_mut(0), Some(&mut entry(1, 9)));
        unsettled.remove(0);
        assert_eq!(unsettled.len(), 0);
    }

    #[test]
    fn at_the_limit_the_oldest_delivery_is_dropped() {
        let mut unsettled = Unsettled::default();
        for id in 0..LIMIT as u64 + 10 {
            unsettled.insert(id, entry(1, 1));
        }
        assert_eq!(unsettled.len(), LIMIT);
        assert_eq!(unsettled.next_from(0).0, Some(10));
    }

    #[test]
    fn ids_that_were_never_unsettled_leave_gaps() {
        let mut unsettled = Unsettled::default();
        unsettled.insert(5, entry(1, 1));
        unsettled.insert(1_000_000, entry(1, 2));
        assert!(unsettled.ring.len() < SLACK);
        assert_eq!(unsettled.next_from(0), (Some(5), 1));
        assert_eq!(unsettled.next_from(6).0, Some(1_000_000));
        assert_eq!(unsettled.next_from(1_000_001), (None, 0));
    }

    proptest! {
        #[test]
        fn behaves_like_a_map(steps in prop::collection::vec((0u8..5, 0u64..300, 0u32..3), 1..400)) {
            let mut unsettled = Unsettled::default();
            let mut model = BTreeMap::new();
            let mut next = 1u64 << 32;
            for (step, number, link) in steps {
                let id = next.saturating_sub(number);
                match step {
                    0 | 1 => {
                        next += number * number % 97;
                        unsettled.insert(next, entry(link, number as u8));
                        model.insert(next, entry(link, number as u8));
                        next += 1;
                    }
                    2 => {
                        unsettled.remove(id);
                        model.remove(&id);
                    }
                    3 => {
                        prop_assert_eq!(unsettled.get_mut(id).copied(), model.get(&id).copied());
                        prop_assert_eq!(unsettled.next_from(id).0, model.range(id..).next().map(|e| *e.0));
                    }
                    _ if number < 10 => {
                        unsettled.forget_link(LinkId::new(link, 0, 0));
                        model.retain(|_, e| e.link != LinkId::new(link, 0, 0));
                    }
                    _ => {}
                }
                prop_assert_eq!(unsettled.len(), model.len());
            }
        }
    }
}
