//! Authorization and the changes of entities and rules, in one place for the administration API, REST, the control API and
//! AMQP.
//!
//! Each API translates the errors into its own words.

use std::sync::Arc;

use servicebus_broker::filter::{Filter, Rule};
use servicebus_broker::{
    ChangeRuleError, EntityDescription, EntityKind, EntityPath, Problem, RuleChange, RuleSet,
    SubQueue,
};

use super::{Namespace, SharedEntity};
use crate::auth::{Claim, Claims, Grants, TokenCheck, TokenError};
use crate::nodes::{ServiceError, send_refusal};

/// Why an entity is not created, changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AdministerError {
    /// Another entity has the name.
    Exists,
    /// The entity was idle and has just been deleted, or the topic of a new subscription was.
    NotFound,
    /// The namespace has the maximum number of queues and topics.
    TooManyEntities(usize),
    /// The topic has as many subscriptions, or filters of the kind of the first rule, as it may have.
    TopicIsFull {
        topic: EntityPath,
        /// The limit.
        limit: usize,
        /// Of what.
        what: &'static str,
        /// The sub-code by which the administration API says so.
        sub_code: u32,
    },
    /// Invalid properties; never empty.
    Properties(Vec<Problem>),
    /// Properties that name a missing entity (semantics §11); never empty.
    Targets(Vec<(&'static str, EntityPath)>),
    /// Properties that are fixed at creation and would change; never empty.
    Fixed(Vec<Problem>),
}

/// Why a request's token gives no rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoRights {
    /// The request has no token.
    NoToken,
    /// The token is not accepted.
    Refused(TokenError),
}

impl Namespace {
    /// Returns the rights of a connection with these grants at an address.
    pub(crate) fn granted(&self, grants: &Grants, path: &str, now: i64) -> Claims {
        match self.config.token_check {
            TokenCheck::None => Claims::ALL,
            _ => grants.claims_at(path, now),
        }
    }

    /// Returns the rights of a request's token at the first of the `resources` that it covers (decision D14), by keys of the
    /// namespace and of the entity at the address `entity`.
    pub(crate) fn rights(
        &self,
        token: Option<&str>,
        entity: Option<&str>,
        resources: &[&str],
        now: i64,
    ) -> Result<Claims, NoRights> {
        if self.config.token_check == TokenCheck::None {
            return Ok(Claims::ALL);
        }
        let token = token.ok_or(NoRights::NoToken)?;
        let mut first = None;
        for resource in resources {
            let accepted = self.with_policy(entity, |policy| {
                policy.accept_token_for(token, resource, now)
            });
            match accepted {
                Ok(accepted) => return Ok(accepted.claims),
                Err(error) => {
                    let is_elsewhere = matches!(error, TokenError::Audience { .. });
                    first.get_or_insert(error);
                    if !is_elsewhere {
                        break;
                    }
                }
            }
        }
        Err(NoRights::Refused(first.unwrap_or(TokenError::JwtRefused)))
    }

    /// Returns the entity at an address, for a client that may learn whether it exists.
    pub(crate) fn reach(
        &self,
        address: &str,
        host: &str,
    ) -> Result<Arc<SharedEntity>, ServiceError> {
        let found = EntityPath::of_address(address).and_then(|path| self.entity(&path));
        found.ok_or_else(|| ServiceError::not_found(host, address))
    }

    /// Deletes an entity; of a topic, its subscriptions too.
    pub(crate) fn delete_entity(&self, path: &EntityPath) -> Result<(), AdministerError> {
        let deleted = self.delete(path);
        deleted.map(drop).ok_or(AdministerError::NotFound)
    }

    pub(crate) fn change_rules(
        &self,
        topic: &SharedEntity,
        subscription: &EntityPath,
        change: RuleChange,
    ) -> Result<(), ChangeRuleError> {
        self.operate_as_broker(topic, |topic, cx| {
            topic.change_rule(cx, subscription, change)
        })?;
        self.revise();
        Ok(())
    }

