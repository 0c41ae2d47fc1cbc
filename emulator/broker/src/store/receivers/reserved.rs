//! The reservations of one receiver.

use std::collections::VecDeque;

use crate::ids::Offset;

/// Capacity that an empty queue keeps.
const KEPT: usize = 1024;

/// Reserved entries of one receiver in ascending order. Nearly all are added at the end and taken from the front, and there
/// are no more than the receiver has credit for.
#[derive(Debug)]
pub(crate) struct Reserved(VecDeque<Offset>);

impl Reserved {
    pub(crate) fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Inserts an offset that is not present.
    pub(crate) fn insert(&mut self, offset: Offset) {
        match self.last() {
            Some(last) if last > offset => {
                let place = self.0.partition_point(|other| *other < offset);
                self.0.insert(place, offset);
            }
            _ => self.0.push_back(offset),
        }
    }

    /// Returns whether it was present.
    pub(crate) fn remove(&mut self, offset: Offset) -> bool {
        let place = self.0.binary_search(&offset);
        let is_there = place.is_ok_and(|place| self.0.remove(place).is_some());
        self.shrink();
        is_there
    }

    pub(crate) fn pop_first(&mut self) -> Option<Offset> {
        let first = self.0.pop_front();
        self.shrink();
        first
    }

    pub(crate) fn pop_last(&mut self) -> Option<Offset> {
        let last = self.0.pop_back();
        self.shrink();
        last
    }

    pub(crate) fn first(&self) -> Option<Offset> {
        self.0.front().copied()
    }

    pub(crate) fn last(&self) -> Option<Offset> {
        self.0.back().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn offsets(&self) -> impl Iterator<Item = Offset> {
        self.0.iter().copied()
    }

    /// Releases unusually large capacity once the queue is empty.
    fn shrink(&mut self) {
        if self.0.is_empty() && self.0.capacity() > KEPT {
            self.0 = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn reserved_offsets_behave_like_a_set(steps in prop::collection::vec((0..5, 1u64..60), 1..200)) {
            let mut reserved = Reserved::new();
            let mut model = BTreeSet::new();
            for (step, pick) in steps {
                let offset = Offset(pick);
                if step < 2 && model.insert(offset) {
                    reserved.insert(offset);
                } else if step == 2 {
                    prop_assert_eq!(reserved.remove(offset), model.remove(&offset));
                } else if step == 3 {
                    prop_assert_eq!(reserved.pop_first(), model.pop_first());
                } else if step == 4 {
                    prop_assert_eq!(reserved.pop_last(), model.pop_last());
                }
                prop_assert!(reserved.offsets().eq(model.iter().copied()));
                prop_assert_eq!(reserved.first(), model.first().copied());
            }
        }
    }
}
