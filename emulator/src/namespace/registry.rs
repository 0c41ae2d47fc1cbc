//! The entities of a namespace by path: made, changed and removed while it is served.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use servicebus_broker::{
    EntityId, EntityPath, Mailbox, NamespaceSettings, Queue, QueueDescription, StoreKind, Timestamp,
};

use super::Namespace;

/// Names of deleted entities that are remembered, for timelines.
const NAMES: usize = 65_536;

/// An entity behind its lock.
#[derive(Debug)]
pub(crate) struct Entity {
    pub(crate) id: EntityId,
    pub(crate) path: EntityPath,
    queue: Mutex<Queue>,
    deleted: AtomicBool,
}

/// Which entities there are.
#[derive(Debug, Default)]
pub(super) struct Registry {
    entities: RwLock<BTreeMap<EntityPath, Arc<Entity>>>,
    names: Mutex<BTreeMap<EntityId, EntityPath>>,
}

impl Entity {
    pub(super) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is no longer there: whoever still knows it must let go of it.
    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    pub(super) fn next_deadline(&self) -> Option<Timestamp> {
        self.lock().mailbox.next_deadline()
    }
}

impl Registry {
    pub(super) fn find(&self, path: &EntityPath) -> Option<Arc<Entity>> {
        let entities = self.entities.read().unwrap_or_else(PoisonError::into_inner);
        entities.get(path).cloned()
    }

    /// All of them, in the order of their paths.
    pub(super) fn all(&self) -> Vec<Arc<Entity>> {
        let entities = self.entities.read().unwrap_or_else(PoisonError::into_inner);
        entities.values().cloned().collect()
    }

    /// All that are there and all deleted ones whose names are remembered.
    pub(super) fn known(&self) -> Vec<EntityId> {
        self.names().keys().copied().collect()
    }

    /// What an entity is or was called.
    pub(super) fn name(&self, id: EntityId) -> Option<EntityPath> {
        self.names().get(&id).cloned()
    }

    /// Adds an empty queue; the one that is there already if there is one.
    pub(super) fn insert(
        &self,
        path: &EntityPath,
        description: QueueDescription,
        settings: &NamespaceSettings,
        now: Timestamp,
    ) -> Result<Arc<Entity>, Arc<Entity>> {
        let mut entities = self
            .entities
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = entities.get(path) {
            return Err(Arc::clone(taken));
        }
        let mut names = self.names();
        let id = EntityId(names.last_key_value().map_or(1, |(last, _)| last.0 + 1));
        if names.len() >= NAMES {
            let is_gone = |&(id, path): &(&EntityId, &EntityPath)| {
                entities.get(path).is_none_or(|live| live.id != *id)
            };
            if let Some(oldest) = names.iter().find(is_gone).map(|(&id, _)| id) {
                names.remove(&oldest);
            }
        }
        names.insert(id, path.clone());
        let queue = Queue::new(id, path.clone(), description, settings, now);
        let entity = Arc::new(Entity {
            id,
            path: path.clone(),
            queue: Mutex::new(queue),
            deleted: AtomicBool::new(false),
        });
        entities.insert(path.clone(), Arc::clone(&entity));
        Ok(entity)
    }

    /// Takes an entity away, unless it is another one of the same name that is there by now.
    pub(super) fn remove(&self, path: &EntityPath, id: Option<EntityId>) -> Option<Arc<Entity>> {
        let mut entities = self
            .entities
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        entities
            .get(path)
            .filter(|there| id.is_none_or(|id| there.id == id))?;
        let entity = entities.remove(path)?;
        entity.deleted.store(true, Ordering::Release);
        Some(entity)
    }

    fn names(&self) -> MutexGuard<'_, BTreeMap<EntityId, EntityPath>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Namespace {
    /// Whoever reads settings to change them holds this meanwhile.
    pub(crate) fn administer(&self) -> MutexGuard<'_, ()> {
        self.administering
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a queue. Dead letters that waited for one of this name go on.
    pub(crate) fn create(
        &self,
        path: &EntityPath,
        description: QueueDescription,
    ) -> Result<Arc<Entity>, Arc<Entity>> {
        let (settings, now) = (&self.config.settings, self.clock.now());
        let created = self.registry.insert(path, description, settings, now)?;
        for entity in self.entities() {
            let waits = self.look(&entity, |queue| {
                let description = queue.mailbox.description();
                description.forward_dead_lettered_messages_to.as_ref() == Some(path)
            });
            if waits {
                self.operate_as_broker(&entity, |mailbox, cx| {
                    mailbox.retry_forwards(cx, StoreKind::DeadLetters);
                });
            }
        }
        if let Some(deadline) = created.next_deadline() {
            self.alarm.arm(deadline);
        }
        Ok(created)
    }

    /// Changes the settings of an entity; its links follow in their next turn. False when it has gone.
    pub(crate) fn update(&self, entity: &Entity, description: QueueDescription) -> bool {
        let changed = self.operate_as_broker(entity, |mailbox, cx| {
            // Under its lock: one that is deleted must not come to life again.
            let is_there = !entity.is_deleted();
            if is_there {
                mailbox.update(cx, description);
            }
            is_there
        });
        self.entities_changed();
        // It may have been idle, and gone by this very change.
        changed && !entity.is_deleted()
    }

    /// Removes an entity with everything in it; its links are detached in their next turn.
    pub(crate) fn delete(&self, path: &EntityPath) -> Option<Arc<Entity>> {
        let entity = self.registry.remove(path, None)?;
        self.operate_as_broker(&entity, Mailbox::delete);
        self.entities_changed();
        Some(entity)
    }

    /// Tells links, and whoever waits for rest: locks may have ended whose holders are long gone.
    pub(super) fn entities_changed(&self) {
        self.router.entities_changed(self.name());
        self.turns.notify_waiters();
    }
}
