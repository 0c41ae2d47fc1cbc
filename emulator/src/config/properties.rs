//! The properties of one queue as a JSON object of their own: read for a door that has one queue at a time,
//! and written with every effective value.
//!
//! What the configuration file says under `Properties` is read here by the same code, so that the same
//! mistake has the same words. Only a target that nobody declared is not found: that takes the names of the
//! namespace, see [`super::missing_targets`].

use std::time::Duration;

use serde_json::{Value, json};
use servicebus_broker::{EntityPath, QueueDescription, Tier};

use super::document::QueueProperties;
use super::duration::FOREVER;
use super::reader::{Object, Report};
use super::resolve::queue;
use super::{ConfigError, duration, syntax};

/// The settings of `base` with those in `text` instead. For a queue that is to be created `base` is
/// [`QueueDescription::of_tier`].
pub(crate) fn queue_properties(
    text: &str,
    base: QueueDescription,
    path: &EntityPath,
    tier: Tier,
) -> Result<QueueDescription, ConfigError> {
    let report = Report::new(text);
    let description = match read(&report) {
        Some(properties) => queue::description(&report, &properties, base, Some(path), tier),
        None => base,
    };
    report.finish().map(|()| description)
}

/// The settings of a queue that is there with those in `text` instead; what is fixed at creation must stay.
pub(crate) fn queue_changes(
    text: &str,
    current: &QueueDescription,
    path: &EntityPath,
    tier: Tier,
) -> Result<QueueDescription, ConfigError> {
    let report = Report::new(text);
    let mut description = current.clone();
    if let Some(properties) = read(&report) {
        description = queue::description(&report, &properties, description, Some(path), tier);
        for problem in current.fixed_problems(&description) {
            report.setting(&properties.places, problem);
        }
    }
    report.finish().map(|()| description)
}

/// The effective settings as the official format has them. A largest message that the tier decides is left
/// out.
pub(crate) fn properties_json(queue: &QueueDescription) -> Value {
    let endless = |duration: Option<Duration>| duration::format(duration.unwrap_or(FOREVER));
    let target =
        |target: &Option<EntityPath>| target.as_ref().map_or("", EntityPath::as_str).to_owned();
    let mut properties = json!({
        "AutoDeleteOnIdle": endless(queue.auto_delete_on_idle),
        "DeadLetteringOnMessageExpiration": queue.dead_lettering_on_message_expiration,
        "DefaultMessageTimeToLive": endless(queue.default_message_time_to_live),
        "DuplicateDetectionHistoryTimeWindow":
            duration::format(queue.duplicate_detection_history_time_window),
        "EnablePartitioning": queue.enable_partitioning,
        "ForwardDeadLetteredMessagesTo": target(&queue.forward_dead_lettered_messages_to),
        "ForwardTo": target(&queue.forward_to),
        "LockDuration": duration::format(queue.lock_duration),
        "MaxDeliveryCount": queue.max_delivery_count,
        "MaxSizeInMegabytes": queue.max_size_in_megabytes,
        "RequiresDuplicateDetection": queue.requires_duplicate_detection,
        "Status": queue.status.name(),
    });
    if let Some(size) = queue.max_message_size_in_kilobytes {
        properties["MaxMessageSizeInKilobytes"] = json!(size);
    }
    properties
}

fn read(report: &Report<'_>) -> Option<QueueProperties> {
    let tree = syntax::parse(report)?;
    let object = Object::of(report, &tree, String::new())?;
    Some(QueueProperties::read(object))
}
