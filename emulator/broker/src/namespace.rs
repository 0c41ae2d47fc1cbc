//! Which entities a namespace has, and which of them time or a receiver has something to do with.
//!
//! How an entity is held is left open ([`EntityCell`]): the shell has a lock for each, so that clients of different entities do
//! not wait for each other; a test or a benchmark has all of them in one hand. What is here is only paths, names and the
//! indexes, behind one lock that is taken after that of any entity.
//!
//! The indexes may be late, so that most operations change nothing in them: a deadline may have moved on by now, and what
//! was busy may be idle. A reader corrects what is late ([`Entities`]).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::DerefMut;
use std::sync::Arc;

use crate::entity::Indexed;
use crate::{Context, Entity, EntityId, EntityPath, FollowUps, Timestamp};

/// Names of deleted entities that are remembered, for timelines.
const NAMES: usize = 65_536;

/// How an entity is held.
pub trait EntityCell {
    /// Its number.
    fn id(&self) -> EntityId;

    /// Locks the entity. The [`Namespace`] must not be locked meanwhile.
    fn lock(&self) -> impl DerefMut<Target = Entity>;

    /// The entity is no longer in its namespace.
    fn on_removed(&self) {}
}

/// All entities in one hand.
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
    /// How many of them are no subscriptions.
    queues_and_topics: usize,
    names: BTreeMap<EntityId, EntityPath>,
    /// The earliest instant at which time brings something about in an entity, or one before it.
    deadlines: BTreeSet<(Timestamp, Name)>,
    busy: BTreeSet<Name>,
}

/// Another entity may have the path of one that was deleted.
type Name = (EntityPath, EntityId);

impl<E> Default for Namespace<E> {
    fn default() -> Self {
        Self {
            by_path: BTreeMap::new(),
            queues_and_topics: 0,
            names: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            busy: BTreeSet::new(),
        }
    }
}

impl<E: EntityCell> Namespace<E> {
    /// The entity of this path.
    pub fn find(&self, path: &EntityPath) -> Option<&Arc<E>> {
        self.by_path.get(path).map(|(_, entity)| entity)
    }

    /// All entities, in the order of their paths.
    pub fn all(&self) -> impl Iterator<Item = &Arc<E>> {
        self.by_path.values().map(|(_, entity)| entity)
    }

    /// How many queues and topics there are.
    pub fn queues_and_topics(&self) -> usize {
        self.queues_and_topics
    }

    /// The entities that are there, and those deleted ones that are remembered.
    pub fn known(&self) -> impl Iterator<Item = EntityId> {
        self.names.keys().copied()
    }

    /// What an entity is or was called.
    pub fn name(&self, id: EntityId) -> Option<&EntityPath> {
        self.names.get(&id)
    }

    /// Adds an entity as `make` makes it; the one that is there already if there is one.
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
        self.forget_a_name();
        let id = made.id();
        self.names.insert(id, path.clone());
        self.by_path.insert(path.clone(), (id, Arc::clone(&made)));
        self.queues_and_topics += usize::from(path.topic().is_none());
        Ok(made)
    }

    /// Takes an entity away, unless it is another one of the same name that is there by now.
    pub fn remove(&mut self, path: &EntityPath, id: Option<EntityId>) -> Option<Arc<E>> {
        let (there, _) = self.by_path.get(path)?;
        if id.is_some_and(|id| id != *there) {
            return None;
        }
        let (_, removed) = self.by_path.remove(path)?;
        self.queues_and_topics -= usize::from(path.topic().is_none());
        removed.on_removed();
        Some(removed)
    }

    /// Takes all entities away.
    pub fn clear(&mut self) {
        self.all().for_each(|entity| entity.on_removed());
        *self = Self {
            names: mem::take(&mut self.names),
            ..Self::default()
        };
    }

    /// Brings the indexes up to date with an entity, which is locked; returns its deadline.
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

    /// Where too many names are remembered, the oldest of those that are gone is not.
    fn forget_a_name(&mut self) {
        if self.names.len() >= NAMES {
            let names = self.names.iter();
            let mut gone = names
                .filter(|&(&id, path)| self.find_named(&(path.clone(), id)).is_none())
                .map(|(&id, _)| id);
            if let Some(oldest) = gone.next() {
                drop(gone);
                self.names.remove(&oldest);
            }
        }
    }
}

