//! Empties a queue by receiving its messages, or by deleting those that were enqueued before an instant.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use super::{Counts, SubQueueClient};
use crate::{
    action::Action,
    amqp::{Amqp, ReceiveMode},
    error::{Error, amqp::AmqpError},
    text,
};

/// How far in the future the cut-off lies that includes every message.
const AHEAD: Duration = Duration::from_secs(60);
/// The number of messages that one receive takes.
const BATCH: u32 = 100;

/// The result of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Purged {
    /// The number of deleted messages.
    pub removed: usize,
    /// What remains: locked, deferred and scheduled messages, and those in sub-queues.
    pub left: Counts,
}

impl fmt::Display for Purged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let removed = text::count(self.removed as u64, "message");
        write!(f, "removed {removed}, left {}", self.left)
    }
}

impl SubQueueClient {
    /// Receives and deletes every ready message.
    #[track_caller]
    pub fn purge(&self) -> Action<'_, Purged> {
        Action::new(async move {
            let taken = self
                .exchange(|amqp, path| Box::pin(take_all(amqp, path)))
                .await;
            self.purged(format!("receive from {self}"), taken).await
        })
    }

    /// Deletes up to `count` ready messages, oldest first, without receiving them: 1 to 500 at a time, in the premium tier
    /// up to 4000.
    #[track_caller]
    pub fn delete_messages(&self, count: u32) -> Action<'_, Purged> {
        Action::new(async move {
            let cut_off = SystemTime::now() + AHEAD;
            self.delete_before(count, cut_off).await
        })
    }

    /// Deletes up to `count` ready messages that were enqueued before `before`, by the client's clock.
    #[track_caller]
    pub fn delete_messages_before(&self, count: u32, before: SystemTime) -> Action<'_, Purged> {
        Action::new(self.delete_before(count, before))
    }

    async fn delete_before(&self, count: u32, before: SystemTime) -> Result<Purged, Error> {
        let delete =
            self.exchange(move |amqp, path| Box::pin(amqp.delete_messages(path, count, before)));
        let operation = format!("delete {count} messages of {self}");
        self.purged(operation, delete.await).await
    }

    async fn purged(
        &self,
        operation: String,
        removed: Result<usize, AmqpError>,
    ) -> Result<Purged, Error> {
        let removed = self.outcome(operation, removed).await?;
        let left = self.try_counts().await?;
        Ok(Purged { removed, left })
    }
}

async fn take_all(amqp: &Amqp, path: &str) -> Result<usize, AmqpError> {
    let mut removed = 0;
    loop {
        let receiver = amqp
            .receiver_link(path, ReceiveMode::ReceiveAndDelete)
            .await?;
        match receiver.receive_available(amqp, path, BATCH).await?.len() {
            0 => return Ok(removed),
            batch => removed += batch,
        }
    }
}
