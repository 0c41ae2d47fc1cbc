//! The rules of a topic's subscriptions: which of them get a message, and how many copies (semantics §13.1).
//!
//! A set is shared with what is published right now and copied when it is changed meanwhile, so that filters are
//! evaluated while the topic is not locked.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::filter::{CorrelationIndex, Filter, Properties, Rule, RuleError};
use crate::ids::{EntityPath, IdSource};

/// The rules of every subscription of a topic.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    subscriptions: BTreeMap<EntityPath, Subscribed>,
    /// Correlation filters: looked up, not tried.
    index: CorrelationIndex<Indexed>,
    /// How many SQL and how many correlation filters there are.
    filters: Filters,
}

/// Rules by the subscription.
pub(crate) type Matched<'a> = BTreeMap<&'a EntityPath, Vec<Arc<Rule>>>;
/// The rule of a subscription that failed, and why.
pub(crate) type Failed<'a> = (&'a EntityPath, &'a Rule, Box<RuleError>);

/// Filters of a topic by what they are limited by (semantics §1).
#[derive(Debug, Clone, Copy, Default)]
struct Filters {
    sql: usize,
    correlation: usize,
    /// Those that need not be evaluated; they are not limited.
    constant: usize,
}

impl Filters {
    fn count(&mut self, filter: &Filter) -> &mut usize {
        match filter {
            Filter::Sql(_) => &mut self.sql,
            Filter::Correlation(_) => &mut self.correlation,
            Filter::True | Filter::False => &mut self.constant,
        }
    }
}

/// The rules of one subscription, by their names without regard to case.
#[derive(Debug, Clone, Default)]
struct Subscribed {
    rules: BTreeMap<String, Arc<Rule>>,
    /// Those of them that must be tried on every message.
    tried: BTreeMap<String, Arc<Rule>>,
}

/// A rule in the index.
#[derive(Debug, Clone)]
struct Indexed {
    subscription: EntityPath,
    rule: Arc<Rule>,
}

impl PartialEq for Indexed {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rule, &other.rule)
    }
}

impl RuleSet {
    /// Most subscriptions of a topic (semantics §1).
    pub const MAX_SUBSCRIPTIONS: usize = 2_000;
    /// Most SQL filters of a topic, all its subscriptions together (semantics §1).
    pub const MAX_SQL_FILTERS: usize = 2_000;
    /// Most correlation filters of a topic, all its subscriptions together (semantics §1).
    pub const MAX_CORRELATION_FILTERS: usize = 100_000;

    /// The subscriptions, in the order of their paths.
    pub fn subscriptions(&self) -> impl Iterator<Item = &EntityPath> {
        self.subscriptions.keys()
    }

    /// The rules of a subscription, in the order of their names.
    pub fn of(&self, subscription: &EntityPath) -> impl Iterator<Item = &Arc<Rule>> {
        let subscribed = self.subscriptions.get(subscription);
        subscribed.into_iter().flat_map(|s| s.rules.values())
    }

    /// One rule by its name.
    pub fn find(&self, subscription: &EntityPath, name: &str) -> Option<&Arc<Rule>> {
        self.subscriptions.get(subscription)?.rules.get(&key(name))
    }

    /// How many SQL filters the topic has; those that select everything or nothing are SQL filters as well (observed 22).
    pub fn sql_filters(&self) -> usize {
        self.filters.sql + self.filters.constant
    }

    /// How many correlation filters the topic has.
    pub fn correlation_filters(&self) -> usize {
        self.filters.correlation
    }

    pub(crate) fn has(&self, subscription: &EntityPath) -> bool {
        self.subscriptions.contains_key(subscription)
    }

    /// How many filters of this kind there may be, if there are as many.
    pub(crate) fn limit_reached(&self, filter: &Filter) -> Option<usize> {
        let (count, limit) = match filter {
            Filter::Sql(_) => (self.filters.sql, Self::MAX_SQL_FILTERS),
            Filter::Correlation(_) => (self.filters.correlation, Self::MAX_CORRELATION_FILTERS),
            Filter::True | Filter::False => return None,
        };
        (count >= limit).then_some(limit)
    }

    pub(crate) fn subscribe(&mut self, subscription: &EntityPath) {
        self.subscriptions.entry(subscription.clone()).or_default();
    }

    pub(crate) fn unsubscribe(&mut self, subscription: &EntityPath) {
        let names: Vec<String> = self.of(subscription).map(|rule| key(&rule.name)).collect();
        for name in names {
            self.remove(subscription, &name);
        }
        self.subscriptions.remove(subscription);
    }

    /// Adds a rule; false, and nothing changes, when there is one of this name.
    pub(crate) fn add(&mut self, subscription: &EntityPath, rule: Rule) -> bool {
        let key = key(&rule.name);
        let subscribed = self.subscriptions.entry(subscription.clone()).or_default();
        if subscribed.rules.contains_key(&key) {
            return false;
        }
        *self.filters.count(&rule.filter) += 1;
        let rule = Arc::new(rule);
        subscribed.rules.insert(key.clone(), Arc::clone(&rule));
        if let Filter::Correlation(filter) = &rule.filter {
            let owner = Indexed {
                subscription: subscription.clone(),
                rule: Arc::clone(&rule),
            };
            self.index.insert(filter, owner);
        } else {
            subscribed.tried.insert(key, rule);
        }
        true
    }

    /// Removes a rule; false when there is none of this name.
    pub(crate) fn remove(&mut self, subscription: &EntityPath, name: &str) -> bool {
        let key = key(name);
        let Some(subscribed) = self.subscriptions.get_mut(subscription) else {
            return false;
        };
        let Some(rule) = subscribed.rules.remove(&key) else {
            return false;
        };
        subscribed.tried.remove(&key);
        *self.filters.count(&rule.filter) -= 1;
        if let Filter::Correlation(filter) = &rule.filter {
            let owner = Indexed {
                subscription: subscription.clone(),
                rule: Arc::clone(&rule),
            };
            self.index.remove(filter, &owner);
        }
        true
    }

    /// The rules of each subscription that select a message, and those that could not be evaluated.
    pub(crate) fn matching(
        &self,
        message: &Properties<'_>,
        ids: &mut dyn IdSource,
    ) -> (Matched<'_>, Vec<Failed<'_>>) {
        let mut matched = Matched::new();
        let mut failed = Vec::new();
        self.index.matching(message, |found| {
            if let Some((subscription, _)) = self.subscriptions.get_key_value(&found.subscription) {
                let rules = matched.entry(subscription).or_default();
                rules.push(Arc::clone(&found.rule));
            }
        });
        for (subscription, subscribed) in &self.subscriptions {
            for rule in subscribed.tried.values() {
                match rule.matches(message, ids) {
                    Ok(true) => matched
                        .entry(subscription)
                        .or_default()
                        .push(Arc::clone(rule)),
                    Ok(false) => {}
                    Err(error) => failed.push((subscription, &**rule, error)),
                }
            }
        }
        (matched, failed)
    }
}

fn key(name: &str) -> String {
    name.to_lowercase()
}
