//! Topics, their subscriptions and rules in such a world.

use servicebus_broker::filter::{
    Action, Correlation, CorrelationFilter, Filter, Parameters, Rule, SqlFilter,
};
use servicebus_broker::{
    ChangeRuleError, Entities, EntityDescription, EntityKind, EntityPath, NamespaceSettings,
    RuleChange,
};

use super::{World, path};
use crate::bus::START;

/// A rule without action.
pub(crate) fn rule(name: &str, filter: Filter) -> Rule {
    Rule {
        name: name.into(),
        filter,
        action: None,
        created_at: START,
    }
}

/// A rule with an action.
pub(crate) fn acting(name: &str, filter: Filter, action: &str) -> Rule {
    let action = Action::parse(action, Parameters::new());
    Rule {
        action: Some(action.expect("an action")),
        ..rule(name, filter)
    }
}

pub(crate) fn sql(condition: &str) -> Filter {
    let filter = SqlFilter::parse(condition, Parameters::new());
    Filter::Sql(filter.expect("a condition"))
}

pub(crate) fn correlation(description: Correlation) -> Filter {
    Filter::Correlation(CorrelationFilter::new(description))
}

impl World {
    /// A topic `t`, with these subscriptions that get everything.
    pub(crate) fn topic(subscriptions: &[&str]) -> Self {
        let mut world = Self::new();
        world.declare_topic("t", |_| {});
        for name in subscriptions {
            world.subscribe(name, |_| {});
        }
        world
    }

    pub(crate) fn declare_topic(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut EntityDescription),
    ) {
        self.declare_topic_under(&NamespaceSettings::default(), name, change);
    }

    /// The same in a namespace with these settings.
    pub(crate) fn declare_topic_under(
        &mut self,
        settings: &NamespaceSettings,
        name: &str,
        change: impl FnOnce(&mut EntityDescription),
    ) {
        let mut description = EntityDescription::default();
        change(&mut description);
        self.create(EntityKind::Topic, path(name), description, settings, vec![]);
    }

    /// Declares a subscription, given by its path, with the default rule.
    pub(crate) fn subscribe(&mut self, name: &str, change: impl FnOnce(&mut EntityDescription)) {
        let default = Rule::default_rule(self.now);
        self.subscribe_by(name, change, [default]);
    }

    /// The same with rules of its own.
    pub(crate) fn select(&mut self, name: &str, rules: impl IntoIterator<Item = Rule>) {
        self.subscribe_by(name, |_| {}, rules);
    }

    pub(crate) fn subscribe_by(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut EntityDescription),
        rules: impl IntoIterator<Item = Rule>,
    ) {
        let mut description = EntityDescription::default();
        change(&mut description);
        let settings = NamespaceSettings::default();
        let rules = rules.into_iter().collect();
        let kind = EntityKind::Subscription;
        self.create(kind, path(name), description, &settings, rules);
    }

    pub(crate) fn add_rule(&mut self, name: &str, rule: Rule) -> Result<(), ChangeRuleError> {
        self.with_entity(&path(name), |entity, cx| entity.touch(cx));
        self.change_rule(name, RuleChange::Add(rule))
    }

    pub(crate) fn replace_rule(&mut self, name: &str, rule: Rule) -> Result<(), ChangeRuleError> {
        self.change_rule(name, RuleChange::Replace(rule))
    }

    pub(crate) fn remove_rule(&mut self, name: &str, rule: &str) -> Result<(), ChangeRuleError> {
        self.change_rule(name, RuleChange::Remove(rule.to_owned()))
    }

    fn change_rule(&mut self, name: &str, change: RuleChange) -> Result<(), ChangeRuleError> {
        let subscription = path(name);
        self.operate(topic_of(&subscription).as_str(), |entity, cx| {
            entity.change_rule(cx, &subscription, change)
        })
    }

    /// The names of a subscription's rules.
    pub(crate) fn rules(&self, name: &str) -> Vec<String> {
        let subscription = path(name);
        let topic = self.entity(topic_of(&subscription).as_str());
        let rules = topic.rules().expect("a topic").of(&subscription);
        rules.map(|rule| rule.name.to_string()).collect()
    }
}

fn topic_of(subscription: &EntityPath) -> EntityPath {
    subscription.topic().expect("a subscription").0
}
