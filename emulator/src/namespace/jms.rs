//! Entities that JMS 2.0 clients create: subscriptions by the client's name for them, and queues and topics that live as
//! long as their link.
//!
//! They are ordinary entities, created and deleted under the lock of administrative changes, so that concurrent clients do
//! not create the same one twice, and no client attaches to one that is about to be deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use servicebus_broker::filter::{Filter, Rule};
use servicebus_broker::{
    ClientAffinity, Entity, EntityDescription, EntityId, EntityKind, EntityPath, IdSource, SubQueue,
};

use super::{AdministerError, Namespace, SharedEntity};
use crate::lock_order::{Rank, take};
use crate::nodes::{Condition, ServiceError};

/// The prefix of temporary queues and topics.
const TEMPORARY: &str = "temporary";

/// The number of JMS consumers of each subscription that has any.
#[derive(Debug, Default)]
pub(crate) struct JmsConsumers(Mutex<BTreeMap<EntityId, u32>>);

/// The subscription that a consumer of a topic asks for.
#[derive(Debug)]
pub(crate) struct SubscriptionRequest<'a> {
    pub(crate) topic: &'a EntityPath,
    /// The client's name for it; `None` for one that no other consumer can share.
    pub(crate) name: Option<&'a str>,
    pub(crate) affinity: ClientAffinity,
    pub(crate) filter: Filter,
    /// Idle time after which it is deleted.
    pub(crate) idle: Option<Duration>,
    /// Whether the client may create entities; otherwise the error for it.
    pub(crate) may_manage: Result<(), ServiceError>,
    /// The host name that the client asked for.
    pub(crate) host: String,
}

/// Keeps the entity of a link for as long as the link exists: a temporary entity is deleted with it, a volatile subscription
/// with the last of its consumers.
#[derive(Debug)]
pub(crate) struct LinkScope {
    namespace: Arc<Namespace>,
    pub(crate) entity: Arc<SharedEntity>,
    is_temporary: bool,
}

impl LinkScope {
    /// Returns the entity, if it was created for the link alone.
    pub(crate) fn temporary(&self) -> Option<&Arc<SharedEntity>> {
        self.is_temporary.then_some(&self.entity)
    }
}

impl Drop for LinkScope {
    fn drop(&mut self) {
        let _alone = self.namespace.administer();
        match self.is_temporary {
            true => self.namespace.delete_if_there(&self.entity),
            false => self.namespace.leave_subscription(&self.entity),
        }
    }
}

impl Namespace {
    /// Creates a queue or topic to which a client attaches, or returns the one that another client has just created.
    pub(crate) fn create_on_attach(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        idle: Option<Duration>,
    ) -> Result<Arc<SharedEntity>, ServiceError> {
        let _alone = self.administer();
        match self.entity(path) {
            Some(entity) => Ok(entity),
            None => self.create_for_client(kind, path, idle, None, None),
        }
    }

    /// Creates a queue or topic with a unique name that is deleted with its link.
    pub(crate) fn create_temporary(
        self: &Arc<Self>,
        kind: EntityKind,
        ids: &mut dyn IdSource,
    ) -> Result<LinkScope, ServiceError> {
        let kind_name = match kind {
            EntityKind::Queue | EntityKind::Subscription => "queue",
            EntityKind::Topic => "topic",
        };
        let name = format!(
            "{TEMPORARY}-{kind_name}-{:016x}{:016x}",
            ids.next(),
            ids.next()
        );
        let path = EntityPath::of_address(&name).ok_or_else(|| invalid_name(&name, "its form"))?;
        let _alone = self.administer();
        let entity = self.create_for_client(kind, &path, None, None, None)?;
        entity.mark_temporary();
        self.append_metadata(&entity);
        Ok(LinkScope {
            entity,
            namespace: Arc::clone(self),
            is_temporary: true,
        })
    }

