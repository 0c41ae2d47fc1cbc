//! The consequences of operations elsewhere in a namespace: messages are forwarded and published, idle entities are deleted,
//! and a topic's subscriptions are created, changed and deleted with it.
//!
//! An operation has access to one entity; its [`Effect`]s for others are carried out here, once for all implementations of
//! [`Entities`]. No entity is locked while another one is accessed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::EntityCell as _;
use super::entities::Entities;
use crate::entity::Entity;
use crate::entity::operation::dead_letter::TransferFailure;
use crate::entity::operation::forward::{Target, Transfer};
use crate::entity::operation::publish::{MessageCopy, copies_of};
use crate::entity::operation::send::SendError;
use crate::filter::Rule;
use crate::ids::{EntityId, EntityPath, SplitMix64, SubQueue};
use crate::rules::RuleSet;

/// Deletes entities that have asked for it because they are idle; returns whether any was deleted. A topic is not idle while
/// its subscriptions are used (semantics §5).
pub fn delete_idle(entities: &mut impl Entities) -> bool {
    let mut is_gone = false;
    for (path, id) in entities.follow_ups().take_idle() {
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
                entity.id() == id && entity.cancel_idle_deletion(cx, used)
            })
        });
        if stays != Some(true) {
            if let Some((topic, _)) = path.topic() {
                entities.with_entity(&topic, |topic, cx| topic.unsubscribe_idle(cx, &path));
            }
            is_gone |= delete_whole(entities, &path, id);
        }
    }
    is_gone
}

/// Adds the entity that `make` creates; returns the existing one if the path is taken. A subscription counts as its topic's
/// from then on, and the topic publishes to it by these rules; if the topic was deleted meanwhile, so is the subscription.
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

/// Ends every lock of the subscriptions of a topic.
pub fn lose_locks_of_subscriptions(entities: &mut impl Entities, path: &EntityPath) {
    let subscriptions = entities.with_entity(path, |entity, _| entity.subscriptions());
    for subscription in subscriptions.unwrap_or_default() {
        entities.with_entity(&subscription, Entity::lose_locks);
    }
}

/// Deletes an entity with its contents, and the subscriptions of a topic; returns false if it does not exist.
pub fn delete(entities: &mut impl Entities, path: &EntityPath, id: EntityId) -> bool {
    // Before its name is free: a new subscription of this name must not lose its rules.
    if let Some((topic, _)) = path.topic() {
        entities.with_entity(&topic, |entity, cx| entity.unsubscribe(cx, path));
    }
    delete_whole(entities, path, id)
}

/// Deletes an entity that its topic no longer has as a subscription.
fn delete_whole(entities: &mut impl Entities, path: &EntityPath, id: EntityId) -> bool {
    let Some(subscriptions) = remove(entities, path, Some(id)) else {
        return false;
    };
    for subscription in subscriptions {
        remove(entities, &subscription, None);
    }
    true
}

/// Removes an entity from its namespace and empties it; returns its subscriptions, or `None` if it does not exist.
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

/// Runs the follow-ups of operations, but forwards at most about `at_most` messages; returns whether an entity was deleted.
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

/// Forwards waiting messages until none is left or about `at_most` were handed over, counting each copy for a subscription.
/// A store with more to forward has announced itself again by then. A message may pass several entities.
pub fn forward(entities: &mut impl Entities, mut at_most: usize) {
    while at_most > 0
        && let Some((path, kind)) = entities.follow_ups().next_source()
    {
        while at_most > 0
            && let Some(Some(batch)) =
                entities.with_entity(&path, |entity, cx| entity.begin_transfers(cx, kind))
        {
            at_most = at_most.saturating_sub(batch.cost);
            if batch.messages.is_empty() {
                continue;
            }
            let source = (&path, batch.entity);
            match batch.target {
                Target::Entity(target) => {
                    forward_batch(entities, source, kind, &target, batch.messages);
                }
                Target::Subscriptions(rules) => publish(entities, source, &rules, batch.messages),
            }
        }
    }
}

/// Forwards a batch of a store to another entity.
fn forward_batch(
    entities: &mut impl Entities,
    (source, id): (&EntityPath, EntityId),
    kind: SubQueue,
    target: &EntityPath,
    messages: Vec<Transfer>,
) {
    let offsets: Vec<_> = messages.iter().map(|transfer| transfer.offset).collect();
    let answers = entities.with_entity(target, |entity, cx| {
        entity.accept_transfers(cx, kind, messages)
    });
    let answers = answers.unwrap_or_else(|| {
        // The target does not exist or has just broken.
        let whole = entities.with_entity(target, |entity, _| entity.check_not_broken().err());
        let missing = || SendError::NotFound(target.clone());
        let failure = whole.flatten().unwrap_or_else(missing);
        vec![Err(TransferFailure::Refused(failure)); offsets.len()]
    });
    entities.with_entity(source, |entity, cx| {
        if entity.id() == id {
            entity.complete_transfers(cx, kind, target, offsets, answers);
        }
    });
}

/// Publishes a batch of a topic to the subscriptions whose rules match.
fn publish(
    entities: &mut impl Entities,
    (topic, id): (&EntityPath, EntityId),
    rules: &RuleSet,
    batch: Vec<Transfer>,
) {
    let offsets: Vec<_> = batch.iter().map(|transfer| transfer.offset).collect();
    // Filters need ids, many for `newid()`, while no entity, and so no source of ids, is locked.
    let seed = entities.with_entity(topic, |_, cx| cx.ids.next());
    let mut ids = SplitMix64(seed.unwrap_or_default());
    let ahead = entities.ahead();
    let mut copies = BTreeMap::<EntityPath, Vec<MessageCopy>>::new();
    for transfer in batch {
        for (subscription, copy) in copies_of(rules, &transfer, ahead, &mut ids) {
            copies.entry(subscription).or_default().push(copy);
        }
    }
    for (subscription, copies) in copies {
        entities.with_entity(&subscription, |entity, cx| entity.accept_copies(cx, copies));
    }
    entities.with_entity(topic, |entity, cx| {
        // Another topic may have the path by now, with messages at the same offsets.
        if entity.id() == id {
            entity.published(cx, offsets);
        }
    });
}
