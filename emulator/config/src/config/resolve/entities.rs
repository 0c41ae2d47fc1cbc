//! Validates the entities of a namespace: valid and unique names, and existing targets.
//!
//! Chains and cycles of forwarding are valid, because the hop limit ends them (decision D3). A subscription cannot be a
//! target.

use std::collections::BTreeSet;

use servicebus_broker::filter::{Filter, SqlFilter};
use servicebus_broker::{
    ClientAffinity, EntityDescription, EntityKind, EntityPath, Problem, RuleSet, Tier,
};

use super::{check_small_name, report_repeated};
use crate::config::document::{QueueBlock, SubscriptionBlock, TopicBlock};
use crate::config::properties::path as entity_path;
use crate::config::reader::{Located, Location, Locations, Report};
use crate::config::{SubscriptionConfig, TopicConfig, problem, resolve};

/// Queues by name.
type Queues = Vec<(EntityPath, EntityDescription)>;

/// An entity that may forward; only a queue with a valid name has a path, which could be its own target.
struct Forwarder {
    path: Option<EntityPath>,
    description: EntityDescription,
    locations: Locations,
}

/// Returns the queues and topics in the order of declaration.
pub(crate) fn entities(
    report: &Report<'_>,
    queues: Vec<QueueBlock>,
    topics: Vec<TopicBlock>,
    tier: Tier,
) -> (Queues, Vec<TopicConfig>) {
    report_repeated_paths(report, &queues, &topics);
    let mut forwarders = Vec::new();
    let queues = queues
        .into_iter()
        .filter_map(|block| queue(report, block, tier, &mut forwarders));
    let queues: Queues = queues.collect();
    let topics = topics
        .into_iter()
        .filter_map(|block| topic(report, block, tier, &mut forwarders));
    let topics: Vec<TopicConfig> = topics.collect();
    let paths = queues.iter().map(|(path, _)| path);
    let declared = paths
        .chain(topics.iter().map(|topic| &topic.path))
        .collect();
    report_missing_targets(report, &forwarders, &declared);
    (queues, topics)
}

fn queue(
    report: &Report<'_>,
    block: QueueBlock,
    tier: Tier,
    forwarders: &mut Vec<Forwarder>,
) -> Option<(EntityPath, EntityDescription)> {
    let QueueBlock { name, properties } = block;
    let path = name.and_then(|name| entity_path(report, &name));
    let base = EntityDescription::of_tier(tier);
    let description = properties.apply(report, EntityKind::Queue, base, tier);
    forwarders.push(Forwarder {
        path: path.clone(),
        description: description.clone(),
        locations: properties.locations,
    });
    Some((path?, description))
}

fn topic(
    report: &Report<'_>,
    block: TopicBlock,
    tier: Tier,
    forwarders: &mut Vec<Forwarder>,
) -> Option<TopicConfig> {
    let name = block.name.as_ref();
    let path = name.and_then(|name| entity_path(report, name));
    let base = EntityDescription::of_tier(tier);
    let description = block
        .properties
        .apply(report, EntityKind::Topic, base, tier);
    if let Some(problem) = EntityKind::Topic.problem("", tier) {
        let allowed = Some(problem.allowed);
        report.problem(&block.location, "this topic is not allowed", allowed);
    }
    let names = block.subscriptions.iter();
    report_repeated(
        report,
        "subscription of the topic",
        names.filter_map(|subscription| subscription.name.as_ref()),
    );
    let subscriptions = block.subscriptions.into_iter();
    let subscriptions =
        subscriptions.filter_map(|block| subscription(report, block, tier, forwarders));
    let subscriptions: Vec<_> = subscriptions.collect();
    report_too_many(report, &block.location, &subscriptions);
    Some(TopicConfig {
        path: path?,
        description,
        subscriptions,
    })
}

fn subscription(
    report: &Report<'_>,
    block: SubscriptionBlock,
    tier: Tier,
    forwarders: &mut Vec<Forwarder>,
) -> Option<SubscriptionConfig> {
    let SubscriptionBlock {
        name,
        properties,
        client,
        rules,
    } = block;
    if let Some(name) = &name {
        check_small_name(report, name);
    }
    let base = EntityDescription::of_tier(tier);
    let mut description = properties.apply(report, EntityKind::Subscription, base, tier);
    description.client = client.and_then(|client| client_in(report, client, tier));
    forwarders.push(Forwarder {
        path: None,
        description: description.clone(),
        locations: properties.locations,
    });
    let rules = resolve::rules(report, rules);
    if let (Some(client), [only]) = (&mut description.client, &rules[..])
        && let Filter::Sql(filter) = &only.filter
    {
        // Many SQL filters mean the same as a selector, and a consumer with another selector replaces the subscription.
        let text = filter.text();
        let is_selector = || SqlFilter::selector(text).is_ok().then_some(text);
        let selector = filter.selector_text().or_else(is_selector);
        client.selector = selector.map(|text| text.trim().into());
    }
    Some(SubscriptionConfig {
        name: name?.value,
        description,
        rules,
    })
}

