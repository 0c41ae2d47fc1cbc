//! A message that is locked for the test.
//!
//! The link it came over stays open until the message is settled, as a real consumer's would. A message that
//! is dropped unsettled keeps its lock until that runs out, or loses it at once where the topology says so.

use std::{ops::Deref, panic::Location, sync::Arc, time::SystemTime};

use fe2o3_amqp::link::delivery::DeliveryInfo;

use super::{
    Mailbox, RenewError, SettleError,
    session::{LOCK_LOST as SESSION_LOST, SessionLink, is},
};
use crate::{
    amqp::{AmqpError, Arrived, CONTAINER, Consumer, LockToken, SettleAs},
    bus::or_panic,
    peeked::PeekedMessage,
    timeline::EventKind,
};

/// The condition by which the emulator says that a lock is not held any longer.
const LOCK_LOST: &str = "com.microsoft:message-lock-lost";

/// A message received with a lock, to be settled.
#[derive(Debug)]
#[must_use = "a message that is not settled stays locked"]
pub struct Received {
    mailbox: Mailbox,
    hold: Hold,
    message: PeekedMessage,
}

/// How a message is held.
#[derive(Debug)]
enum Hold {
    /// It came over a link, and is settled there.
    Link(Box<Consumer>, DeliveryInfo),
    /// It came over the link of a session that the test holds, and is settled there.
    Session(Arc<SessionLink>, DeliveryInfo),
    /// It was asked for by its number, and is settled by its lock.
    Number(LockToken),
}

impl Received {
    pub(super) fn new(mailbox: Mailbox, consumer: Consumer, arrived: Arrived) -> Self {
        Self {
            mailbox,
            hold: Hold::Link(Box::new(consumer), arrived.delivery),
            message: arrived.message,
        }
    }

    pub(super) fn of_session(mailbox: Mailbox, link: Arc<SessionLink>, arrived: Arrived) -> Self {
        Self {
            mailbox,
            hold: Hold::Session(link, arrived.delivery),
            message: arrived.message,
        }
    }

    pub(super) fn by_number(mailbox: Mailbox, token: LockToken, message: PeekedMessage) -> Self {
        Self {
            mailbox,
            hold: Hold::Number(token),
            message,
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
    /// When the lock was lost, or the message was received by its number: those cannot be released.
    #[track_caller]
    pub fn release(self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.try_release())
    }

    /// Gives the message back without counting the delivery, or says why not.
    pub async fn try_release(self) -> Result<(), SettleError> {
        self.settle(SettleAs::Release).await
    }

    /// Puts the message aside, to be received by its number, which is returned.
    ///
    /// # Panics
    ///
    /// When the lock was lost.
    #[track_caller]
    pub fn defer(self) -> impl Future<Output = i64> + Send {
        or_panic(Location::caller(), self.try_defer())
    }

    /// Puts the message aside and returns its number, or says why not.
    pub async fn try_defer(self) -> Result<i64, SettleError> {
        let number = self.message.sequence_number;
        self.settle(SettleAs::Defer).await?;
        Ok(number)
    }

    /// Prolongs the lock by the lock duration of the queue and returns its new end, by the client's clock. A message of
    /// a session has no lock of its own: renew that of the [`HeldSession`](crate::HeldSession).
    ///
    /// # Panics
    ///
    /// When the lock was lost, or is that of a session.
    #[track_caller]
    pub fn renew_lock(&mut self) -> impl Future<Output = SystemTime> + Send {
        or_panic(Location::caller(), self.try_renew_lock())
    }

    /// Prolongs the lock and returns its new end, or says why not.
    pub async fn try_renew_lock(&mut self) -> Result<SystemTime, RenewError> {
        let token = match &self.hold {
            Hold::Link(_, delivery) | Hold::Session(_, delivery) => {
                LockToken::of_tag(delivery.delivery_tag())
            }
            Hold::Number(token) => Some(*token),
        };
        let renew = |mailbox: Mailbox| async move {
            let token = token.ok_or_else(|| {
                AmqpError::Protocol("the delivery tag is no lock token".to_owned())
            })?;
            mailbox.doors.amqp.renew_lock(&mailbox.path, token).await
        };
        let renewed = self.mailbox.run(renew).await;
        let path = self.mailbox.path.clone();
        let message = self.message.to_string();
        match renewed {
            Ok(end) => {
                self.message.locked_until = Some(end);
                Ok(end)
            }
            Err(source) if is_lock_lost(&source) => Err(RenewError::LockLost { path, message }),
            Err(source) => Err(RenewError::Amqp {
                path,
                message,
                source,
            }),
        }
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
            hold,
            message,
        } = self;
        let answers = matches!(hold, Hold::Number(_));
        let settle = |mailbox: Mailbox| async move {
            match hold {
                Hold::Link(consumer, delivery) => consumer.settle(delivery, outcome).await,
                Hold::Session(link, delivery) => {
                    let settled = link.settle(&mailbox.doors, &mailbox.path, delivery, outcome);
                    settled.await
                }
                Hold::Number(token) => {
                    let amqp = &mailbox.doors.amqp;
                    amqp.settle(&mailbox.path, token, outcome).await
                }
            }
        };
        let path = mailbox.path.clone();
        match mailbox.run(settle).await {
            Ok(()) if answers => Ok(()),
            Ok(()) => check_lock(&mailbox, &message).await,
            Err(source) if is_lock_lost(&source) => Err(SettleError::LockLost {
                path,
                message: message.to_string(),
            }),
            Err(source) => Err(SettleError::Amqp {
                path,
                message: message.to_string(),
                source,
            }),
        }
    }
}

fn is_lock_lost(error: &AmqpError) -> bool {
    is(error, LOCK_LOST) || is(error, SESSION_LOST)
}

/// Finds out from the record whether the settlement came too late.
///
/// The client library does not hand the emulator's answer to a settlement on. Where the record is missing or
/// no longer reaches back to the delivery, the settlement is taken as done.
async fn check_lock(mailbox: &Mailbox, message: &PeekedMessage) -> Result<(), SettleError> {
    // Of this message alone: the whole record grows with every message before.
    let Ok(events) = mailbox.events_of(message.sequence_number).await else {
        return Ok(());
    };
    let mut mine = events
        .iter()
        .filter(|event| event.client.as_deref() == Some(CONTAINER) && event.is_at(&mailbox.path));
    // Delivered to the test, and nothing the test settled it as was recorded since.
    let is_open = mine
        .next_back()
        .is_some_and(|last| matches!(last.kind, EventKind::Delivered | EventKind::LockRenewed));
    match is_open {
        true => Err(SettleError::LockLost {
            path: mailbox.path.clone(),
            message: message.to_string(),
        }),
        false => Ok(()),
    }
}

impl Deref for Received {
    type Target = PeekedMessage;

    fn deref(&self) -> &PeekedMessage {
        &self.message
    }
}
