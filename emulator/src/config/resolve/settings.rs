//! The properties of queues, topics and subscriptions: from the text to the broker's descriptions.
//!
//! All three are settings of an entity, so one code writes them. Bounds are the broker's: its problems are only
//! led back to the places in the text.

use std::str::FromStr;
use std::time::Duration;

use servicebus_broker::{
    EntityPath, QueueDescription, SubscriptionDescription, Tier, TopicDescription,
};

use crate::config::document::Properties;
use crate::config::duration::FOREVER;
use crate::config::reader::{Located, Place, Report};

/// What the broker calls a topic that must not be at all.
const TOPIC: &str = "Topic";

/// The settings of `base` with those that are written instead; what is not legal is reported.
pub(in crate::config) fn queue(
    report: &Report<'_>,
    properties: &Properties,
    base: QueueDescription,
    tier: Tier,
) -> QueueDescription {
    let description = write(report, properties, base, tier);
    for problem in description.problems(tier) {
        report.setting(&properties.places, problem);
    }
    description
}

/// The same for a topic; what is wrong with it as a whole is reported where it is declared, if it is.
pub(in crate::config) fn topic(
    report: &Report<'_>,
    declared_at: Option<&Place>,
    properties: &Properties,
    base: &TopicDescription,
    path: Option<&EntityPath>,
    tier: Tier,
) -> TopicDescription {
    let entity = write(report, properties, base.queue_description(), tier);
    // The problem of a topic without a legal name is said of its place in the text.
    let unnamed = || EntityPath::from_str("topic").expect("a word is a legal name");
    let path = path.cloned().unwrap_or_else(unnamed);
    let description = TopicDescription {
        default_message_time_to_live: entity.default_message_time_to_live,
        status: entity.status,
        requires_duplicate_detection: entity.requires_duplicate_detection,
        duplicate_detection_history_time_window: entity.duplicate_detection_history_time_window,
        auto_delete_on_idle: entity.auto_delete_on_idle,
        max_size_in_megabytes: entity.max_size_in_megabytes,
        max_message_size_in_kilobytes: entity.max_message_size_in_kilobytes,
        enable_partitioning: entity.enable_partitioning,
    };
    for problem in description.problems(&path, tier) {
        match declared_at {
            Some(place) if problem.property == TOPIC => {
                report.problem(place, "this topic is not allowed", Some(problem.allowed));
            }
            _ => report.setting(&properties.places, problem),
        }
    }
    description
}

/// The same for a subscription.
pub(in crate::config) fn subscription(
    report: &Report<'_>,
    properties: &Properties,
    base: &SubscriptionDescription,
    tier: Tier,
) -> SubscriptionDescription {
    let entity = write(report, properties, base.queue_description(), tier);
    let on_filter_errors = properties.dead_lettering_on_filter_evaluation_exceptions;
    let description = SubscriptionDescription {
        lock_duration: entity.lock_duration,
        max_delivery_count: entity.max_delivery_count,
        default_message_time_to_live: entity.default_message_time_to_live,
        dead_lettering_on_message_expiration: entity.dead_lettering_on_message_expiration,
        dead_lettering_on_filter_evaluation_exceptions: on_filter_errors
            .unwrap_or(base.dead_lettering_on_filter_evaluation_exceptions),
        status: entity.status,
        requires_session: entity.requires_session,
        forward_to: entity.forward_to,
        forward_dead_lettered_messages_to: entity.forward_dead_lettered_messages_to,
        auto_delete_on_idle: entity.auto_delete_on_idle,
    };
    for problem in description.problems(tier) {
        report.setting(&properties.places, problem);
    }
    description
}

fn write(
    report: &Report<'_>,
    properties: &Properties,
    base: QueueDescription,
    tier: Tier,
) -> QueueDescription {
    let mut description = base;
    write_durations(properties, &mut description, tier);
    write_numbers(properties, &mut description);
    write_targets(report, properties, &mut description);
    write_flags(properties, &mut description);
    description
}

fn write_durations(properties: &Properties, description: &mut QueueDescription, tier: Tier) {
    let ending = |duration: Duration| (duration < FOREVER).then_some(duration);
    if let Some(duration) = properties.lock_duration {
        description.lock_duration = duration;
    }
    if let Some(duration) = properties.default_message_time_to_live {
        description.default_message_time_to_live = match tier {
            // It has no "for ever", so the broker is shown what was written.
            Tier::Basic => Some(duration),
            Tier::Standard | Tier::Premium => ending(duration),
        };
    }
    if let Some(duration) = properties.duplicate_detection_history_time_window {
        description.duplicate_detection_history_time_window = duration;
    }
    if let Some(duration) = properties.auto_delete_on_idle {
        description.auto_delete_on_idle = ending(duration);
    }
}

/// Numbers that do not fit become the nearest that do, which are out of bounds as well.
fn write_numbers(properties: &Properties, description: &mut QueueDescription) {
    let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
    if let Some(count) = properties.max_delivery_count {
        let count = unsigned(count);
        description.max_delivery_count = u32::try_from(count).unwrap_or(u32::MAX);
    }
    if let Some(size) = properties.max_size_in_megabytes {
        description.max_size_in_megabytes = unsigned(size);
    }
    if let Some(size) = properties.max_message_size_in_kilobytes {
        description.max_message_size_in_kilobytes = Some(unsigned(size));
    }
}

fn write_targets(report: &Report<'_>, properties: &Properties, description: &mut QueueDescription) {
    if let Some(written) = &properties.forward_to {
        description.forward_to = target(report, written);
    }
    if let Some(written) = &properties.forward_dead_lettered_messages_to {
        description.forward_dead_lettered_messages_to = target(report, written);
    }
}

fn write_flags(properties: &Properties, description: &mut QueueDescription) {
    let flags = [
        (
            properties.dead_lettering_on_message_expiration,
            &mut description.dead_lettering_on_message_expiration,
        ),
        (
            properties.requires_duplicate_detection,
            &mut description.requires_duplicate_detection,
        ),
        (
            properties.enable_partitioning,
            &mut description.enable_partitioning,
        ),
        (
            properties.requires_session,
            &mut description.requires_session,
        ),
    ];
    for (written, flag) in flags {
        *flag = written.unwrap_or(*flag);
    }
    description.status = properties.status.unwrap_or(description.status);
}

/// A name in the text; an empty one says that there is no target.
fn target(report: &Report<'_>, written: &Located<String>) -> Option<EntityPath> {
    if written.value.is_empty() {
        return None;
    }
    path(report, written)
}

/// A name in the text as the name of an entity.
pub(super) fn path(report: &Report<'_>, written: &Located<String>) -> Option<EntityPath> {
    let Located { place, value } = written;
    let path = value.parse();
    if let Err(error) = &path {
        let message = format!("{} is no legal name: {error}", report.excerpt(place));
        report.problem(place, message, None);
    }
    path.ok()
}
