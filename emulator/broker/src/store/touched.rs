//! Which messages of a store an operation touched, where what it changes is kept beyond the process.

use std::collections::BTreeMap;

use super::MessageStore;
use crate::changes::BodyId;
use crate::ids::Offset;

/// What became of entries since that was last asked.
#[derive(Debug, Default)]
pub(crate) struct Touched(BTreeMap<Offset, Touch>);

/// What became of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touch {
    /// It is new: no row tells of it.
    Added,
    /// It is not what its row tells.
    Changed,
    /// It is gone, and its row referred to these bytes.
    Removed(Option<BodyId>),
}

impl MessageStore {
    /// Notes from now on what is touched.
    pub(crate) fn keep_changes(&mut self) {
        self.touched = Some(Box::default());
        if let Some(sessions) = &mut self.sessions {
            sessions.keep_changes();
        }
    }

    /// What was touched since this was last asked.
    pub(crate) fn take_touched(&mut self) -> BTreeMap<Offset, Touch> {
        let touched = self.touched.as_mut();
        touched.map_or_else(BTreeMap::new, |touched| std::mem::take(&mut touched.0))
    }

    /// Gives the bytes of a message a number under which they are kept, unless they have one.
    pub(crate) fn name_body(&mut self, offset: Offset, next: &mut dyn FnMut() -> BodyId) {
        if let Some(entry) = self.entries.get_mut(offset)
            && entry.message.body_id().is_none()
        {
            entry.message.set_body_id(next());
        }
    }

    /// Leaves the bytes of a body to where they are kept.
    pub(crate) fn leave_out_body(&mut self, offset: Offset, body: BodyId) {
        if let Some(entry) = self.entries.get_mut(offset)
            && entry.message.body_id() == Some(body)
        {
            entry.message.leave_out();
        }
    }

    /// Goes on at least at this place.
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
