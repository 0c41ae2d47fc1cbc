//! Emptying a queue.

use std::{fmt, panic::Location};

use super::{Counts, Mailbox, PurgeError};
use crate::{amqp::ReceiveMode, bus::or_panic, text};

/// How many messages are taken at a time.
const BATCH: u32 = 100;

/// What a purge did, and what it had to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Purged {
    /// How many messages are gone.
    pub removed: usize,
    /// What is still there: locked, deferred and scheduled messages, and those in sub-queues.
    pub left: Counts,
}

impl fmt::Display for Purged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let removed = text::count(self.removed, "message");
        write!(f, "removed {removed}, left {}", self.left)
    }
}

impl Mailbox {
    /// Receives and deletes every message that is ready.
    ///
    /// # Panics
    ///
    /// When the queue is unknown or the emulator does not answer.
    #[track_caller]
    pub fn purge(&self) -> impl Future<Output = Purged> + Send {
        or_panic(Location::caller(), self.try_purge())
    }

    /// Receives and deletes every message that is ready, or says why not.
    pub async fn try_purge(&self) -> Result<Purged, PurgeError> {
        let taken = self
            .run(|mailbox| async move {
                let (amqp, path) = (&mailbox.doors.amqp, &mailbox.path);
                let mut removed = 0;
                loop {
                    let consumer = amqp.consumer(path, ReceiveMode::ReceiveAndDelete).await?;
                    match consumer.take_ready(amqp, path, BATCH).await?.len() {
                        0 => return Ok(removed),
                        batch => removed += batch,
                    }
                }
            })
            .await;
        let removed = match taken {
            Ok(removed) => removed,
            Err(source) => return Err(self.receive_error(source).await.into()),
        };
        let left = self.try_counts().await?;
        Ok(Purged { removed, left })
    }
}
