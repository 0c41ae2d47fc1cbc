//! A subscription, which can be received from and not sent to.

use std::{fmt, ops::Deref, sync::Arc};

use super::SubQueueClient;
use crate::{
    connections::Connections,
    kind::{EntityKind, topic_and_name},
};

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

    /// Returns the name, without that of its topic.
    pub fn name(&self) -> &str {
        self.names().1
    }

    /// Returns the name of its topic.
    pub fn topic_name(&self) -> &str {
        self.names().0
    }

    /// Returns the queue of its dead letters.
    pub fn dead_letters(&self) -> SubQueueClient {
        self.client.dead_letter_queue()
    }

    /// Returns the queue of the messages it could not forward.
    pub fn transfer_dead_letters(&self) -> SubQueueClient {
        self.client.transfer_dead_letter_queue()
    }

    fn names(&self) -> (&str, &str) {
        let names = topic_and_name(&self.client.owner);
        names.expect("the path of a subscription names its topic")
    }
}

impl Deref for SubscriptionClient {
    type Target = SubQueueClient;

    fn deref(&self) -> &SubQueueClient {
        &self.client
    }
}

impl AsRef<SubQueueClient> for SubscriptionClient {
    fn as_ref(&self) -> &SubQueueClient {
        &self.client
    }
}

impl fmt::Display for SubscriptionClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}
