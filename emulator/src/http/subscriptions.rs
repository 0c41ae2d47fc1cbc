//! What is peculiar to subscriptions among [`entities`](super::entities). A new one has the `$Default` rule; rules are
//! changed over AMQP.

use servicebus_broker::EntityKind;
use servicebus_control_api as api;

use super::entities::{Kind, properties};
use crate::config;
use crate::namespace::{Namespace, SharedEntity};

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
            rules: rules.map(|rule| config::rule_json(rule)).collect(),
        }
    }

    fn list(subscriptions: Vec<api::Subscription>) -> api::Subscriptions {
        api::Subscriptions { subscriptions }
    }
}
