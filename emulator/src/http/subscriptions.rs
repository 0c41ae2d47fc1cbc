//! What is peculiar to subscriptions among [`entities`](super::entities). A new one has the `$Default` rule; rules are
//! changed over AMQP.

use std::sync::Arc;

use axum::http::StatusCode;
use servicebus_broker::filter::Rule;
use servicebus_broker::{EntityKind, EntityPath, RuleSet, SubscriptionDescription, Tier};
use servicebus_control_api as api;

use super::entities::Kind;
use super::entity::{check_targets, find, made_meanwhile, unknown};
use super::error::ApiError;
use crate::config::{self, ConfigError};
use crate::namespace::{Namespace, SharedEntity};

pub(crate) struct Subscriptions;

impl Kind for Subscriptions {
    const KIND: EntityKind = EntityKind::Subscription;
    type Description = SubscriptionDescription;
    type Shown = api::Subscription;
    type List = api::Subscriptions;

    fn description(namespace: &Namespace, entity: &SharedEntity) -> SubscriptionDescription {
        let description = namespace.read(entity, |entity| entity.subscription_description());
        description.unwrap_or_default()
    }

    /// How many there may be depends on the topic.
    fn check_quota(_: &Namespace) -> Result<(), ApiError> {
        Ok(())
    }

    fn read(
        body: &str,
        current: Option<&SubscriptionDescription>,
        _: &EntityPath,
        tier: Tier,
    ) -> Result<SubscriptionDescription, ConfigError> {
        let usual = SubscriptionDescription::default;
        match current {
            Some(current) => config::subscription_changes(body, current, tier),
            None => config::subscription_properties(body, usual(), tier),
        }
    }

    fn check(
        namespace: &Namespace,
        path: &EntityPath,
        wanted: &SubscriptionDescription,
    ) -> Result<(), ApiError> {
        check_targets(namespace, path, &wanted.queue_description())
    }

    fn create(
        namespace: &Namespace,
        path: &EntityPath,
        wanted: SubscriptionDescription,
    ) -> Result<Arc<SharedEntity>, ApiError> {
        let Some((topic, _)) = path.topic() else {
            return Err(unknown(namespace, Self::KIND, path));
        };
        let topic = find(namespace, EntityKind::Topic, &topic)?;
        if namespace.subscriptions(&topic).len() >= RuleSet::MAX_SUBSCRIPTIONS {
            return Err(too_many(&topic));
        }
        let rules = vec![Rule::default_rule(namespace.clock.now())];
        let created = namespace.create_subscription(&topic, path, &wanted, rules);
        created.map_err(|_| made_meanwhile(Self::KIND, path))
    }

    fn update(
        namespace: &Namespace,
        entity: &SharedEntity,
        wanted: SubscriptionDescription,
    ) -> bool {
        namespace.update_subscription(entity, &wanted)
    }

    fn shown(namespace: &Namespace, entity: &SharedEntity) -> api::Subscription {
        let topic = entity.path.topic();
        let topic = topic.and_then(|(topic, _)| namespace.entity(&topic));
        let rules =
            topic.and_then(|topic| namespace.read(&topic, |entity| entity.rules().cloned()));
        let rules = rules.iter().flat_map(|rules| rules.of(&entity.path));
        api::Subscription {
            name: entity.path.to_string(),
            properties: config::subscription_json(&Self::description(namespace, entity)),
            rules: rules.map(|rule| config::rule_json(rule)).collect(),
        }
    }

    fn list(subscriptions: Vec<api::Subscription>) -> api::Subscriptions {
        api::Subscriptions { subscriptions }
    }
}

fn too_many(topic: &SharedEntity) -> ApiError {
    let message = format!(
        "the topic '{}' has {} subscriptions already, which is the most that it may have",
        topic.path,
        RuleSet::MAX_SUBSCRIPTIONS
    );
    ApiError::new(StatusCode::FORBIDDEN, "limit-reached", message)
}