    /// Creates an entity. A subscription begins with `first_rule`, or with the one that selects everything.
    pub(crate) fn create_entity(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        description: EntityDescription,
        first_rule: Option<Rule>,
    ) -> Result<Arc<SharedEntity>, AdministerError> {
        self.check_room(kind, path, first_rule.as_ref().map(|rule| &rule.filter))?;
        self.check_properties(kind, path, &description, None)?;
        let rules = match kind {
            EntityKind::Queue | EntityKind::Topic => Vec::new(),
            EntityKind::Subscription => {
                vec![first_rule.unwrap_or_else(|| Rule::default_rule(self.clock.now()))]
            }
        };
        let created = self.create(kind, path, description, rules);
        let created = created.map_err(|_| AdministerError::Exists)?;
        match created.is_deleted() {
            true => Err(AdministerError::NotFound),
            false => Ok(created),
        }
    }

    /// Changes the properties of an entity.
    pub(crate) fn change_entity(
        &self,
        entity: &SharedEntity,
        description: EntityDescription,
    ) -> Result<(), AdministerError> {
        let before = self.read(entity, |before| before.description().clone());
        self.check_properties(entity.kind, &entity.path, &description, Some(&before))?;
        let fixed = before.fixed_problems(&description);
        if !fixed.is_empty() {
            return Err(AdministerError::Fixed(fixed));
        }
        let changed = self.update(entity, description);
        changed.then_some(()).ok_or(AdministerError::NotFound)
    }

    /// Whether there may be one more; of a subscription, where its topic is there. One that has its path makes room for it.
    pub(super) fn check_room(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        first: Option<&Filter>,
    ) -> Result<(), AdministerError> {
        if kind != EntityKind::Subscription {
            let limit = self.limit_reached();
            return limit.map_or(Ok(()), |limit| Err(AdministerError::TooManyEntities(limit)));
        }
        let topic = path.topic().and_then(|(topic, _)| self.entity(&topic));
        let topic = topic.filter(|topic| topic.kind == EntityKind::Topic);
        let topic = topic.ok_or(AdministerError::NotFound)?;
        let full = self.read(&topic, |topic| {
            let rules = topic.rules()?;
            let limit = RuleSet::MAX_SUBSCRIPTIONS;
            let others = rules.subscriptions().filter(|other| *other != path);
            if others.count() >= limit {
                return Some((limit, "subscriptions", 40503));
            }
            let limit = rules.limit_reached_beside(path, first?)?;
            Some(match first? {
                Filter::Correlation(_) => (limit, "correlation filters", 40502),
                Filter::Sql(_) | Filter::True | Filter::False => (limit, "SQL filters", 40501),
            })
        });
        full.map_or(Ok(()), |(limit, what, sub_code)| {
            Err(AdministerError::TopicIsFull {
                topic: topic.path.clone(),
                limit,
                what,
                sub_code,
            })
        })
    }

    /// Checks a description; a target that the entity has `before`, and that was deleted since, stays as it is.
    fn check_properties(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        description: &EntityDescription,
        before: Option<&EntityDescription>,
    ) -> Result<(), AdministerError> {
        let tier = self.config.settings.tier;
        let of_kind = kind.problem(path.as_str(), tier).into_iter();
        let problems: Vec<_> = of_kind.chain(description.problems(kind, tier)).collect();
        if !problems.is_empty() {
            return Err(AdministerError::Properties(problems));
        }
        let unchanged: Vec<_> = before.iter().flat_map(|before| before.targets()).collect();
        let targets = description.targets();
        let changed = targets.filter(|target| !unchanged.contains(target));
        let is_missing = |target: &EntityPath| target != path && self.entity(target).is_none();
        let missing: Vec<_> = changed.filter(|(_, target)| is_missing(target)).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(AdministerError::Targets(missing)),
        }
    }
}

