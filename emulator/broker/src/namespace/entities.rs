//! How operations reach the entities of a namespace, one at a time, and what they leave to do when none is in hand.

use std::collections::{BTreeSet, VecDeque};
use std::ops::DerefMut;
use std::sync::Arc;

use super::{EntityCell, Name, Namespace};
use crate::context::{Context, Effect, Effects};
use crate::entity::Entity;
use crate::ids::{EntityId, EntityPath, ReceiverId, SubQueue};
use crate::time::Timestamp;

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

    /// How many milliseconds the namespace's time is ahead of that of its clients, in which rules see instants (decision D20).
    fn ahead(&self) -> i64 {
        0
    }

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

    /// At most `max` entities in which time brings something about, the earliest first.
    fn soonest(&mut self, max: usize) -> Vec<Arc<Self::Cell>> {
        // What the indexes have too early is corrected by the first look.
        for _ in 0..2 {
            let names = self.names_by_deadline(max);
            names.iter().for_each(|name| drop(indexed(self, name)));
        }
        let names = self.names_by_deadline(max);
        let entities = names.iter();
        entities.filter_map(|name| indexed(self, name)).collect()
    }

    /// The names of at most `max` entities in which time brings something about, the earliest first.
    fn names_by_deadline(&mut self, max: usize) -> Vec<Name> {
        let namespace = self.namespace();
        let names = namespace.deadlines.iter().map(|(_, name)| name.clone());
        names.take(max).collect()
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

/// What operations have asked for that is done when no entity is in hand.
#[derive(Debug, Default)]
pub struct FollowUps {
    /// Stores with something to forward, in the order in which they said so.
    sources: VecDeque<(EntityPath, SubQueue)>,
    /// The last of them that was asked for.
    current: Option<EntityPath>,
    idle: Vec<(EntityPath, EntityId)>,
}

/// What a receiver is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Of [`Effect::Wake`].
    Wake(ReceiverId),
    /// Of [`Effect::SessionLost`].
    SessionLost(ReceiverId),
}

impl FollowUps {
    /// Takes what effects ask for; what they say to receivers is for `notify`.
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

    /// Entities that have asked to be deleted because they are idle.
    pub(crate) fn take_idle(&mut self) -> Vec<(EntityPath, EntityId)> {
        std::mem::take(&mut self.idle)
    }

    /// Whether nothing is left to do.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.idle.is_empty()
    }

    /// Lets stores forward that others have left.
    pub fn add_sources(&mut self, sources: impl IntoIterator<Item = (EntityPath, SubQueue)>) {
        self.sources.extend(sources);
    }

    /// Stores that have more to forward than was to be done; they are left to the caller.
    pub fn take_sources(&mut self) -> VecDeque<(EntityPath, SubQueue)> {
        std::mem::take(&mut self.sources)
    }

    /// The entity that forwarded last.
    pub fn take_current(&mut self) -> Option<EntityPath> {
        self.current.take()
    }

    pub(crate) fn next_source(&mut self) -> Option<(EntityPath, SubQueue)> {
        let next = self.sources.pop_front();
        self.current = next.as_ref().map(|(path, _)| path.clone());
        next
    }
}
