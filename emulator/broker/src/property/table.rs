//! The table of entity properties: their kinds of entities, types and bounds. The bounds are those of semantics §1 and
//! decisions D15 and D21.

use std::time::Duration;

use super::PropertyType::{Duration as Span, Endless, Flag, Number, Status, Target, Text};
use super::{Audience, DAY, Field, Property, PropertyType, PropertyValue, Stored};
use crate::description::BASIC_TIME_TO_LIVE;
use crate::settings::Tier::{self, Basic, Standard};

/// A field of a description.
macro_rules! field {
    ($name:ident) => {
        Field {
            get: |description| description.$name.get(),
            set: |description, value| description.$name.set(value),
        }
    };
}

/// The field of properties that the emulator does not support.
const ALWAYS_FALSE: Field = Field {
    get: |_| Some(PropertyValue::Flag(false)),
    set: |_, _| {},
};

/// The field of a subscription that a JMS 2.0 client created.
const IS_CLIENT_AFFINE: Field = Field {
    get: |description| Some(PropertyValue::Flag(description.client.is_some())),
    set: |_, _| {},
};

/// All properties in the order of error reports. The numbers are positions in the XML of a queue, a topic and a
/// subscription, where the service has its own order: see [`Property::position`].
#[rustfmt::skip]
pub static PROPERTIES: [Property; 23] = [
    Property::new("LockDuration", Span, [10, 0, 10], field!(lock_duration),
        "How long a receiver locks a message: PT5S to PT5M. ISO 8601.").within(5, 300),
    // The service sells 1, 2, 3, 4, 5 and 80 GiB; smaller sizes are for tests that fill an entity.
    Property::new("MaxSizeInMegabytes", Number, [20, 20, 0], field!(max_size_in_megabytes),
        "How much it may hold.").within(1, 80 * 1024),
    Property::new("RequiresDuplicateDetection", Flag, [30, 30, 0], field!(requires_duplicate_detection),
        "Whether a message with a known id is dropped; fixed at creation.").fixed()
        .not_in(&[Basic], "false: the basic tier has no duplicate detection"),
    Property::new("RequiresSession", Flag, [40, 0, 20], field!(requires_session),
        "Whether messages are received by session; fixed at creation.").fixed()
        .not_in(&[Basic], "false: the basic tier has no sessions"),
    Property::new("DefaultMessageTimeToLive", Endless, [50, 10, 30], field!(default_message_time_to_live),
        "The time to live of messages that bring none, and the longest of all; at least PT1S. ISO 8601.")
        .within(1, u64::MAX).at_most_in_basic(BASIC_TIME_TO_LIVE),
    Property::new("DeadLetteringOnMessageExpiration", Flag, [60, 0, 40], field!(dead_lettering_on_message_expiration),
        "Whether expired messages are dead-lettered."),
    Property::new("DeadLetteringOnFilterEvaluationExceptions", Flag, [0, 0, 50],
        field!(dead_lettering_on_filter_evaluation_exceptions),
        "Whether a message that a filter fails on is dead-lettered."),
    // The official schema goes down to 5 s (decision D15).
    Property::new("DuplicateDetectionHistoryTimeWindow", Span, [70, 40, 0],
        field!(duplicate_detection_history_time_window),
        "How long message ids are remembered: PT5S to P7D. ISO 8601.").within(5, 7 * DAY),
    Property::new("MaxDeliveryCount", Number, [80, 0, 80], field!(max_delivery_count),
        "After how many failed deliveries a message is dead-lettered.").within(1, i32::MAX as u64),
    Property::new("Status", Status, [140, 100, 100], field!(status), "What can be done with it."),
    Property::new("ForwardTo", Target, [150, 0, 110], field!(forward_to),
        "Where messages are forwarded to: a queue or topic, or nothing.")
        .not_in(&[Basic], "none: the basic tier does not forward"),
    Property::new("ForwardDeadLetteredMessagesTo", Target, [250, 0, 170], field!(forward_dead_lettered_messages_to),
        "Where dead letters are forwarded to: a queue or topic, or nothing.")
        .not_in(&[Basic], "none: the basic tier does not forward"),
    Property::new("AutoDeleteOnIdle", Endless, [220, 200, 180], field!(auto_delete_on_idle),
        "How long it may be unused before it is deleted; at least PT5M, and not where it forwards. ISO 8601.")
        .within(300, u64::MAX).never()
        .not_in(&[Basic], "never: the basic tier does not delete idle entities"),
    Property::new("EnablePartitioning", Flag, [230, 210, 0], field!(enable_partitioning),
        "Whether sequence numbers carry a partition; fixed at creation.").fixed(),
    Property::new("MaxMessageSizeInKilobytes", Number, [270, 250, 0], field!(max_message_size_in_kilobytes),
        "The largest message; premium only, else that of the tier.").within(1024, 102_400).kept().since("2021-05")
        .not_in(&[Basic, Standard], "none: only the premium tier has large messages"),
    Property::new("UserMetadata", Text, [190, 140, 160], field!(user_metadata),
        "A remark of its users.").within(0, 1024).for_administration(),
    Property::new("EnableBatchedOperations", Flag, [90, 50, 90], field!(enable_batched_operations),
        "Shown as it was given.").for_administration(),
    Property::new("SupportOrdering", Flag, [200, 150, 0], field!(support_ordering),
        "Shown as it was given.").for_administration().kept(),
    Property::new("EnableExpress", Flag, [260, 240, 0], field!(enable_express),
        "Shown as it was given.").for_administration().kept(),
    Property::new("FilteringMessagesBeforePublishing", Flag, [0, 70, 0], ALWAYS_FALSE,
        "Whether a message that no subscription selects is refused.").unsupported(),
    Property::new("IsAnonymousAccessible", Flag, [120, 80, 0], ALWAYS_FALSE,
        "Whether clients need no token.").unsupported(),
    Property::new("EnableSubscriptionPartitioning", Flag, [0, 230, 0], ALWAYS_FALSE,
        "Whether subscriptions are partitioned.").unsupported(),
    Property::new("IsClientAffine", Flag, [0, 0, 200], IS_CLIENT_AFFINE,
        "Whether it belongs to a client by its identifier, as JMS has it.").unsupported().since("2021-05"),
];

