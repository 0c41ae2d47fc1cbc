//! Topics are made, changed and removed while the namespace is served; see [`super::queues`].

use axum::Json;
use axum::extract::rejection::StringRejection;
use axum::http::StatusCode;
use serde_json::{Value, json};
use servicebus_broker::{EntityKind, TopicDescription};

use super::entity::{
    Named, all, check_room, existing, find, made_meanwhile, remove, settings, unknown,
};
use super::error::ApiError;
use super::namespaces::Chosen;
use crate::config;
use crate::namespace::{Entity, Namespace};

const KIND: EntityKind = EntityKind::Topic;

pub(super) async fn list(Chosen(namespace): Chosen) -> Json<Value> {
    let topics = all(&namespace, KIND);
    let topics = topics.iter().map(|entity| shown(&namespace, entity));
    Json(json!({"topics": topics.collect::<Vec<_>>()}))
}

pub(super) async fn show(
    Chosen(namespace): Chosen,
    Named(path): Named,
) -> Result<Json<Value>, ApiError> {
    let entity = find(&namespace, KIND, &path)?;
    Ok(Json(shown(&namespace, &entity)))
}

/// 201 with a new topic, 200 with a changed one.
pub(super) async fn put(
    Chosen(namespace): Chosen,
    Named(path): Named,
    body: Result<String, StringRejection>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let body = body?;
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
        Some(current) => config::topic_changes(text, current, &path, tier),
        None => config::topic_properties(text, TopicDescription::default(), &path, tier),
    }?;
    let (status, entity) = match existing {
        Some(entity) => match namespace.update(&entity, wanted.mailbox()) {
            true => (StatusCode::OK, entity),
            false => return Err(unknown(&namespace, KIND, &path)),
        },
        None => match namespace.create_topic(&path, &wanted) {
            Ok(created) => (StatusCode::CREATED, created),
            Err(_) => return Err(made_meanwhile(KIND, &path)),
        },
    };
    Ok((status, Json(shown(&namespace, &entity))))
}

/// Its subscriptions go with it.
pub(super) async fn delete(
    Chosen(namespace): Chosen,
    Named(path): Named,
) -> Result<StatusCode, ApiError> {
    remove(&namespace, KIND, &path)
}

fn description(namespace: &Namespace, entity: &Entity) -> TopicDescription {
    let description = namespace.look(entity, |queue| queue.mailbox.topic_description());
    description.unwrap_or_default()
}

fn shown(namespace: &Namespace, entity: &Entity) -> Value {
    let subscriptions = namespace.subscriptions(entity);
    let subscriptions = subscriptions
        .iter()
        .filter_map(|path| Some(path.topic()?.1));
    json!({
        "name": entity.path.as_str(),
        "properties": config::topic_json(&description(namespace, entity)),
        "subscriptions": subscriptions.collect::<Vec<_>>(),
    })
}
