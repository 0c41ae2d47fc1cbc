//! The rules of a topic's subscriptions: which of them get a message, and how many copies (semantics §13.1).
//!
//! A publish in progress shares the set, and a change meanwhile copies it, so that filters are evaluated while the topic is
//! not locked.

use std::collections::BTreeMap;
use std::mem::discriminant;
use std::sync::Arc;

use crate::filter::{CorrelationIndex, Filter, Properties, Rule, RuleError};
use crate::ids::{EntityPath, IdSource};

/// The rules of every subscription of a topic.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    subscriptions: BTreeMap<EntityPath, Subscribed>,
    /// Correlation filters, which are looked up and not tried one by one.
    index: CorrelationIndex<Indexed>,
    /// The number of SQL and of correlation filters.
    filters: Filters,
}

/// The matching rules of each subscription.
pub(crate) type Matched<'a> = BTreeMap<&'a EntityPath, Vec<Arc<Rule>>>;
/// A rule that failed, with its subscription and the error.
pub(crate) type Failed<'a> = (&'a EntityPath, &'a Rule, Box<RuleError>);

/// Filters of a topic by their limits (semantics §1).
#[derive(Debug, Clone, Copy, Default)]
struct Filters {
    sql: usize,
    correlation: usize,
    /// Filters without evaluation, which are not limited.
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

/// The rules of one subscription, by case-insensitive name.
#[derive(Debug, Clone, Default)]
struct Subscribed {
    rules: BTreeMap<String, Arc<Rule>>,
    /// Rules that must be evaluated on every message.
    tried: BTreeMap<String, Arc<Rule>>,
}

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
    /// Maximum number of subscriptions of a topic (semantics §1).
    pub const MAX_SUBSCRIPTIONS: usize = 2_000;
    /// Maximum number of SQL filters in all subscriptions of a topic (semantics §1).
    pub const MAX_SQL_FILTERS: usize = 2_000;
    /// Maximum number of correlation filters in all subscriptions of a topic (semantics §1).
    pub const MAX_CORRELATION_FILTERS: usize = 100_000;

    /// Returns the subscriptions in the order of their paths.
    pub fn subscriptions(&self) -> impl Iterator<Item = &EntityPath> {
        self.subscriptions.keys()
    }

    /// Returns the rules of a subscription in the order of their names.
    pub fn of(&self, subscription: &EntityPath) -> impl Iterator<Item = &Arc<Rule>> {
        let subscribed = self.subscriptions.get(subscription);
        subscribed.into_iter().flat_map(|s| s.rules.values())
    }

    /// Returns a rule by its name.
    pub fn find(&self, subscription: &EntityPath, name: &str) -> Option<&Arc<Rule>> {
        self.subscriptions.get(subscription)?.rules.get(&key(name))
    }

    /// Returns the number of SQL filters; those that select everything or nothing count too (observed 22).
    pub fn sql_filters(&self) -> usize {
        self.filters.sql + self.filters.constant
    }

    /// Returns the number of correlation filters.
    pub fn correlation_filters(&self) -> usize {
        self.filters.correlation
    }

    pub(crate) fn has(&self, subscription: &EntityPath) -> bool {
        self.subscriptions.contains_key(subscription)
    }

    /// Returns the limit of filters of this kind if it is reached.
    pub(crate) fn limit_reached(&self, filter: &Filter) -> Option<usize> {
        self.limit(filter, 0)
    }

    fn limit(&self, filter: &Filter, not_counted: usize) -> Option<usize> {
        let (count, limit) = match filter {
            Filter::Sql(_) => (self.filters.sql, Self::MAX_SQL_FILTERS),
            Filter::Correlation(_) => (self.filters.correlation, Self::MAX_CORRELATION_FILTERS),
            Filter::True | Filter::False => return None,
        };
        (count >= limit + not_counted).then_some(limit)
    }

    /// The same, where the rules of a subscription do not count.
    pub fn limit_reached_beside(
        &self,
        subscription: &EntityPath,
        filter: &Filter,
    ) -> Option<usize> {
        let is_alike = |rule: &&Arc<Rule>| discriminant(&rule.filter) == discriminant(filter);
        self.limit(filter, self.of(subscription).filter(is_alike).count())
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

    /// Adds a rule; returns false and changes nothing if the name is taken.
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

    /// Removes a rule; returns false if the name is unknown.
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

    /// Returns the rules of each subscription that select a message, and the rules that failed.
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
