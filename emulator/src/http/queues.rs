//! What is peculiar to queues among [`entities`](super::entities).

use std::sync::Arc;

use servicebus_broker::{EntityKind, EntityPath, QueueDescription, Tier};
use servicebus_control_api as api;

use super::entities::Kind;
use super::entity::{check_quota, check_targets, made_meanwhile};
use super::error::ApiError;
use crate::config::{self, ConfigError};
use crate::namespace::{Namespace, SharedEntity};

pub(crate) struct Queues;

impl Kind for Queues {
    const KIND: EntityKind = EntityKind::Queue;
    type Description = QueueDescription;
    type Shown = api::Queue;
    type List = api::Queues;

    fn description(namespace: &Namespace, entity: &SharedEntity) -> QueueDescription {
        namespace.read(entity, |entity| entity.description().clone())
    }

    fn check_quota(namespace: &Namespace) -> Result<(), ApiError> {
        check_quota(namespace)
    }

    fn read(
        body: &str,
        current: Option<&QueueDescription>,
        _: &EntityPath,
        tier: Tier,
    ) -> Result<QueueDescription, ConfigError> {
        match current {
            Some(current) => config::queue_changes(body, current, tier),
            None => config::queue_properties(body, QueueDescription::of_tier(tier), tier),
        }
    }

    fn check(
        namespace: &Namespace,
        path: &EntityPath,
        wanted: &QueueDescription,
    ) -> Result<(), ApiError> {
        check_targets(namespace, path, wanted)
    }

    fn create(
        namespace: &Namespace,
        path: &EntityPath,
        wanted: QueueDescription,
    ) -> Result<Arc<SharedEntity>, ApiError> {
        let created = namespace.create(path, wanted);
        created.map_err(|_| made_meanwhile(Self::KIND, path))
    }

    fn update(namespace: &Namespace, entity: &SharedEntity, wanted: QueueDescription) -> bool {
        namespace.update(entity, wanted)
    }

    fn shown(namespace: &Namespace, entity: &SharedEntity) -> api::Queue {
        api::Queue {
            name: entity.path.to_string(),
            properties: config::properties_json(&Self::description(namespace, entity)),
        }
    }

    fn list(queues: Vec<api::Queue>) -> api::Queues {
        api::Queues { queues }
    }
}
