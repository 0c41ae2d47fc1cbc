//! How operations access the entities of a namespace, one at a time, and what they leave to do afterwards.

use std::collections::{BTreeSet, VecDeque};
use std::ops::DerefMut;
use std::sync::Arc;

use super::{EntityCell, Name, Namespace};
use crate::context::{Context, Effect, Effects};
use crate::entity::Entity;
use crate::ids::{EntityId, EntityPath, ReceiverId, SubQueue};
use crate::time::Timestamp;

/// Access to the entities of a namespace, one at a time; looks entities up while none is locked.
pub trait Entities {
    /// How entities are held.
    type Cell: EntityCell;

    /// Locks the namespace.
    fn namespace(&mut self) -> impl DerefMut<Target = Namespace<Self::Cell>>;

    /// Runs an operation on an entity, updates the indexes and passes the effects to [`FollowUps::take`]; returns `None` if
    /// the entity breaks.
    fn operate<T>(
        &mut self,
        entity: &Arc<Self::Cell>,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> Option<T>;

    /// Returns how many milliseconds the namespace's time is ahead of that of its clients, whose time rules use (decision
    /// D20).
    fn ahead(&self) -> i64 {
        0
    }

    /// Returns the follow-ups of operations.
    fn follow_ups(&mut self) -> &mut FollowUps;

    /// Runs an operation on the entity of this path; returns `None` if there is no such entity.
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

    /// Returns the next deadline of any entity.
    fn first_deadline(&mut self) -> Option<Timestamp> {
        loop {
            let first = self.namespace().deadlines.first().cloned();
            let (at, name) = first?;
            if confirm(self, at, &name).is_some() {
                return Some(at);
            }
        }
    }

    /// Returns at most `max` entities with deadlines that are due at `now`, the earliest first.
    fn due(&mut self, now: Timestamp, max: usize) -> Vec<Arc<Self::Cell>> {
        let namespace = self.namespace();
        let due = namespace.deadlines.iter().take_while(|(at, _)| *at <= now);
        let due: Vec<_> = due.take(max).cloned().collect();
        drop(namespace);
        let due = due.iter();
        due.filter_map(|(at, name)| confirm(self, *at, name))
            .collect()
    }

    /// Returns at most `max` entities with deadlines, the earliest first.
    fn soonest(&mut self, max: usize) -> Vec<Arc<Self::Cell>> {
        // The first pass corrects deadlines that are too early in the indexes.
        for _ in 0..2 {
            let names = self.names_by_deadline(max);
            names.iter().for_each(|name| drop(indexed(self, name)));
        }
        let names = self.names_by_deadline(max);
        let entities = names.iter();
        entities.filter_map(|name| indexed(self, name)).collect()
    }

    /// Returns the names of at most `max` entities with deadlines, the earliest first.
    fn names_by_deadline(&mut self, max: usize) -> Vec<Name> {
        let namespace = self.namespace();
        let names = namespace.deadlines.iter().map(|(_, name)| name.clone());
        names.take(max).collect()
    }

    /// Returns the entities with deadlines in the order of their paths.
    fn with_deadlines(&mut self) -> Vec<Arc<Self::Cell>> {
        let namespace = self.namespace();
        let names = namespace.deadlines.iter().map(|(_, name)| name);
        let names: BTreeSet<_> = names.collect();
        let entities = names.into_iter();
        let entities = entities.filter_map(|name| namespace.find_named(name).cloned());
        entities.collect()
    }

    /// Returns the entities with untaken reservations or messages to forward, in the order of their paths.
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

/// Returns the entity of this name if its deadline is `at`.
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

/// Returns the entity of this name after updating its indexes.
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

/// Work that operations have asked for and that runs while no entity is locked.
#[derive(Debug, Default)]
pub struct FollowUps {
    /// Stores with messages to forward, in the order of their effects.
    sources: VecDeque<(EntityPath, SubQueue)>,
    /// The store's entity that was taken last.
    current: Option<EntityPath>,
    idle: Vec<(EntityPath, EntityId)>,
}

/// A notification for a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// From [`Effect::Wake`].
    Wake(ReceiverId),
    /// From [`Effect::SessionLost`].
    SessionLost(ReceiverId),
}

impl FollowUps {
    /// Takes the follow-ups of effects; passes notifications of receivers to `notify`.
    pub fn take(&mut self, effects: &mut Effects, mut notify: impl FnMut(Notice)) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Wake(receiver) => notify(Notice::Wake(receiver)),
                Effect::SessionLost(receiver) => notify(Notice::SessionLost(receiver)),
                Effect::Forward(path, kind) => self.sources.push_back((path, kind)),
                Effect::Delete(path, id) => self.idle.push((path, id)),
            }
        }
    }

    /// Takes the entities that have asked to be deleted because they are idle.
    pub(crate) fn take_idle(&mut self) -> Vec<(EntityPath, EntityId)> {
        std::mem::take(&mut self.idle)
    }

    /// Returns whether nothing is left to do.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.idle.is_empty()
    }

    /// Adds stores that another caller has left.
    pub fn add_sources(&mut self, sources: impl IntoIterator<Item = (EntityPath, SubQueue)>) {
        self.sources.extend(sources);
    }

    /// Takes the stores whose messages exceeded the limit; the caller must forward them later.
    pub fn take_sources(&mut self) -> VecDeque<(EntityPath, SubQueue)> {
        std::mem::take(&mut self.sources)
    }

    /// Takes the entity that forwarded last.
    pub fn take_last_source(&mut self) -> Option<EntityPath> {
        self.current.take()
    }

    pub(crate) fn next_source(&mut self) -> Option<(EntityPath, SubQueue)> {
        let next = self.sources.pop_front();
        self.current = next.as_ref().map(|(path, _)| path.clone());
        next
    }
}
