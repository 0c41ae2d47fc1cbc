//! The entities of a namespace, each behind its lock: created, changed and removed at run time.
//!
//! It also counts how many sends to an entity wait for their outcome, and the maximum. A send counts from the turn in which
//! it arrived until its outcome is in the socket, as its sender sees it. Settled sends, sends over HTTP and scheduled ones
//! do not count.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use servicebus_broker::filter::Rule;
use servicebus_broker::{
    Context, Entity, EntityCell, EntityDescription, EntityId, EntityKind, EntityPath, SendError,
    create, delete, lose_locks_of_subscriptions,
};

use super::Namespace;
use super::metadata::EntityMetadata;
use crate::blocking::{self, run_blocking};
use crate::lock_order::{Ordered, Rank, take};
use crate::resource_state::{ResourceState, TiedLocks};

/// Maximum number of queues and topics of a namespace (semantics §1).
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
    /// Whether it is deleted with its link: an administrator may give another entity such a name.
    is_temporary: AtomicBool,
    /// The management locks that end with it.
    tied_locks: OnceLock<Box<TiedLocks>>,
    /// Sends that wait for their outcome.
    pub(crate) sends: Sends,
}

impl SharedEntity {
    pub(super) fn new(entity: Entity, metadata: EntityMetadata) -> Self {
        Self {
            id: entity.id(),
            path: entity.path().clone(),
            kind: entity.kind(),
            entity: Mutex::new(entity),
            metadata: Mutex::new(metadata),
            deleted: AtomicBool::new(false),
            is_temporary: AtomicBool::new(false),
            tied_locks: OnceLock::new(),
            sends: Sends::default(),
        }
    }

    pub(super) fn lock(&self) -> Ordered<MutexGuard<'_, Entity>> {
        #[cfg(test)]
        tests::VISITS.set(tests::VISITS.get() + 1);
        take(Rank::Entity(self.id), || blocking::lock(&self.entity))
    }

    /// Accesses its metadata. The lock of the metadata comes after that of any entity: `with` must lock none.
    pub(crate) fn metadata<T>(&self, with: impl FnOnce(&mut EntityMetadata) -> T) -> T {
        with(&mut take(Rank::Inner, || self.metadata.lock()))
    }

    pub(crate) fn mark_temporary(&self) {
        self.is_temporary.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.is_temporary.load(Ordering::Relaxed)
    }

    /// Returns whether it is no longer in the namespace; other references to it must be dropped.
    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// Lets the management locks at and below this `resource` end with the entity.
    pub(crate) fn tie_locks(&self, state: &Arc<ResourceState>, resource: String) {
        self.tied_locks.get_or_init(|| {
            let state = Arc::clone(state);
            Box::new(TiedLocks { state, resource })
        });
    }

    /// Returns the error of a broken entity.
    pub(crate) fn broken(&self) -> Option<SendError> {
        self.lock().check_not_broken().err()
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
        if let Some(tied) = self.tied_locks.get() {
            tied.end();
        }
    }
}

