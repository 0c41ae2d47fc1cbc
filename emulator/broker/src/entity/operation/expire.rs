//! Deadlines: locks end, messages expire, scheduled messages become active, idle entities are deleted.

use super::dead_letter::DeadLetterCause;
use crate::context::Context;
use crate::entity::Entity;
use crate::event::EventKind;
use crate::ids::{Offset, SubQueue};
use crate::store::{Due, MessageStore};

/// Maximum number of messages in one call: about 2 ms of processor time.
const DUE_AT_ONCE: usize = 2048;

impl Entity {
    /// Runs what is due by `cx.now` in order, each deadline at its own instant, and returns how many ran. After 2,048
    /// messages the rest is left to the next call, and receivers get nothing until then.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_>) -> usize {
        let done = self.run_due(cx);
        if !self.is_behind && self.idle_at().is_some_and(|at| at <= cx.now) {
            self.request_idle_deletion(&mut cx.at(cx.now));
        }
        done
    }

    /// Runs what is due, without idle deletion. An expiry that waited for a receiver (decision D1), or that an update has put
    /// into the past, takes effect when there was one, not in the past.
    pub(crate) fn run_due(&mut self, cx: &mut Context<'_>) -> usize {
        let may_be_due = |store: &MessageStore| store.may_be_due(cx.now);
        self.is_behind = false;
        // Every operation calls this.
        if !may_be_due(&self.active)
            && !self.role.dead_letters().is_some_and(may_be_due)
            && !may_be_due(&self.transfer_dead_letters)
        {
            return 0;
        }
        let (mut last, mut done) = (None, 0);
        while let Some((kind, due)) = self.next_due().filter(|(_, due)| due.at() <= cx.now) {
            if done == DUE_AT_ONCE {
                self.is_behind = true;
                return done;
            }
            done += 1;
            let instant = match due {
                Due::Expiry(at, _) => at.max(self.used_at),
                Due::LockEnd(..)
                | Due::SessionLockEnd(..)
                | Due::Activation(..)
                | Due::Retry(_) => due.at(),
            };
            // Waiting receivers are served between two instants, so that a late timer changes nothing. If very much was due,
            // there are newer messages and receivers, which are served when nothing is due any more.
            let is_later = last.replace(instant).is_some_and(|last| last < instant);
            if is_later && self.used_at <= instant {
                self.serve(cx);
            }
            let cx = &mut cx.at(instant);
            match due {
                Due::LockEnd(_, offset) => self.expire_lock(cx, kind, offset),
                Due::SessionLockEnd(_, slot) => self.session_lock_is_due(cx, slot),
                Due::Expiry(_, offset) => self.expire(cx, offset),
                Due::Activation(_, offset) => self.activate(cx, offset),
                Due::Retry(_) => self.retry_forwards(kind),
            }
        }
        if last.is_some() {
            self.reserve(cx);
        }
        for kind in SubQueue::ALL {
            self.store_mut(kind).update_bounds();
        }
        done
    }

    /// Decides where a message goes whose lock has ended. Expiry precedes the delivery limit (decision D24); a deferred
    /// message does not expire until a client asks for it (decision D9).
    pub(crate) fn requeue_or_dead_letter(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        offset: Offset,
    ) {
        let store = self.store_mut(kind);
        let Some(entry) = store.get(offset) else {
            return;
        };
        if entry.is_expired(cx.now) && !entry.is_deferred() {
            self.expire(cx, offset);
            return;
        }
        if !self.dead_letter_exhausted(cx, kind, offset) {
            self.store_mut(kind).requeue(offset);
        }
    }

    /// Dead-letters a message whose failed deliveries have reached the limit.
    pub(crate) fn dead_letter_exhausted(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        offset: Offset,
    ) -> bool {
        let store = self.store(kind);
        let entry = store.get(offset);
        let limit = entry.and_then(|entry| store.policy().exhausted_by(entry.delivery_count()));
        let Some(limit) = limit else {
            return false;
        };
        self.dead_letter_by_rule(cx, offset, DeadLetterCause::MaxDeliveryCount(limit));
        true
    }

    pub(crate) fn expire_lock(&mut self, cx: &mut Context<'_>, kind: SubQueue, offset: Offset) {
        let store = self.store_mut(kind);
        let Some((former, delivery_count)) = store.count_lock_expiry(offset) else {
            return;
        };
        store.record(cx, offset, EventKind::LockExpired { delivery_count });
        self.requeue_or_dead_letter(cx, kind, offset);
        if let Some(former) = former {
            self.store_mut(kind).mark_returned(offset, former);
        }
    }

    /// Expires a message; only those of the active store do.
    pub(crate) fn expire(&mut self, cx: &mut Context<'_>, offset: Offset) {
        if self.active.policy().dead_letters_expired() {
            self.dead_letter_by_rule(cx, offset, DeadLetterCause::Expired);
        } else {
            self.active
                .record(&mut cx.at(cx.now), offset, EventKind::Expired);
            self.active.remove(offset);
        }
    }

    fn next_due(&self) -> Option<(SubQueue, Due)> {
        let dues = self
            .stores()
            .filter_map(|store| Some((store.policy().kind(), store.next_due()?)));
        dues.min_by_key(|(_, due)| due.at())
    }
}
