//! A topic, which can be sent to and not received from.

use std::{fmt, sync::Arc};

use super::{
    Counts, ScheduledEnqueueTime, SubQueueClient, SubscriptionClient,
    send::{collected, schedules, sends},
};
use crate::{
    action::Action,
    connections::Connections,
    kind::{EntityKind, subscription_path},
    message::Message,
};

/// A topic of a namespace.
///
/// It holds what waits for its time and nothing else: each subscription has its own copies. Assertions take it, and
/// [`ServiceBus::timeline`](crate::ServiceBus::timeline) does.
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
        &self.client.owner
    }

    /// Returns the address, which is the name.
    pub fn path(&self) -> &str {
        self.client.path()
    }

    /// Returns a client of one of its subscriptions. Nothing is checked before it is used.
    pub fn subscription(&self, name: impl AsRef<str>) -> SubscriptionClient {
        let path = subscription_path(self.name(), name.as_ref());
        SubscriptionClient::new(Arc::clone(&self.client.connections), path)
    }

    /// Returns the queue of the messages that could not go on to a subscription.
    pub fn transfer_dead_letters(&self) -> SubQueueClient {
        self.client.transfer_dead_letter_queue()
    }

    /// Counts the messages: those that are scheduled, and those that could not go on.
    ///
    /// # Panics
    ///
    /// When the topic is unknown or the emulator does not answer.
    #[track_caller]
    pub fn counts(&self) -> Action<'_, Counts> {
        self.client.counts()
    }
}

sends!(TopicClient);
schedules!(TopicClient);

impl AsRef<SubQueueClient> for TopicClient {
    fn as_ref(&self) -> &SubQueueClient {
        &self.client
    }
}

impl fmt::Display for TopicClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}
