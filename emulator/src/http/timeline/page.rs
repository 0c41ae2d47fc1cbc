//! A page of a record, by positions.

use std::collections::{HashSet, VecDeque};

use servicebus_broker::{Event, Timeline};
use tokio::task::yield_now;

use super::render::{arrival_of, moved, own_id, place};
use super::{COPIED, EventFilter};
use crate::namespace::{Location, Namespace};

/// The requested page, by positions.
pub(crate) struct Page {
    pub(crate) after: u64,
    pub(crate) before: u64,
    /// How many more events the page may have.
    pub(crate) left: usize,
    /// Whether the newest events are wanted.
    pub(crate) is_newest: bool,
    /// The position from which the next page continues, if there is one: of the last event, or of the first of the newest.
    pub(crate) next: Option<u64>,
    /// The position before which events without a message are left out.
    pub(crate) others: u64,
}

impl Page {
    /// Returns whether the event at this position is in the page; `None` if no later one is.
    pub(crate) fn take(&mut self, position: u64, has_message: bool) -> Option<bool> {
        if position <= self.after || !has_message && position < self.others {
            return Some(false);
        }
        if position >= self.before {
            self.next = self.next.filter(|_| self.is_newest);
            return None;
        }
        if !self.is_newest {
            self.left = self.left.checked_sub(1)?;
            self.next = Some(position);
        }
        Some(true)
    }
}

/// The positions of the newest events of a page, as a pass from the oldest finds them.
pub(crate) struct Newest {
    page: Page,
    counted: VecDeque<u64>,
    /// Those that belong to no message, while a message is requested.
    others: VecDeque<u64>,
}

impl Newest {
    pub(crate) fn of(page: Page) -> Self {
        let (counted, others) = (VecDeque::new(), VecDeque::new());
        Self {
            page,
            counted,
            others,
        }
    }

    pub(crate) fn add(&mut self, position: u64, counts: bool) {
        if position <= self.page.after || position >= self.page.before {
            return;
        }
        let found = match counts {
            true => &mut self.counted,
            false => &mut self.others,
        };
        found.push_back(position);
        if found.len() > self.page.left {
            found.pop_front();
            if counts {
                self.page.next = found.front().copied();
            }
        }
    }

    /// Returns the page, which begins with the first event that counts.
    pub(crate) fn page(self) -> Page {
        Page {
            after: self.counted.front().copied().unwrap_or(u64::MAX) - 1,
            others: self.others.front().copied().unwrap_or_default(),
            ..self.page
        }
    }
}

/// The events that a page needs: those that may be in it, and earlier ones with the ids of their messages.
pub(super) struct PageEvents {
    /// The first event that is needed.
    pub(super) start: u64,
    /// The position where the page begins, or the one before it, which shows that there are more.
    pub(super) begin: u64,
    /// The last event that is needed.
    pub(super) end: u64,
    /// The locations of its messages: earlier events there have their ids.
    pub(super) places: HashSet<Location>,
    /// Those of them whose message id was not found yet, going back.
    open: HashSet<Location>,
    /// How many more events are looked for.
    left: usize,
}

impl PageEvents {
    /// Searches the record up to `last`; `None` if the id of a message is requested, for which all events are needed.
    pub(super) async fn find(
        namespace: &Namespace,
        wanted: &EventFilter,
        page: &Page,
        last: u64,
    ) -> Option<Self> {
        if wanted.message_id.is_some() {
            return None;
        }
        let end = match page.is_newest {
            true => last,
            false => end_of_oldest(namespace, wanted, page, last).await,
        };
        let mut position = end.min(page.before.saturating_sub(1));
        let mut needed = Self {
            start: 1,
            begin: position + 1,
            end,
            places: HashSet::new(),
            open: HashSet::new(),
            left: page.left + 1,
        };
        while position > 0 {
            position = needed.look_back(&namespace.timeline(), wanted, page.after, position);
            yield_now().await;
        }
        Some(needed)
    }

    /// Visits some events backwards from this position; returns the next position, 0 when no more are needed.
    fn look_back(
        &mut self,
        timeline: &Timeline,
        wanted: &EventFilter,
        after: u64,
        position: u64,
    ) -> u64 {
        let end = position.saturating_sub(COPIED as u64);
        for position in (end + 1..=position).rev() {
            let is_in_page = self.left > 0 && position > after;
            let event = event_at(timeline, position);
            let Some(event) = event.filter(|_| is_in_page || !self.open.is_empty()) else {
                return 0;
            };
            self.start = position;
            let is_selected = is_in_page && wanted.takes(event);
            if is_in_page {
                self.begin = position;
                self.left -= usize::from(is_selected);
            }
            self.trace(event, event_at(timeline, position + 1), is_selected);
        }
        end
    }

    /// Records whose message id is needed before this event.
    fn trace(&mut self, event: &Event, next: Option<&Event>, is_selected: bool) {
        let here = place(event);
        if let Some((store, to)) = moved(&event.kind)
            && self.open.remove(&(event.entity, store, Some(to)))
        {
            self.places.insert(here);
            self.open.insert(here);
        }
        if is_selected && event.number().is_some() {
            self.places.insert(here);
            self.open.insert(here);
        }
        if own_id(&event.kind).is_some() || arrival_of(event, next).is_some() {
            self.open.remove(&here);
        }
    }
}

/// The position of the event behind a page of the oldest, or the `last` one.
async fn end_of_oldest(namespace: &Namespace, wanted: &EventFilter, page: &Page, last: u64) -> u64 {
    let mut left = page.left;
    let mut position = page.after.max(namespace.timeline().dropped());
    while position < last {
        let end = last.min(position + COPIED as u64);
        {
            let timeline = namespace.timeline();
            for position in position + 1..=end {
                if event_at(&timeline, position).is_some_and(|event| wanted.takes(event)) {
                    let Some(less) = left.checked_sub(1) else {
                        return position;
                    };
                    left = less;
                }
            }
        }
        position = end;
        yield_now().await;
    }
    last
}

/// The event at a position of the record, if it is kept.
fn event_at(timeline: &Timeline, position: u64) -> Option<&Event> {
    let index = position.checked_sub(timeline.dropped() + 1)?;
    timeline.events().get(usize::try_from(index).ok()?)
}
