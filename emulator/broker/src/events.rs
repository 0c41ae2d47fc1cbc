//! Events in order, with their texts in one buffer.

use std::collections::VecDeque;
use std::ops::Range;

use crate::event::{Event, Text};

/// Longest text that is kept, in bytes.
const MAX_TEXT: usize = 1024;
/// Capacity in events that an empty batch keeps.
const KEPT: usize = 4096;

/// Events in order, with their texts.
#[derive(Debug, Default)]
pub struct Events {
    records: VecDeque<Event>,
    text: VecDeque<u8>,
    /// Position of the first byte of `text` in the stream of all texts ever held.
    origin: u64,
}

impl Events {
    /// Creates an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies `text` for an event that is pushed next: its first `MAX_TEXT` bytes, so that no client can fill the record
    /// with one message.
    pub fn text(&mut self, text: &str) -> Text {
        let text = &text[..text.floor_char_boundary(MAX_TEXT)];
        let start = self.origin + self.text.len() as u64;
        self.text.extend(text.as_bytes());
        Text {
            start,
            length: text.len() as u32,
        }
    }

    /// Appends an event.
    pub fn push(&mut self, event: Event) {
        self.records.push_back(event);
    }

    /// Returns the events, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Event> {
        self.records.iter()
    }

    /// Returns the event at an index.
    pub fn get(&self, index: usize) -> Option<&Event> {
        self.records.get(index)
    }

    /// Appends the events at these indexes that `takes` chooses to `copy`, with their texts, and passes each index to
    /// `each`.
    pub(crate) fn copy_to(
        &self,
        indexes: Range<usize>,
        takes: impl Fn(&Event) -> bool,
        copy: &mut Self,
        mut each: impl FnMut(usize),
    ) {
        let start = indexes.start;
        let events = self.records.range(indexes).enumerate();
        for (index, event) in events.filter(|(_, event)| takes(event)) {
            let mut event = *event;
            event.kind.texts(|text| *text = copy.copy_text(self, *text));
            copy.push(event);
            each(start + index);
        }
    }

    fn copy_text(&mut self, from: &Self, text: Text) -> Text {
        let start = self.origin + self.text.len() as u64;
        for part in from.parts(text) {
            self.text.extend(part);
        }
        Text { start, ..text }
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns a [`Text`] of one of these events.
    pub fn read(&self, text: Text) -> String {
        String::from_utf8_lossy(&self.parts(text).concat()).into_owned()
    }

    /// Returns a text in the two parts of the buffer that may contain it.
    fn parts(&self, text: Text) -> [&[u8]; 2] {
        let length = text.length as usize;
        // The empty text of an event has no position of its own: it may begin before the kept part.
        let start = match length {
            0 => 0,
            _ => (text.start - self.origin) as usize,
        };
        let (front, back) = self.text.as_slices();
        let (end, middle) = (start + length, front.len());
        [
            &front[start.min(middle)..end.min(middle)],
            &back[start.saturating_sub(middle)..end.saturating_sub(middle)],
        ]
    }

    /// Moves all events of `batch` to the end; `batch` is empty afterwards and keeps its memory.
    pub fn absorb(&mut self, batch: &mut Self) {
        let shift = (self.origin + self.text.len() as u64).wrapping_sub(batch.origin);
        let (front, back) = batch.text.as_slices();
        self.text.extend(front);
        self.text.extend(back);
        for mut event in batch.records.drain(..) {
            event
                .kind
                .texts(|text| text.start = text.start.wrapping_add(shift));
            self.records.push_back(event);
        }
        // An absorbed batch is filled again by one operation, which rarely needs much.
        batch.records.shrink_to(KEPT);
        batch.text.clear();
        batch.text.shrink_to(KEPT * size_of::<u64>());
        batch.origin = 0;
    }

    /// Removes the oldest events and their texts.
    pub(crate) fn forget(&mut self, count: usize) {
        let mut end = self.origin;
        for mut event in self.records.drain(..count) {
            event
                .kind
                .texts(|text| end = end.max(text.start + u64::from(text.length)));
        }
        let passed = (end - self.origin) as usize;
        self.text.drain(..passed);
        self.origin = end;
    }
}

