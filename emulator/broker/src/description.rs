//! The description of a queue, topic or subscription: one type for all three, with their defaults.
//!
//! The table of [`Property`] has which kind has which property, and the bounds. Every reader of a description validates it
//! by [`EntityDescription::problems`], so that all report errors in the same words.

use std::fmt;
use std::time::Duration;

use crate::ids::EntityPath;
use crate::settings::Tier;

const MINUTE: Duration = Duration::from_secs(60);

/// Longest default time to live in the basic tier (semantics §4).
pub(crate) const BASIC_TIME_TO_LIVE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// Partitions of a partitioned entity, as many as in the service.
pub(crate) const PARTITIONS: u64 = 16;

/// The kind of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntityKind {
    /// Clients send to it and receive from it.
    Queue,
    /// Clients send to it.
    Topic,
    /// Clients receive from it.
    Subscription,
}

impl EntityKind {
    /// Returns why a namespace of this tier cannot have entities of the kind; `None` if it can.
    pub fn problem(self, path: &str, tier: Tier) -> Option<Problem> {
        let is_absent = self == Self::Topic && tier == Tier::Basic;
        is_absent.then(|| Problem::new("Topic", path, "none: the basic tier has no topics"))
    }
}

impl fmt::Display for EntityKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Queue => "Queue",
            Self::Topic => "Topic",
            Self::Subscription => "Subscription",
        })
    }
}

/// The operations that an entity allows (semantics §14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EntityStatus {
    /// All.
    #[default]
    Active,
    /// Neither send nor receive.
    Disabled,
    /// Only receive.
    SendDisabled,
    /// Only send.
    ReceiveDisabled,
}

impl EntityStatus {
    /// All statuses.
    pub const ALL: [Self; 4] = [
        Self::Active,
        Self::Disabled,
        Self::SendDisabled,
        Self::ReceiveDisabled,
    ];

    /// Returns the statuses of a kind: clients neither receive from a topic nor send to a subscription.
    pub fn of(kind: EntityKind) -> &'static [Self] {
        match kind {
            EntityKind::Queue => &Self::ALL,
            EntityKind::Topic => &[Self::Active, Self::Disabled, Self::SendDisabled],
            EntityKind::Subscription => &[Self::Active, Self::Disabled, Self::ReceiveDisabled],
        }
    }

    /// Returns whether the entity accepts messages.
    pub fn can_send(self) -> bool {
        matches!(self, Self::Active | Self::ReceiveDisabled)
    }

    /// Returns whether receivers get messages and can settle them.
    pub fn can_receive(self) -> bool {
        matches!(self, Self::Active | Self::SendDisabled)
    }

    /// Returns the name in configurations and the admin API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "Active",
            Self::Disabled => "Disabled",
            Self::SendDisabled => "SendDisabled",
            Self::ReceiveDisabled => "ReceiveDisabled",
        }
    }
}

