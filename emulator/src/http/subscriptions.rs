//! Subscriptions are made, changed and removed while their topic is served; see [`super::queues`]. A new one has the
//! `$Default` rule; rules are changed over AMQP.

use axum::Json;
use axum::extract::rejection::StringRejection;
use axum::http::StatusCode;
use serde_json::{Value, json};
use servicebus_broker::filter::Rule;
use servicebus_broker::{EntityKind, EntityPath, RuleSet, SubscriptionDescription};

use super::entity::{
    Named, all, check_targets, existing, find, made_meanwhile, remove, settings, unknown,
};
use super::error::ApiError;
use super::namespaces::Chosen;
use crate::config;
use crate::namespace::{Entity, Namespace};

const KIND: EntityKind = EntityKind::Subscription;

pub(super) async fn list(Chosen(namespace): Chosen) -> Json<Value> {
    let subscriptions = all(&namespace, KIND);
    let subscriptions = subscriptions.iter().map(|entity| shown(&namespace, entity));
    Json(json!({"subscriptions": subscriptions.collect::<Vec<_>>()}))
}

pub(super) async fn show(
    Chosen(namespace): Chosen,
    Named(path): Named,
) -> Result<Json<Value>, ApiError> {
    let entity = find(&namespace, KIND, &path)?;
    Ok(Json(shown(&namespace, &entity)))
}

/// 201 with a new subscription, 200 with a changed one.
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
    let (tier, text) = (namespace.config.settings.tier, settings(&body));
    let wanted = match &current {
        Some(current) => config::subscription_changes(text, current, &path, tier),
        None => {
            let base = SubscriptionDescription::default();
            config::subscription_properties(text, base, &path, tier)
        }
    }?;
    check_targets(&namespace, &path, &wanted.mailbox())?;
    if let Some(entity) = existing {
        return match namespace.update_subscription(&entity, &wanted) {
            true => Ok((StatusCode::OK, Json(shown(&namespace, &entity)))),
            false => Err(unknown(&namespace, KIND, &path)),
        };
    }
    let created = create(&namespace, &path, &wanted)?;
    Ok((StatusCode::CREATED, Json(shown(&namespace, &created))))
}

pub(super) async fn delete(
    Chosen(namespace): Chosen,
    Named(path): Named,
) -> Result<StatusCode, ApiError> {
    remove(&namespace, KIND, &path)
}

fn create(
    namespace: &Namespace,
    path: &EntityPath,
    wanted: &SubscriptionDescription,
) -> Result<std::sync::Arc<Entity>, ApiError> {
    let Some((topic, _)) = path.topic() else {
        return Err(unknown(namespace, KIND, path));
    };
    let topic = find(namespace, EntityKind::Topic, &topic)?;
    if namespace.subscriptions(&topic).len() >= RuleSet::MAX_SUBSCRIPTIONS {
        let message = format!(
            "the topic '{}' has {} subscriptions already, which is the most that it may have",
            topic.path,
            RuleSet::MAX_SUBSCRIPTIONS
        );
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "limit-reached",
            message,
        ));
    }
    let rules = vec![Rule::default_rule(namespace.clock.now())];
    let created = namespace.create_subscription(&topic, path, wanted, rules);
    created.map_err(|_| made_meanwhile(KIND, path))
}

fn description(namespace: &Namespace, entity: &Entity) -> SubscriptionDescription {
    let description = namespace.look(entity, |queue| queue.mailbox.subscription_description());
    description.unwrap_or_default()
}

fn shown(namespace: &Namespace, entity: &Entity) -> Value {
    let topic = entity.path.topic();
    let topic = topic.and_then(|(topic, _)| namespace.entity(&topic));
    let rules =
        topic.and_then(|topic| namespace.look(&topic, |queue| queue.mailbox.rules().cloned()));
    let rules = rules.iter().flat_map(|rules| rules.of(&entity.path));
    let rules: Vec<Value> = rules.map(|rule| config::rule_json(rule)).collect();
    json!({
        "name": entity.path.as_str(),
        "properties": config::subscription_json(&description(namespace, entity)),
        "rules": rules,
    })
}
