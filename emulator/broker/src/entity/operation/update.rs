//! Changes the settings of an entity in use.

use super::dead_letter::{DeadLetterCause, MAX_HOPS};
use crate::context::Context;
use crate::description::EntityDescription;
use crate::entity::Entity;
use crate::ids::{Offset, SubQueue};
use crate::store::Entry;
use crate::time::Deadline;

impl Entity {
    /// Replaces the description. All locks are lost (decision D17), unless only the status changes: then they continue
    /// (decision D27). A changed time to live takes effect at once for messages without their own (decision D7). Returns
    /// whether locks were lost.
    pub fn update(&mut self, cx: &mut Context<'_>, description: EntityDescription) -> bool {
        self.client_operation(cx, |entity, cx| {
            let before = std::mem::replace(&mut entity.description, description);
            entity.definition_changed();
            for kind in SubQueue::ALL {
                let policy = entity
                    .role
                    .policy(kind, &entity.description, &entity.settings);
                entity.store_mut(kind).set_policy(policy);
            }
            let after = &entity.description;
            let only_status = EntityDescription {
                status: after.status,
                ..before.clone()
            };
            let lives_otherwise =
                before.default_message_time_to_live != after.default_message_time_to_live;
            let allows_less = after.max_delivery_count < before.max_delivery_count;
            let ends_locks = *after != only_status;
            if ends_locks {
                entity.end_locks(cx);
            }
            if lives_otherwise {
                entity.reschedule_expiries();
            }
            let (former, target) = (
                &before.forward_dead_lettered_messages_to,
                &entity.description.forward_dead_lettered_messages_to,
            );
            if former != target {
                // Another target may accept what the former has refused.
                entity
                    .store_mut(SubQueue::DeadLetter)
                    .release_kept(MAX_HOPS);
            }
            for kind in [SubQueue::Active, SubQueue::DeadLetter] {
                entity.store_mut(kind).resume_forwards();
            }
            if allows_less {
                entity.dead_letter_delivered_too_often(cx);
            }
            if let Some(history) = &mut entity.history {
                let window = entity.description.duplicate_detection_history_time_window;
                history.set_window(cx.now, window);
            }
            entity.run_due(cx);
            ends_locks
        })
    }

    /// Ends every lock, of messages and of sessions, as if its time were over.
    pub fn lose_locks(&mut self, cx: &mut Context<'_>) {
        self.follow_up(cx, Self::end_locks);
    }

    fn end_locks(&mut self, cx: &mut Context<'_>) {
        let cx = &mut cx.at(cx.now);
        self.session_locks_expired(cx);
        for kind in SubQueue::ALL {
            let locks: Vec<Offset> = self.store(kind).locks().collect();
            for offset in locks {
                self.expire_lock(cx, kind, offset);
            }
        }
    }

    /// Dead-letters messages whose next delivery would exceed the new limit (semantics §3.1).
    fn dead_letter_delivered_too_often(&mut self, cx: &mut Context<'_>) {
        let limit = self.description.max_delivery_count;
        let entries = self.active.iter();
        let is_past = |entry: &Entry| entry.is_available() && entry.delivery_count() >= limit;
        let past: Vec<_> = entries
            .filter(|(_, entry)| is_past(entry))
            .map(|(offset, _)| offset)
            .collect();
        for offset in past {
            let cause = DeadLetterCause::MaxDeliveryCount(limit);
            self.dead_letter_by_rule(cx, offset, cause);
        }
    }

    /// Reschedules the expiry of messages without their own time to live.
    fn reschedule_expiries(&mut self) {
        let store = &self.active;
        let mut changed = Vec::new();
        for (offset, entry) in store.iter() {
            if entry.message().time_to_live().is_none() {
                let lifetime = store.policy().lifetime(entry.time_to_live());
                let since = entry.activates_at().unwrap_or_else(|| entry.enqueued_at());
                let at = lifetime.map(|lifetime| since + lifetime);
                changed.push((offset, Deadline::from(at)));
            }
        }
        for (offset, at) in changed {
            self.active.reschedule_expiry(offset, at);
        }
    }
}
