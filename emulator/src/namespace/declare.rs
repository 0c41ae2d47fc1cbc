//! Creates the entities that the configuration declares, at the start and after a reset, and exports the current ones in the
//! same form.

use std::collections::BTreeMap;

use serde_json::Value;
use servicebus_broker::filter::Rule;
use servicebus_broker::{Entity, EntityDescription, EntityKind, EntityPath};

use super::{AdminMetadata, Namespace, SharedEntity};
use crate::config::{NamespaceConfig, SubscriptionConfig, TopicConfig, export};

impl Namespace {
    /// Creates declared entities that are missing, and resets existing ones to their declarations. The configuration check
    /// refuses duplicate names.
    pub(crate) fn declare(&self) {
        for (path, description) in &self.config.queues {
            self.declare_entity(EntityKind::Queue, path, description, vec![]);
        }
        for topic in &self.config.topics {
            self.declare_entity(EntityKind::Topic, &topic.path, &topic.description, vec![]);
            for subscription in &topic.subscriptions {
                let Ok(path) = topic.path.subscription(&subscription.name) else {
                    // The configuration has been checked.
                    continue;
                };
                let rules = subscription.rules_at(self.clock.now()).collect();
                let description = &subscription.description;
                self.declare_entity(EntityKind::Subscription, &path, description, rules);
            }
        }
    }

    /// Removes all messages and the record, and restores the declared entities; receivers stay.
    pub(crate) fn reset(&self) {
        let declared = self.declared();
        for entity in self.entities() {
            // An entity of another kind may have taken a declared name meanwhile.
            if declared.get(&entity.path) != Some(&entity.kind) || entity.broken().is_some() {
                self.delete(&entity.path);
            }
        }
        self.failures.forget(self.name());
        self.declare();
        self.timeline().clear();
        self.refusals.clear();
        self.recorded_messages.clear();
        self.followed_messages.clear();
        for entity in self.entities() {
            entity.sends.forget();
        }
        self.revise();
        self.turns.notify_waiters();
    }

    fn declare_entity(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        description: &EntityDescription,
        rules: Vec<Rule>,
    ) {
        let Err(entity) = self.create(kind, path, description.clone(), rules.clone()) else {
            return;
        };
        // A client has created it again, with another property that cannot change: sessions and ids have stores of their own.
        let is_as_created = |entity: &Entity| {
            let changed = entity.description().fixed_problems(description);
            changed.is_empty()
        };
        if !self.read(&entity, is_as_created) {
            self.delete(path);
            let _ = self.create(kind, path, description.clone(), rules);
            return;
        }
        self.operate_as_broker(&entity, Entity::reset);
        entity.metadata(|metadata| metadata.set_admin_metadata(AdminMetadata::default()));
        self.update(&entity, description.clone());
        let topic = path.topic().and_then(|(topic, _)| self.entity(&topic));
        if let Some(topic) = topic {
            self.operate_as_broker(&topic, |topic, cx| {
                topic.unsubscribe(cx, path);
                topic.subscribe(cx, path, rules);
            });
        }
    }

    pub(super) fn declared(&self) -> BTreeMap<EntityPath, EntityKind> {
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

    /// Returns a configuration that declares the current state: the settings of the namespace, and its entities with their
    /// properties and rules. Leaves out what the format cannot express (keys of entities, user metadata).
    pub(crate) fn topology(&self) -> Value {
        export(&self.present())
    }

    /// Returns the configuration with the present entities in place of the declared ones.
    pub(super) fn present(&self) -> NamespaceConfig {
        let mut queues = Vec::new();
        let mut topics = Vec::new();
        for entity in self.entities() {
            match entity.kind {
                EntityKind::Queue => {
                    let description = self.read(&entity, |entity| entity.description().clone());
                    queues.push((entity.path.clone(), description));
                }
                EntityKind::Topic => topics.push(self.declared_topic(&entity)),
                // The entry of its topic has it.
                EntityKind::Subscription => {}
            }
        }
        NamespaceConfig {
            queues,
            topics,
            ..self.config.clone()
        }
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
        let rules = self.read(topic, |entity| {
            let rules = entity.rules_of(&subscription.path);
            rules.map(|rule| (**rule).clone()).collect()
        });
        Some(SubscriptionConfig {
            name: name.to_owned(),
            description,
            rules,
        })
    }
}
