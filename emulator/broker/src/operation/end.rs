//! An entity is deleted with everything in it.

use super::idle::AutoDelete;
use crate::{Context, Entity, EntityStatus, EventKind, SequenceNumber};

impl Entity {
    /// Removes every message and does nothing for anybody from now on, until the last who knows the entity has
    /// let go of it.
    pub fn delete(&mut self, cx: &mut Context<'_>) {
        // Who holds a session is told what everybody is told: that the entity is gone.
        self.active.sessions = None;
        self.reset(cx);
        self.idleness = AutoDelete::Goes;
        self.description.status = EntityStatus::Disabled;
        self.active
            .record(cx, SequenceNumber(0), EventKind::EntityDeleted);
    }
}
