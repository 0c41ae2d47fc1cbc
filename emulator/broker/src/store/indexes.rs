//! Indexes by offset: a map from offsets to values, sets of offsets, and offsets by deadlines.

#[cfg(any(test, feature = "check"))]
use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use crate::ids::Offset;
use crate::time::Timestamp;

/// Chosen so that a block of entries is just below an allocator's size class.
const SLOTS: usize = 60;

/// Values by offset, in blocks.
///
/// Measured with a million ascending keys: a `BTreeMap` of 200-byte values costs 386 bytes per entry because its nodes stay
/// half full; blocks cost 200. A block whose last value is removed is freed; the block that still grows is kept.
///
/// Most offsets are inserted in ascending order.
#[derive(Debug)]
pub(crate) struct SegmentedMap<T> {
    /// Index of the first block: its lowest offset divided by [`SLOTS`].
    first: u64,
    blocks: VecDeque<Option<Box<Block<T>>>>,
    len: usize,
}

#[derive(Debug)]
struct Block<T> {
    used: usize,
    slots: [Option<T>; SLOTS],
}

impl<T> Block<T> {
    fn new() -> Self {
        Self {
            used: 0,
            slots: [const { None }; SLOTS],
        }
    }
}

impl<T> SegmentedMap<T> {
    pub(crate) fn new() -> Self {
        Self {
            first: 0,
            blocks: VecDeque::new(),
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Inserts a value at an offset that was never used before.
    pub(crate) fn insert(&mut self, offset: Offset, value: T) {
        let (index, slot) = split_block(offset);
        if self.blocks.is_empty() {
            self.first = index;
        }
        while self.first + (self.blocks.len() as u64) <= index {
            self.release_back();
            self.blocks.push_back(Some(Box::new(Block::new())));
            self.release_front();
        }
        // The block of a late offset may have been freed.
        while index < self.first {
            self.blocks.push_front(None);
            self.first -= 1;
        }
        let block = &mut self.blocks[(index - self.first) as usize];
        let block = block.get_or_insert_with(|| Box::new(Block::new()));
        block.used += 1;
        block.slots[slot] = Some(value);
        self.len += 1;
    }

    pub(crate) fn get(&self, offset: Offset) -> Option<&T> {
        let (index, slot) = split_block(offset);
        let at = index.checked_sub(self.first)?;
        let block = self.blocks.get(usize::try_from(at).ok()?)?;
        block.as_ref()?.slots[slot].as_ref()
    }

    pub(crate) fn get_mut(&mut self, offset: Offset) -> Option<&mut T> {
        let (index, slot) = split_block(offset);
        self.block_mut(index)?.slots[slot].as_mut()
    }

    pub(crate) fn remove(&mut self, offset: Offset) -> Option<T> {
        let (index, slot) = split_block(offset);
        let block = self.block_mut(index)?;
        let value = block.slots[slot].take()?;
        block.used -= 1;
        let empty = block.used == 0;
        self.len -= 1;
        let at = (index - self.first) as usize;
        if empty && at + 1 < self.blocks.len() {
            self.blocks[at] = None;
            self.release_front();
        }
        Some(value)
    }

    /// Returns values from `offset` on, in ascending order.
    pub(crate) fn range_from(&self, offset: Offset) -> impl Iterator<Item = (Offset, &T)> {
        let start = offset.0.max(self.first * SLOTS as u64);
        let (index, slot) = split_block(Offset(start));
        let skipped = usize::try_from(index - self.first).unwrap_or(usize::MAX);
        let blocks = self.blocks.iter().enumerate().skip(skipped);
        blocks
            .filter_map(|(at, block)| Some((at as u64, block.as_ref()?)))
            .flat_map(move |(at, block)| {
                let base = (self.first + at) * SLOTS as u64;
                let from = if self.first + at == index { slot } else { 0 };
                let slots = block.slots.iter().enumerate().skip(from);
                slots.filter_map(move |(slot, value)| {
                    Some((Offset(base + slot as u64), value.as_ref()?))
                })
            })
    }

    /// Returns values from `offset` back, in descending order.
    pub(crate) fn range_back(&self, offset: Offset) -> impl Iterator<Item = (Offset, &T)> {
        let (index, slot) = split_block(offset);
        let before = index.checked_sub(self.first);
        let blocks = before.map_or(0, |at| usize::try_from(at).unwrap_or(usize::MAX - 1) + 1);
        let blocks = self.blocks.iter().enumerate().take(blocks).rev();
        blocks
            .filter_map(|(at, block)| Some((self.first + at as u64, block.as_ref()?)))
            .flat_map(move |(at, block)| {
                let last = if at == index { slot } else { SLOTS - 1 };
                let slots = block.slots[..=last].iter().enumerate().rev();
                slots.filter_map(move |(slot, value)| {
                    Some((Offset(at * SLOTS as u64 + slot as u64), value.as_ref()?))
                })
            })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Offset, &T)> {
        self.range_from(Offset(0))
    }

    fn block_mut(&mut self, index: u64) -> Option<&mut Block<T>> {
        let at = index.checked_sub(self.first)?;
        self.blocks
            .get_mut(usize::try_from(at).ok()?)?
            .as_deref_mut()
    }

    /// Frees the block that grew until now if it is empty.
    fn release_back(&mut self) {
        if let Some(back) = self.blocks.back_mut()
            && back.as_ref().is_some_and(|block| block.used == 0)
        {
            *back = None;
        }
    }

    fn release_front(&mut self) {
        while self.blocks.len() > 1 && self.blocks.front().is_some_and(Option::is_none) {
            self.blocks.pop_front();
            self.first += 1;
        }
    }
}

/// Returns the block of an offset, and the index in it.
fn split_block(offset: Offset) -> (u64, usize) {
    (offset.0 / SLOTS as u64, (offset.0 % SLOTS as u64) as usize)
}

/// Pairs of a key and an offset, in order.
///
/// Messages that arrive together have neighbouring offsets and leave together: 64 neighbours are the bits of one word, so
/// that the tree has a few nodes instead of thousands.
#[derive(Debug)]
pub(crate) struct SequenceSet<K = ()> {
    /// A bit for each offset, by the key and by the offset divided by 64; never zero.
    words: BTreeMap<(K, u64), u64>,
    len: usize,
}

impl<K: Ord + Copy> SequenceSet<K> {
    pub(crate) fn new() -> Self {
        Self {
            words: BTreeMap::new(),
            len: 0,
        }
    }

    /// Returns false if it was present before.
    pub(crate) fn insert(&mut self, key: K, offset: Offset) -> bool {
        let (place, bit) = split_word(offset);
        let word = self.words.entry((key, place)).or_default();
        let is_new = *word & bit == 0;
        *word |= bit;
        self.len += usize::from(is_new);
        is_new
    }

    /// Returns false if it was not present.
    pub(crate) fn remove(&mut self, key: K, offset: Offset) -> bool {
        let (place, bit) = split_word(offset);
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

    pub(crate) fn first(&self) -> Option<(K, Offset)> {
        let (&(key, place), &word) = self.words.first_key_value()?;
        Some((key, lowest(place, word)))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, Offset)> {
        let words = self.words.iter();
        words.flat_map(|(&(key, place), &word)| {
            of_word(place, word).map(move |offset| (key, offset))
        })
    }

    /// Returns the offsets of a key from `from` on.
    pub(crate) fn of_from(&self, key: K, from: Offset) -> impl Iterator<Item = Offset> {
        let words = self.words.range((key, from.0 / 64)..=(key, u64::MAX));
        let offsets = words.flat_map(|(&(_, place), &word)| of_word(place, word));
        offsets.skip_while(move |&offset| offset < from)
    }
}

impl SequenceSet {
    /// Returns the offsets of a set without keys.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = Offset> {
        self.iter().map(|((), offset)| offset)
    }
}

impl<K: Ord + Copy> Default for SequenceSet<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the index of an offset's word, and the bit in it.
fn split_word(offset: Offset) -> (u64, u64) {
    (offset.0 / 64, 1 << (offset.0 % 64))
}

/// Returns the offsets in a word that is not zero.
fn of_word(place: u64, word: u64) -> impl Iterator<Item = Offset> {
    let without_lowest = |left: &u64| Some(left & (left - 1)).filter(|left| *left != 0);
    let left = std::iter::successors(Some(word), without_lowest);
    left.map(move |left| lowest(place, left))
}

/// Returns the lowest offset in a word that is not zero.
fn lowest(place: u64, word: u64) -> Offset {
    Offset(place * 64 + u64::from(word.trailing_zeros()))
}

/// Messages by their deadlines.
#[derive(Debug)]
pub(crate) struct DeadlineIndex {
    all: SequenceSet<Timestamp>,
    /// A lower bound of the deadlines. It is not updated when the first deadline is removed, which nearly every operation
    /// does, but when a caller looks for what is due: so every operation can check it without walking down the tree.
    bound: Option<Timestamp>,
}

impl DeadlineIndex {
    pub(crate) fn new() -> Self {
        Self {
            all: SequenceSet::new(),
            bound: None,
        }
    }

    pub(crate) fn insert(&mut self, at: Timestamp, offset: Offset) {
        self.bound = Some(self.bound.map_or(at, |bound| bound.min(at)));
        self.all.insert(at, offset);
    }

    pub(crate) fn remove(&mut self, at: Timestamp, offset: Offset) {
        self.all.remove(at, offset);
    }

    pub(crate) fn first(&self) -> Option<(Timestamp, Offset)> {
        self.all.first()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the messages and their deadlines, the earliest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Timestamp, Offset)> {
        self.all.iter()
    }

    /// Returns the messages, the earliest deadline first.
    pub(crate) fn offsets(&self) -> impl Iterator<Item = Offset> {
        self.all.iter().map(|(_, offset)| offset)
    }

    /// Returns false if nothing is due by `now`; true if something may be.
    pub(crate) fn may_be_due(&self, now: Timestamp) -> bool {
        self.bound.is_some_and(|bound| bound <= now)
    }

    /// Updates the bound after removals.
    pub(crate) fn follow(&mut self) {
        self.bound = self.first().map(|(at, _)| at);
    }

    #[cfg(any(test, feature = "check"))]
    pub(crate) fn check_invariants(&self, expected: &BTreeSet<(Timestamp, Offset)>, what: &str) {
        assert!(
            self.all.iter().eq(expected.iter().copied()),
            "{what} and entries differ"
        );
        assert!(
            self.first()
                .is_none_or(|(at, _)| self.bound.is_some_and(|bound| bound <= at)),
            "{what} come before their bound"
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn segments_behave_like_a_map(steps in prop::collection::vec((0..6, 1u64..400), 1..600)) {
            let mut segments = SegmentedMap::new();
            let mut model = BTreeMap::new();
            let mut late = Vec::new();
            let mut last = 0;
            for (step, pick) in steps {
                if step == 0 {
                    last += 1 + pick / 8;
                    late.push(last);
                } else if step == 1 && !late.is_empty() {
                    let number = late.swap_remove(pick as usize % late.len());
                    segments.insert(Offset(number), number);
                    model.insert(number, number);
                } else if step < 4 {
                    last += 1;
                    segments.insert(Offset(last), last);
                    model.insert(last, last);
                } else {
                    let number = pick % (last + 2);
                    prop_assert_eq!(segments.remove(Offset(number)), model.remove(&number));
                }
                prop_assert_eq!(segments.len(), model.len());
                let from = pick % (last + 2);
                prop_assert!(segments.range_from(Offset(from)).map(|(n, _)| n.0).eq(model.range(from..).map(|(&n, _)| n)));
                prop_assert!(segments.range_back(Offset(from)).map(|(n, _)| n.0).eq(model.range(..=from).rev().map(|(&n, _)| n)));
                prop_assert_eq!(segments.get(Offset(from)), model.get(&from));
            }
        }
    }

    #[test]
    fn empty_segments_are_freed() {
        let mut segments = SegmentedMap::new();
        for number in 1..=10_000 {
            segments.insert(Offset(number), number);
            segments.remove(Offset(number));
        }
        assert_eq!(segments.blocks.len(), 1);
    }

    proptest! {
        #[test]
        fn a_sequence_set_behaves_like_a_set_of_pairs(
            steps in prop::collection::vec((0..5, 0u8..3, 1u64..200), 1..300),
        ) {
            let mut offsets = SequenceSet::new();
            let mut model = BTreeSet::new();
            for (step, key, offset) in steps {
                let offset = Offset(offset);
                match step {
                    0..=2 => prop_assert_eq!(offsets.insert(key, offset), model.insert((key, offset))),
                    _ => prop_assert_eq!(offsets.remove(key, offset), model.remove(&(key, offset))),
                }
                prop_assert!(offsets.iter().eq(model.iter().copied()));
                let own = model.range((key, offset)..=(key, Offset(u64::MAX)));
                prop_assert!(offsets.of_from(key, offset).eq(own.map(|(_, offset)| *offset)));
                prop_assert_eq!(offsets.first(), model.first().copied());
                prop_assert_eq!(offsets.len(), model.len());
            }
        }
    }

    #[test]
    fn empty_words_of_a_sequence_set_are_freed() {
        let mut offsets = SequenceSet::new();
        for offset in 1..=1000 {
            offsets.insert((), Offset(offset));
        }
        assert_eq!(offsets.words.len(), 16);
        for offset in 1..=1000 {
            offsets.remove((), Offset(offset));
        }
        assert!(offsets.words.is_empty());
    }
}
