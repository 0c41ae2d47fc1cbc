//! Operations on entities: under one lock each, with what follows from them.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard, PoisonError};

use servicebus_broker::{
    CommitError, Context, Effect, Entities, EntityId, EntityPath, Mailbox, Queue, StoreKind,
    Transaction, commit, forward,
};

use super::{Caller, Entity, Namespace};
use crate::router::ConnectionId;

/// Stores with something to forward, and entities to delete: what follows when no lock is held.
#[derive(Debug, Default)]
pub(super) struct Followers {
    sources: VecDeque<(EntityPath, StoreKind, bool)>,
    idle: Vec<(EntityPath, EntityId)>,
}

/// Carries messages between the entities of a namespace.
struct Carrier<'a> {
    namespace: &'a Namespace,
    caller: &'a mut Caller,
}

impl Namespace {
    /// Does something to an entity under its lock, records the facts and carries out the effects.
    pub(crate) fn operate<T>(
        &self,
        entity: &Entity,
        caller: &mut Caller,
        work: impl FnOnce(&mut Mailbox, &mut Context<'_>) -> T,
    ) -> T {
        let result = self.perform(entity, caller, work);
        self.follow(caller);
        result
    }

    /// The same on behalf of time, the control API and other callers without a connection.
    pub(crate) fn operate_as_broker<T>(
        &self,
        entity: &Entity,
        work: impl FnOnce(&mut Mailbox, &mut Context<'_>) -> T,
    ) -> T {
        let mut broker = self.broker.lock().unwrap_or_else(PoisonError::into_inner);
        self.operate(entity, &mut broker, work)
    }

    /// Looks at an entity without doing anything.
    pub(crate) fn look<T>(&self, entity: &Entity, look: impl FnOnce(&Queue) -> T) -> T {
        look(&entity.lock())
    }

    /// One operation, without what follows from it elsewhere.
    fn perform<T>(
        &self,
        entity: &Entity,
        caller: &mut Caller,
        work: impl FnOnce(&mut Mailbox, &mut Context<'_>) -> T,
    ) -> T {
        let mut queue = entity.lock();
        let mut cx = Context {
            now: self.clock.now(),
            client: caller.client,
            ids: &mut caller.ids,
            effects: &mut caller.effects,
            facts: &mut caller.facts,
        };
        let result = work(&mut queue.mailbox, &mut cx);
        self.conclude(entity.id, queue, caller);
        result
    }

    /// Records what an operation did, and carries out its effects: the same for all of them.
    fn conclude(&self, entity: EntityId, queue: MutexGuard<'_, Queue>, caller: &mut Caller) {
        let deadline = queue.mailbox.next_deadline();
        if !caller.facts.is_empty() {
            // Under the entity's lock, so that its facts stand in the order in which they happened.
            self.letters.keep(&queue, &caller.facts);
            self.timeline().absorb(&mut caller.facts);
        }
        drop(queue);
        if let Some(deadline) = deadline {
            self.alarm.arm(deadline);
        }
        self.carry_out(caller, &|_| Some(entity));
    }

    /// Commits a transaction while all entities that take part are locked, in the order of their ids, and carries out
    /// the effects.
    pub(crate) fn commit(
        &self,
        entities: &[Arc<Entity>],
        caller: &mut Caller,
        transaction: Transaction,
    ) -> Result<(), CommitError> {
        let mut queues: Vec<_> = entities.iter().map(|entity| entity.lock()).collect();
        let mut mailboxes: Vec<_> = queues.iter_mut().map(|queue| &mut queue.mailbox).collect();
        let mut cx = Context {
            now: self.clock.now(),
            client: caller.client,
            ids: &mut caller.ids,
            effects: &mut caller.effects,
            facts: &mut caller.facts,
        };
        let result = commit(transaction, &mut mailboxes, &mut cx);
        for queue in &queues {
            self.letters.keep(queue, &caller.facts);
        }
        let deadlines = queues
            .iter()
            .filter_map(|queue| queue.mailbox.next_deadline());
        let deadline = deadlines.min();
        self.timeline().absorb(&mut caller.facts);
        drop(queues);
        if let Some(deadline) = deadline {
            self.alarm.arm(deadline);
        }
        let id_of = |path: &EntityPath| {
            let mut entities = entities.iter();
            entities
                .find(|entity| entity.path == *path)
                .map(|entity| entity.id)
        };
        self.carry_out(caller, &id_of);
        self.follow(caller);
        result
    }

    /// Does what operations on entities asked for, but for what needs other entities. Those who ask to be deleted are
    /// found by their paths.
    fn carry_out(&self, caller: &mut Caller, id_of: &dyn Fn(&EntityPath) -> Option<EntityId>) {
        for effect in caller.effects.drain(..) {
            match effect {
                Effect::Wake(consumer) if ConnectionId::of(consumer) == caller.connection => {
                    caller.woken.push(consumer);
                }
                Effect::Wake(consumer) => {
                    self.router.wake(consumer);
                    caller.told_others = true;
                }
                Effect::SessionLost(consumer)
                    if ConnectionId::of(consumer) == caller.connection =>
                {
                    caller.lost.push(consumer);
                }
                Effect::SessionLost(consumer) => self.router.lose_session(consumer),
                Effect::Forward(path, kind) => {
                    caller.followers.sources.push_back((path, kind, false));
                }
                Effect::Retry(path, kind) => {
                    caller.followers.sources.push_back((path, kind, true));
                }
                Effect::Delete(path) => {
                    let id = id_of(&path);
                    caller.followers.idle.extend(id.map(|id| (path, id)));
                }
            }
        }
    }

    /// Does what follows elsewhere, now that no entity is locked.
    fn follow(&self, caller: &mut Caller) {
        if !caller.followers.sources.is_empty() {
            let namespace = self;
            forward(&mut Carrier { namespace, caller });
        }
        for (path, id) in std::mem::take(&mut caller.followers.idle) {
            self.delete_idle(&path, id, caller);
        }
    }

    /// An entity says that it was idle. A topic is not while its subscriptions are used (semantics §5).
    fn delete_idle(&self, path: &EntityPath, id: EntityId, caller: &mut Caller) {
        let entity = self.entity(path).filter(|entity| entity.id == id);
        let Some(entity) = entity else {
            return;
        };
        let subscriptions = self.subscriptions(&entity);
        let subscriptions: Vec<_> = subscriptions
            .iter()
            .filter_map(|s| self.entity(s))
            .collect();
        let used = |entity: &Arc<Entity>| self.look(entity, |queue| queue.mailbox.last_used());
        if let Some(used) = subscriptions.iter().map(used).max()
            && self.perform(&entity, caller, |mailbox, cx| mailbox.stay(cx, used))
        {
            return;
        }
        self.leave_topic(path, caller);
        if self.registry.remove(path, Some(id)).is_some() {
            self.take_leave(&entity);
            self.perform(&entity, caller, Mailbox::delete);
            for subscription in subscriptions {
                self.registry
                    .remove(&subscription.path, Some(subscription.id));
                self.take_leave(&subscription);
                self.perform(&subscription, caller, Mailbox::delete);
            }
            self.entities_changed();
        }
    }

    /// A subscription that is gone gets nothing more.
    fn leave_topic(&self, subscription: &EntityPath, caller: &mut Caller) {
        let topic = subscription
            .topic()
            .and_then(|(topic, _)| self.entity(&topic));
        if let Some(topic) = topic {
            self.perform(&topic, caller, |mailbox, cx| {
                mailbox.unsubscribe(cx, subscription)
            });
        }
    }
}

impl Entities for Carrier<'_> {
    fn with_entity<T>(
        &mut self,
        path: &EntityPath,
        work: impl FnOnce(&mut Mailbox, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let entity = self.namespace.registry.find(path)?;
        self.namespace.perform(&entity, self.caller, |mailbox, cx| {
            (!entity.is_deleted()).then(|| work(mailbox, cx))
        })
    }

    fn next_source(&mut self) -> Option<(EntityPath, StoreKind, bool)> {
        self.caller.followers.sources.pop_front()
    }
}
