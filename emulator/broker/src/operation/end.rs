//! An entity is deleted with everything in it.

use super::idle::Idleness;
use crate::{Context, EntityStatus, FactKind, Mailbox, SequenceNumber};

impl Mailbox {
    /// Removes every message and does nothing for anybody from now on, until the last who knows the mailbox has
    /// let go of it.
    pub fn delete(&mut self, cx: &mut Context<'_>) {
        // Who holds a session is told what everybody is told: that the entity is gone.
        self.active.sessions = None;
        self.reset(cx);
        self.idleness = Idleness::Goes;
        self.description.status = EntityStatus::Disabled;
        self.active
            .note(cx, SequenceNumber(0), FactKind::EntityDeleted);
    }
}
