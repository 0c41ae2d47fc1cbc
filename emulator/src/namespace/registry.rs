//! The entities of a namespace by path: made, changed and removed while it is served.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use servicebus_broker::filter::Rule;
use servicebus_broker::{
    Entity, EntityDescription, EntityId, EntityKind, EntityPath, SendError, Timestamp,
};

use super::Namespace;
use super::metadata::EntityMetadata;
use super::sends::Sends;

/// Most queues and topics of a namespace (semantics §1).
const MAX_ENTITIES: usize = 10_000;

/// Names of deleted entities that are remembered, for timelines.
const NAMES: usize = 65_536;

/// An entity behind its lock.
#[derive(Debug)]
pub(crate) struct SharedEntity {
    pub(crate) id: EntityId,
    pub(crate) path: EntityPath,
    pub(crate) kind: EntityKind,
    entity: Mutex<Entity>,
    metadata: Mutex<EntityMetadata>,
    deleted: AtomicBool,
    /// The instant at which [`super::watched`] has it, in milliseconds since the Unix epoch; `i64::MAX` where it has not.
    pub(super) watched_deadline: AtomicI64,
    /// Whether [`super::watched`] has it among those that are not at rest.
    pub(super) watched_restless: AtomicBool,
    /// Sends that wait for their outcome.
    pub(crate) sends: Sends,
}

/// Which entities there are.
#[derive(Debug, Default)]
pub(super) struct Registry {
    live: RwLock<Live>,
    names: Mutex<BTreeMap<EntityId, EntityPath>>,
}

#[derive(Debug, Default)]
struct Live {
    by_path: BTreeMap<EntityPath, Arc<SharedEntity>>,
    /// How many of them are no subscriptions.
    queues_and_topics: usize,
}

impl SharedEntity {
    pub(super) fn lock(&self) -> MutexGuard<'_, Entity> {
        #[cfg(test)]
        super::watched::tests::VISITS.set(super::watched::tests::VISITS.get() + 1);
        lock_order::assert_no_metadata_locked();
        self.entity.lock()
    }

    /// Does something with what is kept about it beside its messages. The lock of the metadata comes after that of any
    /// entity: `with` must lock none.
    pub(crate) fn metadata<T>(&self, with: impl FnOnce(&mut EntityMetadata) -> T) -> T {
        let mut metadata = self.metadata.lock();
        let _order = lock_order::metadata_locked();
        with(&mut metadata)
    }

    /// Whether it is no longer there: whoever still knows it must let go of it.
    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// Why nothing can be done with it any more, if that is so.
    pub(crate) fn broken(&self) -> Option<SendError> {
        self.lock().check_whole().err()
    }
}

impl Registry {
    pub(super) fn find(&self, path: &EntityPath) -> Option<Arc<SharedEntity>> {
        self.live().by_path.get(path).cloned()
    }

    /// All of them, in the order of their paths.
    pub(super) fn all(&self) -> Vec<Arc<SharedEntity>> {
        self.live().by_path.values().cloned().collect()
    }

    /// All that are there and all deleted ones whose names are remembered.
    pub(super) fn known(&self) -> Vec<EntityId> {
        self.names().keys().copied().collect()
    }

    /// What an entity is or was called.
    pub(super) fn name(&self, id: EntityId) -> Option<EntityPath> {
        self.names().get(&id).cloned()
    }

    /// Adds an entity as `make` makes it; the one that is there already if there is one.
    pub(super) fn insert(
        &self,
        path: &EntityPath,
        now: Timestamp,
        make: impl FnOnce(EntityId) -> Entity,
    ) -> Result<Arc<SharedEntity>, Arc<SharedEntity>> {
        let mut live = self.live_mut();
        if let Some(taken) = live.by_path.get(path) {
            return Err(Arc::clone(taken));
        }
        let id = self.next_name(path, &live.by_path);
        let entity = make(id);
        let entity = Arc::new(SharedEntity {
            id,
            path: path.clone(),
            kind: entity.kind(),
            metadata: Mutex::new(EntityMetadata::new(now)),
            entity: Mutex::new(entity),
            deleted: AtomicBool::new(false),
            watched_deadline: AtomicI64::new(i64::MAX),
            watched_restless: AtomicBool::new(false),
            sends: Sends::default(),
        });
        live.queues_and_topics += usize::from(entity.kind != EntityKind::Subscription);
        live.by_path.insert(path.clone(), Arc::clone(&entity));
        Ok(entity)
    }

