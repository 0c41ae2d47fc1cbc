//! The messages of a store that an operation touched, if changes are stored.

use std::collections::BTreeMap;

use super::MessageStore;
use crate::changes::BodyId;
use crate::ids::Offset;

/// The touched entries since they were last taken.
#[derive(Debug, Default)]
pub(crate) struct Touched(BTreeMap<Offset, Touch>);

/// A change of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touch {
    /// It is new and has no row.
    Added,
    /// It differs from its row.
    Changed,
    /// It is removed, and its row referred to this body.
    Removed(Option<BodyId>),
}

impl MessageStore {
    /// Records touched entries from now on.
    pub(crate) fn keep_changes(&mut self) {
        self.touched = Some(Box::default());
        if let Some(sessions) = &mut self.sessions {
            sessions.keep_changes();
        }
    }

    /// Takes the entries that were touched since the last call.
    pub(crate) fn take_touched(&mut self) -> BTreeMap<Offset, Touch> {
        let touched = self.touched.as_mut();
        touched.map_or_else(BTreeMap::new, |touched| std::mem::take(&mut touched.0))
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
    pub(crate) fn leave_out_body(&mut self, offset: Offset, body: BodyId) {
        if let Some(entry) = self.entries.get_mut(offset)
            && entry.message.body_id() == Some(body)
        {
            entry.message.leave_out();
        }
    }

    /// Sets the next offset to at least `next`.
    pub(crate) fn restore_next(&mut self, next: Offset) {
        self.next = self.next.max(next);
    }

    pub(super) fn note_added(&mut self, offset: Offset) {
        if let Some(touched) = &mut self.touched {
            touched.0.insert(offset, Touch::Added);
        }
    }

    pub(super) fn note_changed(&mut self, offset: Offset) {
        if let Some(touched) = &mut self.touched {
            touched.0.entry(offset).or_insert(Touch::Changed);
        }
    }

    pub(super) fn note_removed(&mut self, offset: Offset, body: Option<BodyId>) {
        if let Some(touched) = &mut self.touched
            && touched.0.insert(offset, Touch::Removed(body)) == Some(Touch::Added)
        {
            touched.0.remove(&offset);
        }
    }
}
