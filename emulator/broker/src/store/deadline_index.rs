//! Instants at which time does something to messages, in order.

use super::sequence_set::SequenceSet;
use crate::{SequenceNumber, Timestamp};

/// Messages by the instant at which something happens to them.
#[derive(Debug)]
pub(crate) struct DeadlineIndex {
    all: SequenceSet<Timestamp>,
    /// None is earlier. It stays when the first is removed, which nearly every operation does, and follows when somebody
    /// has looked for what is due: so that every operation can ask without walking down the tree.
    bound: Timestamp,
}

impl DeadlineIndex {
    pub(super) fn new() -> Self {
        Self {
            all: SequenceSet::new(),
            bound: Timestamp::NEVER,
        }
    }

    pub(crate) fn insert(&mut self, at: Timestamp, number: SequenceNumber) {
        self.bound = self.bound.min(at);
        self.all.insert(at, number);
    }

    pub(crate) fn remove(&mut self, at: Timestamp, number: SequenceNumber) {
        self.all.remove(at, number);
    }

    pub(super) fn first(&self) -> Option<(Timestamp, SequenceNumber)> {
        self.all.first()
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The messages, those of the earliest instants first.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = SequenceNumber> {
        self.all.iter().map(|(_, number)| number)
    }

    /// False when no instant has come by `now`; when true, one may have.
    pub(super) fn may_have_come(&self, now: Timestamp) -> bool {
        self.bound <= now
    }

    /// Lets the bound follow what was removed.
    pub(super) fn follow(&mut self) {
        self.bound = self.first().map_or(Timestamp::NEVER, |(at, _)| at);
    }
}

#[cfg(any(test, feature = "check"))]
impl DeadlineIndex {
    pub(super) fn check_invariants(
        &self,
        expected: &std::collections::BTreeSet<(Timestamp, SequenceNumber)>,
        what: &str,
    ) {
        assert!(
            self.all.iter().eq(expected.iter().copied()),
            "{what} and entries differ"
        );
        assert!(
            self.first().is_none_or(|(at, _)| self.bound <= at),
            "{what} come before their bound"
        );
    }
}
