//! An entity that nobody uses goes away by itself (semantics §5).

use crate::{Context, Effect, EntityStatus, Mailbox, Timestamp};

impl Mailbox {
    /// When the entity will have been idle for as long as it may be; none while something keeps it: a receiver with
    /// credit, a scheduled message, or that it forwards.
    pub(crate) fn idle_at(&self) -> Option<Timestamp> {
        let idle = self.description.auto_delete_on_idle?;
        let is_kept = self.is_idle
            || self.description.forward_to.is_some()
            || self.active.scheduled() > 0
            || self
                .stores()
                .iter()
                .any(|store| store.consumers.is_active());
        (!is_kept).then(|| self.used_at + idle)
    }

    /// Asks, once, to be deleted with everything in it. Whoever comes from now on comes too late: what was accepted
    /// would be lost.
    pub(crate) fn become_idle(&mut self, cx: &mut Context<'_>) {
        self.is_idle = true;
        self.description.status = EntityStatus::Disabled;
        cx.effects.push(Effect::Delete(self.path.clone()));
    }
}
