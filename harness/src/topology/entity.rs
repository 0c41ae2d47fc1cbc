//! Queues, topics and subscriptions as the builder spells them.
//!
//! Every property stands once, for all kinds of entity that have it, and is written under its name in the emulator's table of
//! properties; a test compares the two. What is not written has the service's default. Values are judged later, with all the
//! others.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{EntityStatus, Rule};
use crate::text::iso8601;

/// A queue to start with.
#[derive(Debug, Clone)]
pub struct Queue {
    name: String,
    properties: Map<String, Value>,
}

/// A topic to start with.
#[derive(Debug, Clone)]
pub struct Topic {
    name: String,
    properties: Map<String, Value>,
    subscriptions: Vec<Subscription>,
}

/// A subscription of a topic to start with.
#[derive(Debug, Clone)]
pub struct Subscription {
    name: String,
    properties: Map<String, Value>,
    rules: Vec<Rule>,
}

impl Queue {
    /// Names a queue with the service's defaults.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            properties: Map::new(),
        }
    }

    /// Returns what was set that is no property.
    pub(crate) fn part(&self) -> Option<&'static str> {
        None
    }

    pub(crate) fn document(&self) -> Value {
        json!({ "Name": self.name, "Properties": self.properties })
    }
}

impl Topic {
    /// Names a topic with the service's defaults and without subscriptions: what is sent to it is gone.
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

    /// Returns what was set that is no property.
    pub(crate) fn part(&self) -> Option<&'static str> {
        (!self.subscriptions.is_empty()).then_some("subscriptions")
    }

    pub(crate) fn document(&self) -> Value {
        let subscriptions = Vec::from_iter(self.subscriptions.iter().map(Subscription::document));
        json!({ "Name": self.name, "Properties": self.properties, "Subscriptions": subscriptions })
    }
}

impl Subscription {
    /// Names a subscription with the service's defaults. Until a rule is added it gets every message.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            properties: Map::new(),
            rules: Vec::new(),
        }
    }

    /// Adds a rule. The first takes the place of `$Default`, which selects every message.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Returns what was set that is no property.
    pub(crate) fn part(&self) -> Option<&'static str> {
        (!self.rules.is_empty()).then_some("rules")
    }

    fn document(&self) -> Value {
        let rules = Vec::from_iter(self.rules.iter().map(Rule::document));
        json!({ "Name": self.name, "Properties": self.properties, "Rules": rules })
    }
}

/// Gives kinds of entity methods that set a property: `method(value: Type) => "Name", value as it is written`.
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
    /// Sets the time to live of messages that bring none, and the most that any may have here: one second or longer, without
    /// end unless set; in the basic tier 14 days, which is the most there. Of a topic's and its subscription's the smaller
    /// counts.
    default_time_to_live(duration: Duration) => "DefaultMessageTimeToLive", iso8601(duration);
    /// Sets after how long without use the entity is deleted: 5 minutes or longer, never unless set. One that forwards is
    /// never idle.
    auto_delete_on_idle(idle: Duration) => "AutoDeleteOnIdle", iso8601(idle);
    /// Sets what can be done with the entity: everything unless set. [`EntityStatus::ReceiveDisabled`] is no status of a
    /// topic, [`EntityStatus::SendDisabled`] none of a subscription, in which messages arrive in any status.
    status(status: EntityStatus) => "Status", status.name();
}}

properties! { Queue Topic: {
    /// Says whether a message is dropped whose id was seen within the window; it is not unless set. Not in the basic tier.
    requires_duplicate_detection(enabled: bool) => "RequiresDuplicateDetection", enabled;
    /// Sets for how long message ids are remembered: 5 seconds to 7 days, 10 minutes unless set.
    duplicate_detection_window(window: Duration) => "DuplicateDetectionHistoryTimeWindow", iso8601(window);
    /// Sets how much the entity may hold, dead letters included: 1 to 81920 MiB, 1024 unless set.
    max_size_in_megabytes(size: u64) => "MaxSizeInMegabytes", size;
    /// Sets the largest message, in the premium tier only: 1024 to 102400 KiB, 1024 unless set.
    max_message_size_in_kilobytes(size: u64) => "MaxMessageSizeInKilobytes", size;
    /// Says whether sequence numbers carry a partition; they do not unless set.
    enable_partitioning(enabled: bool) => "EnablePartitioning", enabled;
}}

properties! { Queue Subscription: {
    /// Sets after how many failed deliveries a message is dead-lettered: 1 to 2147483647, 10 unless set.
    max_delivery_count(count: u32) => "MaxDeliveryCount", count;
    /// Sets for how long a received message is locked: 5 seconds to 5 minutes, one minute unless set.
    lock_duration(duration: Duration) => "LockDuration", iso8601(duration);
    /// Says whether an expired message is dead-lettered rather than dropped; it is not unless set.
    dead_lettering_on_message_expiration(enabled: bool) => "DeadLetteringOnMessageExpiration", enabled;
    /// Says whether every message belongs to a session, and only one receiver at a time has those of a session; it is not so
    /// unless set. Fixed when the entity is made. Not in the basic tier, nor with forwarding. A subscription dead-letters
    /// messages without a session.
    requires_session(required: bool) => "RequiresSession", required;
    /// Names another queue or a topic of the topology to which all messages are forwarded. A message is forwarded four times
    /// at most; where it goes then is set by [`Topology::failed_forwards`](crate::Topology::failed_forwards).
    /// Not in the basic tier. In an update an empty name ends it.
    forward_to(name: impl Into<String>) => "ForwardTo", name.into();
    /// Names another queue or a topic of the topology to which dead letters are forwarded. Not in the basic tier.
    forward_dead_lettered_messages_to(name: impl Into<String>) => "ForwardDeadLetteredMessagesTo", name.into();
}}

properties! { Subscription: {
    /// Says whether a message is dead-lettered on which a filter or action fails; it is unless set.
    dead_lettering_on_filter_evaluation_exceptions(enabled: bool) => "DeadLetteringOnFilterEvaluationExceptions", enabled;
}}

/// What all kinds of entity are asked.
macro_rules! declared {
    ($($entity:ident)+) => {$(
        impl $entity {
            pub(crate) fn name(&self) -> &str {
                &self.name
            }

            /// Returns what was set, as the control API takes it.
            pub(crate) fn properties(&self) -> Value {
                Value::Object(self.properties.clone())
            }
        }
    )+};
}

declared!(Queue Topic Subscription);
