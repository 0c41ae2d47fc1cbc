//! The shape of what a namespace holds: queues, and topics with their subscriptions.

use super::properties::Properties;
use super::rule::RuleBlock;
use crate::config::reader::{Located, Object, Place};

/// One element of `Queues`.
#[derive(Debug)]
pub(in crate::config) struct QueueBlock {
    pub(in crate::config) name: Option<Located<String>>,
    pub(in crate::config) properties: Properties,
}

/// One element of `Topics`.
#[derive(Debug)]
pub(in crate::config) struct TopicBlock {
    pub(in crate::config) place: Place,
    pub(in crate::config) name: Option<Located<String>>,
    pub(in crate::config) properties: Properties,
    pub(in crate::config) subscriptions: Vec<SubscriptionBlock>,
}

/// One element of a topic's `Subscriptions`.
#[derive(Debug)]
pub(in crate::config) struct SubscriptionBlock {
    pub(in crate::config) name: Option<Located<String>>,
    pub(in crate::config) properties: Properties,
    pub(in crate::config) rules: Vec<RuleBlock>,
}

impl QueueBlock {
    pub(super) fn read(mut object: Object<'_, '_>) -> Self {
        let name = object.required_string("Name");
        let properties = object.object("Properties").map(Properties::of_queue);
        object.finish();
        Self {
            name,
            properties: properties.unwrap_or_default(),
        }
    }
}

impl TopicBlock {
    pub(super) fn read(mut object: Object<'_, '_>) -> Self {
        let name = object.required_string("Name");
        let properties = object.object("Properties").map(Properties::of_topic);
        let subscriptions = object.objects("Subscriptions").map(|found| found.value);
        let place = object.finish();
        let subscriptions = subscriptions.unwrap_or_default().into_iter();
        Self {
            place,
            name,
            properties: properties.unwrap_or_default(),
            subscriptions: subscriptions.map(SubscriptionBlock::read).collect(),
        }
    }
}

impl SubscriptionBlock {
    fn read(mut object: Object<'_, '_>) -> Self {
        let name = object.required_string("Name");
        let properties = object.object("Properties");
        let properties = properties.map(Properties::of_subscription);
        let rules = object.nullable_objects("Rules").map(|rules| rules.value);
        object.finish();
        let rules = rules.unwrap_or_default().into_iter();
        Self {
            name,
            properties: properties.unwrap_or_default(),
            rules: rules.map(RuleBlock::read).collect(),
        }
    }
}
