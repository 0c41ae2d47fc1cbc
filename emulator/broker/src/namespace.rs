//! The entities of a namespace by path, and indexes of those that have deadlines or work for receivers.
//!
//! An [`EntityCell`] abstracts how an entity is held: the shell has a lock for each, so that clients of different entities
//! do not wait for each other; tests and benchmarks use single-threaded cells. This structure has only paths, names and
//! indexes, behind one lock that is taken after that of any entity.
//!
//! The indexes may be stale, so that most operations need not change them: a deadline may have moved later, and a busy
//! entity may be idle. A reader corrects stale entries ([`crate::Entities`]).

pub(crate) mod entities;
pub(crate) mod follow_ups;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::ops::DerefMut;
use std::sync::Arc;

use crate::entity::{Entity, Indexed};
use crate::ids::{EntityId, EntityPath};
use crate::time::Timestamp;

/// Names of deleted entities that are remembered, for timelines.
const NAMES: usize = 65_536;

/// How an entity is held.
pub trait EntityCell {
    /// Returns the entity's number.
    fn id(&self) -> EntityId;

    /// Locks the entity. The [`Namespace`] must not be locked meanwhile.
    fn lock(&self) -> impl DerefMut<Target = Entity>;

    /// Called when the entity has been removed from its namespace.
    fn on_removed(&self) {}
}

/// Entities of a single thread.
impl EntityCell for RefCell<Entity> {
    fn id(&self) -> EntityId {
        self.borrow().id()
    }

    fn lock(&self) -> impl DerefMut<Target = Entity> {
        self.borrow_mut()
    }
}

/// The entities of a namespace by path.
#[derive(Debug)]
pub struct Namespace<E> {
    by_path: BTreeMap<EntityPath, (EntityId, Arc<E>)>,
    /// The number of entities that are not subscriptions.
    queues_and_topics: usize,
    names: BTreeMap<EntityId, EntityPath>,
    /// Deleted entities whose names are remembered, in the order of their deletion.
    gone: VecDeque<EntityId>,
    /// The next deadline of each entity, or an earlier instant.
    deadlines: BTreeSet<(Timestamp, Name)>,
    busy: BTreeSet<Name>,
}

/// A path with the entity's number, since a later entity may have the same path.
type Name = (EntityPath, EntityId);

impl<E> Default for Namespace<E> {
    fn default() -> Self {
        Self {
            by_path: BTreeMap::new(),
            queues_and_topics: 0,
            names: BTreeMap::new(),
            gone: VecDeque::new(),
            deadlines: BTreeSet::new(),
            busy: BTreeSet::new(),
        }
    }
}

impl<E: EntityCell> Namespace<E> {
    /// Returns the entity of this path.
    pub fn find(&self, path: &EntityPath) -> Option<&Arc<E>> {
        self.by_path.get(path).map(|(_, entity)| entity)
    }

    /// Returns all entities, in the order of their paths.
    pub fn all(&self) -> impl Iterator<Item = &Arc<E>> {
        self.by_path.values().map(|(_, entity)| entity)
    }

    /// Returns the number of entities.
    pub fn count(&self) -> usize {
        self.by_path.len()
    }

    /// Returns the number of queues and topics.
    pub fn queues_and_topics(&self) -> usize {
        self.queues_and_topics
    }

    /// Returns the existing entities, and the deleted ones that are remembered.
    pub fn known(&self) -> impl Iterator<Item = EntityId> {
        self.names.keys().copied()
    }

    /// Returns the current or last name of an entity.
    pub fn name(&self, id: EntityId) -> Option<&EntityPath> {
        self.names.get(&id)
    }

    /// Adds the entity that `make` creates; returns the existing one if the path is taken.
    pub fn insert(
        &mut self,
        path: &EntityPath,
        make: impl FnOnce(EntityId) -> E,
    ) -> Result<Arc<E>, Arc<E>> {
        if let Some(taken) = self.find(path) {
            return Err(Arc::clone(taken));
        }
        let last = self.names.last_key_value();
        let id = EntityId(last.map_or(1, |(last, _)| last.0 + 1));
        let made = Arc::new(make(id));
        self.forget_oldest_name();
        let id = made.id();
        self.names.insert(id, path.clone());
        self.by_path.insert(path.clone(), (id, Arc::clone(&made)));
        self.queues_and_topics += usize::from(path.topic().is_none());
        Ok(made)
    }

