//! The properties of one entity as a JSON object of their own: read for an API that has one entity at a time,
//! and written with every effective value.
//!
//! What the configuration file says under `Properties` is read here by the same code, so that the same
//! mistake has the same words. Only a target that nobody declared is not found: that takes the names of the
//! namespace, see [`super::missing_targets`].

use std::time::Duration;

use serde_json::{Value, json};
use servicebus_broker::{
    EntityPath, QueueDescription, SubscriptionDescription, Tier, TopicDescription,
};

use super::document::Properties;
use super::duration::FOREVER;
use super::reader::{Object, Report};
use super::resolve::settings;
use super::{ConfigError, duration, syntax};

/// The settings of a queue that a topic has too.
const TOPIC_KEYS: [&str; 8] = [
    "AutoDeleteOnIdle",
    "DefaultMessageTimeToLive",
    "DuplicateDetectionHistoryTimeWindow",
    "EnablePartitioning",
    "MaxMessageSizeInKilobytes",
    "MaxSizeInMegabytes",
    "RequiresDuplicateDetection",
    "Status",
];
/// The settings of a queue that a subscription has too.
const SUBSCRIPTION_KEYS: [&str; 9] = [
    "AutoDeleteOnIdle",
    "DeadLetteringOnMessageExpiration",
    "DefaultMessageTimeToLive",
    "ForwardDeadLetteredMessagesTo",
    "ForwardTo",
    "LockDuration",
    "MaxDeliveryCount",
    "RequiresSession",
    "Status",
];

/// The settings of `base` with those in `text` instead. For a queue that is to be created `base` is
/// [`QueueDescription::of_tier`].
pub(crate) fn queue_properties(
    text: &str,
    base: QueueDescription,
    tier: Tier,
) -> Result<QueueDescription, ConfigError> {
    let report = Report::new(text);
    let description = match read(&report, Properties::of_queue) {
        Some(properties) => settings::queue(&report, &properties, base, tier),
        None => base,
    };
    report.finish().map(|()| description)
}

/// The settings of a queue that is there with those in `text` instead; what is fixed at creation must stay.
pub(crate) fn queue_changes(
    text: &str,
    current: &QueueDescription,
    tier: Tier,
) -> Result<QueueDescription, ConfigError> {
    let report = Report::new(text);
    let mut description = current.clone();
    if let Some(properties) = read(&report, Properties::of_queue) {
        description = settings::queue(&report, &properties, description, tier);
        for problem in current.fixed_problems(&description) {
            report.setting(&properties.places, problem);
        }
    }
    report.finish().map(|()| description)
}

/// The settings of a topic: those of `base` with those in `text` instead.
pub(crate) fn topic_properties(
    text: &str,
    base: TopicDescription,
    path: &EntityPath,
    tier: Tier,
) -> Result<TopicDescription, ConfigError> {
    let report = Report::new(text);
    let description = match read(&report, Properties::of_topic) {
        Some(properties) => settings::topic(&report, None, &properties, &base, Some(path), tier),
        None => base,
    };
    report.finish().map(|()| description)
}

/// The settings of a topic that is there with those in `text` instead; what is fixed at creation must stay.
pub(crate) fn topic_changes(
    text: &str,
    current: &TopicDescription,
    path: &EntityPath,
    tier: Tier,
) -> Result<TopicDescription, ConfigError> {
    let report = Report::new(text);
    let mut description = current.clone();
    if let Some(properties) = read(&report, Properties::of_topic) {
        description = settings::topic(&report, None, &properties, current, Some(path), tier);
        for problem in current.fixed_problems(&description) {
            report.setting(&properties.places, problem);
        }
    }
    report.finish().map(|()| description)
}

/// The settings of a subscription: those of `base` with those in `text` instead.
pub(crate) fn subscription_properties(
    text: &str,
    base: SubscriptionDescription,
    tier: Tier,
) -> Result<SubscriptionDescription, ConfigError> {
    let report = Report::new(text);
    let description = match read(&report, Properties::of_subscription) {
        Some(properties) => settings::subscription(&report, &properties, &base, tier),
        None => base,
    };
    report.finish().map(|()| description)
}

/// The settings of a subscription that is there with those in `text` instead; what is fixed at creation must stay.
pub(crate) fn subscription_changes(
    text: &str,
    current: &SubscriptionDescription,
    tier: Tier,
) -> Result<SubscriptionDescription, ConfigError> {
    let report = Report::new(text);
    let mut description = current.clone();
    if let Some(properties) = read(&report, Properties::of_subscription) {
        description = settings::subscription(&report, &properties, current, tier);
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
        "RequiresSession": queue.requires_session,
        "Status": queue.status.name(),
    });
    if let Some(size) = queue.max_message_size_in_kilobytes {
        properties["MaxMessageSizeInKilobytes"] = json!(size);
    }
    properties
}

/// The same of a topic.
pub(crate) fn topic_json(topic: &TopicDescription) -> Value {
    only(properties_json(&topic.queue_description()), &TOPIC_KEYS)
}

/// The same of a subscription.
pub(crate) fn subscription_json(subscription: &SubscriptionDescription) -> Value {
    let entity = properties_json(&subscription.queue_description());
    let mut properties = only(entity, &SUBSCRIPTION_KEYS);
    properties["DeadLetteringOnFilterEvaluationExceptions"] =
        json!(subscription.dead_lettering_on_filter_evaluation_exceptions);
    properties
}

fn only(mut properties: Value, keys: &[&str]) -> Value {
    if let Some(members) = properties.as_object_mut() {
        members.retain(|key, _| keys.contains(&key.as_str()));
    }
    properties
}

fn read<'a>(
    report: &Report<'a>,
    properties: impl FnOnce(Object<'_, 'a>) -> Properties,
) -> Option<Properties> {
    let tree = syntax::parse(report)?;
    let object = Object::of(report, &tree, String::new())?;
    Some(properties(object))
}