    /// Takes an entity away, unless it is another one of the same name that is there by now.
    pub(super) fn remove(
        &self,
        path: &EntityPath,
        id: Option<EntityId>,
    ) -> Option<Arc<SharedEntity>> {
        let mut live = self.live_mut();
        live.by_path
            .get(path)
            .filter(|there| id.is_none_or(|id| there.id == id))?;
        let entity = live.by_path.remove(path)?;
        live.queues_and_topics -= usize::from(entity.kind != EntityKind::Subscription);
        entity.deleted.store(true, Ordering::Release);
        Some(entity)
    }

    /// Takes all entities away.
    pub(super) fn clear(&self) {
        let mut live = self.live_mut();
        for entity in live.by_path.values() {
            entity.deleted.store(true, Ordering::Release);
        }
        *live = Live::default();
    }

    /// The number of a new entity. Where too many names are remembered, the oldest of those that are gone is not.
    fn next_name(
        &self,
        path: &EntityPath,
        live: &BTreeMap<EntityPath, Arc<SharedEntity>>,
    ) -> EntityId {
        let mut names = self.names();
        let id = EntityId(names.last_key_value().map_or(1, |(last, _)| last.0 + 1));
        if names.len() >= NAMES {
            let is_gone = |&(id, path): &(&EntityId, &EntityPath)| {
                live.get(path).is_none_or(|live| live.id != *id)
            };
            if let Some(oldest) = names.iter().find(is_gone).map(|(&id, _)| id) {
                names.remove(&oldest);
            }
        }
        names.insert(id, path.clone());
        id
    }

    fn live(&self) -> RwLockReadGuard<'_, Live> {
        self.live.read()
    }

    fn live_mut(&self) -> RwLockWriteGuard<'_, Live> {
        self.live.write()
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<EntityId, EntityPath>> {
        self.names.lock()
    }
}