    /// Removes an entity, unless the path belongs to another one by now.
    pub fn remove(&mut self, path: &EntityPath, id: Option<EntityId>) -> Option<Arc<E>> {
        let (there, _) = self.by_path.get(path)?;
        if id.is_some_and(|id| id != *there) {
            return None;
        }
        let (_, removed) = self.by_path.remove(path)?;
        self.queues_and_topics -= usize::from(path.topic().is_none());
        self.gone.push_back(removed.id());
        removed.on_removed();
        Some(removed)
    }

    /// Removes all entities.
    pub fn clear(&mut self) {
        self.all().for_each(|entity| entity.on_removed());
        let gone = self.by_path.values().map(|(id, _)| *id);
        self.gone.extend(gone);
        *self = Self {
            names: mem::take(&mut self.names),
            gone: mem::take(&mut self.gone),
            ..Self::default()
        };
    }

    /// Updates the indexes for a locked entity; returns its deadline.
    pub fn index(&mut self, entity: &mut Entity) -> Option<Timestamp> {
        let name = (entity.path().clone(), entity.id());
        let after = match self.find_named(&name) {
            Some(_) => entity.to_be_indexed(),
            None => Indexed::default(),
        };
        let before = entity.set_indexed(after);
        if before.deadline != after.deadline {
            if let Some(at) = before.deadline.get() {
                self.deadlines.remove(&(at, name.clone()));
            }
            if let Some(at) = after.deadline.get() {
                self.deadlines.insert((at, name.clone()));
            }
        }
        match (before.is_busy, after.is_busy) {
            (false, true) => self.busy.insert(name),
            (true, false) => self.busy.remove(&name),
            (false, false) | (true, true) => false,
        };
        after.deadline.get()
    }

    fn find_named(&self, (path, id): &Name) -> Option<&Arc<E>> {
        let there = self.by_path.get(path).filter(|(there, _)| there == id);
        there.map(|(_, entity)| entity)
    }

    /// Forgets the name of the oldest deleted entity if too many are remembered.
    fn forget_oldest_name(&mut self) {
        if self.names.len() >= NAMES
            && let Some(first) = self.gone.pop_front()
        {
            self.names.remove(&first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EntityDescription, EntityKind, NamespaceSettings};

    fn make(namespace: &mut Namespace<RefCell<Entity>>, name: &str) -> EntityId {
        let path: EntityPath = name.parse().expect("it is legal");
        let made = namespace.insert(&path, |id| {
            let (path, now) = (path.clone(), Timestamp::default());
            let (description, settings) =
                (EntityDescription::default(), NamespaceSettings::default());
            RefCell::new(Entity::new(
                EntityKind::Queue,
                id,
                path,
                description,
                &settings,
                now,
            ))
        });
        made.expect("its name is free").id()
    }

    fn remove(namespace: &mut Namespace<RefCell<Entity>>, name: &str) {
        let path = name.parse().expect("it is legal");
        namespace.remove(&path, None).expect("it is there");
    }

    #[test]
    fn names_of_deleted_entities_are_dropped_oldest_first() {
        let mut namespace = Namespace::default();
        let [there, second, first] = ["a", "b", "c"].map(|name| make(&mut namespace, name));
        for name in ["c", "b"] {
            remove(&mut namespace, name);
        }
        for _ in 3..NAMES {
            make(&mut namespace, "d");
            remove(&mut namespace, "d");
        }
        let known = |namespace: &Namespace<RefCell<Entity>>| {
            [there, second, first].map(|id| namespace.name(id).is_some())
        };
        assert_eq!(known(&namespace), [true, true, true]);
        make(&mut namespace, "e");
        assert_eq!(known(&namespace), [true, true, false]);
        make(&mut namespace, "f");
        assert_eq!(known(&namespace), [true, false, false]);
        assert_eq!(namespace.names.len(), NAMES);
    }
}
