//! A queue as the builder spells it.
//!
//! Every method writes one property of the official configuration file, under its official name; what is
//! not written has the service's default. Values are judged later, with all the others.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::text;

/// A queue to start with.
#[derive(Debug, Clone)]
pub struct Queue {
    name: String,
    properties: Map<String, Value>,
}

impl Queue {
    /// Names a queue with the service's defaults.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            properties: Map::new(),
        }
    }

    /// Sets after how many failed deliveries a message is dead-lettered; 10 unless set.
    pub fn max_delivery_count(self, count: u32) -> Self {
        self.with("MaxDeliveryCount", json!(count))
    }

    /// Sets for how long a received message is locked; one minute unless set.
    pub fn lock_duration(self, duration: Duration) -> Self {
        self.with("LockDuration", json!(text::iso8601(duration)))
    }

    /// Sets the time to live of messages that bring none, and the most that any may have.
    pub fn default_time_to_live(self, duration: Duration) -> Self {
        self.with("DefaultMessageTimeToLive", json!(text::iso8601(duration)))
    }

    /// Says whether an expired message is dead-lettered rather than dropped.
    pub fn dead_lettering_on_message_expiration(self, enabled: bool) -> Self {
        self.with("DeadLetteringOnMessageExpiration", json!(enabled))
    }

    pub(super) fn document(&self) -> Value {
        json!({ "Name": self.name, "Properties": self.properties })
    }

    fn with(mut self, property: &str, value: Value) -> Self {
        self.properties.insert(property.to_owned(), value);
        self
    }
}
