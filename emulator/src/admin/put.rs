//! Creates and changes queues, topics, subscriptions and rules. `If-Match` marks an update: without it the name must be free
//! (admin-http.md §2).

use std::sync::Arc;

use axum::http::StatusCode;
use servicebus_broker::filter::{Filter, Rule};
use servicebus_broker::{
    ChangeRuleError, Entity, EntityDescription, EntityKind, EntityPath, RuleChange,
};
use servicebus_config::descriptions::{DEFAULT_RULE_DESCRIPTION, RULE, description_root};

use super::call::{Answer, Call, ResponseBody};
use super::describe::{
    DEFAULT_RULE, KeyGenerator, View, Wanted, check_duplicate_window, name_of_rule, read_entity,
    read_rule,
};
use super::refusal::ServiceError;
use super::route::Route;
use crate::namespace::SharedEntity;
use crate::xml::{Element, Space, read};

impl Call<'_> {
    pub(crate) fn put(&self, route: &Route, body: &[u8]) -> Result<Answer, ServiceError> {
        match route {
            Route::Entity(path) => {
                let path = self.path(path)?;
                let content = content(body)?;
                let kinds = [EntityKind::Queue, EntityKind::Topic].into_iter();
                let mut described =
                    kinds.filter_map(|kind| Some((kind, content.part(description_root(kind))?)));
                let (kind, element) = described
                    .next()
                    .ok_or_else(|| no_description("QueueDescription or TopicDescription"))?;
                let _alone = self.namespace.administer();
                self.put_entity(kind, &path, element)
            }
            Route::Subscription { topic, name } => {
                let content = content(body)?;
                let root = description_root(EntityKind::Subscription);
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
            // A rule with an empty name (observed 21).
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
            (false, Some(_)) => Err(self.exists(kind, path)),
            (true, None) => Err(ServiceError::no_operation()),
            (true, Some(entity)) if entity.kind != kind => Err(ServiceError::bad_request(format!(
                "'{path}' is a {}, which has no {}.",
                entity.kind,
                description_root(kind)
            ))),
            (true, Some(entity)) => self.change(&entity, element),
            (false, None) => self.create(kind, path, element, None),
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
            (false, Some(_)) => Err(self.exists(EntityKind::Subscription, &path)),
            (true, None) => Err(ServiceError::no_entity(&self.tracker(&path, None))),
            (true, Some(entity)) => self.change(&entity, element),
            (false, None) => {
                let rule = self.default_rule(element)?;
                self.create(EntityKind::Subscription, &path, element, Some(rule))
            }
        }
    }

    /// Returns the error that the name of a new entity is taken.
    pub(crate) fn exists(&self, kind: EntityKind, path: &EntityPath) -> ServiceError {
        match kind {
            EntityKind::Queue | EntityKind::Topic => ServiceError::conflict(),
            EntityKind::Subscription => ServiceError::exists(&self.tracker(path, None)),
        }
    }

    /// Returns the first rule of a new subscription.
    fn default_rule(&self, element: &Element) -> Result<Rule, ServiceError> {
        let now = self.namespace.clock.now();
        match element.part(DEFAULT_RULE_DESCRIPTION) {
            None => Ok(Rule::default_rule(now)),
            Some(rule) => read_rule(rule, name_of_rule(rule).unwrap_or(DEFAULT_RULE), None, now),
        }
    }

    fn create(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        element: &Element,
        rule: Option<Rule>,
    ) -> Result<Answer, ServiceError> {
        let Wanted {
            entity: wanted,
            admin_metadata,
        } = self.wanted(kind, element, None)?;
        let created = self
            .namespace
            .create_entity(kind, path, wanted.clone(), rule);
        let created =
            created.map_err(|error| self.refused(kind, path, element, &wanted, &error))?;
        created.metadata(|metadata| metadata.set_admin_metadata(admin_metadata));
        self.namespace.append_metadata(&created);
        let shown = self.show(&created).with_status(StatusCode::CREATED);
        Ok(match kind {
            EntityKind::Queue | EntityKind::Topic => shown.untagged(),
            EntityKind::Subscription => shown,
        })
    }

    fn change(
        &self,
        entity: &Arc<SharedEntity>,
        element: &Element,
    ) -> Result<Answer, ServiceError> {
        let (kind, path) = (entity.kind, &entity.path);
        let before = View::of(self.namespace, entity).wanted;
        let wanted = self.wanted(kind, element, Some(&before))?;
        let changed = self.namespace.change_entity(entity, wanted.entity.clone());
        changed.map_err(|error| self.refused(kind, path, element, &wanted.entity, &error))?;
        let is_described_anew = before.admin_metadata != wanted.admin_metadata;
        entity.metadata(|metadata| metadata.set_admin_metadata(wanted.admin_metadata));
        self.namespace.append_metadata(entity);
        // These are properties too, whose change ends locks (observed 38).
        let only_status = EntityDescription {
            status: wanted.entity.status,
            ..before.entity
        };
        if is_described_anew && only_status == wanted.entity {
            self.namespace.lose_locks(entity);
        }
        Ok(self.show_updated(entity))
    }

    /// Parses a description.
    fn wanted(
        &self,
        kind: EntityKind,
        element: &Element,
        current: Option<&Wanted>,
    ) -> Result<Wanted, ServiceError> {
        let keys = KeyGenerator {
            bits: &|| self.bits(),
        };
        let tier = self.namespace.config.settings.tier;
        let wanted = read_entity(element, kind, current, tier, &keys)?;
        check_duplicate_window(kind, &wanted.entity, current.map(|current| &current.entity))?;
        Ok(wanted)
    }

    /// The rule's name is that of the path, not that of the description.
    fn put_rule(
        &self,
        topic: &str,
        subscription: &str,
        name: &str,
        body: &[u8],
    ) -> Result<Answer, ServiceError> {
        let content = content(body)?;
        let element = content.part(RULE).ok_or_else(|| no_description(RULE))?;
        let _alone = self.namespace.administer();
        let topic = self.topic(topic)?.ok_or_else(ServiceError::no_policy)?;
        let path = self.subscription(&topic, subscription)?;
        let entity = self.existing_subscription(&path)?;
        let path = entity.path.clone();
        let existing = self.rule(&topic, &path, name);
        let tag = existing.as_ref().map(|_| self.tag_of(&topic));
        let is_update = self.is_update(tag.as_deref())?;
        let tracker = self.tracker(&path, Some(name));
        match (is_update, &existing) {
            (false, Some(_)) => return Err(ServiceError::exists(&tracker)),
            (true, None) => return Err(ServiceError::no_entity(&tracker)),
            (true, Some(_)) | (false, None) => {}
        }
        // A replaced rule keeps the spelling of its name.
        let name = existing.as_ref().map_or(name, |rule| &rule.name);
        let rule = read_rule(
            element,
            name,
            existing.as_deref(),
            self.namespace.clock.now(),
        )?;
        // Putting a rule counts as a use of the subscription (semantics §5).
        self.namespace.operate_as_broker(&entity, Entity::touch);
        let change = match is_update {
            true => RuleChange::Replace(rule.clone()),
            false => RuleChange::Add(rule.clone()),
        };
        let put = self.namespace.change_rules(&topic, &path, change);
        put.map_err(|error| match error {
            ChangeRuleError::Exists(_) => ServiceError::exists(&tracker),
            ChangeRuleError::NotFound(_) => ServiceError::no_entity(&tracker),
            ChangeRuleError::LimitReached(_) => {
                let code = match rule.filter {
                    Filter::Correlation(_) => 40502,
                    Filter::Sql(_) | Filter::True | Filter::False => 40501,
                };
                ServiceError::limit(code, format!("'{}': {error}", topic.path))
            }
        })?;
        let status = if is_update {
            StatusCode::OK
        } else {
            StatusCode::CREATED
        };
        let published = (!is_update).then_some(rule.created_at);
        Ok(self.show_rule(&topic, &rule, published).with_status(status))
    }
}