impl Namespace {
    /// Whoever reads settings to change them holds this meanwhile.
    pub(crate) fn administer(&self) -> MutexGuard<'_, ()> {
        self.administering.lock()
    }

    /// Adds a queue.
    pub(crate) fn create(
        &self,
        path: &EntityPath,
        description: EntityDescription,
    ) -> Result<Arc<SharedEntity>, Arc<SharedEntity>> {
        let (settings, now) = (&self.config.settings, self.clock.now());
        let make = |id| Entity::new(id, path.clone(), description, settings, now);
        let created = self.registry.insert(path, now, make)?;
        self.watch(&created);
        Ok(created)
    }

    /// Adds a topic without subscriptions.
    pub(crate) fn create_topic(
        &self,
        path: &EntityPath,
        description: &EntityDescription,
    ) -> Result<Arc<SharedEntity>, Arc<SharedEntity>> {
        let (settings, now) = (&self.config.settings, self.clock.now());
        let make = |id| Entity::topic(id, path.clone(), description, settings, now);
        let created = self.registry.insert(path, now, make)?;
        self.watch(&created);
        Ok(created)
    }

    /// Adds a subscription to a topic, which has it published to from now on by these rules.
    pub(crate) fn create_subscription(
        &self,
        topic: &SharedEntity,
        path: &EntityPath,
        description: &EntityDescription,
        rules: Vec<Rule>,
    ) -> Result<Arc<SharedEntity>, Arc<SharedEntity>> {
        let (settings, now) = (&self.config.settings, self.clock.now());
        let make = |id| Entity::subscription(id, path.clone(), description, settings, now);
        let created = self.registry.insert(path, now, make)?;
        if let Some(held) = self.read(topic, |entity| entity.held()) {
            self.operate_as_broker(&created, |entity, _| entity.join(held));
        }
        self.operate_as_broker(topic, |entity, cx| entity.subscribe(cx, path, rules));
        self.watch(&created);
        Ok(created)
    }

    /// Lets the deadlines of a new entity count.
    fn watch(&self, created: &SharedEntity) {
        let deadline = self.watched.update(created, &created.lock());
        if let Some(deadline) = deadline {
            self.alarm.arm(deadline);
        }
    }

    /// How many queues and topics there may be, if there are as many.
    pub(crate) fn limit_reached(&self) -> Option<usize> {
        (self.registry.live().queues_and_topics >= MAX_ENTITIES).then_some(MAX_ENTITIES)
    }

    /// Changes the settings of an entity; its links follow in their next turn. False when it has gone.
    pub(crate) fn update(&self, entity: &SharedEntity, description: EntityDescription) -> bool {
        let changed = self.operate_as_broker(entity, |locked, cx| {
            // Under its lock: one that is deleted must not come to life again.
            if entity.is_deleted() {
                return None;
            }
            let before = locked.description().clone();
            let used = locked.last_used(cx.now);
            locked.update(cx, description);
            entity.metadata(|metadata| metadata.changed(used, cx.now));
            let only_status = EntityDescription {
                status: locked.description().status,
                ..before
            };
            Some(*locked.description() != only_status)
        });
        if changed == Some(true) {
            self.lose_locks_below(entity);
        }
        self.entities_changed();
        // It may have been idle, and gone by this very change.
        changed.is_some() && !entity.is_deleted()
    }

    /// Ends every lock of an entity, and of the subscriptions of a topic.
    pub(crate) fn lose_locks(&self, entity: &SharedEntity) {
        self.operate_as_broker(entity, Entity::lose_locks);
        self.lose_locks_below(entity);
    }

    /// An update of a topic drops the locks of all its subscriptions (decision D17), unless nothing but the status
    /// changes, as everywhere (decision D27).
    fn lose_locks_below(&self, topic: &SharedEntity) {
        for subscription in self.subscriptions(topic) {
            if let Some(subscription) = self.entity(&subscription) {
                self.operate_as_broker(&subscription, Entity::lose_locks);
            }
        }
    }

    /// Removes an entity with everything in it; its links are detached in their next turn.
    pub(crate) fn delete(&self, path: &EntityPath) -> Option<Arc<SharedEntity>> {
        let entity = self.entity(path)?;
        self.remove(&entity).then(|| {
            self.entities_changed();
            entity
        })
    }

    /// The subscriptions of a topic; none of anything else.
    pub(crate) fn subscriptions(&self, topic: &SharedEntity) -> Vec<EntityPath> {
        self.read(topic, Entity::subscriptions)
    }

    /// Tells links, and whoever waits for rest: locks may have ended whose holders are long gone.
    pub(super) fn entities_changed(&self) {
        self.router.entities_changed();
        self.turns.notify_waiters();
    }
}

/// Fails a test in which a thread that has locked metadata locks an entity: another one that does it the other way round
/// would wait for it, and it for that one, for ever.
#[cfg(any(test, feature = "watchdog"))]
mod lock_order {
    use std::cell::Cell;

    thread_local! {
        static METADATA: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) struct MetadataLocked;

    impl Drop for MetadataLocked {
        fn drop(&mut self) {
            METADATA.set(METADATA.get() - 1);
        }
    }

    pub(super) fn metadata_locked() -> MetadataLocked {
        METADATA.set(METADATA.get() + 1);
        MetadataLocked
    }

    pub(super) fn assert_no_metadata_locked() {
        assert_eq!(METADATA.get(), 0, "an entity is locked after metadata");
    }
}

#[cfg(not(any(test, feature = "watchdog")))]
mod lock_order {
    pub(super) struct MetadataLocked;

    pub(super) fn metadata_locked() -> MetadataLocked {
        MetadataLocked
    }

    pub(super) fn assert_no_metadata_locked() {}
}

#[cfg(test)]
mod tests {
    use super::SharedEntity;

    /// Allocators give memory out in steps, here of 256 bytes; with the next one a queue takes more than 2 KB (series F).
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn an_entity_stays_in_its_size() {
        let counts = 2 * size_of::<usize>();
        let size = size_of::<SharedEntity>() + counts;
        assert!(size <= 1792, "{size} bytes");
    }
}
