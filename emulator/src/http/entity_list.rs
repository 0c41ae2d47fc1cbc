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
    /// The path of the entity after which the page begins.
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
    match query.order.as_deref() {
        None | Some("path") => {}
        Some("dead-letter") => entities.sort_by_cached_key(|entity| {
            let counts = of_entity(&namespace, entity, SubQueue::Active);
            Reverse(counts.dead_letter + counts.transfer_dead_letter)
        }),
        Some(other) => {
            return Err(ApiError::not_allowed("order", other, "path or dead-letter"));
        }
    }
    let first = match &query.after {
        None => 0,
        // Ordered by path, an entity that was deleted meanwhile has a position as well.
        Some(after) if query.order.as_deref() != Some("dead-letter") => {
            let after = after.to_ascii_lowercase();
            let is_behind =
                |entity: &Arc<SharedEntity>| entity.path.as_str().to_ascii_lowercase() > after;
            let first = entities.iter().position(is_behind);
            first.unwrap_or(entities.len())
        }
        Some(after) => place(&entities, after)? + 1,
    };
    let mut page: Vec<_> = entities.iter().skip(first).take(limit + 1).collect();
    let next = (page.len() > limit).then(|| {
        page.pop();
        page.last().map(|entity| entity.path.to_string())
    });
    let entities = page.into_iter().map(|entity| summary(&namespace, entity));
    Ok(Json(Entities {
        entities: entities.collect(),
        total,
        next: next.flatten(),
    }))
}

fn place(entities: &[Arc<SharedEntity>], after: &str) -> Result<usize, ApiError> {
    let found = entities
        .iter()
        .position(|entity| entity.path.as_str().eq_ignore_ascii_case(after));
    found.ok_or_else(|| {
        let known = entities.iter().map(|entity| entity.path.as_str());
        ApiError::unknown("entity", after, known)
    })
}

fn summary(namespace: &Namespace, entity: &SharedEntity) -> EntitySummary {
    let summary = |locked: &Entity| {
        let description = locked.description();
        let path = |path: &Option<_>| path.as_ref().map(ToString::to_string);
        EntitySummary {
            path: locked.path().to_string(),
            kind: super::entities::name(entity.kind).to_owned(),
            status: description.status.name().to_owned(),
            counts: shown(locked.counts(SubQueue::Active)),
            receivers: locked.receivers(SubQueue::Active).count() as u64,
            requires_session: description.requires_session,
            forward_to: path(&description.forward_to),
            forward_dead_letters_to: path(&description.forward_dead_lettered_messages_to),
        }
    };
    namespace.read(entity, summary)
}
