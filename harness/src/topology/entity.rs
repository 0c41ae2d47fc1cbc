//! Builders of queues, topics and subscriptions.
//!
//! Every property is defined once, for all kinds of entity that have it, and is written under its name in the emulator's
//! table of properties; a test compares the two. Properties that are not set have the service's defaults. The emulator
//! validates the values later.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{EntityStatus, Rule};
use crate::text::iso8601;

/// A queue of a topology.
#[derive(Debug, Clone)]
pub struct Queue {
    name: String,
    properties: Map<String, Value>,
}

/// A topic of a topology.
#[derive(Debug, Clone)]
pub struct Topic {
    name: String,
    properties: Map<String, Value>,
    subscriptions: Vec<Subscription>,
}

/// A subscription of a topic of a topology.
#[derive(Debug, Clone)]
pub struct Subscription {
    name: String,
    properties: Map<String, Value>,
    rules: Vec<Rule>,
}

impl Queue {
    /// Creates a queue with the service's defaults.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            properties: Map::new(),
        }
    }

    /// Returns the name of a setting that is not a property.
    pub(crate) fn part(&self) -> Option<&'static str> {
        None
    }

    pub(crate) fn document(&self) -> Value {
        json!({ "Name": self.name, "Properties": self.properties })
    }
}

impl Topic {
    /// Creates a topic with the service's defaults and without subscriptions: messages sent to it are dropped.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            properties: Map::new(),
            subscriptions: Vec::new(),
        }
    }

    /// Adds a subscription.
    pub fn subscription(mut self, subscription: Subscription) -> Self {
        self.subscriptions.push(subscription);
        self
    }

    pub(crate) fn subscriptions(&self) -> &[Subscription] {
        &self.subscriptions
    }

    /// Returns the name of a setting that is not a property.
    pub(crate) fn part(&self) -> Option<&'static str> {
        (!self.subscriptions.is_empty()).then_some("subscriptions")
    }

    pub(crate) fn document(&self) -> Value {
        let subscriptions = Vec::from_iter(self.subscriptions.iter().map(Subscription::document));
        json!({ "Name": self.name, "Properties": self.properties, "Subscriptions": subscriptions })
    }
}

impl Subscription {
    /// Creates a subscription with the service's defaults. Until a rule is added, it receives every message.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            properties: Map::new(),
            rules: Vec::new(),
        }
    }

    /// Adds a rule. The first one replaces `$Default`, which selects every message.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Returns the name of a setting that is not a property.
    pub(crate) fn part(&self) -> Option<&'static str> {
        (!self.rules.is_empty()).then_some("rules")
    }

    fn document(&self) -> Value {
        let rules = Vec::from_iter(self.rules.iter().map(Rule::document));
        json!({ "Name": self.name, "Properties": self.properties, "Rules": rules })
    }
}

/// Gives kinds of entity the methods that set properties: `method(value: Type) => "Name", value as written`.
macro_rules! properties {
    ($($entity:ident)+: $methods:tt) => {
        $(properties!(@ $entity $methods);)+
    };
    (@ $entity:ident {
        $($(#[$about:meta])+ $method:ident($value:ident: $type:ty) => $name:literal, $written:expr;)+
    }) => {
        impl $entity {
            $(
                $(#[$about])+
                pub fn $method(mut self, $value: $type) -> Self {
                    self.properties.insert($name.to_owned(), json!($written));
                    self
                }
            )+
        }
    };
}

properties! { Queue Topic Subscription: {
    /// Sets the time to live of messages without one, and the largest for all messages of the entity: at least one second,
    /// unlimited unless set; in the basic tier 14 days, which is the maximum there. Between a topic and its subscription the
    /// smaller one applies.
    default_time_to_live(duration: Duration) => "DefaultMessageTimeToLive", iso8601(duration);
    /// Sets the time without use after which the entity is deleted: at least 5 minutes, never unless set. A forwarding
    /// entity is never idle.
    auto_delete_on_idle(idle: Duration) => "AutoDeleteOnIdle", iso8601(idle);
    /// Sets the status, active unless set. A topic has no [`EntityStatus::ReceiveDisabled`]; a subscription has no
    /// [`EntityStatus::SendDisabled`], and receives messages in any status.
    status(status: EntityStatus) => "Status", status.name();
}}

properties! { Queue Topic: {
    /// Sets whether a message is dropped if its id was seen within the window; off unless set. Not in the basic tier.
    requires_duplicate_detection(enabled: bool) => "RequiresDuplicateDetection", enabled;
    /// Sets how long message ids are remembered: 5 seconds to 7 days, 10 minutes unless set.
    duplicate_detection_window(window: Duration) => "DuplicateDetectionHistoryTimeWindow", iso8601(window);
    /// Sets the maximum size of the entity, dead letters included: 1 to 81920 MiB, 1024 unless set.
    max_size_in_megabytes(size: u64) => "MaxSizeInMegabytes", size;
    /// Sets the maximum size of a message, in the premium tier only: 1024 to 102400 KiB, 1024 unless set.
    max_message_size_in_kilobytes(size: u64) => "MaxMessageSizeInKilobytes", size;
    /// Sets whether sequence numbers include a partition; off unless set.
    enable_partitioning(enabled: bool) => "EnablePartitioning", enabled;
}}

properties! { Queue Subscription: {
    /// Sets the number of failed deliveries after which a message is dead-lettered: 1 to 2147483647, 10 unless set.
    max_delivery_count(count: u32) => "MaxDeliveryCount", count;
    /// Sets how long a received message is locked: 5 seconds to 5 minutes, one minute unless set.
    lock_duration(duration: Duration) => "LockDuration", iso8601(duration);
    /// Sets whether an expired message is dead-lettered instead of dropped; off unless set.
    dead_lettering_on_message_expiration(enabled: bool) => "DeadLetteringOnMessageExpiration", enabled;
    /// Sets whether every message belongs to a session, whose messages only one receiver at a time gets; off unless set.
    /// Fixed at creation. Not in the basic tier. A subscription dead-letters messages without a session.
    requires_session(required: bool) => "RequiresSession", required;
    /// Sets a queue or topic of the topology to which all messages are forwarded. A message is forwarded at most four times;
    /// [`Topology::failed_forwards`](crate::Topology::failed_forwards) sets where it goes then. Not in the basic tier. In an
    /// update an empty name ends forwarding.
    forward_to(name: impl Into<String>) => "ForwardTo", name.into();
    /// Sets a queue or topic of the topology to which dead letters are forwarded. Not in the basic tier.
    forward_dead_lettered_messages_to(name: impl Into<String>) => "ForwardDeadLetteredMessagesTo", name.into();
}}

properties! { Subscription: {
    /// Sets whether a message is dead-lettered if a filter or action fails on it; on unless set.
    dead_lettering_on_filter_evaluation_exceptions(enabled: bool) => "DeadLetteringOnFilterEvaluationExceptions", enabled;
}}

/// Methods of all kinds of entity.
macro_rules! declared {
    ($($entity:ident)+) => {$(
        impl $entity {
            pub(crate) fn name(&self) -> &str {
                &self.name
            }

            /// Returns the properties for the control API.
            pub(crate) fn properties(&self) -> Value {
                Value::Object(self.properties.clone())
            }
        }
    )+};
}

declared!(Queue Topic Subscription);