/// Who does something to the entities of a namespace, one at a time, and looks for them while none is locked.
pub trait Entities {
    /// How they are held.
    type Cell: EntityCell;

    /// Locks the namespace.
    fn namespace(&mut self) -> impl DerefMut<Target = Namespace<Self::Cell>>;

    /// Does something to an entity, brings the indexes up to date and lets [`FollowUps::take`] have the effects; none when
    /// it breaks by that.
    fn operate<T>(
        &mut self,
        entity: &Arc<Self::Cell>,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> Option<T>;

    /// What operations have left to do.
    fn follow_ups(&mut self) -> &mut FollowUps;

    /// Does something to the entity of this path; none when there is no such entity.
    fn with_entity<T>(
        &mut self,
        path: &EntityPath,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let entity = self.namespace().find(path).cloned()?;
        // Another task may have deleted it by now.
        let done = self.operate(&entity, |entity, cx| {
            (!entity.is_deleted()).then(|| work(entity, cx))
        });
        done.flatten()
    }

    /// When time next brings something about in any entity.
    fn first_deadline(&mut self) -> Option<Timestamp> {
        loop {
            let first = self.namespace().deadlines.first().cloned();
            let (at, name) = first?;
            if confirm(self, at, &name).is_some() {
                return Some(at);
            }
        }
    }

    /// At most `max` entities in which something is due at `now`, the earliest first.
    fn due(&mut self, now: Timestamp, max: usize) -> Vec<Arc<Self::Cell>> {
        let namespace = self.namespace();
        let due = namespace.deadlines.iter().take_while(|(at, _)| *at <= now);
        let due: Vec<_> = due.take(max).cloned().collect();
        drop(namespace);
        let due = due.iter();
        due.filter_map(|(at, name)| confirm(self, *at, name))
            .collect()
    }

    /// Entities that have deadlines, in the order of their paths.
    fn with_deadlines(&mut self) -> Vec<Arc<Self::Cell>> {
        let namespace = self.namespace();
        let names = namespace.deadlines.iter().map(|(_, name)| name);
        let names: BTreeSet<_> = names.collect();
        let entities = names.into_iter();
        let entities = entities.filter_map(|name| namespace.find_named(name).cloned());
        entities.collect()
    }

    /// Entities in which something reserved waits to be acquired, or something is on its way to another entity, in the
    /// order of their paths.
    fn busy(&mut self) -> Vec<Arc<Self::Cell>> {
        let names: Vec<_> = self.namespace().busy.iter().cloned().collect();
        let entities = names.iter().filter_map(|name| {
            let entity = indexed(self, name)?;
            let is_busy = entity.lock().is_busy();
            is_busy.then_some(entity)
        });
        entities.collect()
    }
}

/// The entity of this name, if something happens in it at `at`.
fn confirm<A: Entities + ?Sized>(
    access: &mut A,
    at: Timestamp,
    name: &Name,
) -> Option<Arc<A::Cell>> {
    let Some(entity) = indexed(access, name) else {
        access.namespace().deadlines.remove(&(at, name.clone()));
        return None;
    };
    let is_right = entity.lock().next_deadline() == Some(at);
    is_right.then_some(entity)
}

/// The entity of this name, with the indexes brought up to date.
fn indexed<A: Entities + ?Sized>(access: &mut A, name: &Name) -> Option<Arc<A::Cell>> {
    let found = access.namespace().find_named(name).cloned();
    let Some(entity) = found else {
        access.namespace().busy.remove(name);
        return None;
    };
    let mut locked = entity.lock();
    access.namespace().index(&mut locked);
    drop(locked);
    Some(entity)
}