impl Namespace {
    /// Locks out concurrent changes, for an operation that reads properties to change them.
    pub(crate) fn administer(&self) -> Ordered<MutexGuard<'_, ()>> {
        take(Rank::Administering, || blocking::lock(&self.administering))
    }

    /// Adds an entity; a subscription with these rules, to which its topic publishes from now on. Returns the existing one
    /// if the path is taken.
    pub(crate) fn create(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        description: EntityDescription,
        rules: Vec<Rule>,
    ) -> Result<Arc<SharedEntity>, Arc<SharedEntity>> {
        let (settings, now) = (&self.config.settings, self.clock.now());
        let make = |id| {
            let mut entity = Entity::new(kind, id, path.clone(), description, settings, now);
            if self.store.is_some() {
                entity.record_changes();
            }
            SharedEntity::new(entity, EntityMetadata::new(now))
        };
        let created = self.with_entities(|entities| create(entities, path, rules, make))?;
        self.revise();
        Ok(created)
    }

    /// Returns the limit of queues and topics if it is reached.
    pub(crate) fn limit_reached(&self) -> Option<usize> {
        (self.index_of_entities().queues_and_topics() >= MAX_ENTITIES).then_some(MAX_ENTITIES)
    }

    /// Changes the settings of an entity; its links follow in their next turn. Returns false if it is deleted.
    pub(crate) fn update(&self, entity: &SharedEntity, description: EntityDescription) -> bool {
        let change = |locked: &mut Entity, cx: &mut Context<'_>| {
            // Under its lock: a deleted one must not be changed.
            (!locked.is_deleted()).then(|| {
                let used = locked.last_used(cx.now);
                let ends_locks = locked.update(cx, description);
                entity.metadata(|metadata| metadata.changed(used, cx.now));
                ends_locks
            })
        };
        let changed = run_blocking(|| self.operate_as_broker(entity, change));
        if changed == Some(true) {
            // An update of a topic drops the locks of all its subscriptions (decision D17). Its own have ended: what it has
            // locked again since is not lost.
            self.with_entities(|all| lose_locks_of_subscriptions(all, &entity.path));
        }
        self.entities_changed();
        // It may have been idle, and deleted by this very change.
        changed.is_some() && !entity.is_deleted()
    }

    /// Ends every lock of an entity, and of the subscriptions of a topic.
    pub(crate) fn lose_locks(&self, entity: &SharedEntity) {
        run_blocking(|| self.operate_as_broker(entity, Entity::lose_locks));
        self.with_entities(|all| lose_locks_of_subscriptions(all, &entity.path));
    }

    /// Removes an entity with its contents, and the subscriptions of a topic; its links are detached in their next turn.
    pub(crate) fn delete(&self, path: &EntityPath) -> Option<Arc<SharedEntity>> {
        let entity = self.entity(path)?;
        let is_gone =
            run_blocking(|| self.with_entities(|entities| delete(entities, path, entity.id)));
        is_gone.then(|| {
            self.entities_changed();
            entity
        })
    }

    /// Ends the namespace for good: removes its contents and dismisses its connections.
    pub(crate) fn end(&self) {
        run_blocking(|| {
            if let Some(store) = &self.store {
                // First: after a kill in between, no part of it is left.
                store.remove_namespace();
                for entity in self.entities() {
                    self.with_entities(|entities| delete(entities, &entity.path, entity.id));
                }
            }
            self.index_of_entities().clear();
        });
        self.router.close_all();
        self.faults.waits.end();
        self.turns.notify_waiters();
    }

    /// Returns the subscriptions of a topic; empty for other entities.
    pub(crate) fn subscriptions(&self, topic: &SharedEntity) -> Vec<EntityPath> {
        self.read(topic, Entity::subscriptions)
    }

    /// Notifies links, and waits for the idle namespace: locks may have ended whose holders are gone.
    pub(super) fn entities_changed(&self) {
        self.revise();
        self.router.entities_changed();
        self.turns.notify_waiters();
    }
}

/// The unsettled sends of one entity, over all connections.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    now: AtomicU32,
    most: AtomicU32,
}

impl Sends {
    /// Counts a send.
    pub(crate) fn begin(&self) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        if now > self.most.load(Ordering::Relaxed) {
            self.most.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// Ends `number` sends, which were answered or whose link is gone.
    pub(crate) fn end(&self, number: u32) {
        self.now.fetch_sub(number, Ordering::Relaxed);
    }

    /// Resets the maximum.
    pub(super) fn forget(&self) {
        self.most.store(self.now(), Ordering::Relaxed);
    }

    /// Returns how many wait now.
    pub(crate) fn now(&self) -> u32 {
        self.now.load(Ordering::Relaxed)
    }

    /// Returns the maximum that ever waited at once.
    pub(crate) fn most(&self) -> u32 {
        self.most.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
pub(super) mod tests;