/// The declared properties of an entity. Properties that its kind does not have keep their defaults and have no effect. The
/// fields are public; [`EntityDescription::problems`] finds all invalid values at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityDescription {
    /// How long a received message stays locked; 5 s to 5 min, default 1 min.
    pub lock_duration: Duration,
    /// Deliveries that may fail before the message is dead-lettered; 1 to 2147483647, default 10.
    pub max_delivery_count: u32,
    /// Default and maximum of a message's time to live; `None` means that messages do not expire.
    pub default_message_time_to_live: Option<Duration>,
    /// Whether expired messages are dead-lettered instead of dropped; default no.
    pub dead_lettering_on_message_expiration: bool,
    /// Whether messages whose filters or actions fail are dead-lettered; default yes.
    pub dead_lettering_on_filter_evaluation_exceptions: bool,
    /// The allowed operations; default all. A subscription gets messages in every status (semantics §14).
    pub status: EntityStatus,
    /// Whether messages whose ids were seen within the window are dropped; default no, fixed at creation.
    pub requires_duplicate_detection: bool,
    /// How long an id is remembered; 20 s (5 s from a configuration file) to 7 days, default 10 min.
    pub duplicate_detection_history_time_window: Duration,
    /// The entity to which messages are forwarded, if any.
    pub forward_to: Option<EntityPath>,
    /// The entity to which dead letters are forwarded, if any.
    pub forward_dead_lettered_messages_to: Option<EntityPath>,
    /// Time without use after which the entity is deleted; 5 min or longer, `None` means never. An entity that forwards
    /// messages or dead letters keeps the setting and is never idle (observed 27); the basic tier does not have it.
    pub auto_delete_on_idle: Option<Duration>,
    /// Maximum size in MiB, dead letters included; default 1024. A partitioned entity holds
    /// [`EntityDescription::capacity_in_megabytes`].
    pub max_size_in_megabytes: u64,
    /// Largest message in KiB, premium only: 1024 (default) to 102400.
    pub max_message_size_in_kilobytes: Option<u32>,
    /// Whether sequence numbers contain a partition (decision D18); default no, fixed at creation.
    pub enable_partitioning: bool,
    /// Whether every message belongs to a session and is received through it (semantics §6); default no, fixed at creation.
    pub requires_session: bool,
    /// A text of the user's, without effect.
    pub user_metadata: Option<Box<str>>,
    /// Returned by the administration API as given, without effect; default yes.
    pub enable_batched_operations: bool,
    /// Returned as given, without effect; default yes.
    pub support_ordering: bool,
    /// Returned as given, without effect; default no.
    pub enable_express: bool,
    /// The JMS client that owns the subscription, if any; fixed at creation.
    pub client: Option<Box<ClientAffinity>>,
}

/// The properties of a subscription that a JMS client created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAffinity {
    /// The client identifier; empty for clients that share the subscription without one.
    pub client_id: Box<str>,
    /// Whether the subscription stays when it has no consumers.
    pub is_durable: bool,
    /// Whether several consumers may use it at once.
    pub is_shared: bool,
    /// The selector, empty for none; `None` if unknown because the administration API created the subscription.
    pub selector: Option<Box<str>>,
}

impl Default for EntityDescription {
    fn default() -> Self {
        Self {
            lock_duration: MINUTE,
            max_delivery_count: 10,
            default_message_time_to_live: None,
            dead_lettering_on_message_expiration: false,
            dead_lettering_on_filter_evaluation_exceptions: true,
            status: EntityStatus::Active,
            requires_duplicate_detection: false,
            duplicate_detection_history_time_window: 10 * MINUTE,
            forward_to: None,
            forward_dead_lettered_messages_to: None,
            auto_delete_on_idle: None,
            max_size_in_megabytes: 1024,
            max_message_size_in_kilobytes: None,
            enable_partitioning: false,
            requires_session: false,
            user_metadata: None,
            enable_batched_operations: true,
            support_ordering: true,
            enable_express: false,
            client: None,
        }
    }
}

impl EntityDescription {
    /// Returns the default description in this tier.
    pub fn of_tier(tier: Tier) -> Self {
        Self {
            default_message_time_to_live: (tier == Tier::Basic).then_some(BASIC_TIME_TO_LIVE),
            ..Self::default()
        }
    }

    /// Returns the maximum size in MiB: each of the 16 partitions of a partitioned entity has the requested size (observed
    /// 30).
    pub fn capacity_in_megabytes(&self) -> u64 {
        let partitions = if self.enable_partitioning {
            PARTITIONS
        } else {
            1
        };
        self.max_size_in_megabytes.saturating_mul(partitions)
    }

    /// Returns whether messages or dead letters are forwarded to an entity.
    pub fn forwards(&self) -> bool {
        self.forward_to.is_some() || self.forward_dead_lettered_messages_to.is_some()
    }
}

/// An invalid value of one property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The official name of the property, for example `LockDuration`.
    pub property: &'static str,
    /// The invalid value.
    pub value: String,
    /// The allowed values.
    pub allowed: String,
}

