//! What the configuration declares: made when the namespace begins, and again when it is reset.

use std::collections::BTreeMap;

use servicebus_broker::{Entity, EntityDescription, EntityKind, EntityPath};

use super::{AdminMetadata, Namespace, SharedEntity};
use crate::config::{SubscriptionConfig, TopicConfig};

impl Namespace {
    /// Makes what is declared and not there; what is there becomes as it was declared. Names that are declared
    /// twice are refused with the configuration.
    pub(crate) fn declare(&self) {
        for (path, description) in &self.config.queues {
            if let Err(entity) = self.create(path, description.clone()) {
                self.restore(&entity, description.clone());
            }
        }
        for topic in &self.config.topics {
            self.declare_topic(topic);
        }
    }

    /// Removes all messages and the record; entities are again as they were declared, receivers stay.
    pub(crate) fn reset(&self) {
        let declared = self.declared();
        for entity in self.entities() {
            // One of another kind may have taken a declared name meanwhile.
            if declared.get(&entity.path) != Some(&entity.kind) || entity.broken().is_some() {
                self.delete(&entity.path);
            }
        }
        self.failures.forget(self.name());
        self.declare();
        self.timeline().clear();
        self.recorded_messages.clear();
        for entity in self.entities() {
            entity.sends.forget();
        }
        self.turns.notify_waiters();
    }

    fn declare_topic(&self, config: &TopicConfig) {
        let topic = match self.create_topic(&config.path, &config.description) {
            Ok(topic) => topic,
            Err(topic) => {
                self.restore(&topic, config.description.clone());
                topic
            }
        };
        for subscription in &config.subscriptions {
            self.declare_subscription(&topic, subscription);
        }
    }

    fn declare_subscription(&self, topic: &SharedEntity, config: &SubscriptionConfig) {
        let Ok(path) = topic.path.subscription(&config.name) else {
            // The configuration has been checked.
            return;
        };
        let rules: Vec<_> = config.rules_at(self.clock.now()).collect();
        let created = self.create_subscription(topic, &path, &config.description, rules.clone());
        if let Err(entity) = created {
            self.operate_as_broker(&entity, Entity::reset);
            entity.metadata(|metadata| metadata.set_admin_metadata(AdminMetadata::default()));
            self.update(&entity, config.description.clone());
            self.operate_as_broker(topic, |topic, cx| {
                topic.unsubscribe(cx, &path);
                topic.subscribe(cx, &path, rules);
            });
        }
    }

    fn restore(&self, entity: &SharedEntity, description: EntityDescription) {
        self.operate_as_broker(entity, Entity::reset);
        entity.metadata(|metadata| metadata.set_admin_metadata(AdminMetadata::default()));
        self.update(entity, description);
    }

    fn declared(&self) -> BTreeMap<EntityPath, EntityKind> {
        let queues = self.config.queues.iter();
        let queues = queues.map(|(path, _)| (path.clone(), EntityKind::Queue));
        let topics = self.config.topics.iter().flat_map(|topic| {
            let subscriptions = topic.subscriptions.iter();
            let paths = subscriptions.filter_map(|s| topic.path.subscription(&s.name).ok());
            let paths = paths.map(|path| (path, EntityKind::Subscription));
            std::iter::once((topic.path.clone(), EntityKind::Topic)).chain(paths)
        });
        queues.chain(topics).collect()
    }
}
