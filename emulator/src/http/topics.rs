//! What is peculiar to topics among [`entities`](super::entities).

use servicebus_broker::EntityKind;
use servicebus_control_api as api;

use super::entities::{Kind, properties};
use crate::namespace::{Namespace, SharedEntity};

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
