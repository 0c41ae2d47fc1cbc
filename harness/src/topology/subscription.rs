//! A subscription as the builder spells it.
//!
//! As for a queue, every method writes one property of the official configuration file under its official name.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{EntityStatus, Rule};
use crate::text;

/// A subscription of a topic to start with.
#[derive(Debug, Clone)]
pub struct Subscription {
    name: String,
    properties: Map<String, Value>,
    rules: Vec<Rule>,
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

    /// Sets after how many failed deliveries a message is dead-lettered: 1 to 2147483647, 10 unless set.
    pub fn max_delivery_count(self, count: u32) -> Self {
        self.with("MaxDeliveryCount", json!(count))
    }

    /// Sets for how long a received message is locked: 5 seconds to 5 minutes, one minute unless set.
    pub fn lock_duration(self, duration: Duration) -> Self {
        self.with("LockDuration", json!(text::iso8601(duration)))
    }

    /// Sets the time to live of messages that bring none, and the most that any may have here: one second or
    /// longer, without end unless set. The topic's counts too, and the smaller wins.
    pub fn default_time_to_live(self, duration: Duration) -> Self {
        self.with("DefaultMessageTimeToLive", json!(text::iso8601(duration)))
    }

    /// Says whether an expired message is dead-lettered rather than dropped; it is not unless set.
    pub fn dead_lettering_on_message_expiration(self, enabled: bool) -> Self {
        self.with("DeadLetteringOnMessageExpiration", json!(enabled))
    }

    /// Says whether every message belongs to a session, and only one receiver at a time has those of a session; it is
    /// not so unless set. Fixed when the subscription is made; not with forwarding. A message without a session is
    /// dead-lettered.
    pub fn requires_session(self, required: bool) -> Self {
        self.with("RequiresSession", json!(required))
    }

    /// Says whether a message is dead-lettered on which a filter or action fails; it is unless set.
    pub fn dead_lettering_on_filter_evaluation_exceptions(self, enabled: bool) -> Self {
        self.with("DeadLetteringOnFilterEvaluationExceptions", json!(enabled))
    }

    /// Names a queue or topic of the topology to which all messages go on, four times at most.
    pub fn forward_to(self, name: impl Into<String>) -> Self {
        self.with("ForwardTo", json!(name.into()))
    }

    /// Names a queue or topic of the topology to which dead letters go on.
    pub fn forward_dead_lettered_messages_to(self, name: impl Into<String>) -> Self {
        self.with("ForwardDeadLetteredMessagesTo", json!(name.into()))
    }

    /// Sets after how long without use the subscription is deleted: 5 minutes or longer, never unless set. One
    /// that forwards is never idle.
    pub fn auto_delete_on_idle(self, idle: Duration) -> Self {
        self.with("AutoDeleteOnIdle", json!(text::iso8601(idle)))
    }

    /// Sets what can be done with the subscription: everything unless set; messages arrive in any status, so
    /// [`EntityStatus::SendDisabled`] is none of its own.
    pub fn status(self, status: EntityStatus) -> Self {
        self.with("Status", json!(status.name()))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns what was set, as the control API takes it.
    pub(crate) fn properties(&self) -> Value {
        Value::Object(self.properties.clone())
    }

    /// Returns what was set that is no property.
    pub(crate) fn part(&self) -> Option<&'static str> {
        (!self.rules.is_empty()).then_some("rules")
    }

    pub(super) fn document(&self) -> Value {
        let rules: Vec<Value> = self.rules.iter().map(Rule::document).collect();
        json!({ "Name": self.name, "Properties": self.properties, "Rules": rules })
    }

    fn with(mut self, property: &str, value: Value) -> Self {
        self.properties.insert(property.to_owned(), value);
        self
    }
}
