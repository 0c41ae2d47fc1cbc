//! Changes the rules of a topic's subscriptions.

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
    /// A rule of this name exists already.
    #[error("The rule '{0}' already exists.")]
    Exists(String),
    /// The topic has the maximum number of filters of this kind (semantics §1).
    #[error("The topic has {0} filters of this kind already, which is the most that it may have.")]
    LimitReached(usize),
    /// No rule has this name, or the subscription does not exist.
    #[error("The rule or subscription '{0}' could not be found.")]
    NotFound(String),
}

/// A change of a rule.
#[derive(Debug, Clone)]
pub enum RuleChange {
    /// Adds a rule, whose name must be free.
    Add(Rule),
    /// Replaces the rule of the same name.
    Replace(Rule),
    /// Removes the rule of this name.
    Remove(String),
}

impl Entity {
    /// Returns the rules of a topic's subscriptions; `None` for a queue or subscription.
    pub fn rules(&self) -> Option<&Arc<RuleSet>> {
        match &self.role {
            Role::Topic { rules, .. } => Some(rules),
            Role::Queue { .. } | Role::Subscription { .. } => None,
        }
    }

    /// Returns the rules of a topic's subscription in the order in which they were added; empty for other entities.
    pub fn rules_of(&self, subscription: &EntityPath) -> impl Iterator<Item = &Arc<Rule>> {
        let set = self.rules().into_iter();
        set.flat_map(move |set| set.of(subscription))
    }

    /// Returns the subscriptions of a topic; empty for other entities.
    pub fn subscriptions(&self) -> Vec<EntityPath> {
        let rules = self.rules();
        rules.map_or_else(Vec::new, |rules| rules.subscriptions().cloned().collect())
    }

    /// Adds a subscription that gets the messages that these rules select, from the next message on.
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

    /// Removes a subscription and its rules.
    pub fn unsubscribe(&mut self, cx: &mut Context<'_>, subscription: &EntityPath) {
        self.change_rules(cx, |set| set.unsubscribe(subscription));
    }

    /// Removes an idle subscription, which does not count as a use of the topic (semantics §5).
    pub(crate) fn unsubscribe_idle(&mut self, cx: &mut Context<'_>, subscription: &EntityPath) {
        self.follow_up(cx, |entity, _| {
            entity.definition_changed();
            entity.with_rules(|set| set.unsubscribe(subscription));
        });
    }

    /// Changes the rules of a subscription for later messages; changes nothing on an error.
    pub fn change_rule(
        &mut self,
        cx: &mut Context<'_>,
        subscription: &EntityPath,
        change: RuleChange,
    ) -> Result<(), ChangeRuleError> {
        let changed = self.client_operation(cx, |entity, _| {
            let changed = entity.with_rules(|set| change.apply(set, subscription));
            // All rules of a topic are stored together: a refused change must not store them again.
            if let Some(Ok(())) = changed {
                entity.definition_changed();
            }
            changed
        });
        let no_topic = || Err(ChangeRuleError::NotFound(subscription.to_string()));
        changed.unwrap_or_else(no_topic)
    }

    /// Changes the rule set; a publish in progress keeps the previous one. `None` for a queue or subscription.
    fn change_rules<T>(
        &mut self,
        cx: &mut Context<'_>,
        change: impl FnOnce(&mut RuleSet) -> T,
    ) -> Option<T> {
        self.client_operation(cx, |entity, _| {
            entity.definition_changed();
            entity.with_rules(change)
        })
    }

    fn with_rules<T>(&mut self, change: impl FnOnce(&mut RuleSet) -> T) -> Option<T> {
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
            // A rule must not restore a subscription that was deleted meanwhile.
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
