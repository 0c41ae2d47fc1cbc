//! The catalog of the entities that a topology declares.

pub(crate) use servicebus_assertions::{
    Catalog, EntityKind, EntitySettings, UnknownEntity, subscription_path, topic_and_name,
};
use servicebus_broker as broker;
use servicebus_config::config::{Config, properties_json};

/// Lists the entities that the first namespace of a configuration declares.
pub(crate) fn declared(config: &Config) -> Vec<EntitySettings> {
    let of = |kind, name: String, description| {
        EntitySettings::of(kind, name, &properties_json(broker_kind(kind), description))
    };
    let Some(namespace) = config.namespaces.first() else {
        return Vec::new();
    };
    let queues = namespace.queues.iter();
    let queues = queues.map(|(path, queue)| of(EntityKind::Queue, path.to_string(), queue));
    let topics = namespace.topics.iter().flat_map(|topic| {
        let own = of(
            EntityKind::Topic,
            topic.path.to_string(),
            &topic.description,
        );
        let subscriptions = topic.subscriptions.iter().map(|subscription| {
            let path = subscription_path(topic.path.as_str(), &subscription.name);
            of(EntityKind::Subscription, path, &subscription.description)
        });
        subscriptions.chain([own]).collect::<Vec<_>>()
    });
    queues.chain(topics).collect()
}

pub(crate) fn broker_kind(kind: EntityKind) -> broker::EntityKind {
    match kind {
        EntityKind::Queue => broker::EntityKind::Queue,
        EntityKind::Topic => broker::EntityKind::Topic,
        EntityKind::Subscription => broker::EntityKind::Subscription,
    }
}
