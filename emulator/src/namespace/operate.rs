//! Operations on entities: under one lock each, with what follows from them.

use std::collections::VecDeque;
use std::sync::PoisonError;

use servicebus_broker::{
    Context, Effect, Entities, EntityId, EntityPath, Mailbox, Queue, StoreKind, forward,
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
        if !caller.followers.sources.is_empty() {
            let namespace = self;
            forward(&mut Carrier { namespace, caller });
        }
        for (path, id) in std::mem::take(&mut caller.followers.idle) {
            self.delete_idle(&path, id, caller);
        }
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
        let deadline = queue.mailbox.next_deadline();
        if !caller.facts.is_empty() {
            // Under the entity's lock, so that its facts stand in the order in which they happened.
            self.timeline().absorb(&mut caller.facts);
        }
        drop(queue);
        if let Some(deadline) = deadline {
            self.alarm.arm(deadline);
        }
        for effect in caller.effects.drain(..) {
            match effect {
                Effect::Wake(consumer) if ConnectionId::of(consumer) == caller.connection => {
                    caller.woken.push(consumer);
                }
                Effect::Wake(consumer) => {
                    self.router.wake(consumer);
                    caller.told_others = true;
                }
                Effect::Forward(path, kind) => {
                    caller.followers.sources.push_back((path, kind, false));
                }
                Effect::Retry(path, kind) => {
                    caller.followers.sources.push_back((path, kind, true));
                }
                Effect::Delete(path) => caller.followers.idle.push((path, entity.id)),
            }
        }
        result
    }

    fn delete_idle(&self, path: &EntityPath, id: EntityId, caller: &mut Caller) {
        if let Some(entity) = self.registry.remove(path, Some(id)) {
            self.perform(&entity, caller, Mailbox::delete);
            self.entities_changed();
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
