//! Entities as XML: what a client says of one, and what it is shown (admin-http.md §5, §6).

mod authorization;
mod fields;
mod filter;
mod judge;
mod namespace;
mod read;
mod rule;
mod value;
mod view;

pub(super) use authorization::KeyGenerator;
pub(super) use judge::{check_fixed, check_legal, check_targets, subscription};
pub(super) use namespace::write_namespace;
pub(super) use read::{Wanted, read_entity};
pub(super) use rule::{DEFAULT_RULE, name_of_rule, read_rule, write_rule};
pub(super) use view::View;

use servicebus_broker::EntityKind;

/// The element that describes an entity of this kind.
pub(super) fn root(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Queue => "QueueDescription",
        EntityKind::Topic => "TopicDescription",
        EntityKind::Subscription => "SubscriptionDescription",
    }
}

/// The element that describes a rule.
pub(super) const RULE: &str = "RuleDescription";

/// The elements of a queue's description, in the order of the service: its own reader knows no other.
const QUEUE: [&str; 27] = [
    "LockDuration",
    "MaxSizeInMegabytes",
    "RequiresDuplicateDetection",
    "RequiresSession",
    "DefaultMessageTimeToLive",
    "DeadLetteringOnMessageExpiration",
    "DuplicateDetectionHistoryTimeWindow",
    "MaxDeliveryCount",
    "EnableBatchedOperations",
    "SizeInBytes",
    "MessageCount",
    "IsAnonymousAccessible",
    "AuthorizationRules",
    "Status",
    "ForwardTo",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "UserMetadata",
    "SupportOrdering",
    "CountDetails",
    "AutoDeleteOnIdle",
    "EnablePartitioning",
    "EntityAvailabilityStatus",
    "ForwardDeadLetteredMessagesTo",
    "EnableExpress",
    "MaxMessageSizeInKilobytes",
];

/// The same of a topic.
const TOPIC: [&str; 25] = [
    "DefaultMessageTimeToLive",
    "MaxSizeInMegabytes",
    "RequiresDuplicateDetection",
    "DuplicateDetectionHistoryTimeWindow",
    "EnableBatchedOperations",
    "SizeInBytes",
    "FilteringMessagesBeforePublishing",
    "IsAnonymousAccessible",
    "AuthorizationRules",
    "Status",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "UserMetadata",
    "SupportOrdering",
    "CountDetails",
    "SubscriptionCount",
    "SqlFilterCount",
    "CorrelationFilterCount",
    "AutoDeleteOnIdle",
    "EnablePartitioning",
    "EntityAvailabilityStatus",
    "EnableSubscriptionPartitioning",
    "EnableExpress",
    "MaxMessageSizeInKilobytes",
];

/// The same of a subscription.
const SUBSCRIPTION: [&str; 19] = [
    "LockDuration",
    "RequiresSession",
    "DefaultMessageTimeToLive",
    "DeadLetteringOnMessageExpiration",
    "DeadLetteringOnFilterEvaluationExceptions",
    "MessageCount",
    "MaxDeliveryCount",
    "EnableBatchedOperations",
    "Status",
    "ForwardTo",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "CountDetails",
    "UserMetadata",
    "ForwardDeadLetteredMessagesTo",
    "AutoDeleteOnIdle",
    "EntityAvailabilityStatus",
    "IsClientAffine",
];

/// What the description of such an entity consists of.
fn elements(kind: EntityKind) -> &'static [&'static str] {
    match kind {
        EntityKind::Queue => &QUEUE,
        EntityKind::Topic => &TOPIC,
        EntityKind::Subscription => &SUBSCRIPTION,
    }
}
