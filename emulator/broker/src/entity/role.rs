//! What an entity is part of.

use std::fmt;
use std::sync::Arc;

use crate::RuleSet;

/// What an entity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntityKind {
    /// It is sent to and received from.
    Queue,
    /// It is sent to.
    Topic,
    /// It is received from.
    Subscription,
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

/// A queue, a topic or a subscription: the same stores, used differently.
#[derive(Debug, Clone)]
pub(crate) enum Role {
    /// Messages stay until they are received, or go on.
    Queue,
    /// Messages go to the subscriptions at once; only scheduled ones stay (decision D25).
    Topic(Arc<RuleSet>),
    /// Messages come from the topic, whatever the status is.
    Subscription(Subscription),
}

/// What only a subscription has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subscription {
    /// Whether a message is dead-lettered whose filters or actions fail.
    pub(crate) dead_letters_filter_errors: bool,
}

impl Role {
    pub(crate) fn is_topic(&self) -> bool {
        matches!(self, Self::Topic(_))
    }
}
