//! An entity that nobody uses goes away by itself (semantics §5).

use std::sync::Arc;

use crate::{Context, Effect, Entity, RuleSet, Timestamp};

/// Whether an entity has asked to be deleted because nobody uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AutoDelete {
    /// No.
    Used,
    /// Yes, but it may stay if its subscriptions were used, which it does not know, or if it is used meanwhile.
    Asks,
    /// Whoever sends from now on comes too late: what was accepted would be lost.
    Goes,
}

impl Entity {
    /// When the entity will have been idle for as long as it may be; none while something keeps it: a receiver with
    /// credit, a scheduled message, or that it forwards messages or dead letters (observed 27).
    pub(crate) fn idle_at(&self) -> Option<Timestamp> {
        let idle = self.description.auto_delete_on_idle?;
        let is_kept = self.idleness != AutoDelete::Used
            || self.description.forwards()
            || self.active.scheduled() > 0
            || self.is_awaited();
        (!is_kept).then(|| self.used_at + idle)
    }

    /// When somebody last did something here; [`Timestamp::NEVER`] while a receiver waits, which uses it all the time.
    pub fn last_used(&self) -> Timestamp {
        match self.is_awaited() {
            true => Timestamp::NEVER,
            false => self.used_at,
        }
    }

    fn is_awaited(&self) -> bool {
        let mut stores = self.stores().into_iter();
        stores.any(|store| store.is_awaited())
    }

    /// Notes that somebody did something that concerns the entity elsewhere.
    pub fn touch(&mut self, cx: &mut Context<'_>) {
        self.begin(cx);
        self.reserve(cx);
    }

    /// Takes back that it asked to be deleted, if it was used at `used` by way of its subscriptions and that is not
    /// long enough ago; says whether it stays, as it does if it was used since it asked.
    pub fn stay(&mut self, cx: &mut Context<'_>, used: Timestamp) -> bool {
        if self.idleness == AutoDelete::Used {
            return true;
        }
        let idle = self.description.auto_delete_on_idle;
        let stays = idle.is_none_or(|idle| used + idle > cx.now);
        if stays {
            self.idleness = AutoDelete::Used;
            self.used_at = self.used_at.max(used.min(cx.now));
        } else {
            self.idleness = AutoDelete::Goes;
        }
        stays
    }

    /// Asks, once, to be deleted with everything in it.
    pub(crate) fn become_idle(&mut self, cx: &mut Context<'_>) {
        let has_subscriptions = |rules: &Arc<RuleSet>| rules.subscriptions().next().is_some();
        self.idleness = match self.rules().is_some_and(has_subscriptions) {
            true => AutoDelete::Asks,
            false => AutoDelete::Goes,
        };
        cx.effects.push(Effect::Delete(self.path.clone()));
    }
}
