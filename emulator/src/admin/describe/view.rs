//! An entity as its clients get it, with every element in every version: some clients fail without (admin-http.md §9).

use servicebus_broker::{
    Counts, EntityKind, EntityPath, Property, PropertyValue, SubQueue, Tier, Timestamp,
};
use servicebus_config::descriptions::{
    AUTHORIZATION_RULES, CLIENT_AFFINE_PROPERTIES, COUNT_DETAILS, Part, description_root, parts,
};

use super::super::route::Query;
use super::super::time::{Frame, NEVER};
use super::authorization::write_rules;
use super::read::{Wanted, target};
use crate::config::duration::{self, FOREVER};
use crate::namespace::{Namespace, SharedEntity};
use crate::xml::{CONNECT, COUNTS, INSTANCE, Writer};

/// The version since which descriptions have the properties of JMS subscriptions.
const SINCE_2021: &str = "2021-05";
/// The version since which filters of topics are counted.
const SINCE_2024: &str = "2024-05";

/// The current state of an entity.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) path: EntityPath,
    pub(crate) kind: EntityKind,
    pub(crate) created_at: Timestamp,
    pub(crate) updated_at: Timestamp,
    pub(crate) accessed_at: Option<Timestamp>,
    pub(crate) wanted: Wanted,
    counts: Counts,
    size: u64,
    subscriptions: usize,
    sql_filters: usize,
    correlation_filters: usize,
    tier: Tier,
}

impl View {
    pub(crate) fn of(namespace: &Namespace, entity: &SharedEntity) -> Self {
        let now = namespace.clock.now();
        namespace.read(entity, |locked| {
            entity.metadata(|metadata| {
                let entity = locked;
                let rules = entity.rules();
                Self {
                    path: entity.path().clone(),
                    kind: entity.kind(),
                    created_at: metadata.created_at(),
                    updated_at: metadata.updated_at(),
                    accessed_at: metadata.accessed_at(entity.last_used(now)),
                    wanted: Wanted {
                        entity: entity.description().clone(),
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

    /// Creates the view of an empty entity as a client wants it.
    #[cfg(feature = "fuzz")]
    pub(crate) fn of_wanted(kind: EntityKind, wanted: Wanted, tier: Tier) -> Self {
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

    /// Returns the number of active, dead-lettered and scheduled messages, as old clients count them.
    pub(crate) fn message_count(&self) -> usize {
        self.counts.active + self.dead_letters() + self.counts.scheduled
    }

    /// Writes the description; in a feed, and for a subscription, prefixes have another depth.
    pub(crate) fn write(&self, query: &Query, frame: Frame, in_feed: bool, out: &mut Writer) {
        let root = description_root(self.kind);
        out.open(root, &[("xmlns", CONNECT), ("xmlns:i", INSTANCE)]);
        for part in parts(self.kind) {
            let (name, text) = match part {
                Part::Property(property) => (property.name, self.setting(property, query)),
                Part::Other(AUTHORIZATION_RULES) => {
                    write_rules(&self.wanted.admin_metadata.authorization_rules, out);
                    continue;
                }
                Part::Other(CLIENT_AFFINE_PROPERTIES) => {
                    self.write_client(query, out);
                    continue;
                }
                Part::Other(COUNT_DETAILS) => {
                    self.write_counts(in_feed, out);
                    continue;
                }
                Part::Other(name) => (name, self.event(name, query, frame)),
            };
            if let Some(text) = text {
                out.element(name, &text);
            }
        }
        out.close(root);
    }

    fn setting(&self, property: &Property, query: &Query) -> Option<String> {
        if property
            .since
            .is_some_and(|since| !query.is_at_least(since))
        {
            return None;
        }
        let entity = &self.wanted.entity;
        match property.name {
            "MaxSizeInMegabytes" => Some(entity.capacity_in_megabytes().to_string()),
            "MaxMessageSizeInKilobytes" => {
                let own = entity.max_message_size_in_kilobytes.map(u64::from);
                let size = own.unwrap_or_else(|| self.tier.max_message_size() / 1024);
                Some(size.to_string())
            }
            _ => self.shown(property, property.get(entity)?),
        }
    }

    fn shown(&self, property: &Property, value: PropertyValue) -> Option<String> {
        Some(match value {
            PropertyValue::Duration(duration) => duration::format(duration),
            PropertyValue::Endless(duration) => duration::format(duration.unwrap_or(FOREVER)),
            PropertyValue::Target(path) => {
                let path = path?;
                // As its client wrote it, unless another API changed it meanwhile.
                let words = self.wanted.admin_metadata.targets.get(property.name);
                let words = words.filter(|words| target(words).as_ref() == Some(&path));
                words.map_or_else(|| path.to_string(), String::clone)
            }
            PropertyValue::Text(text) => text?.into(),
            PropertyValue::Flag(_) | PropertyValue::Number(_) | PropertyValue::Status(_) => {
                property.text(&value)
            }
        })
    }

    /// Returns a value of the entity's state.
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
                // A subscription was first accessed when it was created (observed 34).
                let made = (self.kind == EntityKind::Subscription).then_some(self.updated_at);
                let at = self.accessed_at.or(made);
                at.map_or_else(|| NEVER.to_owned(), instant)
            }
            "SubscriptionCount" => self.subscriptions.to_string(),
            "EntityAvailabilityStatus" => "Available".to_owned(),
            "SqlFilterCount" if query.is_at_least(SINCE_2024) => self.sql_filters.to_string(),
            "CorrelationFilterCount" if query.is_at_least(SINCE_2024) => {
                self.correlation_filters.to_string()
            }
            _ => return None,
        })
    }

    /// Writes the client of a JMS subscription, in the versions that show it.
    fn write_client(&self, query: &Query, out: &mut Writer) {
        let Some(client) = self.wanted.entity.client.as_ref() else {
            return;
        };
        if !query.is_at_least(SINCE_2021) {
            return;
        }
        out.open(CLIENT_AFFINE_PROPERTIES, &[]);
        out.element("ClientId", &client.client_id);
        out.element("IsDurable", &client.is_durable.to_string());
        out.element("IsShared", &client.is_shared.to_string());
        out.close(CLIENT_AFFINE_PROPERTIES);
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
