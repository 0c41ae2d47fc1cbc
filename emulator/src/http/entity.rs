//! What the routes of queues, topics and subscriptions share: names, refusals, targets.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use servicebus_broker::{EntityKind, EntityPath};
use servicebus_control_api::Problem;

use super::Control;
use super::error::ApiError;
use super::request::path_name;
use crate::config;
use crate::namespace::{AdministerError, Namespace, SharedEntity};

/// The path of an entity, as the route has it.
pub(crate) struct Named(pub(crate) EntityPath);

impl FromRequestParts<Control> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, control: &Control) -> Result<Self, ApiError> {
        for kind in ["queue", "topic", "subscription"] {
            if let Some(name) = path_name(parts, control, kind).await {
                return parsed(kind, &name).map(Self);
            }
        }
        parsed("queue", "").map(Self)
    }
}

fn parsed(kind: &str, name: &str) -> Result<EntityPath, ApiError> {
    if kind == "subscription" {
        let path = EntityPath::of_address(name).filter(|path| path.topic().is_some());
        let allowed =
            "{topic}/Subscriptions/{name}, the name with 1 to 50 letters, digits, '.', '-' and '_'";
        return path.ok_or_else(|| ApiError::not_allowed(kind, name, allowed));
    }
    name.parse().map_err(|error| {
        let allowed = format!("a name; this one {error}");
        ApiError::not_allowed(kind, name, allowed)
    })
}

/// The entities of one kind, in the order of their paths.
pub(crate) fn all(namespace: &Namespace, kind: EntityKind) -> Vec<Arc<SharedEntity>> {
    let mut entities = namespace.entities();
    entities.retain(|entity| entity.kind == kind);
    entities
}

/// An entity of this kind, if there is one; refused when the name is another kind's.
pub(crate) fn existing(
    namespace: &Namespace,
    kind: EntityKind,
    path: &EntityPath,
) -> Result<Option<Arc<SharedEntity>>, ApiError> {
    match namespace.entity(path) {
        None => Ok(None),
        Some(entity) if entity.kind == kind => Ok(Some(entity)),
        Some(entity) => {
            let message = format!("'{path}' is there already, as a {}", name(entity.kind));
            Err(ApiError::new(StatusCode::CONFLICT, "conflict", message))
        }
    }
}

pub(crate) fn find(
    namespace: &Namespace,
    kind: EntityKind,
    path: &EntityPath,
) -> Result<Arc<SharedEntity>, ApiError> {
    let found = namespace.entity(path);
    let found = found.filter(|entity| entity.kind == kind);
    found.ok_or_else(|| unknown(namespace, kind, path))
}

pub(crate) fn unknown(namespace: &Namespace, kind: EntityKind, path: &EntityPath) -> ApiError {
    let entities = all(namespace, kind);
    let known = entities.iter().map(|entity| entity.path.as_str());
    ApiError::unknown(name(kind), path.as_str(), known)
}

/// Why an entity is not created or changed, in the words of this API.
pub(crate) fn refused(
    namespace: &Namespace,
    kind: EntityKind,
    path: &EntityPath,
    error: AdministerError,
) -> ApiError {
    let (status, code, message) = match error {
        AdministerError::Exists => {
            let kind = name(kind);
            let message = format!("the {kind} '{path}' was made by somebody else at the same time");
            (StatusCode::CONFLICT, "conflict", message)
        }
        AdministerError::NotFound => {
            let topic = path.topic().map(|(topic, _)| topic);
            let topic = topic.map(|topic| find(namespace, EntityKind::Topic, &topic));
            return match topic {
                Some(Err(no_topic)) => no_topic,
                _ => unknown(namespace, kind, path),
            };
        }
        AdministerError::TooManyEntities(limit) => {
            let name = namespace.name();
            let message = format!(
                "the namespace '{name}' has {limit} queues and topics already, which is the most that it may have"
            );
            (StatusCode::FORBIDDEN, "limit-reached", message)
        }
        AdministerError::TooManySubscriptions { topic, limit } => {
            let message = format!(
                "the topic '{topic}' has {limit} subscriptions already, which is the most that it may have"
            );
            (StatusCode::FORBIDDEN, "limit-reached", message)
        }
        AdministerError::Properties(problems) | AdministerError::Fixed(problems) => {
            return not_legal("the properties are not allowed", problems);
        }
        AdministerError::Targets(targets) => {
            let entities = namespace.entities();
            let declared = entities.iter().map(|entity| &entity.path).collect();
            let missing = config::missing_targets(Some(path), targets.into_iter(), &declared);
            return not_legal(
                "an entity forwards to another one of its namespace",
                missing,
            );
        }
    };
    ApiError::new(status, code, message)
}

fn not_legal(message: &str, problems: Vec<servicebus_broker::Problem>) -> ApiError {
    let problems = problems.into_iter();
    let problems =
        problems.map(|problem| Problem::new(problem.property, problem.value, problem.allowed));
    ApiError::new(StatusCode::BAD_REQUEST, "invalid-argument", message)
        .with_problems(problems.collect())
}

/// The text of a body, where nothing means no settings.
pub(crate) fn settings(body: &str) -> &str {
    if body.trim().is_empty() { "{}" } else { body }
}

fn name(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Queue => "queue",
        EntityKind::Topic => "topic",
        EntityKind::Subscription => "subscription",
    }
}
