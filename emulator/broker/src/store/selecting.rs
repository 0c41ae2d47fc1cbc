//! Receivers with selectors: each skips messages that its selector does not match, and keeps the order of the others.
//!
//! A receiver looks at each message once: at those behind the last that it has seen, and at those before it that were put
//! back meanwhile. One operation looks at a bounded number; where more are left, the receiver is woken, and its next
//! operation continues.

use std::collections::BTreeSet;

use super::MessageStore;
use crate::context::{Context, Effect};
use crate::filter::{SqlFilter, System, Truth};
use crate::ids::{IdSource, Offset, ReceiverId};

/// How many small messages one operation looks at for all receivers together.
const LOOKS: usize = 1024;
/// How many messages that were put back are remembered one by one; beyond, all are looked at again.
const REMEMBERED: usize = 1024;

/// A receiver's selector, and how far it has looked.
#[derive(Debug)]
pub(crate) struct Selection {
    selector: SqlFilter,
    /// The first offset that it has not looked at.
    from: Offset,
    /// Earlier entries that became ready since.
    returned: BTreeSet<Offset>,
    /// Whether there are ready entries that it has not looked at.
    is_behind: bool,
}

impl Selection {
    pub(crate) fn new(selector: SqlFilter) -> Self {
        Self {
            selector,
            from: Offset(0),
            returned: BTreeSet::new(),
            is_behind: false,
        }
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind
    }

    pub(crate) fn mark_ready(&mut self, offset: Offset) {
        if offset >= self.from {
            return;
        }
        self.returned.insert(offset);
        if self.returned.len() > REMEMBERED {
            self.from = self.returned.pop_first().unwrap_or(offset);
            self.returned.clear();
        }
    }

    /// Returns the next entry to look at, and counts it as seen.
    fn step(&mut self, store: &MessageStore) -> Option<Offset> {
        while let Some(offset) = self.returned.pop_first() {
            if store.is_ready(offset) {
                return Some(offset);
            }
        }
        let next = store.ready.of_from((), self.from).next();
        self.from = next.map_or(store.next, |next| Offset(next.0 + 1));
        next
    }

    /// Returns the next selected entry, within the limit of looks.
    fn find(
        &mut self,
        store: &MessageStore,
        lookups: &mut usize,
        ids: &mut dyn IdSource,
    ) -> Option<Offset> {
        while *lookups > 0 {
            let Some(offset) = self.step(store) else {
                self.is_behind = false;
                return None;
            };
            let entry = store.get(offset);
            let cost = entry.map_or(1, |entry| entry.message().evaluation_cost());
            *lookups = lookups.saturating_sub(cost);
            if self.selects(store, offset, ids) {
                return Some(offset);
            }
        }
        self.is_behind = !self.returned.is_empty() || self.from < store.next;
        None
    }

    fn selects(&self, store: &MessageStore, offset: Offset, ids: &mut dyn IdSource) -> bool {
        let Some(entry) = store.get(offset) else {
            return false;
        };
        let message = entry.message();
        let properties = message.filter_view(&System {
            // Selectors can name no other system property.
            delivery_count: entry.delivery_count(),
            ..System::default()
        });
        // An accepted message decodes.
        properties
            .is_ok_and(|properties| self.selector.evaluate(&properties, ids) == Ok(Truth::True))
    }
}

impl MessageStore {
    /// Hands ready entries to waiting receivers, some of which have selectors.
    pub(crate) fn serve_selecting(&mut self, cx: &mut Context<'_>) {
        let mut lookups = LOOKS;
        while let Some((receiver, offset)) = self.next_selected(&mut lookups, cx.ids) {
            let Some(wake) = self.receivers.reserve_in_turn(receiver, offset) else {
                return;
            };
            self.reserve_to(receiver, offset);
            if wake {
                cx.effects.push(Effect::Wake(receiver));
            }
        }
        // One at a time: its next operation goes on and wakes the one behind it, so that many do not look at once.
        if let Some(receiver) = self.receivers.wake_searching() {
            cx.effects.push(Effect::Wake(receiver));
        }
    }

    /// Returns the first receiver by turn that can take an entry, and the entry.
    fn next_selected(
        &mut self,
        lookups: &mut usize,
        ids: &mut dyn IdSource,
    ) -> Option<(ReceiverId, Offset)> {
        let waiting = self.receivers.in_order();
        let found = waiting.iter().find_map(|&receiver| {
            let offset = self.find_for(receiver, lookups, ids)?;
            Some((receiver, offset))
        });
        let (receiver, offset) = found?;
        let returned = self.returned.as_deref();
        let former = returned.and_then(|returned| returned.get(&offset));
        if former != Some(&receiver) {
            return Some((receiver, offset));
        }
        // A receiver whose lock ended gets the message again only if no other takes it (spec/observed.md 17).
        let others = waiting.into_iter().filter(|other| *other != receiver);
        let takes = |other: &ReceiverId| self.takes(*other, offset, ids);
        let other = { others }.find(takes);
        Some((other.unwrap_or(receiver), offset))
    }

    /// Returns the next entry that a receiver takes.
    fn find_for(
        &mut self,
        receiver: ReceiverId,
        lookups: &mut usize,
        ids: &mut dyn IdSource,
    ) -> Option<Offset> {
        let Some(mut selection) = self.receivers.take_selection(receiver) else {
            return self.ready.first().map(|((), offset)| offset);
        };
        let found = selection.find(self, lookups, ids);
        self.receivers.put_selection(receiver, selection);
        found
    }

    /// Returns whether a receiver would take an entry.
    fn takes(&mut self, receiver: ReceiverId, offset: Offset, ids: &mut dyn IdSource) -> bool {
        let Some(selection) = self.receivers.take_selection(receiver) else {
            return true;
        };
        let takes = selection.selects(self, offset, ids);
        self.receivers.put_selection(receiver, selection);
        takes
    }

    fn is_ready(&self, offset: Offset) -> bool {
        self.ready.of_from((), offset).next() == Some(offset)
    }
}
