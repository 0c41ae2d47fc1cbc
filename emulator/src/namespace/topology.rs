//! What a namespace holds now, as it would be declared.

use serde_json::Value;
use servicebus_broker::EntityKind;

use super::{Namespace, SharedEntity};
use crate::config::{NamespaceConfig, SubscriptionConfig, TopicConfig, export};

impl Namespace {
    /// A configuration that declares what is there now: the settings of the namespace, and its entities with theirs and
    /// with their rules. What the format has no place for (keys of entities, remarks of users) is left out.
    pub(crate) fn topology(&self) -> Value {
        let mut queues = Vec::new();
        let mut topics = Vec::new();
        for entity in self.entities() {
            match entity.kind {
                EntityKind::Queue => {
                    let description = self.read(&entity, |entity| entity.description().clone());
                    queues.push((entity.path.clone(), description));
                }
                EntityKind::Topic => topics.push(self.declared_topic(&entity)),
                // Its topic tells of it.
                EntityKind::Subscription => {}
            }
        }
        export(&NamespaceConfig {
            queues,
            topics,
            ..self.config.clone()
        })
    }

    fn declared_topic(&self, topic: &SharedEntity) -> TopicConfig {
        let description = self.read(topic, |entity| entity.description().clone());
        let subscriptions = self.subscriptions(topic);
        let subscriptions = subscriptions.iter().filter_map(|path| self.entity(path));
        TopicConfig {
            path: topic.path.clone(),
            description,
            subscriptions: subscriptions
                .filter_map(|subscription| self.declared_subscription(topic, &subscription))
                .collect(),
        }
    }

    fn declared_subscription(
        &self,
        topic: &SharedEntity,
        subscription: &SharedEntity,
    ) -> Option<SubscriptionConfig> {
        let (_, name) = subscription.path.topic()?;
        let description = self.read(subscription, |entity| entity.description().clone());
        let rules = self.read(topic, |entity| entity.rules().cloned());
        let rules = rules.iter().flat_map(|rules| rules.of(&subscription.path));
        Some(SubscriptionConfig {
            name: name.to_owned(),
            description,
            rules: rules.map(|rule| (**rule).clone()).collect(),
        })
    }
}
