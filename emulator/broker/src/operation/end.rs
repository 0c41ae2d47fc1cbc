//! An entity is deleted with everything in it.

use crate::{Context, EntityStatus, FactKind, Mailbox, SequenceNumber};

impl Mailbox {
    /// Removes every message and does nothing for anybody from now on, until the last who knows the mailbox has
    /// let go of it.
    pub fn delete(&mut self, cx: &mut Context<'_>) {
        self.reset(cx);
        self.is_idle = true;
        self.description.status = EntityStatus::Disabled;
        self.active
            .note(cx, SequenceNumber(0), FactKind::EntityDeleted);
    }
}
