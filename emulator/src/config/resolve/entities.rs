//! What a namespace holds: names that are legal and different, and targets that are there.

use std::collections::BTreeSet;

use servicebus_broker::filter::Filter;
use servicebus_broker::{
    EntityPath, QueueDescription, RuleSet, SubscriptionDescription, Tier, TopicDescription,
};

use super::targets::missing;
use super::{check_small_name, report_repeated, rule, settings};
use crate::config::document::{QueueBlock, SubscriptionBlock, TopicBlock};
use crate::config::reader::{Place, Places, Report};
use crate::config::{SubscriptionConfig, TopicConfig};

/// Queues with their names.
type Queues = Vec<(EntityPath, QueueDescription)>;

/// Something that may forward; only a queue with a legal name has a path that could be its own target.
struct Forwarder {
    path: Option<EntityPath>,
    description: QueueDescription,
    places: Places,
}

/// The queues and topics in the order of their declaration.
pub(super) fn entities(
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
) -> Option<(EntityPath, QueueDescription)> {
    let QueueBlock { name, properties } = block;
    let path = name.and_then(|name| settings::path(report, &name));
    let base = QueueDescription::of_tier(tier);
    let description = settings::queue(report, &properties, base, tier);
    forwarders.push(Forwarder {
        path: path.clone(),
        description: description.clone(),
        places: properties.places,
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
    let path = name.and_then(|name| settings::path(report, name));
    let base = TopicDescription::default();
    let declared_at = Some(&block.place);
    let properties = &block.properties;
    let description = settings::topic(report, declared_at, properties, &base, path.as_ref(), tier);
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
    report_too_many(report, &block.place, &subscriptions);
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
        rules,
    } = block;
    if let Some(name) = &name {
        check_small_name(report, name);
    }
    let base = SubscriptionDescription::default();
    let description = settings::subscription(report, &properties, &base, tier);
    forwarders.push(Forwarder {
        path: None,
        description: description.queue_description(),
        places: properties.places,
    });
    let rules = rule::rules(report, rules);
    Some(SubscriptionConfig {
        name: name?.value,
        description,
        rules,
    })
}

/// Reports a topic with more subscriptions or filters than it may have (semantics §1).
fn report_too_many(report: &Report<'_>, topic: &Place, subscriptions: &[SubscriptionConfig]) {
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

/// Queues and topics share their names; those that are not legal are reported as such.
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
        // Problems that are only counted need no names.
        let compares = !report.is_full();
        for problem in missing(path, &forwarder.description, declared, compares) {
            report.setting(&forwarder.places, problem);
        }
    }
}
