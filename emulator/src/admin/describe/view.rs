//! An entity as its clients are shown it, with every element whatever was asked for: some of them fail without
//! (admin-http.md §9).

use std::time::Duration;

use servicebus_broker::{Counts, EntityKind, EntityPath, SubQueue, Tier, Timestamp};

use super::super::route::Query;
use super::super::time::{Frame, NEVER};
use super::super::xml::{CONNECT, COUNTS, INSTANCE, Writer};
use super::authorization::write_rules;
use super::fields::target;
use super::read::Wanted;
use super::{elements, root};
use crate::config::duration::{self, FOREVER};
use crate::namespace::{Namespace, SharedEntity};

/// The version of the API since which sizes of messages and affine subscriptions are shown.
const SINCE_2021: &str = "2021-05";
/// The version since which filters of topics are counted.
const SINCE_2024: &str = "2024-05";

/// What an entity is right now.
#[derive(Debug, Clone)]
pub(in crate::admin) struct View {
    pub(in crate::admin) path: EntityPath,
    pub(in crate::admin) kind: EntityKind,
    pub(in crate::admin) created_at: Timestamp,
    pub(in crate::admin) updated_at: Timestamp,
    pub(in crate::admin) accessed_at: Option<Timestamp>,
    pub(in crate::admin) wanted: Wanted,
    counts: Counts,
    size: u64,
    subscriptions: usize,
    sql_filters: usize,
    correlation_filters: usize,
    tier: Tier,
}

impl View {
    pub(in crate::admin) fn of(namespace: &Namespace, entity: &SharedEntity) -> Self {
        let now = namespace.clock.now();
        namespace.read(entity, |locked| {
            entity.metadata(|metadata| {
                let entity = locked;
                let rules = entity.rules();
                let subscription = entity.subscription_description();
                Self {
                    path: entity.path().clone(),
                    kind: entity.kind(),
                    created_at: metadata.created_at(),
                    updated_at: metadata.updated_at(),
                    accessed_at: metadata.accessed_at(entity.last_used(now)),
                    wanted: Wanted {
                        entity: entity.description().clone(),
                        dead_letters_filter_errors: subscription.is_none_or(|subscription| {
                            subscription.dead_lettering_on_filter_evaluation_exceptions
                        }),
                        admin_metadata: metadata.admin_metadata(),
                    },
                    counts: entity.counts(SubQueue::Active),
                    size: entity.whole_size(),
                    subscriptions: rules.map_or(0, |rules| rules.subscriptions().count()),
                    sql_filters: rules.map_or(0, |rules| rules.sql_filters()),
                    correlation_filters: rules.map_or(0, |rules| rules.correlation_filters()),
                    tier: entity.tier(),
                }
            })
        })
    }

    /// An empty entity that is as a client wants it.
    #[cfg(feature = "fuzz")]
    pub(in crate::admin) fn of_wanted(kind: EntityKind, wanted: Wanted, tier: Tier) -> Self {
        let at = Timestamp::from_millis(0);
        Self {
            path: EntityPath::of_address("q").expect("a legal name"),
            kind,
            created_at: at,
            updated_at: at,
            accessed_at: None,
            wanted,
            counts: Counts::default(),
            size: 0,
            subscriptions: 0,
            sql_filters: 0,
            correlation_filters: 0,
            tier,
        }
    }

    /// Active messages, dead letters and scheduled ones, as old clients count them.
    pub(in crate::admin) fn message_count(&self) -> usize {
        self.counts.active + self.dead_letters() + self.counts.scheduled
    }

    /// Writes the description; in a feed, and of a subscription, prefixes tell of another depth.
    pub(in crate::admin) fn write(
        &self,
        query: &Query,
        frame: Frame,
        in_feed: bool,
        out: &mut Writer,
    ) {
        let root = root(self.kind);
        out.open(root, &[("xmlns", CONNECT), ("xmlns:i", INSTANCE)]);
        for &name in elements(self.kind) {
            match name {
                "AuthorizationRules" => {
                    write_rules(&self.wanted.admin_metadata.authorization_rules, out);
                }
                "CountDetails" => self.write_counts(in_feed, out),
                _ => {
                    let text = self
                        .setting(name)
                        .or_else(|| self.event(name, query, frame));
                    if let Some(text) = text {
                        out.element(name, &text);
                    }
                }
            }
        }
        out.close(root);
    }

