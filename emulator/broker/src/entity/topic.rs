//! The settings of a topic and of a subscription: those of a queue, as far as they have them.

use std::time::Duration;

use super::description::{EntityStatus, Problem, QueueDescription};
use crate::{EntityPath, Tier};

/// What a topic is declared to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicDescription {
    /// Default and ceiling of a message's time to live, for all its subscriptions; none means for ever.
    pub default_message_time_to_live: Option<Duration>,
    /// What can be done with it; `ReceiveDisabled` is none of it.
    pub status: EntityStatus,
    /// Whether a message is dropped whose id was seen within the window; default no, fixed at creation.
    pub requires_duplicate_detection: bool,
    /// How long an id is remembered; as for queues.
    pub duplicate_detection_history_time_window: Duration,
    /// After how long without use it is deleted; 5 min or longer, none means never.
    pub auto_delete_on_idle: Option<Duration>,
    /// How much it may hold, in MiB; default 1024.
    pub max_size_in_megabytes: u64,
    /// Largest message in KiB, premium only.
    pub max_message_size_in_kilobytes: Option<u64>,
    /// Whether sequence numbers carry a partition; default no, fixed at creation.
    pub enable_partitioning: bool,
}

/// What a subscription is declared to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionDescription {
    /// How long a received message stays locked; as for queues.
    pub lock_duration: Duration,
    /// Deliveries that may fail before the message is dead-lettered; as for queues.
    pub max_delivery_count: u32,
    /// Default and ceiling of a message's time to live in this subscription.
    pub default_message_time_to_live: Option<Duration>,
    /// Whether expired messages are dead-lettered rather than dropped; default no.
    pub dead_lettering_on_message_expiration: bool,
    /// Whether a message is dead-lettered whose filters or actions fail; default yes.
    pub dead_lettering_on_filter_evaluation_exceptions: bool,
    /// What can be done with it; messages arrive whatever it is (semantics §14).
    pub status: EntityStatus,
    /// Whether every message belongs to a session and is received through it; default no, fixed at creation.
    pub requires_session: bool,
    /// Where its messages go on to, if they do not stay.
    pub forward_to: Option<EntityPath>,
    /// Where its dead letters go on to, if they do not stay.
    pub forward_dead_lettered_messages_to: Option<EntityPath>,
    /// After how long without use it is deleted; 5 min or longer, none means never.
    pub auto_delete_on_idle: Option<Duration>,
}

impl Default for TopicDescription {
    fn default() -> Self {
        let queue = QueueDescription::default();
        Self {
            default_message_time_to_live: queue.default_message_time_to_live,
            status: queue.status,
            requires_duplicate_detection: queue.requires_duplicate_detection,
            duplicate_detection_history_time_window: queue.duplicate_detection_history_time_window,
            auto_delete_on_idle: queue.auto_delete_on_idle,
            max_size_in_megabytes: queue.max_size_in_megabytes,
            max_message_size_in_kilobytes: queue.max_message_size_in_kilobytes,
            enable_partitioning: queue.enable_partitioning,
        }
    }
}

impl Default for SubscriptionDescription {
    fn default() -> Self {
        let queue = QueueDescription::default();
        Self {
            lock_duration: queue.lock_duration,
            max_delivery_count: queue.max_delivery_count,
            default_message_time_to_live: queue.default_message_time_to_live,
            dead_lettering_on_message_expiration: queue.dead_lettering_on_message_expiration,
            dead_lettering_on_filter_evaluation_exceptions: true,
            status: queue.status,
            requires_session: queue.requires_session,
            forward_to: queue.forward_to,
            forward_dead_lettered_messages_to: queue.forward_dead_lettered_messages_to,
            auto_delete_on_idle: queue.auto_delete_on_idle,
        }
    }
}

