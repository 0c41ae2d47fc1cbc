//! The rules of a topic's subscriptions change.

use std::sync::Arc;

use thiserror::Error;

use crate::context::Context;
use crate::entity::{Entity, Role};
use crate::filter::Rule;
use crate::ids::EntityPath;
use crate::rules::RuleSet;

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

impl Entity {
    /// The rules of a topic's subscriptions; none at a queue or subscription.
    pub fn rules(&self) -> Option<&Arc<RuleSet>> {
        match &self.role {
            Role::Topic { rules, .. } => Some(rules),
            Role::Queue { .. } | Role::Subscription { .. } => None,
        }
    }

    /// The rules of a subscription of a topic, in the order in which they were added; none of anything else.
    pub fn rules_of(&self, subscription: &EntityPath) -> impl Iterator<Item = &Arc<Rule>> {
        let set = self.rules().into_iter();
        set.flat_map(move |set| set.of(subscription))
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
        self.change_rules(cx, |set| {
            set.subscribe(subscription);
            for rule in rules {
                set.add(subscription, rule);
            }
        });
    }

    /// Forgets a subscription and its rules.
    pub fn unsubscribe(&mut self, cx: &mut Context<'_>, subscription: &EntityPath) {
        self.change_rules(cx, |set| set.unsubscribe(subscription));
    }

    /// The same where the subscription was idle, which is no use of the topic (semantics §5).
    pub(crate) fn unsubscribe_idle(&mut self, cx: &mut Context<'_>, subscription: &EntityPath) {
        self.follow_up(cx, |entity, _| {
            entity.with_rules(|set| set.unsubscribe(subscription));
        });
    }

    /// Changes the rules of a subscription, for later messages; nothing changes when that cannot be.
    pub fn change_rule(
        &mut self,
        cx: &mut Context<'_>,
        subscription: &EntityPath,
        change: RuleChange,
    ) -> Result<(), ChangeRuleError> {
        let changed = self.change_rules(cx, |set| change.apply(set, subscription));
        let no_topic = || Err(ChangeRuleError::NotFound(subscription.to_string()));
        changed.unwrap_or_else(no_topic)
    }

    /// What is published right now keeps the set as it was. None at a queue or subscription.
    fn change_rules<T>(
        &mut self,
        cx: &mut Context<'_>,
        change: impl FnOnce(&mut RuleSet) -> T,
    ) -> Option<T> {
        self.verb(cx, |entity, _| entity.with_rules(change))
    }

    fn with_rules<T>(&mut self, change: impl FnOnce(&mut RuleSet) -> T) -> Option<T> {
        self.definition_changed();
        match &mut self.role {
            Role::Topic { rules, .. } => Some(change(Arc::make_mut(rules))),
            Role::Queue { .. } | Role::Subscription { .. } => None,
        }
    }
}

impl RuleChange {
    fn apply(self, set: &mut RuleSet, subscription: &EntityPath) -> Result<(), ChangeRuleError> {
        let missing = |name: &str| ChangeRuleError::NotFound(name.to_owned());
        let (rule, before) = match self {
            Self::Remove(name) => {
                let removed = set.remove(subscription, &name);
                return removed.then_some(()).ok_or_else(|| missing(&name));
            }
            // One that was deleted meanwhile must not come back with a rule.
            Self::Add(_) if !set.has(subscription) => return Err(missing(subscription.as_str())),
            Self::Add(rule) => match set.find(subscription, &rule.name) {
                Some(_) => return Err(ChangeRuleError::Exists(rule.name.to_string())),
                None => (rule, None),
            },
            Self::Replace(rule) => {
                let before = set.find(subscription, &rule.name).cloned();
                let before = before.ok_or_else(|| missing(&rule.name))?;
                set.remove(subscription, &rule.name);
                (rule, Some(before))
            }
        };
        let limit = set.limit_reached(&rule.filter);
        let kept = match (limit, before) {
            (Some(_), before) => before.map(|before| (*before).clone()),
            (None, _) => Some(rule),
        };
        if let Some(rule) = kept {
            set.add(subscription, rule);
        }
        limit.map_or(Ok(()), |limit| Err(ChangeRuleError::LimitReached(limit)))
    }
}