/// Parses a body; returns the content of its entry.
fn content(body: &[u8]) -> Result<Element, ServiceError> {
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

fn no_description(allowed: &str) -> ServiceError {
    ServiceError::bad_request(format!(
        "The content of the entry describes nothing that can be put here; allowed: {allowed}."
    ))
}

impl Call<'_> {
    pub(crate) fn delete(&self, route: &Route) -> Result<Answer, ServiceError> {
        let _alone = self.namespace.administer();
        match route {
            Route::Entity(path) => self.delete_entity(&self.path(path)?),
            Route::Subscription { topic, name } => {
                let topic = self.topic(topic)?.ok_or_else(ServiceError::no_service)?;
                self.delete_entity(&self.subscription(&topic, name)?)
            }
            Route::Rule { topic, name, rule } => self.delete_rule(topic, name, rule),
            Route::Root
            | Route::NamespaceInfo
            | Route::Queues
            | Route::Topics
            | Route::Subscriptions { .. }
            | Route::Rules { .. }
            | Route::SubQueue { .. }
            | Route::UnknownResource(_) => Err(ServiceError::verb("DELETE")),
        }
    }

    fn delete_entity(&self, path: &EntityPath) -> Result<Answer, ServiceError> {
        let entity = self
            .namespace
            .entity(path)
            .ok_or_else(ServiceError::no_service)?;
        let tag = self.tag_of(&entity);
        self.is_update(Some(&tag))?;
        let deleted = self.namespace.delete_entity(path);
        deleted.map_err(|_| ServiceError::no_service())?;
        Ok(Answer::ok(ResponseBody::Nothing).tagged(tag))
    }

    fn delete_rule(&self, topic: &str, name: &str, rule: &str) -> Result<Answer, ServiceError> {
        let topic = self.topic(topic)?.ok_or_else(ServiceError::no_service)?;
        let path = self.subscription(&topic, name)?;
        let tag = self.tag_of(&topic);
        self.is_update(Some(&tag))?;
        let removal = RuleChange::Remove(rule.to_owned());
        let removed = self.namespace.change_rules(&topic, &path, removal);
        removed.map_err(|_| ServiceError::no_service())?;
        Ok(Answer::ok(ResponseBody::Nothing).tagged(tag))
    }
}
