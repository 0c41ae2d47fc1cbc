//! The entities of a namespace.
//!
//! Read from the control API, else from the topology of the namespace, as far as failure messages need it: the names of the
//! entities, and the settings that explain where a message is.

use std::{error::Error, fmt};

use serde_json::Value;
use servicebus_control_api::{Event, EventKind, Properties, Queues, Subscriptions, Topics};

use crate::{text, timeline::is_at};

/// The entities of a namespace.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    entities: Vec<EntitySettings>,
}

/// The settings of an entity that failure messages need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntitySettings {
    /// The kind of the entity.
    pub kind: EntityKind,
    /// Its name; for a subscription its path with the topic.
    pub name: String,
    /// The number of deliveries after which a message is dead-lettered.
    pub max_delivery_count: Option<u32>,
    /// Whether expired messages are dead-lettered instead of dropped.
    pub dead_letters_expired: bool,
    /// Whether messages belong to sessions.
    pub requires_session: bool,
    /// The entity to which it forwards.
    pub forwards_to: Option<String>,
}

impl Catalog {
    /// Converts the lists of an emulator.
    pub fn listed(queues: Queues, topics: Topics, subscriptions: Subscriptions) -> Self {
        let declared = |kind| {
            move |(name, properties): (String, Properties)| {
                EntitySettings::of(kind, name, &properties)
            }
        };
        let queues = queues.queues.into_iter();
        let queues = queues.map(|queue| (queue.name, queue.properties));
        let topics = topics.topics.into_iter();
        let topics = topics.map(|topic| (topic.name, topic.properties));
        let subscriptions = subscriptions.subscriptions.into_iter();
        let subscriptions = subscriptions.map(|it| (it.name, it.properties));
        queues
            .map(declared(EntityKind::Queue))
            .chain(topics.map(declared(EntityKind::Topic)))
            .chain(subscriptions.map(declared(EntityKind::Subscription)))
            .collect()
    }

    /// Returns every entity, by kind and name.
    pub fn names(&self) -> impl Iterator<Item = (EntityKind, &str)> {
        let entities = self.entities.iter();
        entities.map(|entity| (entity.kind, entity.name.as_str()))
    }

    /// Returns an entity by kind and name, in any case.
    pub fn find(&self, kind: EntityKind, name: &str) -> Option<&EntitySettings> {
        let mut entities = self.of_kind(kind);
        entities.find(|entity| entity.name.eq_ignore_ascii_case(name))
    }

    /// Returns the entities that exist, if this one does not. For a subscription of a topic that does not exist, the topic
    /// is missing.
    pub fn missing(&self, kind: EntityKind, name: &str) -> Option<UnknownEntity> {
        if self.find(kind, name).is_some() {
            return None;
        }
        let subscription = topic_and_name(name).filter(|_| kind == EntityKind::Subscription);
        if let Some((topic, name)) = subscription {
            let missing = self.missing(EntityKind::Topic, topic);
            return missing.or_else(|| Some(self.missing_subscription(topic, name)));
        }
        let mut others = self.entities.iter();
        let instead = others.find(|entity| entity.name.eq_ignore_ascii_case(name));
        let known = self.of_kind(kind).map(|entity| entity.name.clone());
        Some(UnknownEntity {
            kind,
            name: name.to_owned(),
            instead: instead.map(|entity| entity.kind),
            deleted: None,
            subscription: self.subscription_at(name),
            known: text::nearest_first(name, known.collect()),
        })
    }

    /// Returns the subscription that `topic/subscription` means.
    fn subscription_at(&self, name: &str) -> Option<String> {
        let (topic, name) = name.rsplit_once('/')?;
        let path = subscription_path(topic, name);
        let found = self.find(EntityKind::Subscription, &path)?;
        Some(found.name.clone())
    }

    fn missing_subscription(&self, topic: &str, name: &str) -> UnknownEntity {
        let kind = EntityKind::Subscription;
        let known = self.of_kind(kind).filter_map(|entity| {
            let (of, name) = topic_and_name(&entity.name)?;
            of.eq_ignore_ascii_case(topic).then(|| name.to_owned())
        });
        UnknownEntity {
            kind,
            name: subscription_path(topic, name),
            instead: None,
            deleted: None,
            subscription: None,
            known: text::nearest_first(name, known.collect()),
        }
    }

