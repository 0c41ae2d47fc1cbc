//! Operations on entities: each under the entity's lock, followed by its consequences elsewhere.

use std::any::Any;
use std::collections::VecDeque;
use std::ops::DerefMut;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use servicebus_broker::{
    CommitError, Context, Entities, Entity, EntityPath, FollowUps, Notice, SubQueue, Timestamp,
    Transaction, commit, follow_up,
};

use super::{Caller, INSPECTOR, Namespace, SharedEntity};
use crate::failures::{Broken, Failure, panic_text};
use crate::router::ConnectionId;

/// About how many messages are forwarded in the task of the caller who sent or settled the last of them.
const FORWARDED_AT_ONCE: usize = 2048;

/// Operates on several entities of a namespace, one after another.
pub(super) struct EntityAccess<'a> {
    namespace: &'a Namespace,
    caller: &'a mut Caller,
}

impl Namespace {
    /// Runs an operation on an entity under its lock, records the events and carries out the effects. A panic breaks the
    /// entity and continues as [`Broken`].
    pub(crate) fn operate<T>(
        &self,
        entity: &SharedEntity,
        caller: &mut Caller,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> T {
        let result = self.try_operate(entity, caller, work);
        result.unwrap_or_else(|broken| resume_unwind(Box::new(broken)))
    }

    /// Runs an operation for a caller that must continue if the entity breaks.
    pub(crate) fn try_operate<T>(
        &self,
        entity: &SharedEntity,
        caller: &mut Caller,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> Result<T, Broken> {
        let _unit = self.begin_unit();
        let result = self.attempt(entity, caller, work);
        self.run_follow_ups(caller);
        result
    }

    /// Runs an operation for deadlines, the control API and other callers without a connection.
    pub(crate) fn operate_as_broker<T>(
        &self,
        entity: &SharedEntity,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> T {
        let mut broker = self.deadline_caller();
        self.operate(entity, &mut broker, work)
    }

    /// Runs an operation for an operator.
    pub(crate) fn operate_as_inspector<T>(
        &self,
        entity: &SharedEntity,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> T {
        self.operate_as_broker(entity, |entity, cx| {
            cx.client = INSPECTOR;
            work(entity, cx)
        })
    }

    /// Runs an operation for an operator on several entities, in the order of their ids and locked together.
    pub(crate) fn operate_together_as_inspector<T>(
        &self,
        entities: &[Arc<SharedEntity>],
        work: impl FnOnce(&mut [&mut Entity], &mut Context<'_>) -> T,
    ) -> T {
        let mut broker = self.deadline_caller();
        self.operate_together(entities, &mut broker, |entities, cx| {
            cx.client = INSPECTOR;
            work(entities, cx)
        })
    }

    /// Runs what is due; returns how many messages that affected. An entity that breaks is reported, and does not keep
    /// others from running theirs.
    pub(super) fn expire(&self, entity: &SharedEntity) -> usize {
        let mut broker = self.deadline_caller();
        let done = self.try_operate(entity, &mut broker, Entity::handle_timeout);
        done.unwrap_or_default()
    }

    /// Reads an entity without changing it.
    pub(crate) fn read<T>(&self, entity: &SharedEntity, read: impl FnOnce(&Entity) -> T) -> T {
        let mut queue = entity.lock();
        match catch_unwind(AssertUnwindSafe(|| read(&queue))) {
            Ok(seen) => seen,
            Err(payload) => {
                let broken = self.mark_broken(&mut queue, &*payload);
                drop(queue);
                self.report_broken(&broken);
                resume_unwind(Box::new(broken))
            }
        }
    }

    /// Runs one operation without its consequences elsewhere. If it panics, the entity is broken from then on.
    fn attempt<T>(
        &self,
        entity: &SharedEntity,
        caller: &mut Caller,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> Result<T, Broken> {
        let mut locked = entity.lock();
        let done = catch_unwind(AssertUnwindSafe(|| {
            let result = work(&mut locked, &mut self.context(caller));
            let deadline = self.record(entity, &mut locked, caller);
            (result, deadline)
        }));
        match done {
            Ok((result, deadline)) => {
                drop(locked);
                if let Some(deadline) = deadline {
                    self.alarm.arm(deadline);
                }
                self.carry_out(caller);
                Ok(result)
            }
            Err(payload) => {
                caller.forget_operation();
                let broken = self.mark_broken(&mut locked, &*payload);
                drop(locked);
                self.report_broken(&broken);
                Err(broken)
            }
        }
    }

    fn context<'a>(&self, caller: &'a mut Caller) -> Context<'a> {
        Context {
            now: self.clock.now(),
            client: caller.client,
            has_room: self.has_disk_space(),
            ids: &mut caller.ids,
            effects: &mut caller.effects,
            events: &mut caller.events,
        }
    }

    /// Records the events of an operation under the entity's lock, so that they are in order; returns the entity's next
    /// deadline, if it is earlier than before.
    fn record(
        &self,
        shared: &SharedEntity,
        entity: &mut Entity,
        caller: &mut Caller,
    ) -> Option<Timestamp> {
        self.append_changes(shared, entity);
        if !caller.events.is_empty() {
            self.recorded_messages.keep(entity, &caller.events, self);
            self.followed_messages
                .note(entity, &caller.events, &self.clock);
            self.timeline().absorb(&mut caller.events);
        }
        self.index(entity)
    }

    /// Updates the indexes if needed; returns the entity's deadline then.
    fn index(&self, entity: &mut Entity) -> Option<Timestamp> {
        let changes = entity.changes_index();
        changes
            .then(|| self.index_of_entities().index(entity))
            .flatten()
    }

    /// Breaks an entity after a panic: its state is not used any more.
    fn mark_broken(&self, entity: &mut Entity, payload: &(dyn Any + Send)) -> Broken {
        let reason = Arc::from(panic_text(payload));
        let now = self.clock.now();
        entity.mark_broken(now, Arc::clone(&reason));
        Broken {
            entity: entity.path().clone(),
            reason,
        }
    }

    /// Reports a broken entity to the log, the health endpoint, and its links.
    fn report_broken(&self, broken: &Broken) {
        self.failures.add(Failure {
            namespace: Some(self.name().to_owned()),
            entity: Some(broken.entity.to_string()),
            reason: broken.reason.to_string(),
        });
        self.entities_changed();
    }

    /// Commits a transaction while all participating entities are locked in the order of their ids, and carries out the
    /// effects.
    pub(crate) fn commit(
        &self,
        entities: &[Arc<SharedEntity>],
        caller: &mut Caller,
        transaction: Transaction,
    ) -> Result<(), CommitError> {
        self.operate_together(entities, caller, |entities, cx| {
            commit(transaction, entities, cx)
        })
    }

    /// Runs an operation while these entities, which are in the order of their ids, are locked, and carries out the effects.
    fn operate_together<T>(
        &self,
        entities: &[Arc<SharedEntity>],
        caller: &mut Caller,
        work: impl FnOnce(&mut [&mut Entity], &mut Context<'_>) -> T,
    ) -> T {
        let _unit = self.begin_unit();
        let mut locked: Vec<_> = entities.iter().map(|entity| entity.lock()).collect();
        let done = catch_unwind(AssertUnwindSafe(|| {
            let shared = entities;
            let mut entities: Vec<_> = locked.iter_mut().map(|entity| &mut **entity).collect();
            let result = work(&mut entities, &mut self.context(caller));
            for (shared, entity) in shared.iter().zip(&mut locked) {
                self.append_changes(shared, entity);
                self.recorded_messages.keep(entity, &caller.events, self);
                self.followed_messages
                    .note(entity, &caller.events, &self.clock);
            }
            self.timeline().absorb(&mut caller.events);
            result
        }));
        let result = done.unwrap_or_else(|payload| {
            caller.forget_operation();
            // Which of them were changed half-way is not known.
            let broken = locked
                .iter_mut()
                .map(|entity| self.mark_broken(entity, &*payload));
            let broken: Vec<Broken> = broken.collect();
            locked.clear();
            broken.iter().for_each(|broken| self.report_broken(broken));
            match broken.into_iter().next() {
                Some(broken) => resume_unwind(Box::new(broken)),
                None => resume_unwind(payload),
            }
        });
        let deadlines = locked.iter_mut().filter_map(|entity| self.index(entity));
        let deadline = deadlines.min();
        drop(locked);
        if let Some(deadline) = deadline {
            self.alarm.arm(deadline);
        }
        self.carry_out(caller);
        self.run_follow_ups(caller);
        result
    }

    /// Notifies receivers, and leaves the other effects until no entity is locked.
    fn carry_out(&self, caller: &mut Caller) {
        let Caller {
            connection,
            effects,
            woken,
            lost,
            woke_others,
            follow_ups,
            ..
        } = caller;
        let is_own = |receiver| ConnectionId::of(receiver) == *connection;
        follow_ups.take(effects, |notice| match notice {
            Notice::Wake(receiver) if is_own(receiver) => woken.push(receiver),
            Notice::Wake(receiver) => {
                self.router.wake(receiver);
                *woke_others = true;
            }
            Notice::SessionLost(receiver) if is_own(receiver) => lost.push(receiver),
            Notice::SessionLost(receiver) => self.router.lose_session(receiver),
        });
    }

    /// Carries out the consequences elsewhere, now that no entity is locked. The caller's task forwards a limited number of
    /// messages, the timers task the others.
    fn run_follow_ups(&self, caller: &mut Caller) {
        if caller.follow_ups.is_empty() {
            return;
        }
        let namespace = self;
        let following = AssertUnwindSafe(|| {
            follow_up(&mut EntityAccess { namespace, caller }, FORWARDED_AT_ONCE)
        });
        match catch_unwind(following) {
            Ok(true) => self.entities_changed(),
            Ok(false) => {}
            Err(payload) => self.mark_source_broken(caller, &*payload),
        }
        self.queue_for_timers(caller.follow_ups.take_sources());
    }

    fn queue_for_timers(&self, sources: VecDeque<(EntityPath, SubQueue)>) {
        if sources.is_empty() {
            return;
        }
        let mut left = self.forwarding.lock();
        for source in sources {
            if left.back() != Some(&source) {
                left.push_back(source);
            }
        }
        self.alarm.notify();
    }

    /// Continues what callers have left; returns false if they have left nothing.
    pub(crate) fn forward_pending(&self) -> bool {
        let left = std::mem::take(&mut *self.forwarding.lock());
        if left.is_empty() {
            return false;
        }
        let mut broker = self.deadline_caller();
        let _unit = self.begin_unit();
        broker.follow_ups.add_sources(left);
        self.run_follow_ups(&mut broker);
        self.turns.notify_waiters();
        true
    }

    /// Breaks the source of a panic while no entity was locked, in what it forwards: the state of its transfer is not known.
    fn mark_source_broken(&self, caller: &mut Caller, payload: &(dyn Any + Send)) {
        caller.effects.drain(..);
        let current = caller.follow_ups.take_last_source();
        if let Some(entity) = current.and_then(|path| self.entity(&path)) {
            let broken = self.mark_broken(&mut entity.lock(), payload);
            self.report_broken(&broken);
        }
    }

    /// Operates on several entities, one after another, and carries out the consequences.
    pub(super) fn with_entities<T>(&self, work: impl FnOnce(&mut EntityAccess<'_>) -> T) -> T {
        let caller = &mut *self.deadline_caller();
        let _unit = self.begin_unit();
        let namespace = self;
        let result = work(&mut EntityAccess { namespace, caller });
        self.run_follow_ups(caller);
        result
    }
}

impl Entities for EntityAccess<'_> {
    type Cell = SharedEntity;

    fn namespace(&mut self) -> impl DerefMut<Target = servicebus_broker::Namespace<SharedEntity>> {
        self.namespace.index_of_entities()
    }

    fn operate<T>(
        &mut self,
        entity: &Arc<SharedEntity>,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> Option<T> {
        self.namespace.attempt(entity, self.caller, work).ok()
    }

    fn ahead(&self) -> i64 {
        self.namespace.clock.ahead()
    }

    fn follow_ups(&mut self) -> &mut FollowUps {
        &mut self.caller.follow_ups
    }
}

#[cfg(test)]
mod tests;
