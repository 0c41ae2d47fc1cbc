//! The rules of a topic's subscriptions change.

use std::sync::Arc;

use thiserror::Error;

use crate::entity::Role;
use crate::filter::Rule;
use crate::{Context, Entity, EntityPath, RuleSet};

/// Why a rule was not added or removed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ChangeRuleError {
    /// There is one of this name already.
    #[error("The rule '{0}' already exists.")]
    Exists(String),
    /// The topic has as many filters of this kind as it may have (semantics §1).
    #[error("The topic has {0} filters of this kind already, which is the most that it may have.")]
    LimitReached(usize),
    /// There is none of this name, or no such subscription.
    #[error("The rule or subscription '{0}' could not be found.")]
    NotFound(String),
}

/// What is to become of a rule.
#[derive(Debug, Clone)]
pub enum RuleChange {
    /// It is added; there must be none of its name.
    Add(Rule),
    /// It takes the place of the one that has its name.
    Replace(Rule),
    /// The rule of this name is removed.
    Remove(String),
}

impl RuleChange {
    /// Changes the rules of a subscription, which its topic keeps.
    pub fn apply(
        self,
        topic: &mut Entity,
        cx: &mut Context<'_>,
        subscription: &EntityPath,
    ) -> Result<(), ChangeRuleError> {
        match self {
            Self::Add(rule) => topic.add_rule(cx, subscription, rule),
            Self::Replace(rule) => topic.replace_rule(cx, subscription, rule),
            Self::Remove(name) => topic.remove_rule(cx, subscription, &name),
        }
    }
}

impl Entity {
    /// The rules of a topic's subscriptions; none at a queue or subscription.
    pub fn rules(&self) -> Option<&Arc<RuleSet>> {
        match &self.role {
            Role::Topic { rules, .. } => Some(rules),
            Role::Queue { .. } | Role::Subscription { .. } => None,
        }
    }

    /// The subscriptions of a topic; none of anything else.
    pub fn subscriptions(&self) -> Vec<EntityPath> {
        let rules = self.rules();
        rules.map_or_else(Vec::new, |rules| rules.subscriptions().cloned().collect())
    }

    /// Lets a subscription get what these rules select, from the next message on.
    pub fn subscribe(
        &mut self,
        cx: &mut Context<'_>,
        subscription: &EntityPath,
        rules: impl IntoIterator<Item = Rule>,
    ) {
        self.begin(cx);
        if let Some(set) = self.rules_mut() {
            set.subscribe(subscription);
            for rule in rules {
                set.add(subscription, rule);
            }
        }
    }

    /// Forgets a subscription and its rules.
    pub fn unsubscribe(&mut self, cx: &mut Context<'_>, subscription: &EntityPath) {
        self.begin(cx);
        if let Some(set) = self.rules_mut() {
            set.unsubscribe(subscription);
        }
    }

    /// Adds a rule; it takes effect for later messages.
    pub fn add_rule(
        &mut self,
        cx: &mut Context<'_>,
        subscription: &EntityPath,
        rule: Rule,
    ) -> Result<(), ChangeRuleError> {
        self.begin(cx);
        let name = rule.name.to_string();
        // A subscription that was deleted meanwhile must not come back with a rule.
        let set = self.rules_mut().filter(|set| set.has(subscription));
        let set = set.ok_or_else(|| ChangeRuleError::NotFound(subscription.to_string()))?;
        if set.find(subscription, &name).is_some() {
            return Err(ChangeRuleError::Exists(name));
        }
        if let Some(limit) = set.limit_reached(&rule.filter) {
            return Err(ChangeRuleError::LimitReached(limit));
        }
        set.add(subscription, rule);
        Ok(())
    }

    /// Puts a rule in the place of the one that has its name; nothing changes when it cannot be.
    pub fn replace_rule(
        &mut self,
        cx: &mut Context<'_>,
        subscription: &EntityPath,
        rule: Rule,
    ) -> Result<(), ChangeRuleError> {
        self.begin(cx);
        let name = rule.name.to_string();
        let missing = || ChangeRuleError::NotFound(name.clone());
        let set = self.rules_mut().ok_or_else(missing)?;
        let before = Arc::clone(set.find(subscription, &name).ok_or_else(missing)?);
        set.remove(subscription, &name);
        if let Some(limit) = set.limit_reached(&rule.filter) {
            set.add(subscription, (*before).clone());
            return Err(ChangeRuleError::LimitReached(limit));
        }
        set.add(subscription, rule);
        Ok(())
    }

    /// Removes a rule.
    pub fn remove_rule(
        &mut self,
        cx: &mut Context<'_>,
        subscription: &EntityPath,
        name: &str,
    ) -> Result<(), ChangeRuleError> {
        self.begin(cx);
        let removed = self
            .rules_mut()
            .is_some_and(|set| set.remove(subscription, name));
        let missing = || ChangeRuleError::NotFound(name.to_owned());
        removed.then_some(()).ok_or_else(missing)
    }

    /// What is published right now keeps the set as it was.
    fn rules_mut(&mut self) -> Option<&mut RuleSet> {
        match &mut self.role {
            Role::Topic { rules, .. } => Some(Arc::make_mut(rules)),
            Role::Queue { .. } | Role::Subscription { .. } => None,
        }
    }
}
