//! The settings of a queue: defaults, bounds and legal combinations.
//!
//! Every door (configuration file, harness builder, control API) fills one of these and asks
//! [`QueueDescription::problems`], so that all of them refuse with the same words. Limits: semantics §1
//! and decisions D15, D21.

mod problem;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use problem::Problem;
use problem::{days, seconds};

use crate::{EntityPath, Tier};

const MINUTE: Duration = Duration::from_secs(60);

/// Shortest and longest time that a message stays locked without renewal.
const LOCK_DURATION: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// Fewest and most deliveries before a message is dead-lettered.
const MAX_DELIVERY_COUNT: (u32, u32) = (1, i32::MAX as u32);
/// Shortest default time to live that an entity may have.
const MIN_TIME_TO_LIVE: Duration = Duration::from_secs(1);
/// Shortest and longest history of duplicate detection; the official schema goes down to 5 s (decision D15).
const DUPLICATE_WINDOW: (Duration, Duration) =
    (Duration::from_secs(5), Duration::from_secs(7 * 86_400));
/// Shortest time after which an idle entity is deleted (semantics §5).
const MIN_IDLE: Duration = Duration::from_secs(300);
/// Longest default time to live in the basic tier (semantics §4).
const BASIC_TIME_TO_LIVE: Duration = Duration::from_secs(14 * 86_400);
/// Smallest and largest size of an entity, in MiB; the service sells 1, 2, 3, 4, 5 and 80 GiB, smaller ones are
/// for tests that fill an entity.
const MAX_SIZE: (u64, u64) = (1, 80 * 1024);
/// Smallest and largest message that a premium entity may be made for, in KiB (semantics §17.2).
const MAX_MESSAGE_SIZE: (u64, u64) = (1024, 102_400);

/// Partitions of a partitioned entity.
const PARTITIONS: u64 = 16;

/// What can be done with an entity (semantics §14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EntityStatus {
    /// Everything.
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
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Active,
        Self::Disabled,
        Self::SendDisabled,
        Self::ReceiveDisabled,
    ];

    /// Whether messages are accepted.
    pub fn can_send(self) -> bool {
        matches!(self, Self::Active | Self::ReceiveDisabled)
    }

    /// Whether messages are handed out and settled.
    pub fn can_receive(self) -> bool {
        matches!(self, Self::Active | Self::SendDisabled)
    }

    /// The word for it in configurations and the admin API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "Active",
            Self::Disabled => "Disabled",
            Self::SendDisabled => "SendDisabled",
            Self::ReceiveDisabled => "ReceiveDisabled",
        }
    }
}

/// What a queue is declared to be. Fields are public: what is not legal is found by
/// [`QueueDescription::problems`], all of it at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueDescription {
    /// How long a received message stays locked; 5 s to 5 min, default 1 min.
    pub lock_duration: Duration,
    /// Deliveries that may fail before the message is dead-lettered; 1 to 2147483647, default 10.
    pub max_delivery_count: u32,
    /// Default and ceiling of a message's time to live; none means for ever.
    pub default_message_time_to_live: Option<Duration>,
    /// Whether expired messages are dead-lettered rather than dropped; default no.
    pub dead_lettering_on_message_expiration: bool,
    /// What can be done with it; default everything.
    pub status: EntityStatus,
    /// Whether a message is dropped whose id was seen within the window; default no, fixed at creation.
    pub requires_duplicate_detection: bool,
    /// How long an id is remembered; 20 s (5 s from a configuration file) to 7 days, default 10 min.
    pub duplicate_detection_history_time_window: Duration,
    /// Where its messages go on to, if they do not stay.
    pub forward_to: Option<EntityPath>,
    /// Where its dead letters go on to, if they do not stay.
    pub forward_dead_lettered_messages_to: Option<EntityPath>,
    /// After how long without use it is deleted; 5 min or longer, none means never. An entity that forwards messages
    /// or dead letters keeps the setting and is never idle (observed 27); the basic tier does not have it.
    pub auto_delete_on_idle: Option<Duration>,
    /// How much it may hold, dead letters included, in MiB; default 1024. A partitioned entity holds
    /// [`QueueDescription::capacity_in_megabytes`].
    pub max_size_in_megabytes: u64,
    /// Largest message in KiB, premium only: 1024 (default) to 102400.
    pub max_message_size_in_kilobytes: Option<u64>,
    /// Whether sequence numbers carry a partition (decision D18); default no, fixed at creation.
    pub enable_partitioning: bool,
    /// Whether every message belongs to a session and is received through it (semantics §6); default no, fixed at
    /// creation.
    pub requires_session: bool,
}

impl Default for QueueDescription {
    fn default() -> Self {
        Self {
            lock_duration: MINUTE,
            max_delivery_count: 10,
            default_message_time_to_live: None,
            dead_lettering_on_message_expiration: false,
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
        }
    }
}

impl QueueDescription {
    /// What a queue is in this tier when nothing is said about it.
    pub fn of_tier(tier: Tier) -> Self {
        Self {
            default_message_time_to_live: (tier == Tier::Basic).then_some(BASIC_TIME_TO_LIVE),
            ..Self::default()
        }
    }

