//! A message that the test has locked.
//!
//! The link that delivered it stays open until the message is settled, as a real receiver's would. A message that is dropped
//! unsettled stays locked until its lock expires, or loses the lock at once if the topology says so.

use std::{ops::Deref, sync::Arc, time::SystemTime};

use fe2o3_amqp::link::delivery::DeliveryInfo;
use tokio::sync::Mutex;

use super::SubQueueClient;
use crate::{
    action::Action,
    amqp::{LockToken, ReceiverLink, SettleAs},
    connections::Connections,
    error::amqp::{AmqpError, MESSAGE_LOCK_LOST, SESSION_LOCK_LOST},
    error::{Error, ErrorKind},
    received_message::ReceivedMessage,
};

/// A message that was received with a lock, to be settled.
#[derive(Debug)]
#[must_use = "a message that is not settled stays locked"]
pub struct LockedMessage {
    client: SubQueueClient,
    settlement_path: SettlementPath,
    message: ReceivedMessage,
}

/// How the test holds a message.
#[derive(Debug)]
pub(crate) enum SettlementPath {
    /// Received over a link, and settled there.
    Link(Box<ReceiverLink>, DeliveryInfo),
    /// Received over the link of a session that the test holds, and settled there.
    Session(Arc<SessionLink>, DeliveryInfo),
    /// Received by its sequence number, and settled by its lock token.
    LockToken(LockToken),
}

/// The link of a session, on which its messages are settled; `None` once it is closed.
#[derive(Debug)]
pub(crate) struct SessionLink(pub(super) Mutex<Option<ReceiverLink>>);

impl SessionLink {
    /// Settles a message, and waits until the emulator has processed that.
    pub(crate) async fn settle(
        &self,
        connections: &Connections,
        path: &str,
        delivery: DeliveryInfo,
        outcome: SettleAs,
    ) -> Result<(), AmqpError> {
        let mut link = self.0.lock().await;
        let receiver = link.as_mut().ok_or_else(closed)?;
        receiver.dispose(delivery, outcome).await?;
        let management = format!("{path}/$management");
        receiver
            .await_processed(&connections.amqp, &management)
            .await
    }
}

impl LockedMessage {
    pub(crate) fn new(
        client: SubQueueClient,
        settlement_path: SettlementPath,
        message: ReceivedMessage,
    ) -> Self {
        Self {
            client,
            settlement_path,
            message,
        }
    }

    /// Returns the message.
    pub fn message(&self) -> &ReceivedMessage {
        &self.message
    }

    /// Returns the number of this delivery, from 1, as SDKs count.
    pub fn delivery_count(&self) -> u32 {
        self.message.delivery_count + 1
    }

