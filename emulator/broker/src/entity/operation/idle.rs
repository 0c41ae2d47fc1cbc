//! An entity that is not used is deleted by itself (semantics §5).

use std::sync::Arc;

use crate::context::{Context, Effect};
use crate::entity::{AutoDelete, Entity};
use crate::rules::RuleSet;
use crate::store::MessageStore;
use crate::time::Timestamp;

impl Entity {
    /// When the entity will have been idle for as long as it may be; none while something keeps it: a receiver with
    /// credit, a scheduled message, or that it forwards messages or dead letters (observed 27).
    pub(crate) fn idle_at(&self) -> Option<Timestamp> {
        let idle = self.description.auto_delete_on_idle?;
        let is_kept = self.auto_delete != AutoDelete::Active
            || self.description.forwards()
            || self.active.scheduled() > 0
            || self.is_awaited();
        (!is_kept).then(|| self.used_at + idle)
    }

    /// When a client last did something here at `now`: right now while a receiver waits, which uses it all the time.
    pub fn last_used(&self, now: Timestamp) -> Timestamp {
        match self.is_awaited() {
            true => now,
            false => self.used_at,
        }
    }

    fn is_awaited(&self) -> bool {
        self.stores().any(MessageStore::is_awaited)
    }

    /// Records that a client did something that concerns the entity elsewhere.
    pub fn touch(&mut self, cx: &mut Context<'_>) {
        self.verb(cx, |_, _| ());
    }

    /// Takes back that it asked to be deleted, if it was used at `used` by way of its subscriptions and that is not
    /// long enough ago; says whether it stays, as it does if it was used since it asked.
    pub fn stay(&mut self, cx: &mut Context<'_>, used: Timestamp) -> bool {
        if self.auto_delete == AutoDelete::Active {
            return true;
        }
        let idle = self.description.auto_delete_on_idle;
        let stays = idle.is_none_or(|idle| used + idle > cx.now);
        if stays {
            self.auto_delete = AutoDelete::Active;
            self.used_at = self.used_at.max(used.min(cx.now));
        } else {
            self.auto_delete = AutoDelete::Deleting;
        }
        stays
    }

    /// Asks, once, to be deleted with everything in it.
    pub(crate) fn become_idle(&mut self, cx: &mut Context<'_>) {
        let has_subscriptions = |rules: &Arc<RuleSet>| rules.subscriptions().next().is_some();
        self.auto_delete = match self.rules().is_some_and(has_subscriptions) {
            true => AutoDelete::Pending,
            false => AutoDelete::Deleting,
        };
        cx.effects
            .push(Effect::Delete(self.path.clone(), self.id()));
    }
}