    /// Returns every entity of a kind.
    pub fn of_kind(&self, kind: EntityKind) -> impl Iterator<Item = &EntitySettings> {
        let entities = self.entities.iter();
        entities.filter(move |entity| entity.kind == kind)
    }
}

impl FromIterator<EntitySettings> for Catalog {
    fn from_iter<I: IntoIterator<Item = EntitySettings>>(entities: I) -> Self {
        Self {
            entities: entities.into_iter().collect(),
        }
    }
}

impl EntitySettings {
    /// Converts the properties of an entity.
    pub fn of(kind: EntityKind, name: String, properties: &Properties) -> Self {
        let target = properties["ForwardTo"].as_str();
        Self {
            kind,
            max_delivery_count: properties["MaxDeliveryCount"]
                .as_u64()
                .and_then(|count| u32::try_from(count).ok()),
            dead_letters_expired: properties["DeadLetteringOnMessageExpiration"]
                == Value::Bool(true),
            requires_session: properties["RequiresSession"] == Value::Bool(true),
            forwards_to: target
                .filter(|target| !target.is_empty())
                .map(str::to_owned),
            name,
        }
    }
}

/// The largest number of existing entities in the message.
const LISTED: usize = 10;

/// A queue, topic or subscription that does not exist.
#[derive(Debug, Clone, PartialEq)]
pub struct UnknownEntity {
    /// The requested kind.
    pub kind: EntityKind,
    /// The requested name; for a subscription its path with the topic.
    pub name: String,
    /// The kind of an entity that has this name instead.
    pub instead: Option<EntityKind>,
    /// When it was deleted, if it was, in seconds since the start of the namespace, by its clock.
    pub deleted: Option<f64>,
    /// The subscription that was meant, if the name is that of a topic and a subscription.
    pub subscription: Option<String>,
    /// The entities of this kind that exist, the most similar name first; for a subscription those of its topic.
    pub known: Vec<String>,
}

impl UnknownEntity {
    /// Adds when it was deleted, if these events, the oldest first, show that.
    pub fn deleted_in(self, events: &[Event]) -> Self {
        let mut events = events.iter();
        let deletion = events
            .rfind(|event| event.kind == EventKind::EntityDeleted && is_at(event, &self.name));
        Self {
            deleted: deletion.map(|event| event.offset),
            ..self
        }
    }
}

impl fmt::Display for UnknownEntity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, .. } = self;
        let topic = topic_and_name(name).filter(|_| *kind == EntityKind::Subscription);
        match topic {
            Some((topic, name)) => write!(f, "the topic \"{topic}\" has no {kind} \"{name}\"")?,
            None => write!(f, "there is no {kind} \"{name}\"")?,
        }
        if let (Some(offset), None) = (self.deleted, self.instead) {
            return write!(f, ": it was deleted at +{offset:.3} s");
        }
        let (requested, who) = match topic {
            Some((_, name)) => (name, "it"),
            None => (name.as_str(), "the namespace"),
        };
        if let Some((owner, _)) = name.split_once("/$") {
            return write!(
                f,
                "; the dead letters of \"{owner}\" are `.dead_letters()` of its client"
            );
        }
        if let Some(subscription) = &self.subscription {
            return write!(f, "; did you mean {subscription:?}?");
        }
        match (self.instead, self.known.as_slice()) {
            (Some(instead), _) => write!(f, "; it is a {instead}"),
            (None, []) => write!(f, "; {who} has no {kind}s"),
            (None, known) => {
                match text::is_near(requested, &known[0]) {
                    true => write!(f, "; did you mean {:?}? {} has ", known[0], capital(who))?,
                    false => write!(f, "; {who} has ")?,
                }
                let listed = known.iter().take(LISTED).map(String::as_str);
                f.write_str(&Vec::from_iter(listed).join(", "))?;
                match known.len().checked_sub(LISTED) {
                    Some(more @ 1..) => write!(f, " and {more} more"),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// Capitalizes the start of a sentence.
fn capital(words: &str) -> String {
    let (first, rest) = words.split_at(1);
    first.to_uppercase() + rest
}

impl Error for UnknownEntity {}

/// The separator between the name of a topic and that of its subscription.
const SUBSCRIPTIONS: &str = "/Subscriptions/";

/// The kind of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntityKind {
    /// A queue.
    Queue,
    /// A topic.
    Topic,
    /// A subscription, whose name is `topic/Subscriptions/name`.
    Subscription,
}

impl fmt::Display for EntityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue",
            Self::Topic => "topic",
            Self::Subscription => "subscription",
        })
    }
}

