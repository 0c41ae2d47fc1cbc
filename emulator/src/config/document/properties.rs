//! The `Properties` of a queue, a topic or a subscription: which keys each may have.
//!
//! The last keys of each are not in the official schema; the service's admin API has them under these names.

use std::time::Duration;

use servicebus_broker::EntityStatus;

use crate::config::reader::{Located, Object, Places};

/// The `Properties` of an entity; what is not written, or what it cannot have, is none.
#[derive(Debug, Default)]
pub(in crate::config) struct Properties {
    /// Where they stand.
    pub(in crate::config) places: Places,
    pub(in crate::config) dead_lettering_on_filter_evaluation_exceptions: Option<bool>,
    pub(in crate::config) dead_lettering_on_message_expiration: Option<bool>,
    pub(in crate::config) default_message_time_to_live: Option<Duration>,
    pub(in crate::config) duplicate_detection_history_time_window: Option<Duration>,
    pub(in crate::config) forward_dead_lettered_messages_to: Option<Located<String>>,
    pub(in crate::config) forward_to: Option<Located<String>>,
    pub(in crate::config) lock_duration: Option<Duration>,
    pub(in crate::config) max_delivery_count: Option<i64>,
    pub(in crate::config) requires_duplicate_detection: Option<bool>,
    pub(in crate::config) requires_session: Option<bool>,
    pub(in crate::config) auto_delete_on_idle: Option<Duration>,
    pub(in crate::config) enable_partitioning: Option<bool>,
    pub(in crate::config) max_message_size_in_kilobytes: Option<i64>,
    pub(in crate::config) max_size_in_megabytes: Option<i64>,
    pub(in crate::config) status: Option<EntityStatus>,
}

/// What can be done with a topic: nothing is received from it.
const TOPIC_STATUSES: [EntityStatus; 3] = [
    EntityStatus::Active,
    EntityStatus::Disabled,
    EntityStatus::SendDisabled,
];
/// What can be done with a subscription: nothing is sent to it.
const SUBSCRIPTION_STATUSES: [EntityStatus; 3] = [
    EntityStatus::Active,
    EntityStatus::Disabled,
    EntityStatus::ReceiveDisabled,
];

impl Properties {
    /// Those of a queue.
    pub(in crate::config) fn of_queue(mut object: Object<'_, '_>) -> Self {
        let properties = Self {
            places: object.places(),
            dead_lettering_on_message_expiration: value(
                object.boolean("DeadLetteringOnMessageExpiration"),
            ),
            default_message_time_to_live: value(object.duration("DefaultMessageTimeToLive")),
            duplicate_detection_history_time_window: value(
                object.duration("DuplicateDetectionHistoryTimeWindow"),
            ),
            forward_dead_lettered_messages_to: object.string("ForwardDeadLetteredMessagesTo"),
            forward_to: object.string("ForwardTo"),
            lock_duration: value(object.duration("LockDuration")),
            max_delivery_count: value(object.integer("MaxDeliveryCount")),
            requires_duplicate_detection: value(object.boolean("RequiresDuplicateDetection")),
            requires_session: value(object.boolean("RequiresSession")),
            auto_delete_on_idle: value(object.duration("AutoDeleteOnIdle")),
            enable_partitioning: value(object.boolean("EnablePartitioning")),
            max_message_size_in_kilobytes: value(object.integer("MaxMessageSizeInKilobytes")),
            max_size_in_megabytes: value(object.integer("MaxSizeInMegabytes")),
            status: status(&mut object, &EntityStatus::ALL),
            ..Self::default()
        };
        object.finish();
        properties
    }

    /// Those of a topic.
    pub(in crate::config) fn of_topic(mut object: Object<'_, '_>) -> Self {
        let properties = Self {
            places: object.places(),
            default_message_time_to_live: value(object.duration("DefaultMessageTimeToLive")),
            duplicate_detection_history_time_window: value(
                object.duration("DuplicateDetectionHistoryTimeWindow"),
            ),
            requires_duplicate_detection: value(object.boolean("RequiresDuplicateDetection")),
            auto_delete_on_idle: value(object.duration("AutoDeleteOnIdle")),
            enable_partitioning: value(object.boolean("EnablePartitioning")),
            max_message_size_in_kilobytes: value(object.integer("MaxMessageSizeInKilobytes")),
            max_size_in_megabytes: value(object.integer("MaxSizeInMegabytes")),
            status: status(&mut object, &TOPIC_STATUSES),
            ..Self::default()
        };
        object.finish();
        properties
    }

    /// Those of a subscription.
    pub(in crate::config) fn of_subscription(mut object: Object<'_, '_>) -> Self {
        let properties = Self {
            places: object.places(),
            dead_lettering_on_message_expiration: value(
                object.boolean("DeadLetteringOnMessageExpiration"),
            ),
            default_message_time_to_live: value(object.duration("DefaultMessageTimeToLive")),
            forward_dead_lettered_messages_to: object.string("ForwardDeadLetteredMessagesTo"),
            forward_to: object.string("ForwardTo"),
            lock_duration: value(object.duration("LockDuration")),
            max_delivery_count: value(object.integer("MaxDeliveryCount")),
            requires_session: value(object.boolean("RequiresSession")),
            auto_delete_on_idle: value(object.duration("AutoDeleteOnIdle")),
            dead_lettering_on_filter_evaluation_exceptions: value(
                object.boolean("DeadLetteringOnFilterEvaluationExceptions"),
            ),
            status: status(&mut object, &SUBSCRIPTION_STATUSES),
            ..Self::default()
        };
        object.finish();
        properties
    }
}

fn status(object: &mut Object<'_, '_>, legal: &[EntityStatus]) -> Option<EntityStatus> {
    let words: Vec<_> = legal
        .iter()
        .map(|status| (status.name(), *status))
        .collect();
    value(object.choice("Status", &words))
}

fn value<T>(located: Option<Located<T>>) -> Option<T> {
    located.map(|located| located.value)
}
