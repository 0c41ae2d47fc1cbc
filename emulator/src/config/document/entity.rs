//! The shape of what a namespace holds: queues, and topics with their subscriptions.

use super::rule::RuleBlock;
use servicebus_broker::EntityKind;

use crate::config::properties::Properties;
use crate::config::reader::{Located, Object, Place};

/// One element of `Queues`.
#[derive(Debug)]
pub(crate) struct QueueBlock {
    pub(crate) name: Option<Located<String>>,
    pub(crate) properties: Properties,
}

/// One element of `Topics`.
#[derive(Debug)]
pub(crate) struct TopicBlock {
    pub(crate) place: Place,
    pub(crate) name: Option<Located<String>>,
    pub(crate) properties: Properties,
    pub(crate) subscriptions: Vec<SubscriptionBlock>,
}

/// One element of a topic's `Subscriptions`.
#[derive(Debug)]
pub(crate) struct SubscriptionBlock {
    pub(crate) name: Option<Located<String>>,
    pub(crate) properties: Properties,
    pub(crate) rules: Vec<RuleBlock>,
}

impl QueueBlock {
    pub(crate) fn read(mut object: Object<'_, '_>) -> Self {
        let name = object.required_string("Name");
        let properties = properties(&mut object, EntityKind::Queue);
        object.finish();
        Self { name, properties }
    }
}

impl TopicBlock {
    pub(crate) fn read(mut object: Object<'_, '_>) -> Self {
        let name = object.required_string("Name");
        let properties = properties(&mut object, EntityKind::Topic);
        let subscriptions = object.objects("Subscriptions").map(|found| found.value);
        let place = object.finish();
        let subscriptions = subscriptions.unwrap_or_default().into_iter();
        Self {
            place,
            name,
            properties,
            subscriptions: subscriptions.map(SubscriptionBlock::read).collect(),
        }
    }
}

impl SubscriptionBlock {
    fn read(mut object: Object<'_, '_>) -> Self {
        let name = object.required_string("Name");
        let properties = properties(&mut object, EntityKind::Subscription);
        let rules = object.nullable_objects("Rules").map(|rules| rules.value);
        object.finish();
        let rules = rules.unwrap_or_default().into_iter();
        Self {
            name,
            properties,
            rules: rules.map(RuleBlock::read).collect(),
        }
    }
}

fn properties(object: &mut Object<'_, '_>, kind: EntityKind) -> Properties {
    let written = object.object("Properties");
    written.map_or_else(Properties::default, |own| Properties::read(own, kind))
}
