//! Queues are made, changed and removed while the namespace is served.
//!
//! The body is the `Properties` object of the configuration file; what it leaves out keeps its value, or has the
//! service's default when the queue is new.

use axum::Json;
use axum::extract::rejection::StringRejection;
use axum::http::StatusCode;
use serde_json::{Value, json};
use servicebus_broker::{EntityKind, QueueDescription};

use super::entity::{
    Named, all, check_room, check_targets, existing, find, made_meanwhile, remove, settings,
    unknown,
};
use super::error::ApiError;
use super::namespaces::Chosen;
use crate::config;
use crate::namespace::{Entity, Namespace};

const KIND: EntityKind = EntityKind::Queue;

pub(super) async fn list(Chosen(namespace): Chosen) -> Json<Value> {
    let queues = all(&namespace, KIND);
    let queues = queues.iter().map(|entity| shown(&namespace, entity));
    Json(json!({"queues": queues.collect::<Vec<_>>()}))
}

pub(super) async fn show(
    Chosen(namespace): Chosen,
    Named(path): Named,
) -> Result<Json<Value>, ApiError> {
    let entity = find(&namespace, KIND, &path)?;
    Ok(Json(shown(&namespace, &entity)))
}

/// 201 with a new queue, 200 with a changed one.
pub(super) async fn put(
    Chosen(namespace): Chosen,
    Named(path): Named,
    body: Result<String, StringRejection>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let body = body?;
    // From reading the settings to changing them: nobody's changes get lost.
    let _alone = namespace.administer();
    let existing = existing(&namespace, KIND, &path)?;
    let current = existing
        .as_ref()
        .map(|entity| description(&namespace, entity));
    if existing.is_none() {
        check_room(&namespace)?;
    }
    let (tier, text) = (namespace.config.settings.tier, settings(&body));
    let wanted = match &current {
        Some(current) => config::queue_changes(text, current, &path, tier),
        None => config::queue_properties(text, QueueDescription::of_tier(tier), &path, tier),
    }?;
    check_targets(&namespace, &path, &wanted)?;
    let (status, entity) = match existing {
        Some(entity) => match namespace.update(&entity, wanted) {
            true => (StatusCode::OK, entity),
            // It was idle, and has just gone.
            false => return Err(unknown(&namespace, KIND, &path)),
        },
        None => match namespace.create(&path, wanted) {
            Ok(created) => (StatusCode::CREATED, created),
            Err(_) => return Err(made_meanwhile(KIND, &path)),
        },
    };
    Ok((status, Json(shown(&namespace, &entity))))
}

pub(super) async fn delete(
    Chosen(namespace): Chosen,
    Named(path): Named,
) -> Result<StatusCode, ApiError> {
    remove(&namespace, KIND, &path)
}

fn description(namespace: &Namespace, entity: &Entity) -> QueueDescription {
    namespace.look(entity, |queue| queue.mailbox.description().clone())
}

fn shown(namespace: &Namespace, entity: &Entity) -> Value {
    let properties = config::properties_json(&description(namespace, entity));
    json!({"name": entity.path.as_str(), "properties": properties})
}
