//! What is peculiar to queues among [`entities`](super::entities).

use servicebus_broker::EntityKind;
use servicebus_control_api as api;

use super::entities::{Kind, properties};
use crate::namespace::{Namespace, SharedEntity};

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