    /// What was set.
    fn setting(&self, name: &str) -> Option<String> {
        let Wanted {
            entity,
            admin_metadata,
            ..
        } = &self.wanted;
        let flag = |flag: bool| flag.to_string();
        Some(match name {
            "LockDuration" => duration::format(entity.lock_duration),
            "MaxSizeInMegabytes" => entity.capacity_in_megabytes().to_string(),
            "RequiresDuplicateDetection" => flag(entity.requires_duplicate_detection),
            "RequiresSession" => flag(entity.requires_session),
            "DefaultMessageTimeToLive" => endless(entity.default_message_time_to_live),
            "DeadLetteringOnMessageExpiration" => flag(entity.dead_lettering_on_message_expiration),
            "DeadLetteringOnFilterEvaluationExceptions" => {
                flag(self.wanted.dead_letters_filter_errors)
            }
            "DuplicateDetectionHistoryTimeWindow" => {
                duration::format(entity.duplicate_detection_history_time_window)
            }
            "MaxDeliveryCount" => entity.max_delivery_count.to_string(),
            "EnableBatchedOperations" => flag(admin_metadata.enable_batched_operations),
            "Status" => entity.status.name().to_owned(),
            "ForwardTo" => shown_target(&entity.forward_to, &admin_metadata.forward_to)?,
            "ForwardDeadLetteredMessagesTo" => shown_target(
                &entity.forward_dead_lettered_messages_to,
                &admin_metadata.forward_dead_lettered_messages_to,
            )?,
            "UserMetadata" => admin_metadata.user_metadata.clone()?,
            "SupportOrdering" => flag(admin_metadata.support_ordering),
            "AutoDeleteOnIdle" => endless(entity.auto_delete_on_idle),
            "EnablePartitioning" => flag(entity.enable_partitioning),
            "EnableExpress" => flag(admin_metadata.enable_express),
            "FilteringMessagesBeforePublishing"
            | "IsAnonymousAccessible"
            | "EnableSubscriptionPartitioning" => flag(false),
            _ => return None,
        })
    }

    /// What came about.
    fn event(&self, name: &str, query: &Query, frame: Frame) -> Option<String> {
        let instant = |at| match self.kind {
            EntityKind::Queue | EntityKind::Topic => frame.milliseconds(at),
            EntityKind::Subscription => frame.ticks(at),
        };
        Some(match name {
            "SizeInBytes" => self.size.to_string(),
            "MessageCount" => self.message_count().to_string(),
            "CreatedAt" => instant(self.created_at),
            "UpdatedAt" => instant(self.updated_at),
            "AccessedAt" => {
                // A subscription was always accessed: when it was made (observed 34).
                let made = (self.kind == EntityKind::Subscription).then_some(self.updated_at);
                let at = self.accessed_at.or(made);
                at.map_or_else(|| NEVER.to_owned(), instant)
            }
            "SubscriptionCount" => self.subscriptions.to_string(),
            "EntityAvailabilityStatus" => "Available".to_owned(),
            "SqlFilterCount" if query.speaks(SINCE_2024) => self.sql_filters.to_string(),
            "CorrelationFilterCount" if query.speaks(SINCE_2024) => {
                self.correlation_filters.to_string()
            }
            "MaxMessageSizeInKilobytes" if query.speaks(SINCE_2021) => {
                let own = self.wanted.entity.max_message_size_in_kilobytes;
                let size = own.unwrap_or_else(|| self.tier.max_message_size() / 1024);
                size.to_string()
            }
            "IsClientAffine" if query.speaks(SINCE_2021) => false.to_string(),
            _ => return None,
        })
    }

    /// JavaScript needs exactly one attribute here, and prefixed children.
    fn write_counts(&self, in_feed: bool, out: &mut Writer) {
        let is_deep = in_feed || self.kind == EntityKind::Subscription;
        let prefix = if is_deep { "d3p1" } else { "d2p1" };
        let counts = &self.counts;
        out.open("CountDetails", &[(&format!("xmlns:{prefix}"), COUNTS)]);
        for (name, count) in [
            ("ActiveMessageCount", counts.active),
            ("DeadLetterMessageCount", self.dead_letters()),
            ("ScheduledMessageCount", counts.scheduled),
            ("TransferMessageCount", counts.transfer),
            (
                "TransferDeadLetterMessageCount",
                counts.transfer_dead_letter,
            ),
        ] {
            out.element(&format!("{prefix}:{name}"), &count.to_string());
        }
        out.close("CountDetails");
    }

    /// A topic has none (decision D25).
    fn dead_letters(&self) -> usize {
        match self.kind {
            EntityKind::Topic => 0,
            EntityKind::Queue | EntityKind::Subscription => self.counts.dead_letter,
        }
    }
}

fn endless(duration: Option<Duration>) -> String {
    duration::format(duration.unwrap_or(FOREVER))
}

/// A target in the words of its client, unless it was changed through another API meanwhile.
fn shown_target(path: &Option<EntityPath>, words: &Option<String>) -> Option<String> {
    let path = path.as_ref()?;
    let words = words
        .as_ref()
        .filter(|words| target(words).as_ref() == Some(path));
    Some(words.cloned().unwrap_or_else(|| path.to_string()))
}