/// Returns the path of a subscription.
pub fn subscription_path(topic: &str, name: &str) -> String {
    format!("{topic}{SUBSCRIPTIONS}{name}")
}

/// Splits the path of a subscription into the names of topic and subscription.
pub fn topic_and_name(path: &str) -> Option<(&str, &str)> {
    path.split_once(SUBSCRIPTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let queues = r#"{"queues":[
            {"name":"billing","properties":{"ForwardTo":"orders"}},
            {"name":"orders","properties":{"MaxDeliveryCount":3,"DeadLetteringOnMessageExpiration":true,"ForwardTo":""}}
        ]}"#;
        let topics = r#"{"topics":[{"name":"prices","properties":{},"subscriptions":["eu"]},{"name":"news","properties":{},"subscriptions":[]}]}"#;
        let subscriptions = r#"{"subscriptions":[{"name":"prices/Subscriptions/eu","properties":{"MaxDeliveryCount":5},"rules":[]}]}"#;
        Catalog::listed(
            serde_json::from_str(queues).unwrap(),
            serde_json::from_str(topics).unwrap(),
            serde_json::from_str(subscriptions).unwrap(),
        )
    }

    #[test]
    fn an_entity_is_found_in_any_case() {
        let catalog = catalog();
        let orders = catalog.find(EntityKind::Queue, "Orders").unwrap();
        assert_eq!(orders.max_delivery_count, Some(3));
        assert!(orders.dead_letters_expired);
        assert_eq!(orders.forwards_to, None);
        let billing = catalog.find(EntityKind::Queue, "billing").unwrap();
        assert_eq!(billing.forwards_to.as_deref(), Some("orders"));
        let subscription = "Prices/subscriptions/EU";
        let eu = catalog.find(EntityKind::Subscription, subscription);
        assert_eq!(eu.unwrap().max_delivery_count, Some(5));
        assert_eq!(catalog.missing(EntityKind::Queue, "ORDERS"), None);
    }

    #[test]
    fn an_unknown_entity_lists_the_known_ones() {
        use EntityKind::{Queue, Subscription, Topic};
        let cases = [
            (
                Queue,
                "ordres",
                "there is no queue \"ordres\"; did you mean \"orders\"? The namespace has orders, billing",
            ),
            (
                Queue,
                "prices",
                "there is no queue \"prices\"; it is a topic",
            ),
            (
                Topic,
                "prises",
                "there is no topic \"prises\"; did you mean \"prices\"? The namespace has prices, news",
            ),
            (
                Topic,
                "Prices/eu",
                "there is no topic \"Prices/eu\"; did you mean \"prices/Subscriptions/eu\"?",
            ),
            (
                Subscription,
                "prices/Subscriptions/us",
                "the topic \"prices\" has no subscription \"us\"; it has eu",
            ),
            (
                Subscription,
                "news/Subscriptions/us",
                "the topic \"news\" has no subscription \"us\"; it has no subscriptions",
            ),
            (
                Subscription,
                "prises/Subscriptions/eu",
                "there is no topic \"prises\"; did you mean \"prices\"? The namespace has prices, news",
            ),
        ];
        for (kind, name, expected) in cases {
            let missing = catalog().missing(kind, name).unwrap();
            assert_eq!(missing.to_string(), expected);
        }
    }
}