/// Returns the JMS client of a subscription, if the tier supports JMS clients.
fn client_in(
    report: &Report<'_>,
    client: Located<ClientAffinity>,
    tier: Tier,
) -> Option<Box<ClientAffinity>> {
    if tier != Tier::Premium {
        let message = "a subscription of a client of JMS 2.0 is not allowed";
        let allowed = "in the premium tier".to_owned();
        report.problem(&client.location, message, Some(allowed));
        return None;
    }
    Some(Box::new(client.value))
}

/// Reports a topic with too many subscriptions or filters (semantics §1).
fn report_too_many(report: &Report<'_>, topic: &Location, subscriptions: &[SubscriptionConfig]) {
    let filters = || subscriptions.iter().flat_map(|s| &s.rules);
    let sql = filters().filter(|rule| matches!(rule.filter, Filter::Sql(_)));
    let correlation = filters().filter(|rule| matches!(rule.filter, Filter::Correlation(_)));
    for (count, limit, things) in [
        (
            subscriptions.len(),
            RuleSet::MAX_SUBSCRIPTIONS,
            "subscriptions",
        ),
        (sql.count(), RuleSet::MAX_SQL_FILTERS, "SQL filters"),
        (
            correlation.count(),
            RuleSet::MAX_CORRELATION_FILTERS,
            "correlation filters",
        ),
    ] {
        if count > limit {
            let message = format!("the topic has {count} {things}");
            report.problem(topic, message, Some(format!("at most {limit}")));
        }
    }
}

/// Reports names that occur twice among queues and topics. Invalid names are reported elsewhere.
fn report_repeated_paths(report: &Report<'_>, queues: &[QueueBlock], topics: &[TopicBlock]) {
    let queues = queues.iter().filter_map(|block| block.name.as_ref());
    let topics = topics.iter().filter_map(|block| block.name.as_ref());
    let names = queues.chain(topics);
    let legal = names.filter(|name| name.value.parse::<EntityPath>().is_ok());
    report_repeated(report, "entity", legal);
}

fn report_missing_targets(
    report: &Report<'_>,
    forwarders: &[Forwarder],
    declared: &BTreeSet<&EntityPath>,
) {
    for forwarder in forwarders {
        let path = forwarder.path.as_ref();
        // Problems that are only counted need no suggestions.
        let compares = !report.is_full();
        for problem in missing(path, forwarder.description.targets(), declared, compares) {
            report.setting(&forwarder.locations, problem);
        }
    }
}

/// Returns the targets of a queue or subscription that are not among the `declared` queues and topics of its namespace. A
/// subscription, or a queue without a valid name, has no `path`.
pub fn missing_targets(
    path: Option<&EntityPath>,
    targets: impl Iterator<Item = (&'static str, EntityPath)>,
    declared: &BTreeSet<&EntityPath>,
) -> Vec<Problem> {
    missing(path, targets, declared, true)
}

/// As [`missing_targets`]; `compares` adds suggestions, which takes time for every declared name.
fn missing(
    path: Option<&EntityPath>,
    targets: impl Iterator<Item = (&'static str, EntityPath)>,
    declared: &BTreeSet<&EntityPath>,
    compares: bool,
) -> Vec<Problem> {
    let is_missing = |target: &EntityPath| path != Some(target) && !declared.contains(target);
    let missing = targets.filter(|(_, target)| is_missing(target));
    missing
        .map(|(property, target)| Problem {
            property,
            value: target.to_string(),
            allowed: allowed(path, &target, declared, compares),
        })
        .collect()
}

fn allowed(
    path: Option<&EntityPath>,
    target: &EntityPath,
    declared: &BTreeSet<&EntityPath>,
    compares: bool,
) -> String {
    let others = declared.iter().filter(|name| Some(**name) != path);
    let names = others.map(|name| name.as_str());
    let nearest = match declared.len() {
        0..=problem::MAX_COMPARED if compares => problem::nearest(target.as_str(), names),
        _ => None,
    };
    match nearest {
        Some(name) => {
            format!("a queue or topic of the namespace; the nearest name is {name:?}")
        }
        None => "a queue or topic of the namespace".to_owned(),
    }
}
