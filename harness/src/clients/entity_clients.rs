//! The clients of queues, subscriptions and topics.
//!
//! Clients of queues and subscriptions deref to [`SubQueueClient`]. That of a topic does not, because nothing can be
//! received from a topic.

use std::{fmt, ops::Deref, sync::Arc};

use super::{
    Counts, EntityClient, ScheduledEnqueueTime, SubQueueClient,
    send::{collected, schedules, sends},
};

use crate::{
    action::Action,
    catalog::{EntityKind, subscription_path, topic_and_name},
    connections::Connections,
    message::Message,
};

/// A queue of a namespace.
#[derive(Debug, Clone)]
pub struct QueueClient {
    client: SubQueueClient,
}

impl QueueClient {
    pub(crate) fn new(connections: Arc<Connections>, name: String) -> Self {
        let client = SubQueueClient::new(connections, EntityKind::Queue, name);
        Self { client }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.client.owner_path()
    }
}

/// A subscription of a topic.
#[derive(Debug, Clone)]
pub struct SubscriptionClient {
    client: SubQueueClient,
}

impl SubscriptionClient {
    pub(crate) fn new(connections: Arc<Connections>, path: String) -> Self {
        let client = SubQueueClient::new(connections, EntityKind::Subscription, path);
        Self { client }
    }

    /// Returns the name, without the topic's.
    pub fn name(&self) -> &str {
        self.names().1
    }

    /// Returns the name of its topic.
    pub fn topic_name(&self) -> &str {
        self.names().0
    }

    fn names(&self) -> (&str, &str) {
        let names = topic_and_name(self.client.owner_path());
        names.expect("the path of a subscription names its topic")
    }
}

/// A topic of a namespace.
///
/// A topic holds only scheduled messages: each subscription has its own copies. Assertions and
/// [`ServiceBus::timeline`](crate::ServiceBus::timeline) take topics.
#[derive(Debug, Clone)]
pub struct TopicClient {
    client: SubQueueClient,
}

impl TopicClient {
    pub(crate) fn new(connections: Arc<Connections>, name: String) -> Self {
        let client = SubQueueClient::new(connections, EntityKind::Topic, name);
        Self { client }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.client.owner_path()
    }

    /// Returns the address, which is the name.
    pub fn path(&self) -> &str {
        self.client.path()
    }

    /// Returns a client of one of its subscriptions, without checking that it exists.
    pub fn subscription(&self, name: impl AsRef<str>) -> SubscriptionClient {
        let path = subscription_path(self.name(), name.as_ref());
        SubscriptionClient::new(Arc::clone(&self.client.connections), path)
    }

    /// Returns a client of its transfer dead-letter queue, with the messages that could not be forwarded to a subscription.
    pub fn transfer_dead_letters(&self) -> SubQueueClient {
        self.client.transfer_dead_letter_queue()
    }

    /// Counts the scheduled messages and those that could not be forwarded.
    #[track_caller]
    pub fn counts(&self) -> Action<'_, Counts> {
        self.client.counts()
    }
}

sends!(QueueClient);
sends!(TopicClient);
schedules!(QueueClient);
schedules!(TopicClient);

/// Gives clients of what holds messages the operations of a queue, and its dead-letter queues.
macro_rules! message_holders {
    ($($client:ty),+) => {$(
        impl $client {
            /// Returns a client of its dead-letter queue.
            pub fn dead_letters(&self) -> SubQueueClient {
                self.client.dead_letter_queue()
            }

            /// Returns a client of its transfer dead-letter queue, with the messages that could not be forwarded.
            pub fn transfer_dead_letters(&self) -> SubQueueClient {
                self.client.transfer_dead_letter_queue()
            }
        }

        impl Deref for $client {
            type Target = SubQueueClient;

            fn deref(&self) -> &SubQueueClient {
                &self.client
            }
        }
    )+};
}

message_holders!(QueueClient, SubscriptionClient);

/// Makes clients subjects of assertions, which show them by their paths.
macro_rules! entity_clients {
    ($($client:ty),+) => {$(
        impl EntityClient for $client {}

        impl AsRef<SubQueueClient> for $client {
            fn as_ref(&self) -> &SubQueueClient {
                &self.client
            }
        }

        impl fmt::Display for $client {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.client.fmt(f)
            }
        }
    )+};
}

entity_clients!(QueueClient, SubscriptionClient, TopicClient);
