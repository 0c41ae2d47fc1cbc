//! Queues, topics and subscriptions are made, changed and removed while the namespace is served.
//!
//! The body is the `Properties` object of the configuration file; what it leaves out keeps its value, or has the
//! service's default when the entity is new. What differs between the three is their [`Kind`].

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::StringRejection;
use axum::http::StatusCode;
use serde::Serialize;
use servicebus_broker::{EntityKind, EntityPath, Tier};

use super::entity::{Named, all, existing, find, settings, unknown};
use super::error::ApiError;
use super::request::Chosen;
use crate::config::ConfigError;
use crate::namespace::{Namespace, SharedEntity};

/// What is peculiar to one kind of entity.
pub(crate) trait Kind {
    /// Which kind it is.
    const KIND: EntityKind;
    /// What is said of one.
    type Description;
    /// What is answered about one.
    type Shown: Serialize;
    /// What is answered about all.
    type List: Serialize;

    fn description(namespace: &Namespace, entity: &SharedEntity) -> Self::Description;

    /// Whether one more may be made, as far as that is known before it is described.
    fn check_quota(namespace: &Namespace) -> Result<(), ApiError>;

    /// Reads a body: changes of what is there, or of what is usual.
    fn read(
        body: &str,
        current: Option<&Self::Description>,
        path: &EntityPath,
        tier: Tier,
    ) -> Result<Self::Description, ConfigError>;

    /// Whether what it names is there.
    fn check(
        namespace: &Namespace,
        path: &EntityPath,
        wanted: &Self::Description,
    ) -> Result<(), ApiError>;

    fn create(
        namespace: &Namespace,
        path: &EntityPath,
        wanted: Self::Description,
    ) -> Result<Arc<SharedEntity>, ApiError>;

    /// Says whether it was there still.
    fn update(namespace: &Namespace, entity: &SharedEntity, wanted: Self::Description) -> bool;

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
    let current = existing
        .as_ref()
        .map(|entity| K::description(&namespace, entity));
    if existing.is_none() {
        K::check_quota(&namespace)?;
    }
    let tier = namespace.config.settings.tier;
    let wanted = K::read(settings(&body), current.as_ref(), &path, tier)?;
    K::check(&namespace, &path, &wanted)?;
    let (status, entity) = match existing {
        Some(entity) => match K::update(&namespace, &entity, wanted) {
            true => (StatusCode::OK, entity),
            // It was idle, and has just gone.
            false => return Err(unknown(&namespace, K::KIND, &path)),
        },
        None => {
            let created = K::create(&namespace, &path, wanted)?;
            (StatusCode::CREATED, created)
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
    match namespace.delete(&path) {
        Some(_) => Ok(StatusCode::NO_CONTENT),
        None => Err(unknown(&namespace, K::KIND, &path)),
    }
}
