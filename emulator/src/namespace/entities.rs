//! The entities of a namespace, each behind its lock: made, changed and removed while they are served.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use servicebus_broker::filter::Rule;
use servicebus_broker::{
    Entity, EntityCell, EntityDescription, EntityId, EntityKind, EntityPath, SendError, Timestamp,
    create, delete, lose_locks,
};

use super::Namespace;
use super::metadata::EntityMetadata;
use super::sends::Sends;
use crate::lock_order::{Ordered, Rank, take};

/// Most queues and topics of a namespace (semantics §1).
const MAX_ENTITIES: usize = 10_000;

/// An entity behind its lock.
#[derive(Debug)]
pub(crate) struct SharedEntity {
    pub(crate) id: EntityId,
    pub(crate) path: EntityPath,
    pub(crate) kind: EntityKind,
    entity: Mutex<Entity>,
    metadata: Mutex<EntityMetadata>,
    deleted: AtomicBool,
    /// Sends that wait for their outcome.
    pub(crate) sends: Sends,
}

impl SharedEntity {
    fn new(entity: Entity, now: Timestamp) -> Self {
        Self {
            id: entity.id(),
            path: entity.path().clone(),
            kind: entity.kind(),
            entity: Mutex::new(entity),
            metadata: Mutex::new(EntityMetadata::new(now)),
            deleted: AtomicBool::new(false),
            sends: Sends::default(),
        }
    }

    pub(super) fn lock(&self) -> Ordered<MutexGuard<'_, Entity>> {
        #[cfg(test)]
        tests::VISITS.set(tests::VISITS.get() + 1);
        take(Rank::Entity(self.id), || self.entity.lock())
    }

    /// Does something with what is kept about it beside its messages. The lock of the metadata comes after that of any
    /// entity: `with` must lock none.
    pub(crate) fn metadata<T>(&self, with: impl FnOnce(&mut EntityMetadata) -> T) -> T {
        with(&mut take(Rank::Inner, || self.metadata.lock()))
    }

    /// Whether it is no longer in the namespace; what still refers to it must drop that.
    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// Why nothing can be done with it any more, if that is so.
    pub(crate) fn broken(&self) -> Option<SendError> {
        self.lock().check_whole().err()
    }
}

impl EntityCell for SharedEntity {
    fn id(&self) -> EntityId {
        self.id
    }

    fn lock(&self) -> impl std::ops::DerefMut<Target = Entity> {
        self.lock()
    }

    fn on_removed(&self) {
        self.deleted.store(true, Ordering::Release);
    }
}

impl Namespace {
    /// Held by an operation that reads settings to change them.
    pub(crate) fn administer(&self) -> Ordered<MutexGuard<'_, ()>> {
        take(Rank::Administering, || self.administering.lock())
    }

    /// Adds an entity; a subscription with these rules, whose topic publishes to it from now on. The entity that is there
    /// already if there is one.
    pub(crate) fn create(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        description: EntityDescription,
        rules: Vec<Rule>,
    ) -> Result<Arc<SharedEntity>, Arc<SharedEntity>> {
        let (settings, now) = (&self.config.settings, self.clock.now());
        let make = |id| {
            let entity = Entity::new(kind, id, path.clone(), description, settings, now);
            SharedEntity::new(entity, now)
        };
        self.carry(|carrier| create(carrier, path, rules, make))
    }

    /// How many queues and topics there may be, if there are as many.
    pub(crate) fn limit_reached(&self) -> Option<usize> {
        (self.index_of_entities().queues_and_topics() >= MAX_ENTITIES).then_some(MAX_ENTITIES)
    }

    /// Changes the settings of an entity; its links follow in their next turn. False when it has gone.
    pub(crate) fn update(&self, entity: &SharedEntity, description: EntityDescription) -> bool {
        let changed = self.operate_as_broker(entity, |locked, cx| {
            // Under its lock: one that is deleted must not come to life again.
            (!locked.is_deleted()).then(|| {
                let used = locked.last_used(cx.now);
                let ends_locks = locked.update(cx, description);
                entity.metadata(|metadata| metadata.changed(used, cx.now));
                ends_locks
            })
        });
        if changed == Some(true) {
            // An update of a topic drops the locks of all its subscriptions (decision D17).
            self.lose_locks(entity);
        }
        self.entities_changed();
        // It may have been idle, and gone by this very change.
        changed.is_some() && !entity.is_deleted()
    }

    /// Ends every lock of an entity, and of the subscriptions of a topic.
    pub(crate) fn lose_locks(&self, entity: &SharedEntity) {
        self.carry(|carrier| lose_locks(carrier, &entity.path));
    }

    /// Removes an entity with everything in it, and the subscriptions of a topic; its links are detached in their next turn.
    pub(crate) fn delete(&self, path: &EntityPath) -> Option<Arc<SharedEntity>> {
        let entity = self.entity(path)?;
        let is_gone = self.carry(|carrier| delete(carrier, path, entity.id));
        is_gone.then(|| {
            self.entities_changed();
            entity
        })
    }

    /// Ends the namespace for good: nothing is in it any more, and its connections end.
    pub(crate) fn end(&self) {
        self.index_of_entities().clear();
        self.router.dismiss();
        self.turns.notify_waiters();
    }

    /// The subscriptions of a topic; none of anything else.
    pub(crate) fn subscriptions(&self, topic: &SharedEntity) -> Vec<EntityPath> {
        self.read(topic, Entity::subscriptions)
    }

    /// Tells links, and those who wait until the namespace is idle: locks may have ended whose holders are long gone.
    pub(super) fn entities_changed(&self) {
        self.router.entities_changed();
        self.turns.notify_waiters();
    }
}

#[cfg(test)]
pub(super) mod tests;
