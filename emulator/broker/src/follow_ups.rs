//! What follows elsewhere in a namespace from operations on its entities: messages are forwarded and published, entities
//! that are idle are deleted; a topic's subscriptions are created, changed and deleted with it.
//!
//! An operation has one entity in hand; what it asks for beyond that is an [`Effect`] and is done here, once, for all who
//! hold entities. No entity is held while another one is reached for.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::filter::Rule;
use crate::{
    Effect, Effects, Entities, Entity, EntityCell as _, EntityId, EntityPath, ReceiverId, SubQueue,
    forward,
};

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

/// Creates an entity as `make` makes it; the one that has the path already if there is one. A subscription counts as its
/// topic's from then on, which publishes to it by these rules; where the topic has gone meanwhile, it is deleted again.
pub fn create<N: Entities>(
    entities: &mut N,
    path: &EntityPath,
    rules: Vec<Rule>,
    make: impl FnOnce(EntityId) -> N::Cell,
) -> Result<Arc<N::Cell>, Arc<N::Cell>> {
    let created = entities.namespace().insert(path, make)?;
    let topic = path.topic().map(|(topic, _)| topic);
    let held = topic
        .as_ref()
        .and_then(|topic| entities.with_entity(topic, |topic, _| topic.held())?);
    entities.operate(&created, |entity, _| {
        held.into_iter().for_each(|held| entity.join(held));
    });
    if let Some(topic) = topic {
        let subscribed = entities.with_entity(&topic, |topic, cx| topic.subscribe(cx, path, rules));
        if subscribed.is_none() {
            remove(entities, path, Some(created.id()));
        }
    }
    Ok(created)
}

/// Ends every lock of an entity, and of the subscriptions of a topic.
pub fn lose_locks(entities: &mut impl Entities, path: &EntityPath) {
    let subscriptions = entities.with_entity(path, |entity, cx| {
        entity.lose_locks(cx);
        entity.subscriptions()
    });
    for subscription in subscriptions.unwrap_or_default() {
        entities.with_entity(&subscription, Entity::lose_locks);
    }
}

/// Deletes an entity with everything in it, and the subscriptions of a topic; false when it is not there.
pub fn delete(entities: &mut impl Entities, path: &EntityPath, id: EntityId) -> bool {
    // Before its name is free: a new subscription of this name must not lose its rules.
    if let Some((topic, _)) = path.topic() {
        entities.with_entity(&topic, |entity, cx| entity.unsubscribe(cx, path));
    }
    let Some(subscriptions) = remove(entities, path, Some(id)) else {
        return false;
    };
    for subscription in subscriptions {
        remove(entities, &subscription, None);
    }
    true
}

/// Takes an entity out of its namespace and empties it; the subscriptions that it had, none when it is not there.
fn remove(
    entities: &mut impl Entities,
    path: &EntityPath,
    id: Option<EntityId>,
) -> Option<Vec<EntityPath>> {
    let removed = entities.namespace().remove(path, id)?;
    let subscriptions = entities.operate(&removed, |entity, cx| {
        entity.delete(cx);
        entity.subscriptions()
    });
    let mut locked = removed.lock();
    entities.namespace().index(&mut locked);
    Some(subscriptions.unwrap_or_default())
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
