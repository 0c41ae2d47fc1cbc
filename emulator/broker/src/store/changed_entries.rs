//! The messages of a store that an operation touched, if changes are stored.

use std::collections::BTreeMap;

use super::MessageStore;
use crate::changes::BodyId;
use crate::ids::Offset;

/// The touched entries since they were last taken.
#[derive(Debug, Default)]
pub(crate) struct ChangedEntries(BTreeMap<Offset, EntryChange>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryChange {
    /// It is new and has no row.
    Added,
    /// It differs from its row.
    Changed,
    /// It is removed, and its row referred to this body.
    Removed(Option<BodyId>),
}

impl MessageStore {
    /// Records touched entries from now on.
    pub(crate) fn record_changes(&mut self) {
        self.changed_entries = Some(Box::default());
        if let Some(sessions) = &mut self.sessions {
            sessions.record_changes();
        }
    }

    /// Takes the entries that were touched since the last call.
    pub(crate) fn take_changed(&mut self) -> BTreeMap<Offset, EntryChange> {
        let changed_entries = self.changed_entries.as_mut();
        changed_entries.map_or_else(BTreeMap::new, |changed_entries| {
            std::mem::take(&mut changed_entries.0)
        })
    }

    /// Gives the bytes of a message an id for storage, unless they have one.
    pub(crate) fn name_body(&mut self, offset: Offset, next: &mut dyn FnMut() -> BodyId) {
        if let Some(entry) = self.entries.get_mut(offset)
            && entry.message.body_id().is_none()
        {
            entry.message.set_body_id(next());
        }
    }

    /// Drops a stored body from memory.
    pub(crate) fn drop_body(&mut self, offset: Offset, body: BodyId) {
        if let Some(entry) = self.entries.get_mut(offset)
            && entry.message.body_id() == Some(body)
        {
            entry.message.drop_body();
        }
    }

    /// Sets the next offset to at least `next`.
    pub(crate) fn restore_next(&mut self, next: Offset) {
        self.next = self.next.max(next);
    }

    pub(super) fn record_added(&mut self, offset: Offset) {
        if let Some(changed_entries) = &mut self.changed_entries {
            changed_entries.0.insert(offset, EntryChange::Added);
        }
    }

    pub(super) fn record_changed(&mut self, offset: Offset) {
        if let Some(changed_entries) = &mut self.changed_entries {
            changed_entries
                .0
                .entry(offset)
                .or_insert(EntryChange::Changed);
        }
    }

    pub(super) fn record_removed(&mut self, offset: Offset, body: Option<BodyId>) {
        if let Some(changed_entries) = &mut self.changed_entries
            && changed_entries.0.insert(offset, EntryChange::Removed(body))
                == Some(EntryChange::Added)
        {
            changed_entries.0.remove(&offset);
        }
    }
}
