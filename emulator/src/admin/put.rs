//! Making and changing queues, topics and subscriptions. `If-Match` says that something is to be changed: without it
//! the name must be free (admin-http.md §2).

use std::sync::Arc;

use axum::http::StatusCode;
use servicebus_broker::filter::Rule;
use servicebus_broker::{EntityKind, EntityPath, QueueDescription, RuleSet, TopicDescription};

use super::call::{Answer, Call};
use super::describe::{
    DEFAULT_RULE, KeyGenerator, View, Wanted, check_fixed, check_legal, check_targets,
    name_of_rule, read_entity, read_rule, root, subscription,
};
use super::refusal::ServiceError;
use super::route::Route;
use super::xml::{Element, Space, read};
use crate::namespace::SharedEntity;

impl Call<'_> {
    pub(super) fn put(&self, route: &Route, body: &[u8]) -> Result<Answer, ServiceError> {
        match route {
            Route::Entity(path) => {
                let path = self.path(path)?;
                let content = content(body)?;
                let kinds = [EntityKind::Queue, EntityKind::Topic].into_iter();
                let mut described =
                    kinds.filter_map(|kind| Some((kind, content.part(root(kind))?)));
                let (kind, element) = described
                    .next()
                    .ok_or_else(|| no_description("QueueDescription or TopicDescription"))?;
                let _alone = self.namespace.administer();
                self.put_entity(kind, &path, element)
            }
            Route::Subscription { topic, name } => {
                let content = content(body)?;
                let root = root(EntityKind::Subscription);
                let element = content.part(root).ok_or_else(|| no_description(root))?;
                let _alone = self.namespace.administer();
                self.put_subscription(topic, name, element)
            }
            Route::Rule { topic, name, rule } => self.put_rule(topic, name, rule, body),
            Route::Root
            | Route::NamespaceInfo
            | Route::Queues
            | Route::Topics
            | Route::Subscriptions { .. }
            // A rule whose name is empty (observed 21).
            | Route::Rules { .. }
            | Route::SubQueue { .. }
            | Route::UnknownResource(_) => Err(ServiceError::verb("PUT")),
        }
    }

    fn put_entity(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        element: &Element,
    ) -> Result<Answer, ServiceError> {
        let existing = self.namespace.entity(path);
        let tag = existing.as_ref().map(|entity| self.tag_of(entity));
        match (self.is_update(tag.as_deref())?, existing) {
            (false, Some(_)) => Err(ServiceError::conflict()),
            (true, None) => Err(ServiceError::no_operation()),
            (true, Some(entity)) if entity.kind != kind => Err(ServiceError::bad_request(format!(
                "'{path}' is a {}, which has no {}.",
                entity.kind,
                root(kind)
            ))),
            (true, Some(entity)) => self.change(&entity, element),
            (false, None) => {
                if let Some(limit) = self.namespace.limit_reached() {
                    let text = format!(
                        "The maximum number of resources of type '{kind}' has been reached or exceeded. The namespace \
                         '{}' has {limit} queues and topics.",
                        self.namespace.name()
                    );
                    return Err(ServiceError::limit(40300, text));
                }
                let wanted = self.wanted(kind, path, element, None)?;
                let created = match kind {
                    EntityKind::Topic => {
                        let description = TopicDescription::of_mailbox(&wanted.entity);
                        self.namespace.create_topic(path, &description)
                    }
                    EntityKind::Queue | EntityKind::Subscription => {
                        self.namespace.create(path, wanted.entity.clone())
                    }
                };
                Ok(self.created(&created.map_err(|_| ServiceError::conflict())?, wanted))
            }
        }
    }

    fn put_subscription(
        &self,
        topic: &str,
        name: &str,
        element: &Element,
    ) -> Result<Answer, ServiceError> {
        let topic = self.topic(topic)?.ok_or_else(ServiceError::no_policy)?;
        let path = self.subscription(&topic, name)?;
        let existing = self.namespace.entity(&path);
        let is_update =
            self.is_update(existing.as_ref().map(|_| self.tag_of(&topic)).as_deref())?;
        match (is_update, existing) {
            (false, Some(_)) => Err(ServiceError::exists(&self.tracker(&path, None))),
            (true, None) => Err(ServiceError::no_entity(&self.tracker(&path, None))),
            (true, Some(entity)) => self.change(&entity, element),
            (false, None) => {
                if self.namespace.subscriptions(&topic).len() >= RuleSet::MAX_SUBSCRIPTIONS {
                    let text = format!(
                        "The topic '{}' has {} subscriptions, which is the most that it may have.",
                        topic.path,
                        RuleSet::MAX_SUBSCRIPTIONS
                    );
                    return Err(ServiceError::limit(40503, text));
                }
                let wanted = self.wanted(EntityKind::Subscription, &path, element, None)?;
                let rule = self.default_rule(element)?;
                let created = self.namespace.create_subscription(
                    &topic,
                    &path,
                    &subscription(&wanted),
                    vec![rule],
                );
                let exists = |_| ServiceError::exists(&self.tracker(&path, None));
                Ok(self.created(&created.map_err(exists)?, wanted))
            }
        }
    }

    /// The rule that a new subscription begins with.
    fn default_rule(&self, element: &Element) -> Result<Rule, ServiceError> {
        let now = self.namespace.clock.now();
        match element.part("DefaultRuleDescription") {
            None => Ok(Rule::default_rule(now)),
            Some(rule) => read_rule(rule, name_of_rule(rule).unwrap_or(DEFAULT_RULE), now),
        }
    }

    fn change(
        &self,
        entity: &Arc<SharedEntity>,
        element: &Element,
    ) -> Result<Answer, ServiceError> {
        let before = View::of(self.namespace, entity).wanted;
        let wanted = self.wanted(entity.kind, &entity.path, element, Some(&before))?;
        check_fixed(entity.kind, &before.entity, &wanted.entity)?;
        let changed = match entity.kind {
            EntityKind::Queue => self.namespace.update(entity, wanted.entity.clone()),
            EntityKind::Topic => {
                let description = TopicDescription::of_mailbox(&wanted.entity);
                self.namespace
                    .update(entity, description.queue_description())
            }
            EntityKind::Subscription => {
                let description = subscription(&wanted);
                self.namespace.update_subscription(entity, &description)
            }
        };
        if !changed {
            // It was idle, and has just gone.
            return Err(ServiceError::no_operation());
        }
        let is_described_anew = before.admin_metadata != wanted.admin_metadata;
        entity.metadata(|metadata| metadata.set_admin_metadata(wanted.admin_metadata));
        // These are properties as well, whose change ends locks (observed 38).
        let only_status = QueueDescription {
            status: wanted.entity.status,
            ..before.entity
        };
        if is_described_anew && only_status == wanted.entity {
            self.namespace.lose_locks(entity);
        }
        Ok(self.show(entity))
    }

    /// Reads and judges a description.
    fn wanted(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        element: &Element,
        current: Option<&Wanted>,
    ) -> Result<Wanted, ServiceError> {
        let mint = KeyGenerator {
            bits: &|| self.bits(),
        };
        let tier = self.namespace.config.settings.tier;
        let wanted = read_entity(element, kind, current, tier, &mint)?;
        check_legal(self.namespace, kind, path, &wanted)?;
        check_targets(self.namespace, path, &wanted.entity)?;
        Ok(wanted)
    }

    fn created(&self, entity: &Arc<SharedEntity>, wanted: Wanted) -> Answer {
        entity.metadata(|metadata| metadata.set_admin_metadata(wanted.admin_metadata));
        let shown = self.show(entity).with_status(StatusCode::CREATED);
        match entity.kind {
            EntityKind::Queue | EntityKind::Topic => shown.untagged(),
            EntityKind::Subscription => shown,
        }
    }
}

/// What a body has to say: the content of its entry.
pub(super) fn content(body: &[u8]) -> Result<Element, ServiceError> {
    let entry = read(body).map_err(|error| {
        ServiceError::bad_request(format!("The body cannot be read as XML: {error}."))
    })?;
    let is_entry = entry.space == Space::Atom && entry.name == "entry";
    let mut children = entry.children.into_iter().filter(|_| is_entry);
    let content = children.find(|child| child.space == Space::Atom && child.name == "content");
    content.ok_or_else(|| {
        ServiceError::bad_request("The body must be an Atom entry with a content in it.")
    })
}

pub(super) fn no_description(allowed: &str) -> ServiceError {
    ServiceError::bad_request(format!(
        "The content of the entry describes nothing that can be put here; allowed: {allowed}."
    ))
}
