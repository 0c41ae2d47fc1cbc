//! Entities as XML: what a client says of one, and what it is shown (admin-http.md §5, §6).

mod authorization;
mod judge;
mod read;
mod rule;
mod value;
mod view;

pub(crate) use authorization::KeyGenerator;
pub(crate) use judge::check_duplicate_window;
pub(crate) use read::{Wanted, read_entity};
pub(crate) use rule::{DEFAULT_RULE, name_of_rule, read_rule, write_rule};
pub(crate) use view::View;

use servicebus_broker::EntityKind;

/// The element that describes an entity of this kind.
pub(crate) fn root(kind: EntityKind) -> &'static str {
    match kind {
        EntityKind::Queue => "QueueDescription",
        EntityKind::Topic => "TopicDescription",
        EntityKind::Subscription => "SubscriptionDescription",
    }
}

/// The element that describes a rule.
pub(crate) const RULE: &str = "RuleDescription";

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
const SUBSCRIPTION: [&str; 20] = [
    "LockDuration",
    "RequiresSession",
    "DefaultMessageTimeToLive",
    "DeadLetteringOnMessageExpiration",
    "DeadLetteringOnFilterEvaluationExceptions",
    // Of a new one alone, and never shown.
    "DefaultRuleDescription",
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

/// What comes about, and what the emulator does not do: clients do not set it.
const NOT_SET: [&str; 14] = [
    "SizeInBytes",
    "MessageCount",
    "CreatedAt",
    "UpdatedAt",
    "AccessedAt",
    "CountDetails",
    "SubscriptionCount",
    "SqlFilterCount",
    "CorrelationFilterCount",
    "EntityAvailabilityStatus",
    "FilteringMessagesBeforePublishing",
    "IsAnonymousAccessible",
    "EnableSubscriptionPartitioning",
    "IsClientAffine",
];

/// The elements that clients set in the description of an entity of this kind, in the order of the service.
pub fn description_elements(kind: EntityKind) -> Vec<&'static str> {
    let elements = elements(kind).iter().copied();
    elements.filter(|name| !NOT_SET.contains(name)).collect()
}

/// What the description of such an entity consists of.
fn elements(kind: EntityKind) -> &'static [&'static str] {
    match kind {
        EntityKind::Queue => &QUEUE,
        EntityKind::Topic => &TOPIC,
        EntityKind::Subscription => &SUBSCRIPTION,
    }
}

#[cfg(test)]
mod tests {
    use servicebus_broker::Property;

    use super::*;

    #[test]
    fn every_property_has_its_place() {
        for kind in [
            EntityKind::Queue,
            EntityKind::Topic,
            EntityKind::Subscription,
        ] {
            for property in Property::of(kind) {
                assert!(
                    elements(kind).contains(&property.name),
                    "{kind}: {}",
                    property.name
                );
            }
        }
    }
}
