//! What is reserved to one receiver, by number.
//!
//! Nearly all of it comes at the end and is taken from the front, and there is no more than the receiver has credit for.

use std::collections::VecDeque;

use crate::SequenceNumber;

/// Room that is kept while nothing is there.
const KEPT: usize = 1024;

/// Numbers in ascending order.
#[derive(Debug)]
pub(super) struct Assigned(VecDeque<SequenceNumber>);

impl Assigned {
    pub(super) fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Inserts a number that is not there.
    pub(super) fn insert(&mut self, number: SequenceNumber) {
        match self.last() {
            Some(last) if last > number => {
                let place = self.0.partition_point(|other| *other < number);
                self.0.insert(place, number);
            }
            _ => self.0.push_back(number),
        }
    }

    /// Says whether it was there.
    pub(super) fn remove(&mut self, number: SequenceNumber) -> bool {
        let place = self.0.binary_search(&number);
        let is_there = place.is_ok_and(|place| self.0.remove(place).is_some());
        self.give_back();
        is_there
    }

    pub(super) fn pop_first(&mut self) -> Option<SequenceNumber> {
        let first = self.0.pop_front();
        self.give_back();
        first
    }

    pub(super) fn pop_last(&mut self) -> Option<SequenceNumber> {
        let last = self.0.pop_back();
        self.give_back();
        last
    }

    pub(super) fn first(&self) -> Option<SequenceNumber> {
        self.0.front().copied()
    }

    pub(super) fn last(&self) -> Option<SequenceNumber> {
        self.0.back().copied()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = SequenceNumber> {
        self.0.iter().copied()
    }

    /// Gives memory back that is for more than is usual, once nothing is left.
    fn give_back(&mut self) {
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
        fn it_behaves_like_a_set(steps in prop::collection::vec((0..5, 1u64..60), 1..200)) {
            let mut reserved = Assigned::new();
            let mut model = BTreeSet::new();
            for (step, pick) in steps {
                let number = SequenceNumber(pick);
                if step < 2 && model.insert(number) {
                    reserved.insert(number);
                } else if step == 2 {
                    prop_assert_eq!(reserved.remove(number), model.remove(&number));
                } else if step == 3 {
                    prop_assert_eq!(reserved.pop_first(), model.pop_first());
                } else if step == 4 {
                    prop_assert_eq!(reserved.pop_last(), model.pop_last());
                }
                prop_assert!(reserved.numbers().eq(model.iter().copied()));
                prop_assert_eq!(reserved.first(), model.first().copied());
            }
        }
    }
}
