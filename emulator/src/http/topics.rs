//! What is peculiar to topics among [`entities`](super::entities).

use std::sync::Arc;

use servicebus_broker::{EntityKind, EntityPath, Tier, TopicDescription};
use servicebus_control_api as api;

use super::entities::Kind;
use super::entity::{check_quota, made_meanwhile};
use super::error::ApiError;
use crate::config::{self, ConfigError};
use crate::namespace::{Namespace, SharedEntity};

pub(crate) struct Topics;

impl Kind for Topics {
    const KIND: EntityKind = EntityKind::Topic;
    type Description = TopicDescription;
    type Shown = api::Topic;
    type List = api::Topics;

    fn description(namespace: &Namespace, entity: &SharedEntity) -> TopicDescription {
        let description = namespace.read(entity, |entity| entity.topic_description());
        description.unwrap_or_default()
    }

    fn check_quota(namespace: &Namespace) -> Result<(), ApiError> {
        check_quota(namespace)
    }

    fn read(
        body: &str,
        current: Option<&TopicDescription>,
        path: &EntityPath,
        tier: Tier,
    ) -> Result<TopicDescription, ConfigError> {
        match current {
            Some(current) => config::topic_changes(body, current, path, tier),
            None => config::topic_properties(body, TopicDescription::default(), path, tier),
        }
    }

    /// A topic forwards nowhere.
    fn check(_: &Namespace, _: &EntityPath, _: &TopicDescription) -> Result<(), ApiError> {
        Ok(())
    }

    fn create(
        namespace: &Namespace,
        path: &EntityPath,
        wanted: TopicDescription,
    ) -> Result<Arc<SharedEntity>, ApiError> {
        let created = namespace.create_topic(path, &wanted);
        created.map_err(|_| made_meanwhile(Self::KIND, path))
    }

    fn update(namespace: &Namespace, entity: &SharedEntity, wanted: TopicDescription) -> bool {
        namespace.update(entity, wanted.queue_description())
    }

    fn shown(namespace: &Namespace, entity: &SharedEntity) -> api::Topic {
        let subscriptions = namespace.subscriptions(entity);
        let subscriptions = subscriptions
            .iter()
            .filter_map(|path| Some(path.topic()?.1.to_owned()));
        api::Topic {
            name: entity.path.to_string(),
            properties: config::topic_json(&Self::description(namespace, entity)),
            subscriptions: subscriptions.collect(),
        }
    }

    fn list(topics: Vec<api::Topic>) -> api::Topics {
        api::Topics { topics }
    }
}