    /// Completes the message, which deletes it.
    #[track_caller]
    pub fn complete(self) -> Action<'static, ()> {
        Action::new(self.settle(SettleAs::Complete))
    }

    /// Abandons the message: it can be received again, and the delivery is counted.
    #[track_caller]
    pub fn abandon(self) -> Action<'static, ()> {
        Action::new(self.settle(SettleAs::Abandon))
    }

    /// Releases the message: it can be received again, and the delivery is not counted.
    ///
    /// # Panics
    ///
    /// Panics if the lock was lost, or the message was received by its sequence number: such a message cannot be released.
    #[track_caller]
    pub fn release(self) -> Action<'static, ()> {
        Action::new(self.settle(SettleAs::Release))
    }

    /// Defers the message and returns its sequence number, by which it can be received.
    #[track_caller]
    pub fn defer(self) -> Action<'static, i64> {
        Action::new(async move {
            let sequence_number = self.message.sequence_number;
            self.settle(SettleAs::Defer).await?;
            Ok(sequence_number)
        })
    }

    /// Renews the lock by the lock duration of the queue and returns its new end, by the client's clock. A message of a
    /// session has no lock of its own: renew that of its [`SessionReceiver`](crate::SessionReceiver).
    ///
    /// # Panics
    ///
    /// Panics if the lock was lost, or the message belongs to a session.
    #[track_caller]
    pub fn renew_lock(&mut self) -> Action<'_, SystemTime> {
        Action::new(async move {
            let token = match &self.settlement_path {
                SettlementPath::Link(_, delivery) | SettlementPath::Session(_, delivery) => {
                    LockToken::of_tag(delivery.delivery_tag())
                }
                SettlementPath::LockToken(token) => Some(*token),
            };
            let renewed = match token {
                Some(token) => {
                    let client = &self.client;
                    let renew =
                        client.exchange(move |amqp, path| Box::pin(amqp.renew_lock(path, token)));
                    renew.await
                }
                None => {
                    let text = "the delivery tag is not a lock token";
                    Err(AmqpError::Protocol(text.to_owned()))
                }
            };
            match renewed {
                Ok(end) => {
                    self.message.locked_until = Some(end);
                    Ok(end)
                }
                Err(source) if is_lock_lost(&source) => {
                    Err(lock_lost(&self.client, &self.message, "renewed").await)
                }
                Err(source) => {
                    let operation =
                        format!("renew the lock on {} of {}", self.message, self.client);
                    Err(Error::of(operation, self.client.path(), source))
                }
            }
        })
    }

    /// Moves the message to the dead-letter queue, with a reason and a description.
    #[track_caller]
    pub fn dead_letter(
        self,
        reason: impl Into<String>,
        description: impl Into<String>,
    ) -> Action<'static, ()> {
        Action::new(self.settle(SettleAs::DeadLetter {
            reason: Some(reason.into()),
            description: Some(description.into()),
        }))
    }

    async fn settle(self, outcome: SettleAs) -> Result<(), Error> {
        let Self {
            client,
            settlement_path,
            message,
        } = self;
        let sequence_number = message.sequence_number;
        let settle = |client: SubQueueClient| async move {
            match settlement_path {
                SettlementPath::Link(receiver, delivery) => {
                    receiver.dispose(delivery, outcome).await?;
                    // A settlement that a fault delays must arrive before its link closes.
                    if client.connections.scripted_faults.may_fire() {
                        client.await_settlement(sequence_number).await?;
                    }
                    receiver.close().await?;
                    client.await_settlement(sequence_number).await
                }
                SettlementPath::Session(link, delivery) => {
                    let settled =
                        link.settle(&client.connections, client.path(), delivery, outcome);
                    settled.await?;
                    client.await_settlement(sequence_number).await
                }
                SettlementPath::LockToken(token) => {
                    let settle = client
                        .connections
                        .amqp
                        .settle(client.path(), token, outcome);
                    client.unless_reply_lost(Box::pin(settle)).await
                }
            }
        };
        match client.run(settle).await {
            Ok(()) => Ok(()),
            Err(source) if is_lock_lost(&source) => {
                Err(lock_lost(&client, &message, "settled").await)
            }
            Err(source) => {
                let operation = format!("settle {message} of {client}");
                Err(Error::of(operation, client.path(), source))
            }
        }
    }
}

async fn lock_lost(client: &SubQueueClient, message: &ReceivedMessage, before: &str) -> Error {
    let sentence = format!("the lock on {message} of {client} was lost before it was {before}");
    let timeline = client.try_timeline().await.ok();
    let timeline = timeline.map(|timeline| match message.message_id.as_deref() {
        Some(id) => timeline.of_message(id).titled(id).to_string(),
        None => timeline.to_string(),
    });
    client
        .error(ErrorKind::MessageLockLost, sentence)
        .with_timeline(timeline)
}

fn is_lock_lost(error: &AmqpError) -> bool {
    error.is(MESSAGE_LOCK_LOST) || error.is(SESSION_LOCK_LOST)
}

impl Deref for LockedMessage {
    type Target = ReceivedMessage;

    fn deref(&self) -> &ReceivedMessage {
        &self.message
    }
}

pub(crate) fn closed() -> AmqpError {
    AmqpError::Protocol("the session was closed".to_owned())
}