    /// Returns the subscription that a consumer of a topic asks for; creates it if it is missing, or if an unused one has
    /// another topic or selector (JMS 2.0, 8.3.3). `may_manage` is the client's right to end one of another topic. An error
    /// changes nothing.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        request: SubscriptionRequest<'_>,
        may_manage: impl Fn(&EntityPath) -> Result<(), ServiceError>,
        ids: &mut dyn IdSource,
    ) -> Result<LinkScope, ServiceError> {
        let given = request.entity_name();
        let name = given.unwrap_or_else(|| format!("{:016x}{:016x}$ND", ids.next(), ids.next()));
        let path = request.path(&name)?;
        let _alone = self.administer();
        let elsewhere = || self.client_subscription(&name, &request.affinity.client_id);
        let existing = request
            .name
            .and_then(|_| self.entity(&path).or_else(elsewhere));
        if let Some(elsewhere) = existing.as_ref().filter(|own| own.path != path) {
            may_manage(&elsewhere.path)?;
        }
        let is_wanted = match &existing {
            Some(existing) => self.is_wanted(existing, &path, &request)?,
            None => false,
        };
        let entity = match existing {
            Some(existing) if is_wanted => existing,
            replaced => self.create_subscription(&path, request, replaced)?,
        };
        *take(Rank::Inner, || self.jms_consumers.0.lock())
            .entry(entity.id)
            .or_default() += 1;
        Ok(LinkScope {
            namespace: Arc::clone(self),
            entity,
            is_temporary: false,
        })
    }

    /// Returns the client's durable subscription of this name, whatever its topic, for [`Self::unsubscribe`].
    pub(crate) fn durable_subscription(
        &self,
        name: &str,
        client_id: &str,
    ) -> Result<Arc<SharedEntity>, ServiceError> {
        let _alone = self.administer();
        let entity_name = entity_name(name, client_id, true);
        let found = self.client_subscription(&entity_name, client_id);
        let found = found.ok_or_else(|| {
            let text = format!("The client '{client_id}' has no durable subscription '{name}'.");
            ServiceError::new(Condition::NotFound, text)
        })?;
        match self.has_consumers(&found) {
            true => Err(in_use(&found.path)),
            false => Ok(found),
        }
    }

    /// Deletes a durable subscription without consumers.
    pub(crate) fn unsubscribe(&self, subscription: &SharedEntity) {
        let _alone = self.administer();
        if !self.has_consumers(subscription) {
            self.delete_if_there(subscription);
        }
    }

    /// Returns whether an existing subscription is the requested one; if not, it may be replaced. Fails if the request
    /// cannot be met.
    fn is_wanted(
        &self,
        existing: &SharedEntity,
        path: &EntityPath,
        request: &SubscriptionRequest<'_>,
    ) -> Result<bool, ServiceError> {
        let wanted = &request.affinity;
        let own = self.client_of(existing);
        let is_consumed = self.has_jms_consumers(existing);
        if let Some(own) = &own {
            let refused = |why: &str| {
                let text = format!("The subscription '{}' {why}.", existing.path);
                Err(ServiceError::new(Condition::NotAllowed, text))
            };
            if own.client_id != wanted.client_id {
                return refused("belongs to a client with another identifier");
            }
            if own.is_shared != wanted.is_shared {
                let not = if own.is_shared { "" } else { "not " };
                let why = format!("is {not}shared; a name stands for a subscription of one kind");
                return refused(&why);
            }
        }
        let selector = own.and_then(|own| own.selector);
        let is_other = existing.path != *path
            || selector.is_some_and(|selector| Some(selector) != wanted.selector);
        match is_other {
            true if self.has_consumers(existing) => Err(in_use(&existing.path)),
            true => Ok(false),
            false if is_consumed && !wanted.is_shared => Err(in_use(&existing.path)),
            false => {
                self.check_receiving(existing, SubQueue::Active, &request.host)?;
                match self.requires_session(existing, SubQueue::Active) {
                    true => Err(ServiceError::requires_session()),
                    false => Ok(true),
                }
            }
        }
    }

    /// Refuses properties that a new subscription cannot have.
    pub(crate) fn check_new_subscription(
        &self,
        request: &SubscriptionRequest<'_>,
    ) -> Result<(), ServiceError> {
        request.may_manage.clone()?;
        let given = request.entity_name();
        let path = given.map(|name| request.path(&name)).transpose()?;
        let kind = EntityKind::Subscription;
        let description = self.description_for_client(request.idle, None);
        let problems = description.problems(kind, self.config.settings.tier);
        if problems.is_empty() {
            return Ok(());
        }
        let path = path.as_ref().unwrap_or(request.topic);
        Err(not_created(
            kind,
            path,
            AdministerError::Properties(problems),
        ))
    }

    /// Creates a subscription, replacing `replaced` if given.
    fn create_subscription(
        &self,
        path: &EntityPath,
        request: SubscriptionRequest<'_>,
        replaced: Option<Arc<SharedEntity>>,
    ) -> Result<Arc<SharedEntity>, ServiceError> {
        self.check_new_subscription(&request)?;
        let kind = EntityKind::Subscription;
        self.check_room(kind, path, Some(&request.filter))
            .map_err(|error| not_created(kind, path, error))?;
        let rule = Rule {
            filter: request.filter,
            ..Rule::default_rule(self.clock.now())
        };
        let (has_name, elsewhere) = match replaced {
            Some(replaced) if replaced.path == *path => (Some(replaced), None),
            other => (None, other),
        };
        has_name.inspect(|replaced| self.delete_if_there(replaced));
        let client = Some(Box::new(request.affinity));
        let made = self.create_for_client(kind, path, request.idle, client, Some(rule))?;
        // Not before: its new topic may have no room for it.
        elsewhere.inspect(|replaced| self.delete_if_there(replaced));
        Ok(made)
    }

    fn create_for_client(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        auto_delete_on_idle: Option<Duration>,
        client: Option<Box<ClientAffinity>>,
        rule: Option<Rule>,
    ) -> Result<Arc<SharedEntity>, ServiceError> {
        let description = self.description_for_client(auto_delete_on_idle, client);
        let created = self.create_entity(kind, path, description, rule);
        created.map_err(|error| not_created(kind, path, error))
    }

    fn description_for_client(
        &self,
        auto_delete_on_idle: Option<Duration>,
        client: Option<Box<ClientAffinity>>,
    ) -> EntityDescription {
        EntityDescription {
            auto_delete_on_idle,
            client,
            ..EntityDescription::of_tier(self.config.settings.tier)
        }
    }

    /// Returns the client's subscription of this name at any topic, not one without a client.
    fn client_subscription(&self, name: &str, client_id: &str) -> Option<Arc<SharedEntity>> {
        self.entities().into_iter().find(|entity| {
            let own = entity.path.topic();
            let client = || self.client_of(entity);
            own.is_some_and(|(_, own)| own.eq_ignore_ascii_case(name))
                && client().is_some_and(|client| *client.client_id == *client_id)
        })
    }

    fn client_of(&self, subscription: &SharedEntity) -> Option<Box<ClientAffinity>> {
        self.read(subscription, |entity| entity.description().client.clone())
    }

    fn has_jms_consumers(&self, subscription: &SharedEntity) -> bool {
        take(Rank::Inner, || self.jms_consumers.0.lock()).contains_key(&subscription.id)
    }

    /// Returns whether any client receives from a subscription or its dead-letter queue.
    fn has_consumers(&self, subscription: &SharedEntity) -> bool {
        self.has_jms_consumers(subscription) || self.read(subscription, Entity::has_receivers)
    }

    fn is_volatile(&self, subscription: &SharedEntity) -> bool {
        let client = self.client_of(subscription);
        client.is_some_and(|client| !client.is_durable)
    }

    /// Removes a consumer; the caller holds the lock of administrative changes.
    fn leave_subscription(&self, subscription: &SharedEntity) {
        let mut consumers = take(Rank::Inner, || self.jms_consumers.0.lock());
        match consumers.get_mut(&subscription.id) {
            Some(left) if *left > 1 => return *left -= 1,
            _ => consumers.remove(&subscription.id),
        };
        drop(consumers);
        if self.is_volatile(subscription) {
            self.delete_if_there(subscription);
        }
    }

    /// Deletes the entities of links of an earlier process, which have ended with it.
    pub(super) fn delete_left_by_links(&self, paths: &[EntityPath]) {
        let _alone = self.administer();
        for entity in paths.iter().filter_map(|path| self.entity(path)) {
            if self.is_volatile(&entity) || entity.is_temporary() {
                tracing::info!(namespace = self.name(), entity = %entity.path, "ended with its JMS client and was deleted");
                self.delete_if_there(&entity);
            }
        }
    }

    /// Deletes an entity, unless another one has its name by now.
    fn delete_if_there(&self, entity: &SharedEntity) {
        if !entity.is_deleted() {
            self.delete(&entity.path);
        }
    }
}

