//! A part of a record, by positions.

use std::collections::HashSet;

use servicebus_broker::Timeline;
use tokio::task::yield_now;

use super::render::{moved, place};
use super::{COPIED, Wanted};
use crate::namespace::{Namespace, Place};

/// Which part of the record is asked for, by positions.
pub(crate) struct Page {
    pub(crate) after: u64,
    pub(crate) before: u64,
    /// How many events may still be told.
    pub(crate) left: usize,
    /// Whether these are the newest of them.
    pub(crate) is_newest: bool,
    /// Where there are more: the last one that was told, or the first one of the newest.
    pub(crate) next: Option<u64>,
}

impl Page {
    /// Whether the event at this position is told; none where no more are.
    pub(crate) fn take(&mut self, position: u64) -> Option<bool> {
        if position <= self.after {
            return Some(false);
        }
        if position >= self.before {
            self.next = self.next.filter(|_| self.is_newest);
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        if !self.is_newest {
            self.next = Some(position);
        }
        Some(true)
    }
}

/// What a page of the newest events needs of a record.
pub(super) struct Newest {
    /// Where it begins, or the event before it, by which it is known that there are more.
    pub(super) begin: u64,
    /// How many more are looked for.
    left: usize,
    /// Where its messages are, and were: what happened there before tells their ids.
    pub(super) places: HashSet<Place>,
}

impl Newest {
    /// Looks through the record from its `last` event; none where the id of a message is asked for, which takes all of it.
    pub(super) async fn find(
        namespace: &Namespace,
        wanted: &Wanted,
        page: &Page,
        last: u64,
    ) -> Option<Self> {
        if wanted.message_id.is_some() {
            return None;
        }
        let mut position = page.before.saturating_sub(1).min(last);
        let mut newest = Self {
            begin: position + 1,
            left: page.left + 1,
            places: HashSet::new(),
        };
        while position > 0 {
            position = newest.look(&namespace.timeline(), wanted, page.after, position);
            yield_now().await;
        }
        Some(newest)
    }

    /// Looks at some events from this position on, backwards; returns that of the next, 0 behind the last.
    fn look(&mut self, timeline: &Timeline, wanted: &Wanted, after: u64, position: u64) -> u64 {
        let first = timeline.dropped() + 1;
        let end = position.saturating_sub(COPIED as u64);
        for position in (end + 1..=position).rev() {
            let index = position.checked_sub(first);
            let index = index.and_then(|index| usize::try_from(index).ok());
            let Some(event) = index.and_then(|index| timeline.events().get(index)) else {
                return 0;
            };
            let is_in_page = self.left > 0 && position > after;
            if is_in_page {
                self.begin = position;
            }
            let is_told = is_in_page && wanted.takes(event);
            self.left -= usize::from(is_told);
            let is_of_told = moved(&event.kind)
                .is_some_and(|(store, to)| self.places.contains(&(event.entity, store, Some(to))));
            if event.number().is_some() && (is_told || is_of_told) {
                self.places.insert(place(event));
            }
        }
        end
    }
}
