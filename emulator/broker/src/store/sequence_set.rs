//! Ordered sets of sequence numbers.
//!
//! Messages that come together get neighbouring numbers and go together: 64 neighbours are the bits of one word, so that
//! a tree of words is a few nodes where one of numbers has thousands.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::SequenceNumber;

/// Pairs of a key and a number, in order.
#[derive(Debug)]
pub(crate) struct SequenceSet<K = ()> {
    /// Which numbers of 64 there are, by the key and by the number divided by 64; never none.
    words: BTreeMap<(K, u64), u64>,
    len: usize,
}

impl<K: Ord + Copy> SequenceSet<K> {
    pub(super) fn new() -> Self {
        Self {
            words: BTreeMap::new(),
            len: 0,
        }
    }

    /// False when it was there before.
    pub(super) fn insert(&mut self, key: K, number: SequenceNumber) -> bool {
        let (place, bit) = split(number);
        let word = self.words.entry((key, place)).or_default();
        let is_new = *word & bit == 0;
        *word |= bit;
        self.len += usize::from(is_new);
        is_new
    }

    /// False when it was not there.
    pub(super) fn remove(&mut self, key: K, number: SequenceNumber) -> bool {
        let (place, bit) = split(number);
        let Entry::Occupied(mut word) = self.words.entry((key, place)) else {
            return false;
        };
        let was_there = *word.get() & bit != 0;
        *word.get_mut() &= !bit;
        if *word.get() == 0 {
            word.remove();
        }
        self.len -= usize::from(was_there);
        was_there
    }

    pub(super) fn first(&self) -> Option<(K, SequenceNumber)> {
        let (&(key, place), &word) = self.words.first_key_value()?;
        Some((key, lowest(place, word)))
    }

    pub(super) fn pop_first(&mut self) -> Option<(K, SequenceNumber)> {
        let mut first = self.words.first_entry()?;
        let &(key, place) = first.key();
        let number = lowest(place, *first.get());
        // The lowest bit that is set goes.
        *first.get_mut() &= *first.get() - 1;
        if *first.get() == 0 {
            first.remove();
        }
        self.len -= 1;
        Some((key, number))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, SequenceNumber)> {
        let words = self.words.iter();
        words.flat_map(|(&(key, place), &word)| {
            of_word(place, word).map(move |number| (key, number))
        })
    }

    /// The numbers of a key from `from` on.
    pub(super) fn of_from(
        &self,
        key: K,
        from: SequenceNumber,
    ) -> impl Iterator<Item = SequenceNumber> {
        let words = self.words.range((key, from.0 / 64)..=(key, u64::MAX));
        let numbers = words.flat_map(|(&(_, place), &word)| of_word(place, word));
        numbers.skip_while(move |&number| number < from)
    }
}

impl SequenceSet {
    /// The numbers of a set without keys.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = SequenceNumber> {
        self.iter().map(|((), number)| number)
    }
}

impl<K: Ord + Copy> Default for SequenceSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// The place of a number's word, and its bit in it.
fn split(number: SequenceNumber) -> (u64, u64) {
    (number.0 / 64, 1 << (number.0 % 64))
}

/// The numbers in a word in which there are any.
fn of_word(place: u64, word: u64) -> impl Iterator<Item = SequenceNumber> {
    let without_lowest = |left: &u64| Some(left & (left - 1)).filter(|left| *left != 0);
    let left = std::iter::successors(Some(word), without_lowest);
    left.map(move |left| lowest(place, left))
}

/// The lowest number in a word in which there is one.
fn lowest(place: u64, word: u64) -> SequenceNumber {
    SequenceNumber(place * 64 + u64::from(word.trailing_zeros()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_behave_like_a_set_of_pairs(
            steps in prop::collection::vec((0..5, 0u8..3, 1u64..200), 1..300),
        ) {
            let mut numbers = SequenceSet::new();
            let mut model = BTreeSet::new();
            for (step, key, number) in steps {
                let number = SequenceNumber(number);
                match step {
                    0..=2 => prop_assert_eq!(numbers.insert(key, number), model.insert((key, number))),
                    3 => prop_assert_eq!(numbers.remove(key, number), model.remove(&(key, number))),
                    _ => prop_assert_eq!(numbers.pop_first(), model.pop_first()),
                }
                prop_assert!(numbers.iter().eq(model.iter().copied()));
                let own = model.range((key, number)..=(key, SequenceNumber(u64::MAX)));
                prop_assert!(numbers.of_from(key, number).eq(own.map(|(_, number)| *number)));
                prop_assert_eq!(numbers.first(), model.first().copied());
                prop_assert_eq!(numbers.len(), model.len());
            }
        }
    }

    #[test]
    fn a_word_without_numbers_takes_no_room() {
        let mut numbers = SequenceSet::new();
        for number in 1..=1000 {
            numbers.insert((), SequenceNumber(number));
        }
        assert_eq!(numbers.words.len(), 16);
        for number in 65..=1000 {
            numbers.remove((), SequenceNumber(number));
        }
        while numbers.pop_first().is_some() {}
        assert!(numbers.words.is_empty());
    }
}
