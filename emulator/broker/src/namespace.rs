//! What follows elsewhere in a namespace from operations on its entities: messages are forwarded and published, entities
//! that are idle are deleted.
//!
//! An operation has one entity in hand; what it asks for beyond that is an [`Effect`] and is done here, once, for all who
//! hold entities: the shell behind a lock each, tests and benchmarks in a map. So this knows entities only by a trait that
//! reaches one at a time, and never holds one while it reaches for another.

use std::collections::VecDeque;

use crate::{
    Context, Effect, Effects, Entity, EntityId, EntityPath, ReceiverId, SubQueue, forward,
};

/// How the entities of a namespace are reached: one at a time.
pub trait Entities {
    /// Does something to an entity, and lets [`FollowUps::take`] have the effects; none when there is no such entity.
    fn with_entity<T>(
        &mut self,
        path: &EntityPath,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> Option<T>;

    /// Takes an entity away and does a last thing to it; none when there is no such entity, or another one of this path.
    fn remove<T>(
        &mut self,
        path: &EntityPath,
        id: Option<EntityId>,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> Option<T>;

    /// What operations have left to do.
    fn follow_ups(&mut self) -> &mut FollowUps;
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

/// Deletes entities that have asked for it because they are idle, and says whether any is gone. A topic is not idle while
/// its subscriptions are used (semantics §5).
pub fn delete_idle(entities: &mut impl Entities) -> bool {
    let mut is_gone = false;
    for (path, id) in std::mem::take(&mut entities.follow_ups().idle) {
        let found = entities.with_entity(&path, |entity, _| {
            (entity.id() == id).then(|| entity.subscriptions())
        });
        let Some(subscriptions) = found.flatten() else {
            continue;
        };
        let mut used = None;
        for subscription in &subscriptions {
            let last = entities.with_entity(subscription, |entity, cx| entity.last_used(cx.now));
            used = used.max(last);
        }
        let stays = used.and_then(|used| {
            entities.with_entity(&path, |entity, cx| {
                entity.id() == id && entity.stay(cx, used)
            })
        });
        is_gone |= stays != Some(true) && delete(entities, &path, id);
    }
    is_gone
}

/// Deletes an entity with everything in it, and the subscriptions of a topic; false when it is not there.
pub fn delete(entities: &mut impl Entities, path: &EntityPath, id: EntityId) -> bool {
    // Before its name is free: a new subscription of this name must not lose its rules.
    if let Some((topic, _)) = path.topic() {
        entities.with_entity(&topic, |entity, cx| entity.unsubscribe(cx, path));
    }
    let subscriptions = entities.remove(path, Some(id), |entity, cx| {
        entity.delete(cx);
        entity.subscriptions()
    });
    let Some(subscriptions) = subscriptions else {
        return false;
    };
    for subscription in subscriptions {
        entities.remove(&subscription, None, Entity::delete);
    }
    true
}

/// Does what operations have left, but forwards no more than about so many messages; says whether an entity is gone.
pub fn follow_up(entities: &mut impl Entities, at_most: usize) -> bool {
    let mut is_gone = false;
    loop {
        forward(entities, at_most);
        is_gone |= delete_idle(entities);
        if at_most < usize::MAX || entities.follow_ups().is_empty() {
            return is_gone;
        }
    }
}