#[cfg(test)]
impl Events {
    /// Returns the capacity in events.
    pub(crate) fn room(&self) -> usize {
        self.records.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;
    use crate::ids::{ClientId, EntityId, SequenceNumber, SubQueue};
    use crate::time::Timestamp;

    fn dead_lettered(events: &mut Events, reason: Option<&str>) {
        let reason = reason.map_or_else(Text::default, |reason| events.text(reason));
        let place = (EntityId(1), SubQueue::Active);
        events.push(Event::new(
            Timestamp::default(),
            place,
            ClientId::BROKER,
            Some(SequenceNumber(1)),
            EventKind::DeadLettered {
                moved_to: SequenceNumber(1),
                reason,
                description: Text::default(),
            },
        ));
    }

    fn reasons(events: &Events) -> Vec<String> {
        let reason = |event: &Event| {
            let EventKind::DeadLettered { reason, .. } = event.kind else {
                panic!("only these were pushed, found {event:?}");
            };
            events.read(reason)
        };
        events.iter().map(reason).collect()
    }

    #[test]
    fn texts_survive_being_moved_and_outlive_older_ones() {
        let mut all = Events::new();
        let mut batch = Events::new();
        for reasons in [
            [Some("one"), None],
            [None, Some("two")],
            [Some(""), Some("three")],
        ] {
            reasons
                .iter()
                .for_each(|reason| dead_lettered(&mut batch, *reason));
            all.absorb(&mut batch);
            assert!(batch.is_empty());
        }
        let mut expected = vec!["one", "", "", "two", "", "three"];
        while !expected.is_empty() {
            assert_eq!(reasons(&all), expected);
            all.forget(1);
            expected.remove(0);
        }
        assert!(all.is_empty());
        assert!(all.text.is_empty());
    }

    #[test]
    fn a_copy_of_events_has_the_selected_events_with_their_texts() {
        let mut all = Events::new();
        for reason in [Some("one"), None, Some("two"), Some("three")] {
            dead_lettered(&mut all, reason);
        }
        all.forget(1);
        let copied = |indexes, takes: &dyn Fn(&Event) -> bool| {
            let (mut copy, mut taken) = (Events::new(), Vec::new());
            all.copy_to(indexes, takes, &mut copy, |index| taken.push(index));
            (copy, taken)
        };
        let (copy, taken) = copied(1..3, &|_| true);
        assert_eq!(
            (reasons(&copy), taken),
            (vec!["two".to_owned(), "three".to_owned()], vec![1, 2])
        );
        let last = all.get(2).copied();
        let (copy, taken) = copied(0..3, &|event| Some(*event) == last);
        assert_eq!(taken, [2]);
        assert_eq!(reasons(&copy), ["three"]);
        assert_eq!((copy.text.len(), copy.get(1)), (5, None));
    }

    #[test]
    fn an_absorbed_large_batch_shrinks_its_capacity() {
        let (mut all, mut batch) = (Events::new(), Events::new());
        for _ in 0..10 * KEPT {
            dead_lettered(&mut batch, Some("a reason"));
        }
        all.absorb(&mut batch);
        assert!(batch.room() <= 2 * KEPT, "room for {}", batch.room());
        let text = batch.text.capacity();
        assert!(text <= 16 * KEPT, "room for {text} bytes");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut events = Events::new();
        let text = events.text(&"ä€".repeat(MAX_TEXT));
        let kept = events.read(text);
        assert!(
            (MAX_TEXT - 3..=MAX_TEXT).contains(&kept.len()),
            "{}",
            kept.len()
        );
        assert!("ä€".repeat(MAX_TEXT).starts_with(&kept));
    }
}
