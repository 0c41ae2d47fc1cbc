//! The shape of a queue: its name and its `Properties`.
//!
//! The last keys of the properties are not in the official schema; the service's admin API has them under
//! these names.

use std::time::Duration;

use servicebus_broker::EntityStatus;

use crate::config::reader::{Located, Object, Places};

/// One element of `Queues`.
#[derive(Debug)]
pub(in crate::config) struct QueueBlock {
    pub(in crate::config) name: Option<Located<String>>,
    pub(in crate::config) properties: QueueProperties,
}

/// The `Properties` of a queue; what is not written is none.
#[derive(Debug, Default)]
pub(in crate::config) struct QueueProperties {
    /// Where they stand.
    pub(in crate::config) places: Places,
    pub(in crate::config) dead_lettering_on_message_expiration: Option<bool>,
    pub(in crate::config) default_message_time_to_live: Option<Duration>,
    pub(in crate::config) duplicate_detection_history_time_window: Option<Duration>,
    pub(in crate::config) forward_dead_lettered_messages_to: Option<Located<String>>,
    pub(in crate::config) forward_to: Option<Located<String>>,
    pub(in crate::config) lock_duration: Option<Duration>,
    pub(in crate::config) max_delivery_count: Option<i64>,
    pub(in crate::config) requires_duplicate_detection: Option<bool>,
    pub(in crate::config) requires_session: Option<Located<bool>>,
    pub(in crate::config) auto_delete_on_idle: Option<Duration>,
    pub(in crate::config) enable_partitioning: Option<bool>,
    pub(in crate::config) max_message_size_in_kilobytes: Option<i64>,
    pub(in crate::config) max_size_in_megabytes: Option<i64>,
    pub(in crate::config) status: Option<EntityStatus>,
}

impl QueueBlock {
    pub(super) fn read(mut object: Object<'_, '_>) -> Self {
        let name = object.required_string("Name");
        let properties = object.object("Properties").map(QueueProperties::read);
        object.finish();
        Self {
            name,
            properties: properties.unwrap_or_default(),
        }
    }
}

impl QueueProperties {
    pub(in crate::config) fn read(mut object: Object<'_, '_>) -> Self {
        let statuses = EntityStatus::ALL.map(|status| (status.name(), status));
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
            requires_session: object.boolean("RequiresSession"),
            auto_delete_on_idle: value(object.duration("AutoDeleteOnIdle")),
            enable_partitioning: value(object.boolean("EnablePartitioning")),
            max_message_size_in_kilobytes: value(object.integer("MaxMessageSizeInKilobytes")),
            max_size_in_megabytes: value(object.integer("MaxSizeInMegabytes")),
            status: value(object.choice("Status", &statuses)),
        };
        object.finish();
        properties
    }
}

fn value<T>(located: Option<Located<T>>) -> Option<T> {
    located.map(|located| located.value)
}
