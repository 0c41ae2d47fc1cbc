//! The kinds of entities, and how their addresses tell of them.

use std::fmt;

use servicebus_emulator::broker;

/// Between the name of a topic and that of its subscription.
const SUBSCRIPTIONS: &str = "/Subscriptions/";

/// What kind of entity has a name.
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

impl From<EntityKind> for broker::EntityKind {
    fn from(kind: EntityKind) -> Self {
        match kind {
            EntityKind::Queue => Self::Queue,
            EntityKind::Topic => Self::Topic,
            EntityKind::Subscription => Self::Subscription,
        }
    }
}

/// Returns the address of a subscription.
pub(crate) fn subscription_path(topic: &str, name: &str) -> String {
    format!("{topic}{SUBSCRIPTIONS}{name}")
}

/// Returns the topic and the name of a subscription.
pub(crate) fn topic_and_name(path: &str) -> Option<(&str, &str)> {
    path.split_once(SUBSCRIPTIONS)
}
