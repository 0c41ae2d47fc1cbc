//! Queues are made, changed and removed while the namespace is served.
//!
//! The body is the `Properties` object of the configuration file; what it leaves out keeps its value, or has the
//! service's default when the queue is new.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::StringRejection;
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde_json::{Value, json};
use servicebus_broker::{EntityPath, QueueDescription};

use super::Control;
use super::error::{ApiError, Problem};
use super::namespaces::Chosen;
use crate::config;
use crate::namespace::{Entity, Namespace};

/// The path of a queue, as the route has it.
pub(super) struct Named(EntityPath);

impl FromRequestParts<Control> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, control: &Control) -> Result<Self, ApiError> {
        let names = Path::<HashMap<String, String>>::from_request_parts(parts, control).await;
        let name = names.ok().and_then(|Path(mut names)| names.remove("queue"));
        let name = name.unwrap_or_default();
        name.parse().map(Self).map_err(|error| {
            ApiError::invalid(Problem {
                path: "queue".into(),
                value: name.into(),
                allowed: format!("a name; this one {error}"),
            })
        })
    }
}

pub(super) async fn list(Chosen(namespace): Chosen) -> Json<Value> {
    let entities = namespace.entities();
    let queues = entities.iter().map(|entity| shown(&namespace, entity));
    Json(json!({"queues": queues.collect::<Vec<_>>()}))
}

pub(super) async fn show(
    Chosen(namespace): Chosen,
    Named(path): Named,
) -> Result<Json<Value>, ApiError> {
    let entity = find(&namespace, &path)?;
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
    let existing = namespace.entity(&path);
    let current = existing
        .as_ref()
        .map(|entity| description(&namespace, entity));
    let tier = namespace.config.settings.tier;
    let text = if body.trim().is_empty() { "{}" } else { &body };
    let wanted = match &current {
        Some(current) => config::queue_changes(text, current, &path, tier),
        None => config::queue_properties(text, QueueDescription::of_tier(tier), &path, tier),
    }?;
    check_targets(&namespace, &path, &wanted)?;
    let (status, entity) = match existing {
        Some(entity) => match namespace.update(&entity, wanted) {
            true => (StatusCode::OK, entity),
            // It was idle, and has just gone.
            false => return Err(unknown(&namespace, &path)),
        },
        None => match namespace.create(&path, wanted) {
            Ok(created) => (StatusCode::CREATED, created),
            Err(_) => return Err(made_meanwhile(&path)),
        },
    };
    Ok((status, Json(shown(&namespace, &entity))))
}

pub(super) async fn delete(
    Chosen(namespace): Chosen,
    Named(path): Named,
) -> Result<StatusCode, ApiError> {
    let _alone = namespace.administer();
    match namespace.delete(&path) {
        Some(_) => Ok(StatusCode::NO_CONTENT),
        None => Err(unknown(&namespace, &path)),
    }
}

fn find(namespace: &Namespace, path: &EntityPath) -> Result<Arc<Entity>, ApiError> {
    namespace
        .entity(path)
        .ok_or_else(|| unknown(namespace, path))
}

fn unknown(namespace: &Namespace, path: &EntityPath) -> ApiError {
    let entities = namespace.entities();
    let known = entities.iter().map(|entity| entity.path.as_str());
    ApiError::unknown("queue", path.as_str(), known)
}

fn description(namespace: &Namespace, entity: &Entity) -> QueueDescription {
    namespace.look(entity, |queue| queue.mailbox.description().clone())
}

fn shown(namespace: &Namespace, entity: &Entity) -> Value {
    let properties = config::properties_json(&description(namespace, entity));
    json!({"name": entity.path.as_str(), "properties": properties})
}

/// Destinations must exist when they are named (semantics §11).
fn check_targets(
    namespace: &Namespace,
    path: &EntityPath,
    wanted: &QueueDescription,
) -> Result<(), ApiError> {
    let entities = namespace.entities();
    let declared = entities.iter().map(|entity| &entity.path).collect();
    let missing = config::missing_targets(Some(path), wanted, &declared);
    let problems: Vec<Problem> = missing
        .into_iter()
        .map(|problem| Problem {
            path: problem.property.into(),
            value: problem.value.into(),
            allowed: problem.allowed,
        })
        .collect();
    if problems.is_empty() {
        return Ok(());
    }
    let message = "a queue forwards to an entity of its namespace";
    Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid-argument", message).with_problems(problems))
}

fn made_meanwhile(path: &EntityPath) -> ApiError {
    let message = format!("the queue '{path}' was made by somebody else at the same time");
    ApiError::new(StatusCode::CONFLICT, "conflict", message)
}
