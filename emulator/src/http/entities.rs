//! Creates, changes and removes queues, topics and subscriptions at run time.
//!
//! The body is the `Properties` object of the configuration file; an omitted property keeps its value, or gets the service's
//! default if the entity is new. [`Kind`] has the differences between the three.

use std::sync::Arc;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::extract::rejection::StringRejection;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::Value;
use servicebus_broker::{EntityDescription, EntityKind, EntityPath};
use servicebus_control_api as api;
use servicebus_control_api::Problem;

use super::Control;
use super::error::{ApiError, SelectedNamespace, path_name};
use crate::blocking::run_blocking;
use crate::config;
use crate::namespace::{AdministerError, Namespace, SharedEntity};

/// The differences between kinds of entities.
pub(crate) trait Kind {
    const KIND: EntityKind;
    /// The response for one entity.
    type Shown: Serialize;
    /// The response for all entities.
    type List: Serialize;

    fn shown(namespace: &Namespace, entity: &SharedEntity) -> Self::Shown;

    fn list(shown: Vec<Self::Shown>) -> Self::List;
}

pub(crate) async fn list<K: Kind>(SelectedNamespace(namespace): SelectedNamespace) -> Response {
    run_blocking(|| {
        let entities = all(&namespace, K::KIND);
        let shown = entities.iter().map(|entity| K::shown(&namespace, entity));
        Json(K::list(shown.collect())).into_response()
    })
}

pub(crate) async fn show<K: Kind>(
    SelectedNamespace(namespace): SelectedNamespace,
    EntityPathParam(path): EntityPathParam,
) -> Result<Json<K::Shown>, ApiError> {
    let entity = find(&namespace, K::KIND, &path)?;
    Ok(Json(K::shown(&namespace, &entity)))
}

/// Returns the effective properties of an entity.
pub(crate) fn properties(namespace: &Namespace, entity: &SharedEntity) -> Value {
    namespace.read(entity, |locked| {
        config::properties_json(entity.kind, locked.description())
    })
}

/// 201 with a new entity, 200 with a changed one.
pub(crate) async fn put<K: Kind>(
    SelectedNamespace(namespace): SelectedNamespace,
    EntityPathParam(path): EntityPathParam,
    body: Result<String, StringRejection>,
) -> Result<(StatusCode, Json<K::Shown>), ApiError> {
    let body = body?;
    // Held from reading the properties to changing them, so that no concurrent change is lost.
    let _alone = namespace.administer();
    let existing = existing(&namespace, K::KIND, &path)?;
    let description =
        |entity: &Arc<SharedEntity>| namespace.read(entity, |entity| entity.description().clone());
    let current = existing.as_ref().map(description);
    let (body, tier) = (settings(&body), namespace.config.settings.tier);
    let wanted = config::read_properties(body, K::KIND, &path, current.as_ref(), tier)?;
    let refused = |error| refused(&namespace, K::KIND, &path, error);
    let (status, entity) = match existing {
        Some(entity) => {
            let changed = namespace.change_entity(&entity, wanted);
            changed.map_err(refused)?;
            (StatusCode::OK, entity)
        }
        None => {
            let created = namespace.create_entity(K::KIND, &path, wanted, None);
            (StatusCode::CREATED, created.map_err(refused)?)
        }
    };
    Ok((status, Json(K::shown(&namespace, &entity))))
}

/// Deletes an entity; subscriptions go with their topic.
pub(crate) async fn delete<K: Kind>(
    SelectedNamespace(namespace): SelectedNamespace,
    EntityPathParam(path): EntityPathParam,
) -> Result<StatusCode, ApiError> {
    let _alone = namespace.administer();
    find(&namespace, K::KIND, &path)?;
    let deleted = namespace.delete_entity(&path);
    deleted.map_err(|error| refused(&namespace, K::KIND, &path, error))?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) struct Queues;

impl Kind for Queues {
    const KIND: EntityKind = EntityKind::Queue;
    type Shown = api::Queue;
    type List = api::Queues;

    fn shown(namespace: &Namespace, entity: &SharedEntity) -> api::Queue {
        api::Queue {
            name: entity.path.to_string(),
            properties: properties(namespace, entity),
        }
    }

