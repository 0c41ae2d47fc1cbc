//! Queues, topics and subscriptions are made, changed and removed while the namespace is served.
//!
//! The body is the `Properties` object of the configuration file; what it leaves out keeps its value, or has the
//! service's default when the entity is new. What differs between the three is their [`Kind`].

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::StringRejection;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::Value;
use servicebus_broker::EntityKind;

use super::entity::{Named, all, existing, find, refused, settings};
use super::error::ApiError;
use super::request::Chosen;
use crate::config;
use crate::namespace::{Namespace, SharedEntity};

/// What is peculiar to one kind of entity.
pub(crate) trait Kind {
    /// Which kind it is.
    const KIND: EntityKind;
    /// What is answered about one.
    type Shown: Serialize;
    /// What is answered about all.
    type List: Serialize;

    fn shown(namespace: &Namespace, entity: &SharedEntity) -> Self::Shown;

    fn list(shown: Vec<Self::Shown>) -> Self::List;
}

pub(crate) async fn list<K: Kind>(Chosen(namespace): Chosen) -> Json<K::List> {
    let entities = all(&namespace, K::KIND);
    let shown = entities.iter().map(|entity| K::shown(&namespace, entity));
    Json(K::list(shown.collect()))
}

pub(crate) async fn show<K: Kind>(
    Chosen(namespace): Chosen,
    Named(path): Named,
) -> Result<Json<K::Shown>, ApiError> {
    let entity = find(&namespace, K::KIND, &path)?;
    Ok(Json(K::shown(&namespace, &entity)))
}

/// The effective properties of an entity.
pub(crate) fn properties(namespace: &Namespace, entity: &SharedEntity) -> Value {
    namespace.read(entity, |locked| {
        config::properties_json(entity.kind, locked.description())
    })
}

/// 201 with a new entity, 200 with a changed one.
pub(crate) async fn put<K: Kind>(
    Chosen(namespace): Chosen,
    Named(path): Named,
    body: Result<String, StringRejection>,
) -> Result<(StatusCode, Json<K::Shown>), ApiError> {
    let body = body?;
    // From reading the settings to changing them: nobody's changes get lost.
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

/// Subscriptions go with their topic.
pub(crate) async fn delete<K: Kind>(
    Chosen(namespace): Chosen,
    Named(path): Named,
) -> Result<StatusCode, ApiError> {
    let _alone = namespace.administer();
    find(&namespace, K::KIND, &path)?;
    let deleted = namespace.delete_entity(&path);
    deleted.map_err(|error| refused(&namespace, K::KIND, &path, error))?;
    Ok(StatusCode::NO_CONTENT)
}
