//! A message that is locked for the test.
//!
//! The link it came over stays open until the message is settled, as a real consumer's would. A message that
//! is dropped unsettled keeps its lock until that runs out, or loses it at once where the topology says so.

use std::{ops::Deref, panic::Location};

use fe2o3_amqp::link::delivery::DeliveryInfo;

use super::{Mailbox, SettleError};
use crate::{
    amqp::{Arrived, CONTAINER, Consumer, SettleAs},
    bus::or_panic,
    peeked::PeekedMessage,
    timeline::EventKind,
};

/// A message received with a lock, to be settled.
#[derive(Debug)]
#[must_use = "a message that is not settled stays locked"]
pub struct Received {
    mailbox: Mailbox,
    consumer: Consumer,
    delivery: DeliveryInfo,
    message: PeekedMessage,
}

impl Received {
    pub(super) fn new(mailbox: Mailbox, consumer: Consumer, arrived: Arrived) -> Self {
        Self {
            mailbox,
            consumer,
            delivery: arrived.delivery,
            message: arrived.message,
        }
    }

    /// Returns the message.
    pub fn message(&self) -> &PeekedMessage {
        &self.message
    }

    /// Returns which delivery of the message this is, from 1, as SDKs count.
    pub fn delivery_count(&self) -> u32 {
        self.message.delivery_count + 1
    }

    /// Settles the message as done: it is gone.
    ///
    /// # Panics
    ///
    /// When the lock was lost.
    #[track_caller]
    pub fn complete(self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.try_complete())
    }

    /// Settles the message as done, or says why not.
    pub async fn try_complete(self) -> Result<(), SettleError> {
        self.settle(SettleAs::Complete).await
    }

    /// Gives the message back; the delivery counts as failed.
    ///
    /// # Panics
    ///
    /// When the lock was lost.
    #[track_caller]
    pub fn abandon(self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.try_abandon())
    }

    /// Gives the message back and counts the delivery as failed, or says why not.
    pub async fn try_abandon(self) -> Result<(), SettleError> {
        self.settle(SettleAs::Abandon).await
    }

    /// Gives the message back; the delivery does not count.
    ///
    /// # Panics
    ///
    /// When the lock was lost.
    #[track_caller]
    pub fn release(self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.settle(SettleAs::Release))
    }

    /// Puts the message aside, to be received by its sequence number.
    ///
    /// # Panics
    ///
    /// When the lock was lost.
    #[track_caller]
    pub fn defer(self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.settle(SettleAs::Defer))
    }

    /// Moves the message to the dead-letter queue, with a reason and a description.
    ///
    /// # Panics
    ///
    /// When the lock was lost.
    #[track_caller]
    pub fn dead_letter(
        self,
        reason: impl Into<String>,
        description: impl Into<String>,
    ) -> impl Future<Output = ()> + Send {
        let settled = self.try_dead_letter(reason.into(), description.into());
        or_panic(Location::caller(), settled)
    }

    /// Moves the message to the dead-letter queue, or says why not.
    pub async fn try_dead_letter(
        self,
        reason: String,
        description: String,
    ) -> Result<(), SettleError> {
        let outcome = SettleAs::DeadLetter {
            reason: Some(reason),
            description: Some(description),
        };
        self.settle(outcome).await
    }

    async fn settle(self, outcome: SettleAs) -> Result<(), SettleError> {
        let Self {
            mailbox,
            consumer,
            delivery,
            message,
        } = self;
        let settled = mailbox
            .run(|_| async move { consumer.settle(delivery, outcome).await })
            .await;
        settled.map_err(|source| SettleError::Amqp {
            path: mailbox.path.clone(),
            message: message.to_string(),
            source,
        })?;
        check_lock(&mailbox, &message).await
    }
}

/// Finds out from the record whether the settlement came too late.
///
/// The client library does not hand the emulator's answer to a settlement on. Where the record is missing or
/// no longer reaches back to the delivery, the settlement is taken as done.
async fn check_lock(mailbox: &Mailbox, message: &PeekedMessage) -> Result<(), SettleError> {
    let Ok(timeline) = mailbox.try_timeline().await else {
        return Ok(());
    };
    let mine = timeline.events().iter().filter(|event| {
        event.sequence_number == Some(message.sequence_number)
            && event.client.as_deref() == Some(CONTAINER)
            && event
                .entity
                .as_ref()
                .is_some_and(|entity| entity.eq_ignore_ascii_case(&mailbox.path))
    });
    // Delivered to the test, and nothing the test did with it was recorded since.
    match mine.last() {
        Some(last) if last.kind == EventKind::Delivered => Err(SettleError::LockLost {
            path: mailbox.path.clone(),
            message: message.to_string(),
        }),
        _ => Ok(()),
    }
}

impl Deref for Received {
    type Target = PeekedMessage;

    fn deref(&self) -> &PeekedMessage {
        &self.message
    }
}