impl Problem {
    pub(crate) fn new(
        property: &'static str,
        value: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        Self {
            property,
            value: value.into(),
            allowed: allowed.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            property,
            value,
            allowed,
        } = self;
        write!(formatter, "{property} is {value}; allowed: {allowed}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> EntityPath {
        text.parse().unwrap()
    }

    fn texts(description: &EntityDescription, tier: Tier) -> Vec<String> {
        let problems = description.problems(EntityKind::Queue, tier);
        problems.iter().map(Problem::to_string).collect()
    }

    #[test]
    fn the_default_description_is_valid_in_every_tier() {
        for tier in Tier::ALL {
            assert_eq!(texts(&EntityDescription::of_tier(tier), tier), [""; 0]);
        }
    }

    #[test]
    fn every_problem_is_reported_at_once() {
        let description = EntityDescription {
            lock_duration: Duration::from_secs(301),
            max_delivery_count: 0,
            default_message_time_to_live: Some(Duration::from_millis(999)),
            dead_lettering_on_message_expiration: true,
            duplicate_detection_history_time_window: Duration::from_secs(4),
            forward_to: Some(path("ORDERS")),
            auto_delete_on_idle: Some(Duration::from_secs(299)),
            max_size_in_megabytes: 0,
            max_message_size_in_kilobytes: Some(1023),
            ..EntityDescription::default()
        };
        assert_eq!(
            texts(&description, Tier::Standard),
            [
                "LockDuration is 301 s; allowed: 5 s (PT5S) to 5 min (PT5M)",
                "MaxSizeInMegabytes is 0; allowed: 1 to 81920",
                "DefaultMessageTimeToLive is 0.999 s; allowed: 1 s (PT1S) or longer",
                "DuplicateDetectionHistoryTimeWindow is 4 s; allowed: 5 s (PT5S) to 7 days (P7D)",
                "MaxDeliveryCount is 0; allowed: 1 to 2147483647",
                "AutoDeleteOnIdle is 299 s; allowed: 5 min (PT5M) or longer",
                "MaxMessageSizeInKilobytes is 1023; allowed: none: only the premium tier has large messages",
            ]
        );
    }

    #[test]
    fn the_basic_tier_refuses_the_features_of_higher_tiers() {
        let description = EntityDescription {
            requires_duplicate_detection: true,
            default_message_time_to_live: Some(Duration::from_secs(15 * 86_400)),
            forward_to: Some(path("next")),
            auto_delete_on_idle: Some(Duration::from_secs(300)),
            forward_dead_lettered_messages_to: Some(path("dead")),
            ..EntityDescription::default()
        };
        assert_eq!(texts(&description, Tier::Standard), [""; 0]);
        assert_eq!(
            texts(&description, Tier::Basic),
            [
                "RequiresDuplicateDetection is true; allowed: false: the basic tier has no duplicate detection",
                "DefaultMessageTimeToLive is 15 days; allowed: 1 s (PT1S) to 14 days (P14D) in the basic tier",
                "ForwardTo is next; allowed: none: the basic tier does not forward",
                "ForwardDeadLetteredMessagesTo is dead; allowed: none: the basic tier does not forward",
                "AutoDeleteOnIdle is 300 s; allowed: never: the basic tier does not delete idle entities",
            ]
        );
    }

    #[test]
    fn properties_fixed_at_creation_cannot_be_changed() {
        let plain = EntityDescription::default();
        let changed = EntityDescription {
            requires_duplicate_detection: true,
            enable_partitioning: true,
            max_delivery_count: 3,
            ..EntityDescription::default()
        };
        let problems = plain.fixed_problems(&changed);
        let texts: Vec<String> = problems.iter().map(Problem::to_string).collect();
        assert_eq!(
            texts,
            [
                "RequiresDuplicateDetection is true; allowed: false, as it was created",
                "EnablePartitioning is true; allowed: false, as it was created",
            ]
        );
        assert_eq!(plain.fixed_problems(&plain), []);
    }
}