/// Fails if the rights that a client has at an address (`held`) do not include `needed`.
pub(crate) fn check_claim(
    held: Claims,
    needed: Claim,
    host: &str,
    path: &str,
) -> Result<(), ServiceError> {
    match held.contains(needed) {
        true => Ok(()),
        false => Err(ServiceError::unauthorized(needed.name(), host, path)),
    }
}

impl Namespace {
    /// Checks whether messages may be sent to an entity now (semantics §14).
    pub(crate) fn check_sending(
        &self,
        entity: &SharedEntity,
        host: &str,
    ) -> Result<(), ServiceError> {
        entity.check_there(host)?;
        let status = self.read(entity, |entity| entity.description().status);
        match status.can_send() {
            true => Ok(()),
            false => Err(ServiceError::disabled(host, entity.path.as_str())),
        }
    }

    /// Checks whether messages can be received from a store of an entity now (semantics §11, §14).
    pub(crate) fn check_receiving(
        &self,
        entity: &SharedEntity,
        kind: SubQueue,
        host: &str,
    ) -> Result<(), ServiceError> {
        entity.check_there(host)?;
        entity.check_not_broken(host)?;
        self.read(entity, |entity| {
            let description = entity.description();
            if !description.status.can_receive() {
                return Err(ServiceError::disabled(host, entity.path().as_str()));
            }
            match description.forward_to.is_some() && kind == SubQueue::Active {
                true => Err(ServiceError::forwards()),
                false => Ok(()),
            }
        })
    }

    /// Returns whether a store requires sessions; dead-letter stores do not (semantics §3.3).
    pub(crate) fn requires_session(&self, entity: &SharedEntity, kind: SubQueue) -> bool {
        kind == SubQueue::Active
            && self.read(entity, |entity| entity.description().requires_session)
    }
}

impl SharedEntity {
    /// Returns the address of one of its stores.
    pub(crate) fn store_path(&self, kind: SubQueue) -> String {
        format!("{}{}", self.path, kind.suffix())
    }

    /// Returns the address of `$management` of one of its stores.
    pub(crate) fn management_path(&self, kind: SubQueue) -> String {
        format!("{}/$management", self.store_path(kind))
    }

    /// Checks that it is still in the namespace.
    pub(crate) fn check_there(&self, host: &str) -> Result<(), ServiceError> {
        match self.is_deleted() {
            true => Err(ServiceError::not_found(host, self.path.as_str())),
            false => Ok(()),
        }
    }

    /// Checks whether a store can ever be sent to: topics can, their subscriptions and dead-letter queues cannot (semantics
    /// §1, §3.3).
    pub(crate) fn check_is_sent_to(&self, kind: SubQueue) -> Result<(), ServiceError> {
        if kind != SubQueue::Active {
            let address = self.store_path(kind);
            return Err(ServiceError::is_filled_by_the_broker(&address));
        }
        match self.kind {
            EntityKind::Subscription => Err(ServiceError::sends_not_allowed(self.path.as_str())),
            EntityKind::Queue | EntityKind::Topic => Ok(()),
        }
    }

    /// Checks whether a store can ever be received from: subscriptions can, and the messages that a topic could not forward
    /// (semantics §1).
    pub(crate) fn check_is_received_from(&self, kind: SubQueue) -> Result<(), ServiceError> {
        match self.kind {
            EntityKind::Topic if kind != SubQueue::TransferDeadLetter => {
                Err(ServiceError::receives_not_allowed(&self.store_path(kind)))
            }
            EntityKind::Queue | EntityKind::Topic | EntityKind::Subscription => Ok(()),
        }
    }

    /// Fails if the entity is broken.
    pub(crate) fn check_not_broken(&self, host: &str) -> Result<(), ServiceError> {
        let broken = self.broken();
        broken.map_or(Ok(()), |broken| Err(send_refusal(&broken, host)))
    }
}