    fn list(queues: Vec<api::Queue>) -> api::Queues {
        api::Queues { queues }
    }
}

pub(crate) struct Topics;

impl Kind for Topics {
    const KIND: EntityKind = EntityKind::Topic;
    type Shown = api::Topic;
    type List = api::Topics;

    fn shown(namespace: &Namespace, entity: &SharedEntity) -> api::Topic {
        let subscriptions = namespace.subscriptions(entity);
        let subscriptions = subscriptions
            .iter()
            .filter_map(|path| Some(path.topic()?.1.to_owned()));
        api::Topic {
            name: entity.path.to_string(),
            properties: properties(namespace, entity),
            subscriptions: subscriptions.collect(),
        }
    }

    fn list(topics: Vec<api::Topic>) -> api::Topics {
        api::Topics { topics }
    }
}

pub(crate) struct Subscriptions;

impl Kind for Subscriptions {
    const KIND: EntityKind = EntityKind::Subscription;
    type Shown = api::Subscription;
    type List = api::Subscriptions;

    fn shown(namespace: &Namespace, entity: &SharedEntity) -> api::Subscription {
        let topic = entity.path.topic();
        let topic = topic.and_then(|(topic, _)| namespace.entity(&topic));
        let rules =
            topic.and_then(|topic| namespace.read(&topic, |entity| entity.rules().cloned()));
        let rules = rules.iter().flat_map(|rules| rules.of(&entity.path));
        api::Subscription {
            name: entity.path.to_string(),
            properties: properties(namespace, entity),
            rules: config::declared_rules(rules.map(|rule| &**rule)),
            client: namespace.read(entity, |entity| client(entity.description())),
        }
    }

    fn list(subscriptions: Vec<api::Subscription>) -> api::Subscriptions {
        api::Subscriptions { subscriptions }
    }
}

fn client(subscription: &EntityDescription) -> Option<api::JmsClient> {
    let client = subscription.client.as_ref()?;
    Some(api::JmsClient {
        client_id: client.client_id.to_string(),
        is_durable: client.is_durable,
        is_shared: client.is_shared,
    })
}

/// The path of an entity in the route.
pub(crate) struct EntityPathParam(pub(crate) EntityPath);

impl FromRequestParts<Control> for EntityPathParam {
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

/// Returns the entities of one kind in the order of their paths.
pub(crate) fn all(namespace: &Namespace, kind: EntityKind) -> Vec<Arc<SharedEntity>> {
    let mut entities = namespace.entities();
    entities.retain(|entity| entity.kind == kind);
    entities
}

/// Returns an entity of this kind, if it exists; fails if the name belongs to another kind.
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

/// Returns the error for an entity that is not created or changed.
pub(crate) fn refused(
    namespace: &Namespace,
    kind: EntityKind,
    path: &EntityPath,
    error: AdministerError,
) -> ApiError {
    let (status, code, message) = match error {
        AdministerError::Exists => {
            let kind = name(kind);
            let message =
                format!("the {kind} '{path}' was made by another request at the same time");
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
        AdministerError::TopicIsFull {
            topic, limit, what, ..
        } => {
            let message = format!(
                "the topic '{topic}' has {limit} {what} already, which is the most that it may have"
            );
            (StatusCode::FORBIDDEN, "limit-reached", message)
        }
        AdministerError::Properties(problems) | AdministerError::Fixed(problems) => {
            return not_legal("the properties are not allowed", problems);
        }
        AdministerError::Targets(targets) => {
            let entities = namespace.entities();
            let others = entities
                .iter()
                .filter(|entity| entity.kind != EntityKind::Subscription);
            let declared = others.map(|entity| &entity.path).collect();
            let missing = config::missing_targets(Some(path), targets.into_iter(), &declared);
            return not_legal("the target of forwarding does not exist", missing);
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

/// Returns the text of a body; an empty one means no properties.
pub(crate) fn settings(body: &str) -> &str {
    if body.trim().is_empty() { "{}" } else { body }
}

pub(crate) fn name(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Queue => "queue",
        EntityKind::Topic => "topic",
        EntityKind::Subscription => "subscription",
    }
}