    /// How much it holds, in MiB: each of the 16 partitions of a partitioned entity has the size that was asked for
    /// (observed 30).
    pub fn capacity_in_megabytes(&self) -> u64 {
        let partitions = if self.enable_partitioning {
            PARTITIONS
        } else {
            1
        };
        self.max_size_in_megabytes.saturating_mul(partitions)
    }

    /// Whether messages or dead letters go on to an entity.
    pub fn forwards(&self) -> bool {
        self.forward_to.is_some() || self.forward_dead_lettered_messages_to.is_some()
    }

    /// Everything about the settings of a queue or subscription that is not legal; empty when they are.
    pub fn problems(&self, tier: Tier) -> Vec<Problem> {
        let mut problems = Vec::new();
        self.check_durations(&mut problems);
        self.check_numbers(&mut problems);
        self.check_tier(tier, &mut problems);
        problems
    }

    /// The settings that `changed` would change although they are fixed at creation.
    pub fn fixed_problems(&self, changed: &Self) -> Vec<Problem> {
        let flags = [
            (
                "RequiresDuplicateDetection",
                self.requires_duplicate_detection,
                changed.requires_duplicate_detection,
            ),
            (
                "EnablePartitioning",
                self.enable_partitioning,
                changed.enable_partitioning,
            ),
            (
                "RequiresSession",
                self.requires_session,
                changed.requires_session,
            ),
        ];
        flags
            .into_iter()
            .filter(|(_, before, after)| before != after)
            .map(|(property, before, after)| {
                let allowed = format!("{before}, as it was created");
                Problem::new(property, after.to_string(), allowed)
            })
            .collect()
    }

    fn check_durations(&self, problems: &mut Vec<Problem>) {
        let mut check = |property, value: Duration, (shortest, longest), allowed: &str| {
            if !(shortest..=longest).contains(&value) {
                problems.push(Problem::new(property, seconds(value), allowed));
            }
        };
        let allowed = "5 s (PT5S) to 5 min (PT5M)";
        check("LockDuration", self.lock_duration, LOCK_DURATION, allowed);
        if let Some(time_to_live) = self.default_message_time_to_live {
            let bounds = (MIN_TIME_TO_LIVE, Duration::MAX);
            let allowed = "1 s (PT1S) or longer";
            check("DefaultMessageTimeToLive", time_to_live, bounds, allowed);
        }
        let window = self.duplicate_detection_history_time_window;
        let allowed = "5 s (PT5S) to 7 days (P7D)";
        let property = "DuplicateDetectionHistoryTimeWindow";
        check(property, window, DUPLICATE_WINDOW, allowed);
        if let Some(idle) = self.auto_delete_on_idle {
            let bounds = (MIN_IDLE, Duration::MAX);
            check("AutoDeleteOnIdle", idle, bounds, "5 min (PT5M) or longer");
        }
    }

    fn check_numbers(&self, problems: &mut Vec<Problem>) {
        let mut check = |property, value: u64, (least, most): (u64, u64)| {
            if !(least..=most).contains(&value) {
                let allowed = format!("{least} to {most}");
                problems.push(Problem::new(property, value.to_string(), allowed));
            }
        };
        let (fewest, most) = MAX_DELIVERY_COUNT;
        let deliveries = (u64::from(fewest), u64::from(most));
        check(
            "MaxDeliveryCount",
            u64::from(self.max_delivery_count),
            deliveries,
        );
        check("MaxSizeInMegabytes", self.max_size_in_megabytes, MAX_SIZE);
        if let Some(size) = self.max_message_size_in_kilobytes {
            check("MaxMessageSizeInKilobytes", size, MAX_MESSAGE_SIZE);
        }
    }

    fn check_tier(&self, tier: Tier, problems: &mut Vec<Problem>) {
        if tier != Tier::Premium
            && let Some(size) = self.max_message_size_in_kilobytes
        {
            let allowed = "none: only the premium tier has large messages";
            problems.push(Problem::new(
                "MaxMessageSizeInKilobytes",
                size.to_string(),
                allowed,
            ));
        }
        if tier != Tier::Basic {
            return;
        }
        if let Some(long) = self.default_message_time_to_live
            && long > BASIC_TIME_TO_LIVE
        {
            let allowed = "1 s (PT1S) to 14 days (P14D) in the basic tier";
            problems.push(Problem::new(
                "DefaultMessageTimeToLive",
                days(long),
                allowed,
            ));
        }
        if self.requires_duplicate_detection {
            let allowed = "false: the basic tier has no duplicate detection";
            problems.push(Problem::new("RequiresDuplicateDetection", "true", allowed));
        }
        if self.requires_session {
            let allowed = "false: the basic tier has no sessions";
            problems.push(Problem::new("RequiresSession", "true", allowed));
        }
        if let Some(idle) = self.auto_delete_on_idle {
            let allowed = "never: the basic tier does not delete idle entities";
            problems.push(Problem::new("AutoDeleteOnIdle", seconds(idle), allowed));
        }
        let targets = [
            ("ForwardTo", &self.forward_to),
            (
                "ForwardDeadLetteredMessagesTo",
                &self.forward_dead_lettered_messages_to,
            ),
        ];
        for (property, target) in targets {
            if let Some(target) = target {
                let allowed = "none: the basic tier does not forward";
                problems.push(Problem::new(property, target.to_string(), allowed));
            }
        }
    }
}