impl TopicDescription {
    /// Everything about the settings of the topic `path` that is not legal; empty when they are.
    pub fn problems(&self, path: &EntityPath, tier: Tier) -> Vec<Problem> {
        let mut problems = self.queue_description().problems(tier);
        if self.status == EntityStatus::ReceiveDisabled {
            let allowed = "Active, Disabled or SendDisabled";
            problems.push(Problem::new("Status", self.status.name(), allowed));
        }
        if tier == Tier::Basic {
            let allowed = "none: the basic tier has no topics";
            problems.push(Problem::new("Topic", path.to_string(), allowed));
        }
        problems
    }

    /// The settings that `changed` would change although they are fixed at creation.
    pub fn fixed_problems(&self, changed: &Self) -> Vec<Problem> {
        self.queue_description()
            .fixed_problems(&changed.queue_description())
    }

    /// From the settings of the topic's entity.
    pub fn of_mailbox(entity: &QueueDescription) -> Self {
        Self {
            default_message_time_to_live: entity.default_message_time_to_live,
            status: entity.status,
            requires_duplicate_detection: entity.requires_duplicate_detection,
            duplicate_detection_history_time_window: entity.duplicate_detection_history_time_window,
            auto_delete_on_idle: entity.auto_delete_on_idle,
            max_size_in_megabytes: entity.max_size_in_megabytes,
            max_message_size_in_kilobytes: entity.max_message_size_in_kilobytes,
            enable_partitioning: entity.enable_partitioning,
        }
    }

    /// The same as settings of an entity.
    pub fn queue_description(&self) -> QueueDescription {
        QueueDescription {
            default_message_time_to_live: self.default_message_time_to_live,
            status: self.status,
            requires_duplicate_detection: self.requires_duplicate_detection,
            duplicate_detection_history_time_window: self.duplicate_detection_history_time_window,
            auto_delete_on_idle: self.auto_delete_on_idle,
            max_size_in_megabytes: self.max_size_in_megabytes,
            max_message_size_in_kilobytes: self.max_message_size_in_kilobytes,
            enable_partitioning: self.enable_partitioning,
            ..QueueDescription::default()
        }
    }
}

impl SubscriptionDescription {
    /// Everything about the settings of a subscription that is not legal; empty when they are.
    pub fn problems(&self, tier: Tier) -> Vec<Problem> {
        let mut problems = self.queue_description().problems(tier);
        if self.status == EntityStatus::SendDisabled {
            let allowed = "Active, Disabled or ReceiveDisabled";
            problems.push(Problem::new("Status", self.status.name(), allowed));
        }
        problems
    }

    /// The settings that `changed` would change although they are fixed at creation.
    pub fn fixed_problems(&self, changed: &Self) -> Vec<Problem> {
        self.queue_description()
            .fixed_problems(&changed.queue_description())
    }

    /// From the settings of the subscription's entity.
    pub fn of_mailbox(entity: &QueueDescription, dead_letters_filter_errors: bool) -> Self {
        Self {
            lock_duration: entity.lock_duration,
            max_delivery_count: entity.max_delivery_count,
            default_message_time_to_live: entity.default_message_time_to_live,
            dead_lettering_on_message_expiration: entity.dead_lettering_on_message_expiration,
            dead_lettering_on_filter_evaluation_exceptions: dead_letters_filter_errors,
            status: entity.status,
            requires_session: entity.requires_session,
            forward_to: entity.forward_to.clone(),
            forward_dead_lettered_messages_to: entity.forward_dead_lettered_messages_to.clone(),
            auto_delete_on_idle: entity.auto_delete_on_idle,
        }
    }

    /// The same as settings of an entity.
    pub fn queue_description(&self) -> QueueDescription {
        QueueDescription {
            lock_duration: self.lock_duration,
            max_delivery_count: self.max_delivery_count,
            default_message_time_to_live: self.default_message_time_to_live,
            dead_lettering_on_message_expiration: self.dead_lettering_on_message_expiration,
            status: self.status,
            requires_session: self.requires_session,
            forward_to: self.forward_to.clone(),
            forward_dead_lettered_messages_to: self.forward_dead_lettered_messages_to.clone(),
            auto_delete_on_idle: self.auto_delete_on_idle,
            ..QueueDescription::default()
        }
    }
}
