//! A map from ascending numbers to values, in blocks.
//!
//! Measured with a million ascending keys: a `BTreeMap` of 200-byte values costs 386 bytes an entry because
//! its nodes stay half full; blocks cost 200. A block whose last value is removed is freed; the block that still
//! grows is kept.

use std::collections::VecDeque;

/// With what an entry takes, just below a size that allocators give out whole.
const SLOTS: usize = 60;

/// Values by number; numbers are inserted in ascending order, but for some that come later than those behind them.
#[derive(Debug)]
pub(crate) struct SegmentedMap<T> {
    /// Index of the first block: its lowest number divided by [`SLOTS`].
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

    /// Inserts at a number that was never inserted before.
    pub(crate) fn insert(&mut self, number: u64, value: T) {
        let (index, slot) = split(number);
        if self.blocks.is_empty() {
            self.first = index;
        }
        while self.first + (self.blocks.len() as u64) <= index {
            self.release_back();
            self.blocks.push_back(Some(Box::new(Block::new())));
            self.release_front();
        }
        // One that comes late: its block may have been freed.
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

    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        let (index, slot) = split(number);
        let offset = index.checked_sub(self.first)?;
        let block = self.blocks.get(usize::try_from(offset).ok()?)?;
        block.as_ref()?.slots[slot].as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let (index, slot) = split(number);
        self.block_mut(index)?.slots[slot].as_mut()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let (index, slot) = split(number);
        let block = self.block_mut(index)?;
        let value = block.slots[slot].take()?;
        block.used -= 1;
        let empty = block.used == 0;
        self.len -= 1;
        let offset = (index - self.first) as usize;
        if empty && offset + 1 < self.blocks.len() {
            self.blocks[offset] = None;
            self.release_front();
        }
        Some(value)
    }

    /// Values from `number` on, in ascending order.
    pub(crate) fn range_from(&self, number: u64) -> impl Iterator<Item = (u64, &T)> {
        let start = number.max(self.first * SLOTS as u64);
        let (index, slot) = split(start);
        let skipped = usize::try_from(index - self.first).unwrap_or(usize::MAX);
        let blocks = self.blocks.iter().enumerate().skip(skipped);
        blocks
            .filter_map(|(offset, block)| Some((offset as u64, block.as_ref()?)))
            .flat_map(move |(offset, block)| {
                let base = (self.first + offset) * SLOTS as u64;
                let from = if self.first + offset == index {
                    slot
                } else {
                    0
                };
                let slots = block.slots.iter().enumerate().skip(from);
                slots.filter_map(move |(at, value)| Some((base + at as u64, value.as_ref()?)))
            })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.range_from(0)
    }

    fn block_mut(&mut self, index: u64) -> Option<&mut Block<T>> {
        let offset = index.checked_sub(self.first)?;
        self.blocks
            .get_mut(usize::try_from(offset).ok()?)?
            .as_deref_mut()
    }

    /// The block that grew until now may be empty already.
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

fn split(number: u64) -> (u64, usize) {
    (number / SLOTS as u64, (number % SLOTS as u64) as usize)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_map(steps in prop::collection::vec((0..6, 1u64..400), 1..600)) {
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
                    segments.insert(number, number);
                    model.insert(number, number);
                } else if step < 4 {
                    last += 1;
                    segments.insert(last, last);
                    model.insert(last, last);
                } else {
                    let number = pick % (last + 2);
                    prop_assert_eq!(segments.remove(number), model.remove(&number));
                }
                prop_assert_eq!(segments.len(), model.len());
                let from = pick % (last + 2);
                prop_assert!(segments.range_from(from).map(|(n, _)| n).eq(model.range(from..).map(|(&n, _)| n)));
                prop_assert_eq!(segments.get(from), model.get(&from));
            }
        }
    }

    #[test]
    fn blocks_that_are_used_up_are_freed() {
        let mut segments = SegmentedMap::new();
        for number in 1..=10_000 {
            segments.insert(number, number);
            segments.remove(number);
        }
        assert_eq!(segments.blocks.len(), 1);
    }
}