impl Property {
    const fn new(
        name: &'static str,
        value_type: PropertyType,
        positions: [u16; 3],
        field: Field,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            value_type,
            audience: Audience::Everyone,
            about,
            is_fixed: false,
            is_kept: false,
            since: None,
            positions,
            field,
            bounds: None,
            endless: "for ever",
            basic: None,
            absent: None,
        }
    }

    /// Sets the bounds of a number, of a duration in seconds, or of a text's length in characters.
    const fn within(mut self, least: u64, most: u64) -> Self {
        self.bounds = Some((least, most));
        self
    }

    const fn fixed(mut self) -> Self {
        self.is_fixed = true;
        self.is_kept = true;
        self
    }

    const fn kept(mut self) -> Self {
        self.is_kept = true;
        self
    }

    const fn since(mut self, version: &'static str) -> Self {
        self.since = Some(version);
        self
    }

    const fn for_administration(mut self) -> Self {
        self.audience = Audience::Administration;
        self
    }

    const fn unsupported(mut self) -> Self {
        self.audience = Audience::Unsupported;
        self
    }

    const fn never(mut self) -> Self {
        self.endless = "never";
        self
    }

    const fn at_most_in_basic(mut self, longest: Duration) -> Self {
        self.basic = Some(longest);
        self
    }

    const fn not_in(mut self, tiers: &'static [Tier], allowed: &'static str) -> Self {
        self.absent = Some((tiers, allowed));
        self
    }
}
