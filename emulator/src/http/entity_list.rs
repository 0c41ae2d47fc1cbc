//! The entities of a namespace in pages, each with its counts, so that one request returns them.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::Json;
use serde::Deserialize;
use servicebus_broker::{Entity, SubQueue};
use servicebus_control_api::{Entities, EntitySummary};

use super::counts::{of_entity, shown};
use super::error::{ApiError, QueryParams, SelectedNamespace, check_limit};
use crate::namespace::{Namespace, SharedEntity};

/// Entities in one answer.
const LIMIT: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntityListQuery {
    /// A text that their paths contain, ignoring case.
    contains: Option<String>,
    /// `path`, or `dead-letter` for those with most dead letters first.
    order: Option<String>,
    /// The entity after which the page begins: its path, before which those with most dead letters have their number.
    after: Option<String>,
    limit: Option<usize>,
}

pub(crate) async fn list(
    SelectedNamespace(namespace): SelectedNamespace,
    QueryParams(query): QueryParams<EntityListQuery>,
) -> Result<Json<Entities>, ApiError> {
    let limit = check_limit(query.limit, LIMIT)?;
    let mut entities = namespace.entities();
    if let Some(part) = query.contains.map(|part| part.to_lowercase()) {
        entities.retain(|entity| entity.path.as_str().to_lowercase().contains(&part));
    }
    let total = entities.len() as u64;
    let by_dead_letters = match query.order.as_deref() {
        None | Some("path") => false,
        Some("dead-letter") => true,
        Some(other) => {
            return Err(ApiError::not_allowed("order", other, "path or dead-letter"));
        }
    };
    let counted = entities.into_iter().map(|entity| {
        let count = by_dead_letters.then(|| dead_letters(&namespace, &entity));
        (count.unwrap_or_default(), entity)
    });
    let mut counted = Vec::from_iter(counted);
    // Those with the same number stay in the order of their paths.
    counted.sort_by_key(|(count, _)| Reverse(*count));
    let first = match &query.after {
        None => 0,
        Some(after) => {
            let after = position(&counted, after, by_dead_letters)?;
            let first = counted.iter().position(|entity| key(entity) > after);
            first.unwrap_or(counted.len())
        }
    };
    let mut page: Vec<_> = counted.iter().skip(first).take(limit + 1).collect();
    let next = (page.len() > limit).then(|| {
        page.pop();
        page.last().map(|(count, entity)| match by_dead_letters {
            true => format!("{count} {}", entity.path),
            false => entity.path.to_string(),
        })
    });
    let entities = page
        .into_iter()
        .map(|(_, entity)| summary(&namespace, entity));
    Ok(Json(Entities {
        entities: entities.collect(),
        total,
        next: next.flatten(),
    }))
}

/// An entity with its number of dead letters, if they are ordered by it.
type Counted = (u64, Arc<SharedEntity>);

/// The position of an entity in the list. It is valid also when the entity was deleted or has other dead letters.
type Position = (Reverse<u64>, String);

fn key((count, entity): &Counted) -> Position {
    (Reverse(*count), entity.path.as_str().to_ascii_lowercase())
}

/// Returns the position that a client names; by dead letters, its path alone is that of a present entity.
fn position(
    entities: &[Counted],
    after: &str,
    by_dead_letters: bool,
) -> Result<Position, ApiError> {
    if !by_dead_letters {
        return Ok((Reverse(0), after.to_ascii_lowercase()));
    }
    let named = after.split_once(' ');
    let named = named.and_then(|(count, path)| Some((count.parse().ok()?, path)));
    if let Some((count, path)) = named {
        return Ok((Reverse(count), path.to_ascii_lowercase()));
    }
    let is_named = |(_, entity): &&Counted| entity.path.as_str().eq_ignore_ascii_case(after);
    entities.iter().find(is_named).map(key).ok_or_else(|| {
        let known = entities.iter().map(|(_, entity)| entity.path.as_str());
        ApiError::unknown("entity", after, known)
    })
}

fn dead_letters(namespace: &Namespace, entity: &SharedEntity) -> u64 {
    let counts = of_entity(namespace, entity, SubQueue::Active);
    counts.dead_letter + counts.transfer_dead_letter
}

fn summary(namespace: &Namespace, entity: &SharedEntity) -> EntitySummary {
    let summary = |locked: &Entity| {
        let description = locked.description();
        let path = |path: &Option<_>| path.as_ref().map(ToString::to_string);
        EntitySummary {
            path: locked.path().to_string(),
            kind: super::entities::name(entity.kind).to_owned(),
            status: description.status.name().to_owned(),
            counts: shown(locked, SubQueue::Active),
            receivers: locked.receivers(SubQueue::Active).count() as u64,
            requires_session: description.requires_session,
            forward_to: path(&description.forward_to),
            forward_dead_letters_to: path(&description.forward_dead_lettered_messages_to),
        }
    };
    namespace.read(entity, summary)
}
