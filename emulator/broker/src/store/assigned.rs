//! What is assigned to one consumer, by number.
//!
//! Nearly all of it comes at the end and is taken from the front, and there is no more than the consumer has credit for.

use std::collections::VecDeque;

use crate::SequenceNumber;

/// Room that is kept while nothing is there.
const KEPT: usize = 1024;

/// Values by number, in ascending order.
#[derive(Debug)]
pub(super) struct Assigned<T>(VecDeque<(SequenceNumber, T)>);

impl<T> Assigned<T> {
    pub(super) fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Inserts a number that is not there.
    pub(super) fn insert(&mut self, number: SequenceNumber, value: T) {
        match self.last() {
            Some(last) if last > number => {
                let place = self.0.partition_point(|(other, _)| *other < number);
                self.0.insert(place, (number, value));
            }
            _ => self.0.push_back((number, value)),
        }
    }

    pub(super) fn remove(&mut self, number: SequenceNumber) -> Option<T> {
        let place = self.0.binary_search_by_key(&number, |&(other, _)| other);
        let removed = self.0.remove(place.ok()?);
        self.give_back();
        removed.map(|(_, value)| value)
    }

    pub(super) fn pop_first(&mut self) -> Option<SequenceNumber> {
        let first = self.0.pop_front();
        self.give_back();
        first.map(|(number, _)| number)
    }

    pub(super) fn pop_last(&mut self) -> Option<SequenceNumber> {
        let last = self.0.pop_back();
        self.give_back();
        last.map(|(number, _)| number)
    }

    pub(super) fn first(&self) -> Option<SequenceNumber> {
        self.0.front().map(|&(number, _)| number)
    }

    pub(super) fn last(&self) -> Option<SequenceNumber> {
        self.0.back().map(|&(number, _)| number)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = SequenceNumber> {
        self.0.iter().map(|&(number, _)| number)
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
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_behaves_like_a_map(steps in prop::collection::vec((0..5, 1u64..60), 1..200)) {
            let mut assigned = Assigned::new();
            let mut model = BTreeMap::new();
            for (step, pick) in steps {
                let number = SequenceNumber(pick);
                if step < 2 && !model.contains_key(&number) {
                    assigned.insert(number, pick);
                    model.insert(number, pick);
                } else if step == 2 {
                    prop_assert_eq!(assigned.remove(number), model.remove(&number));
                } else if step == 3 {
                    prop_assert_eq!(assigned.pop_first(), model.pop_first().map(|(first, _)| first));
                } else if step == 4 {
                    prop_assert_eq!(assigned.pop_last(), model.pop_last().map(|(last, _)| last));
                }
                prop_assert!(assigned.numbers().eq(model.keys().copied()));
                prop_assert_eq!(assigned.first(), model.keys().next().copied());
            }
        }
    }
}
