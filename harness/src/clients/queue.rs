//! A queue that can be sent to.

use std::{fmt, ops::Deref, sync::Arc};

use super::{
    ScheduledEnqueueTime, SubQueueClient,
    send::{collected, schedules, sends},
};
use crate::{
    action::Action, connections::Connections, error::Error, kind::EntityKind, message::Message,
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
        &self.client.owner
    }

    /// Returns the queue of its dead letters.
    pub fn dead_letters(&self) -> SubQueueClient {
        self.client.dead_letter_queue()
    }

    /// Sends a message that a topology declares; the address is a queue's or a topic's.
    pub(crate) async fn send_declared(&self, message: Message) -> Result<(), Error> {
        self.client.send_now(vec![message]).await
    }

    /// Returns the queue of the messages it could not forward.
    pub fn transfer_dead_letters(&self) -> SubQueueClient {
        self.client.transfer_dead_letter_queue()
    }
}

sends!(QueueClient);
schedules!(QueueClient);

impl Deref for QueueClient {
    type Target = SubQueueClient;

    fn deref(&self) -> &SubQueueClient {
        &self.client
    }
}

impl AsRef<SubQueueClient> for QueueClient {
    fn as_ref(&self) -> &SubQueueClient {
        &self.client
    }
}

impl fmt::Display for QueueClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}
