//! Removes the contents of an entity: messages are deleted, the entity is reset or deleted, or an operation failed half-way.
//!
//! Also deletes an entity that is idle (semantics §5).

use std::mem;
use std::sync::Arc;

use super::send::SendError;
use crate::context::{Context, Effect};
use crate::description::EntityStatus;
use crate::entity::{AutoDelete, Entity, Role, store};
use crate::event::EventKind;
use crate::ids::{Offset, SessionName, SubQueue};
use crate::rules::RuleSet;
use crate::size_in_use::SizeInUse;
use crate::store::MessageStore;
use crate::time::Timestamp;

impl Entity {
    /// Removes up to `max` messages that were enqueued before `before`, in order, and returns how many; only those of
    /// `session` if it is given. Skips locked, deferred and scheduled messages (semantics §17.3), and those of sessions that
    /// other clients hold, which are locked too (semantics §6).
    pub fn delete_messages(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        max: usize,
        before: Timestamp,
        session: Option<&SessionName>,
    ) -> usize {
        self.client_operation(cx, |entity, cx| {
            let store = entity.store(kind);
            let is_older = |offset: &Offset| {
                let entry = store.get(*offset);
                entry.is_some_and(|entry| entry.enqueued_at() < before)
            };
            let is_free = |offset: &Offset| {
                let lock = store.session_lock_of(*offset);
                lock.is_none_or(|lock| lock.client == cx.client)
            };
            // A dead letter keeps its enqueue time in the queue, so that older ones may follow newer ones.
            let offsets = store.ready_of(session).filter(is_older).filter(is_free);
            let offsets: Vec<Offset> = offsets.take(max).collect();
            let store = entity.store_mut(kind);
            for &offset in &offsets {
                store.record(cx, offset, EventKind::Deleted);
                store.remove(offset);
            }
            offsets.len()
        })
    }

    /// Removes every message, locked ones and dead letters included, all ids of duplicate detection, and all sessions with
    /// their states. Receivers and their credit stay, but the holders of sessions have lost them.
    pub fn reset(&mut self, cx: &mut Context<'_>) {
        self.client_operation(cx, |entity, cx| {
            entity.forget_sessions(cx);
            for kind in SubQueue::ALL {
                let store = entity.store_mut(kind);
                let offsets: Vec<Offset> = store.iter().map(|(offset, _)| offset).collect();
                for offset in offsets {
                    store.record(cx, offset, EventKind::Removed);
                    store.remove(offset);
                }
            }
            if let Some(history) = &mut entity.history {
                history.clear();
            }
        });
    }

    /// Removes every message. From now on the entity does nothing for any client, until the last reference to it is gone.
    pub fn delete(&mut self, cx: &mut Context<'_>) {
        // The holder of a session gets the same notification as all: that the entity is gone.
        self.active.drop_sessions();
        self.reset(cx);
        self.auto_delete = AutoDelete::Deleted;
        self.description.status = EntityStatus::Disabled;
        self.active.record_as(cx, None, EventKind::EntityDeleted);
    }

    /// Returns whether the entity was deleted.
    pub fn is_deleted(&self) -> bool {
        self.auto_delete == AutoDelete::Deleted
    }

    /// Empties the entity without reading its contents, and refuses all operations with this reason from now on. Its
    /// description and the rules of a topic stay.
    pub fn mark_broken(&mut self, now: Timestamp, reason: Arc<str>) {
        let mut description = mem::take(&mut self.description);
        // The entity must stay until its failure has been seen.
        description.auto_delete_on_idle = None;
        let (id, path, settings) = (self.id(), self.path.clone(), self.settings);
        let dead_letters = || store(id, SubQueue::DeadLetter, &description, &settings);
        let role = match &self.role {
            Role::Queue { .. } => Role::Queue {
                dead_letters: dead_letters(),
            },
            Role::Topic { rules, held } => Role::Topic {
                rules: Arc::clone(rules),
                held: SizeInUse::clone(held),
            },
            Role::Subscription { held, reported, .. } => {
                held.iter().for_each(|held| held.changed(*reported, 0));
                Role::Subscription {
                    dead_letters: dead_letters(),
                    held: held.clone(),
                    reported: 0,
                }
            }
        };
        *self = Self {
            broken: Some(Arc::new(reason.as_ref().to_owned())),
            indexed_deadline: self.indexed_deadline,
            is_indexed_as_busy: self.is_indexed_as_busy,
            ..Self::of_role(role, id, path, description, &settings, now)
        };
    }

    /// Panics if a test asks for it: when a message with the id `panic-in-` and the entity's path becomes active there.
    #[cfg(feature = "panics")]
    pub(crate) fn panic_for_test(&self, message: &crate::message::Message) {
        let id = message.id();
        let is_here = id.strip_prefix("panic-in-") == Some(self.path.as_str());
        assert!(!is_here, "a test wanted this");
    }

    /// Fails if the entity is broken.
    pub fn check_not_broken(&self) -> Result<(), SendError> {
        match &self.broken {
            None => Ok(()),
            Some(reason) => Err(SendError::Broken {
                path: self.path.clone(),
                reason: reason.as_str().into(),
            }),
        }
    }
}

impl Entity {
    /// Returns when the entity's idle time is over; `None` while something keeps it: a receiver with credit, a scheduled
    /// message, or that it forwards messages or dead letters (observed 27).
    pub(crate) fn idle_at(&self) -> Option<Timestamp> {
        let idle = self.description.auto_delete_on_idle?;
        let is_kept = self.auto_delete != AutoDelete::Active
            || self.description.forwards()
            || self.active.scheduled() > 0
            || self.has_waiting_receiver();
        (!is_kept).then(|| self.used_at + idle)
    }

    /// Returns the time of the last use as of `now`: `now` itself while a receiver waits, which counts as use all the time.
    pub fn last_used(&self, now: Timestamp) -> Timestamp {
        match self.has_waiting_receiver() {
            true => now,
            false => self.used_at,
        }
    }

    pub(crate) fn has_waiting_receiver(&self) -> bool {
        self.stores().any(MessageStore::has_waiting_receiver)
    }

    /// Records a use of the entity by a client elsewhere.
    pub fn touch(&mut self, cx: &mut Context<'_>) {
        self.client_operation(cx, |_, _| ());
    }

    /// Cancels the pending deletion if the entity was used through its subscriptions at `used` and its idle time is not over
    /// since; returns whether it stays, which it also does if it was used directly after it asked to be deleted.
    pub fn cancel_idle_deletion(&mut self, cx: &mut Context<'_>, used: Timestamp) -> bool {
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

    /// Asks once for the deletion of the entity with its contents.
    pub(crate) fn request_idle_deletion(&mut self, cx: &mut Context<'_>) {
        let has_subscriptions = |rules: &Arc<RuleSet>| rules.subscriptions().next().is_some();
        self.auto_delete = match self.rules().is_some_and(has_subscriptions) {
            true => AutoDelete::Pending,
            false => AutoDelete::Deleting,
        };
        cx.effects
            .push(Effect::Delete(self.path.clone(), self.id()));
    }
}
