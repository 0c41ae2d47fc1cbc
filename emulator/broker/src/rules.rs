//! The rules of a topic's subscriptions: which of them get a message, and how many copies (semantics §13.1).
//!
//! A set is shared with what is published right now and copied when it is changed meanwhile, so that filters are
//! evaluated while the topic is not locked.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::entity::operation::forward::Transfer;
use crate::entity::operation::publish::MessageCopy;
use crate::filter::{CorrelationIndex, Filter, Properties, Rule, RuleError, System};
use crate::{EntityPath, IdSource, Message};

/// The rules of every subscription of a topic.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    subscriptions: BTreeMap<EntityPath, Subscribed>,
    /// Correlation filters: looked up, not tried.
    index: CorrelationIndex<Indexed>,
    /// How many SQL and how many correlation filters there are.
    filters: Filters,
}

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

    /// What each subscription gets of a message: one copy if a rule without action matches, and one for each
    /// matching rule with an action.
    pub(crate) fn copies(
        &self,
        transfer: &Transfer,
        ids: &mut dyn IdSource,
    ) -> Vec<(EntityPath, MessageCopy)> {
        let message = &transfer.message;
        let system = system(transfer);
        // What was accepted decodes. Were it not so, the message would still go to those who want every one.
        let properties = message.filter_view(&system);
        let properties = properties.unwrap_or_else(|_| Properties::of_broker(&system));
        let mut matched = BTreeMap::<&EntityPath, Vec<Arc<Rule>>>::new();
        let mut copies = Vec::new();
        self.index.matching(&properties, |found| {
            if let Some((subscription, _)) = self.subscriptions.get_key_value(&found.subscription) {
                let rules = matched.entry(subscription).or_default();
                rules.push(Arc::clone(&found.rule));
            }
        });
        for (subscription, subscribed) in &self.subscriptions {
            for rule in subscribed.tried.values() {
                match rule.matches(&properties, ids) {
                    Ok(true) => matched
                        .entry(subscription)
                        .or_default()
                        .push(Arc::clone(rule)),
                    Ok(false) => {}
                    Err(error) => {
                        let copy = copy(transfer, message.clone(), &rule.name, Some(error));
                        copies.push((subscription.clone(), copy));
                    }
                }
            }
        }
        for (subscription, rules) in matched {
            let plain = rules.iter().find(|rule| rule.action.is_none());
            let plain = plain.map(|rule| copy(transfer, message.clone(), &rule.name, None));
            copies.extend(plain.map(|copy| (subscription.clone(), copy)));
            for rule in &rules {
                let edited = edited(rule, message, &properties, ids);
                if let Some((message, failure)) = edited {
                    let copy = MessageCopy {
                        sent: Some(transfer.message.clone()),
                        ..copy(transfer, message, &rule.name, failure)
                    };
                    copies.push((subscription.clone(), copy));
                }
            }
        }
        copies
    }
}

/// The own copy of a rule with an action; unchanged when the action fails.
fn edited(
    rule: &Rule,
    message: &Message,
    properties: &Properties<'_>,
    ids: &mut dyn IdSource,
) -> Option<(Message, Option<Box<RuleError>>)> {
    let mut message = message.clone();
    match rule.edits(properties, ids)? {
        Ok(edits) => {
            let failure = message.apply(&edits).err();
            let failure = failure.map(|error| rule.cannot_be_applied(error));
            Some((message, failure))
        }
        Err(error) => Some((message, Some(error))),
    }
}

fn copy(
    transfer: &Transfer,
    message: Message,
    rule: &str,
    failure: Option<Box<RuleError>>,
) -> MessageCopy {
    MessageCopy {
        message,
        sent: None,
        enqueued_number: transfer.enqueued_number,
        hops: transfer.hops,
        ceiling: transfer.ceiling,
        rule: rule.into(),
        failure,
    }
}

/// What filters see of a message that stands at its topic.
fn system(transfer: &Transfer) -> System<'_> {
    let message = &transfer.message;
    System {
        sequence_number: Some(transfer.number),
        enqueued_sequence_number: Some(transfer.enqueued_number),
        enqueued_at: Some(transfer.enqueued_at),
        expires_at: message.time_to_live().map(|milliseconds| {
            transfer.enqueued_at + std::time::Duration::from_millis(milliseconds)
        }),
        size: message.size(),
        time_to_live: message.time_to_live().map(std::time::Duration::from_millis),
        force_persistence: true,
        dead_letter_source: message.dead_letter_source(),
        ..System::default()
    }
}

fn key(name: &str) -> String {
    name.to_lowercase()
}
