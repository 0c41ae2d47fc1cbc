//! A queue as the builder spells it.
//!
//! Every method writes one property of the official configuration file, under its official name; what is
//! not written has the service's default. Values are judged later, with all the others.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::EntityStatus;
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

    /// Sets after how many failed deliveries a message is dead-lettered: 1 to 2147483647, 10 unless set.
    pub fn max_delivery_count(self, count: u32) -> Self {
        self.with("MaxDeliveryCount", json!(count))
    }

    /// Sets for how long a received message is locked: 5 seconds to 5 minutes, one minute unless set.
    pub fn lock_duration(self, duration: Duration) -> Self {
        self.with("LockDuration", json!(text::iso8601(duration)))
    }

    /// Sets the time to live of messages that bring none, and the most that any may have: one second or
    /// longer. Unless set there is no end, in the basic tier it is 14 days, which is the most there.
    pub fn default_time_to_live(self, duration: Duration) -> Self {
        self.with("DefaultMessageTimeToLive", json!(text::iso8601(duration)))
    }

    /// Says whether an expired message is dead-lettered rather than dropped; it is not unless set.
    pub fn dead_lettering_on_message_expiration(self, enabled: bool) -> Self {
        self.with("DeadLetteringOnMessageExpiration", json!(enabled))
    }

    /// Says whether a message is dropped whose id was seen within the window; it is not unless set. Not in
    /// the basic tier.
    pub fn requires_duplicate_detection(self, enabled: bool) -> Self {
        self.with("RequiresDuplicateDetection", json!(enabled))
    }

    /// Says whether every message belongs to a session, and only one receiver at a time has those of a session; it is
    /// not so unless set. Fixed when the queue is made. Not in the basic tier, nor with forwarding.
    pub fn requires_session(self, required: bool) -> Self {
        self.with("RequiresSession", json!(required))
    }

    /// Sets for how long message ids are remembered: 5 seconds to 7 days, 10 minutes unless set.
    pub fn duplicate_detection_window(self, window: Duration) -> Self {
        self.with(
            "DuplicateDetectionHistoryTimeWindow",
            json!(text::iso8601(window)),
        )
    }

    /// Names another queue or a topic of the topology to which all messages are forwarded. A message is forwarded four times at
    /// most; where it goes then is set by [`Topology::failed_forwards`](crate::Topology::failed_forwards).
    /// Not in the basic tier. In an update an empty name ends it.
    pub fn forward_to(self, name: impl Into<String>) -> Self {
        self.with("ForwardTo", json!(name.into()))
    }

    /// Names another queue or a topic of the topology to which dead letters go on. Not in the basic tier.
    pub fn forward_dead_lettered_messages_to(self, name: impl Into<String>) -> Self {
        self.with("ForwardDeadLetteredMessagesTo", json!(name.into()))
    }

    /// Sets after how long without use the queue is deleted: 5 minutes or longer, never unless set. A queue
    /// that forwards is never idle.
    pub fn auto_delete_on_idle(self, idle: Duration) -> Self {
        self.with("AutoDeleteOnIdle", json!(text::iso8601(idle)))
    }

    /// Sets what can be done with the queue; everything unless set.
    pub fn status(self, status: EntityStatus) -> Self {
        self.with("Status", json!(status.name()))
    }

    /// Sets how much the queue may hold, dead letters included: 1 to 81920 MiB, 1024 unless set.
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

    /// Returns what was set that is no property.
    pub(crate) fn part(&self) -> Option<&'static str> {
        None
    }

    pub(super) fn document(&self) -> Value {
        json!({ "Name": self.name, "Properties": self.properties })
    }

    fn with(mut self, property: &str, value: Value) -> Self {
        self.properties.insert(property.to_owned(), value);
        self
    }
}