impl SubscriptionRequest<'_> {
    /// Returns the name of the subscription entity for the client's name.
    fn entity_name(&self) -> Option<String> {
        let client = &self.affinity;
        self.name
            .map(|name| entity_name(name, &client.client_id, client.is_durable))
    }

    fn path(&self, name: &str) -> Result<EntityPath, ServiceError> {
        let path = self.topic.subscription(name);
        path.map_err(|error| invalid_name(name, error))
    }
}

/// Returns the name of the subscription entity for a client's name (spec/jms.md).
fn entity_name(name: &str, client_id: &str, is_durable: bool) -> String {
    let ending = if is_durable { "D" } else { "ND" };
    format!("{name}${client_id}${ending}")
}

fn in_use(path: &EntityPath) -> ServiceError {
    let text = format!("The subscription '{path}' has an active consumer.");
    ServiceError::new(Condition::ResourceLocked, text)
}

fn invalid_name(name: &str, why: impl std::fmt::Display) -> ServiceError {
    let text = format!("'{name}' cannot be the name of an entity: it {why}.");
    ServiceError::new(Condition::ArgumentError, text)
}

/// Returns the AMQP error for an entity that was not created.
fn not_created(kind: EntityKind, path: &EntityPath, error: AdministerError) -> ServiceError {
    let (condition, why) = match error {
        AdministerError::Exists => {
            let text = format!("The messaging entity '{path}' already exists.");
            return ServiceError::new(Condition::EntityAlreadyExists, text);
        }
        AdministerError::NotFound => {
            let text = format!("The {kind} '{path}' has just been deleted, or its topic has.");
            return ServiceError::new(Condition::NotFound, text);
        }
        AdministerError::TooManyEntities(limit) => (
            Condition::ResourceLimitExceeded,
            format!(": the namespace has {limit} queues and topics, the most that it may have"),
        ),
        AdministerError::TopicIsFull {
            topic, limit, what, ..
        } => (
            Condition::ResourceLimitExceeded,
            format!(": the topic '{topic}' has {limit} {what}, the most that it may have"),
        ),
        AdministerError::Properties(problems) | AdministerError::Fixed(problems) => {
            let problem = problems.first().map(|problem| format!(": {problem}"));
            (Condition::ArgumentError, problem.unwrap_or_default())
        }
        AdministerError::Targets(_) => (Condition::NotFound, String::new()),
    };
    ServiceError::new(condition, format!("'{path}' is not made{why}."))
}

#[cfg(test)]
mod tests;
