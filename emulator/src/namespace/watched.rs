//! Which entities time has something to do with, and which are not at rest, so that nothing walks over all the others.
//!
//! An entity's entry changes only under the entity's lock, and lies: its deadline may be too early by now, and what was
//! not at rest may be. Each is corrected when it is read, so that most operations change nothing here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use servicebus_broker::{Entity, EntityId, EntityPath, Timestamp};

use super::registry::{Registry, SharedEntity};

/// The entities of a namespace that have deadlines or are not at rest.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// By the earliest instant at which time brings something about in them, or one before it.
    deadlines: Mutex<BTreeSet<(Timestamp, Name)>>,
    busy: Mutex<BTreeSet<Name>>,
}

/// Another entity may have the path of one that was deleted.
type Name = (EntityPath, EntityId);

impl Watched {
    /// After an operation on an entity, which is locked: returns its deadline if that is earlier than what is entered.
    pub(super) fn update(&self, entity: &SharedEntity, state: &Entity) -> Option<Timestamp> {
        let busy = &entity.watched_restless;
        if !busy.load(Ordering::Relaxed) && !is_at_rest(state) {
            busy.store(true, Ordering::Relaxed);
            self.busy.lock().insert(name(entity));
        }
        let deadline = state.next_deadline()?;
        let before = entered(entity);
        if deadline >= before {
            return None;
        }
        self.move_deadline(entity, before, Some(deadline));
        Some(deadline)
    }

    /// An entity is deleted.
    pub(super) fn forget(&self, entity: &SharedEntity) {
        let _locked = entity.lock();
        self.move_deadline(entity, entered(entity), None);
        self.busy.lock().remove(&name(entity));
    }

    /// When time next brings something about in any entity.
    pub(super) fn first(&self, registry: &Registry) -> Option<Timestamp> {
        loop {
            let (at, name) = self.deadlines.lock().first().cloned()?;
            if self.confirm(registry, at, &name).is_some() {
                return Some(at);
            }
        }
    }

    /// At most `max` entities in which something is due at `now`, the earliest first.
    pub(super) fn due(
        &self,
        registry: &Registry,
        now: Timestamp,
        max: usize,
    ) -> Vec<Arc<SharedEntity>> {
        let deadlines = self.deadlines.lock();
        let due = deadlines.iter().take_while(|(at, _)| *at <= now);
        let due: Vec<_> = due.take(max).cloned().collect();
        drop(deadlines);
        let entities = due.iter();
        let entities = entities.filter_map(|(at, name)| self.confirm(registry, *at, name));
        entities.collect()
    }

    /// Entities that have deadlines, in the order of their paths.
    pub(super) fn with_deadlines(&self, registry: &Registry) -> Vec<Arc<SharedEntity>> {
        let deadlines = self.deadlines.lock();
        let names: BTreeSet<_> = deadlines.iter().map(|(_, name)| name.clone()).collect();
        drop(deadlines);
        let entities = names.iter().filter_map(|name| find(registry, name));
        entities.collect()
    }

    /// Entities that are not at rest, in the order of their paths.
    pub(super) fn busy(&self, registry: &Registry) -> Vec<Arc<SharedEntity>> {
        let names: Vec<_> = self.busy.lock().iter().cloned().collect();
        let entities = names.iter().filter_map(|name| {
            let Some(entity) = find(registry, name) else {
                self.busy.lock().remove(name);
                return None;
            };
            let locked = entity.lock();
            let rests = is_at_rest(&locked);
            if rests {
                entity.watched_restless.store(false, Ordering::Relaxed);
                self.busy.lock().remove(name);
            }
            drop(locked);
            (!rests).then_some(entity)
        });
        entities.collect()
    }

    /// The entity of this name, if something happens in it at `at`; otherwise its entry is corrected.
    fn confirm(
        &self,
        registry: &Registry,
        at: Timestamp,
        name: &Name,
    ) -> Option<Arc<SharedEntity>> {
        let Some(entity) = find(registry, name) else {
            self.deadlines.lock().remove(&(at, name.clone()));
            return None;
        };
        let locked = entity.lock();
        let before = entered(&entity);
        let deadline = locked.next_deadline();
        if before == at && deadline == Some(at) {
            drop(locked);
            return Some(entity);
        }
        self.move_deadline(&entity, before, deadline);
        None
    }

    fn move_deadline(&self, entity: &SharedEntity, before: Timestamp, after: Option<Timestamp>) {
        let mut deadlines = self.deadlines.lock();
        deadlines.remove(&(before, name(entity)));
        let at = after.map_or(i64::MAX, Timestamp::as_millis);
        entity.watched_deadline.store(at, Ordering::Relaxed);
        if let Some(after) = after {
            deadlines.insert((after, name(entity)));
        }
    }
}

/// What is entered as the deadline of an entity.
fn entered(entity: &SharedEntity) -> Timestamp {
    Timestamp::from_millis(entity.watched_deadline.load(Ordering::Relaxed))
}

fn name(entity: &SharedEntity) -> Name {
    (entity.path.clone(), entity.id)
}

fn find(registry: &Registry, (path, id): &Name) -> Option<Arc<SharedEntity>> {
    registry.find(path).filter(|entity| entity.id == *id)
}

fn is_at_rest(entity: &Entity) -> bool {
    !entity.has_reserved() && !entity.is_forwarding()
}

#[cfg(test)]
pub(super) mod tests;
