//! A topic as the builder spells it.
//!
//! As for a queue, every method writes one property of the official configuration file under its official name.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{EntityStatus, Subscription};
use crate::text;

/// A topic to start with.
#[derive(Debug, Clone)]
pub struct Topic {
    name: String,
    properties: Map<String, Value>,
    subscriptions: Vec<Subscription>,
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

    /// Sets the time to live of messages that bring none, and the most that any may have, in all subscriptions:
    /// one second or longer, without end unless set.
    pub fn default_time_to_live(self, duration: Duration) -> Self {
        self.with("DefaultMessageTimeToLive", json!(text::iso8601(duration)))
    }

    /// Says whether a message is dropped whose id was seen within the window; it is not unless set.
    pub fn requires_duplicate_detection(self, enabled: bool) -> Self {
        self.with("RequiresDuplicateDetection", json!(enabled))
    }

    /// Sets for how long message ids are remembered: 5 seconds to 7 days, 10 minutes unless set.
    pub fn duplicate_detection_window(self, window: Duration) -> Self {
        self.with(
            "DuplicateDetectionHistoryTimeWindow",
            json!(text::iso8601(window)),
        )
    }

    /// Sets after how long without use the topic is deleted: 5 minutes or longer, never unless set.
    pub fn auto_delete_on_idle(self, idle: Duration) -> Self {
        self.with("AutoDeleteOnIdle", json!(text::iso8601(idle)))
    }

    /// Sets what can be done with the topic: everything unless set; [`EntityStatus::ReceiveDisabled`] is no status
    /// of a topic.
    pub fn status(self, status: EntityStatus) -> Self {
        self.with("Status", json!(status.name()))
    }

    /// Sets how much the topic may hold: 1 to 81920 MiB, 1024 unless set.
    pub fn max_size_in_megabytes(self, size: u64) -> Self {
        self.with("MaxSizeInMegabytes", json!(size))
    }

    /// Sets the largest message, in the premium tier only: 1024 to 102400 KiB, 1024 unless set.
    pub fn max_message_size_in_kilobytes(self, size: u64) -> Self {
        self.with("MaxMessageSizeInKilobytes", json!(size))
    }

    /// Says whether sequence numbers carry a partition; they do not unless set.
    pub fn enable_partitioning(self, enabled: bool) -> Self {
        self.with("EnablePartitioning", json!(enabled))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns what was set, as the control API takes it.
    pub(crate) fn properties(&self) -> Value {
        Value::Object(self.properties.clone())
    }

    pub(crate) fn subscriptions(&self) -> &[Subscription] {
        &self.subscriptions
    }

    /// Returns what was set that is no property.
    pub(crate) fn part(&self) -> Option<&'static str> {
        (!self.subscriptions.is_empty()).then_some("subscriptions")
    }

    pub(super) fn document(&self) -> Value {
        let subscriptions = self.subscriptions.iter();
        let subscriptions: Vec<Value> = subscriptions.map(Subscription::document).collect();
        json!({
            "Name": self.name,
            "Properties": self.properties,
            "Subscriptions": subscriptions,
        })
    }

    fn with(mut self, property: &str, value: Value) -> Self {
        self.properties.insert(property.to_owned(), value);
        self
    }
}
