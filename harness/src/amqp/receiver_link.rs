//! A receiving link, which can be cancelled without losing a message.
//!
//! If a link closes while a message is in flight, the message stays locked without a receiver. Cancelling therefore takes
//! credit back first, and waits for what the emulator has already sent. The client library does not report when a drain is
//! complete. Two more round trips on the same session prove it, because the emulator processes a session in order and writes
//! the whole output of a turn before the next turn.

use std::time::Duration;

use fe2o3_amqp::{
    Receiver,
    link::delivery::{Delivery, DeliveryInfo},
    types::{
        definitions,
        messaging::{Accepted, Body, Modified, Rejected, Released},
        primitives::{OrderedMap, Symbol, Value},
    },
};

use super::{Amqp, AmqpError, OpenSession, RESPONSE_TIMEOUT, ReceiveMode};
use crate::{background::CancelSignal, received_message::ReceivedMessage};

/// How the test settles a received message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Outcome {
    Complete,
    Abandon,
    Release,
    Defer,
    DeadLetter {
        reason: Option<String>,
        description: Option<String>,
    },
}

#[derive(Debug)]
pub(crate) struct ReceiverLink {
    // Fields drop in this order: the link closes before its session.
    receiver: Receiver,
    session: OpenSession,
}

/// A message that arrived over a receiver's link.
#[derive(Debug)]
pub(crate) struct IncomingMessage {
    pub(crate) message: ReceivedMessage,
    pub(crate) delivery: DeliveryInfo,
}

impl ReceiverLink {
    pub(crate) fn new(session: OpenSession, receiver: Receiver) -> Self {
        Self { receiver, session }
    }

    /// Waits for one message, until the deadline or until the receive is cancelled. After either, no message is in flight.
    pub(crate) async fn receive(
        mut self,
        amqp: &Amqp,
        address: &str,
        deadline: Duration,
        cancel: &mut CancelSignal,
    ) -> Result<Option<(Self, IncomingMessage)>, AmqpError> {
        self.give_credit(1).await?;
        let incoming = tokio::select! {
            incoming = self.next(deadline) => Some(incoming?),
            () = cancel.wait() => None,
        };
        if let Some(Some(incoming)) = incoming {
            return Ok(Some((self, incoming)));
        }
        self.drain(amqp, address).await?;
        let straggler = self.next(Duration::ZERO).await?;
        match (straggler, incoming) {
            (Some(straggler), Some(_)) => return Ok(Some((self, straggler))),
            // The receive was cancelled, so the message is released.
            (Some(straggler), None) => self.settle(straggler.delivery, Outcome::Release).await?,
            (None, _) => self.close().await?,
        }
        Ok(None)
    }

    /// Waits for one message of the session that the link holds, and keeps the link open. Takes credit back without a drain,
    /// because the client library counts deliveries twice after a drain.
    pub(crate) async fn receive_from_session(
        &mut self,
        amqp: &Amqp,
        address: &str,
        deadline: Duration,
        cancel: &mut CancelSignal,
    ) -> Result<Option<IncomingMessage>, AmqpError> {
        self.give_credit(1).await?;
        let incoming = tokio::select! {
            incoming = self.next(deadline) => Some(incoming?),
            () = cancel.wait() => None,
        };
        if let Some(Some(incoming)) = incoming {
            return Ok(Some(incoming));
        }
        self.give_credit(0).await?;
        self.await_processed(amqp, &format!("{address}/$management"))
            .await?;
        let straggler = self.next(Duration::ZERO).await?;
        match (straggler, incoming) {
            (Some(straggler), None) => {
                // The receive was cancelled, so the message is released.
                self.dispose(straggler.delivery, Outcome::Release).await?;
                Ok(None)
            }
            (straggler, _) => Ok(straggler),
        }
    }

    /// Receives what is ready now, up to `credit` messages, and closes the link. The link cannot have more credit
    /// afterwards, because the client library counts deliveries twice after a drain.
    pub(crate) async fn receive_available(
        mut self,
        amqp: &Amqp,
        address: &str,
        credit: u32,
    ) -> Result<Vec<IncomingMessage>, AmqpError> {
        self.give_credit(credit).await?;
        self.drain(amqp, address).await?;
        let mut taken = Vec::new();
        while let Some(incoming) = self.next(Duration::ZERO).await? {
            taken.push(incoming);
        }
        self.close().await?;
        Ok(taken)
    }

    /// Settles a message and closes the link; the emulator answers the close after it has settled the message.
    pub(crate) async fn settle(
        self,
        delivery: DeliveryInfo,
        outcome: Outcome,
    ) -> Result<(), AmqpError> {
        self.dispose(delivery, outcome).await?;
        self.close().await
    }

    /// Settles a message, and leaves the link open.
    pub(crate) async fn dispose(
        &self,
        delivery: DeliveryInfo,
        outcome: Outcome,
    ) -> Result<(), AmqpError> {
        let dispose = async {
            let receiver = &self.receiver;
            match outcome {
                Outcome::Complete => receiver.dispose(delivery, Accepted {}).await?,
                Outcome::Release => receiver.dispose(delivery, Released {}).await?,
                Outcome::Abandon => receiver.dispose(delivery, modified(false)).await?,
                Outcome::Defer => receiver.dispose(delivery, modified(true)).await?,
                Outcome::DeadLetter {
                    reason,
                    description,
                } => {
                    let error = dead_letter(reason, description);
                    let state = Rejected { error: Some(error) };
                    receiver.dispose(delivery, state).await?;
                }
            }
            Ok(())
        };
        self.session.connection_end.within(dispose).await
    }

    /// Waits until the emulator has processed everything that was sent on the session before.
    pub(crate) async fn await_processed(
        &mut self,
        amqp: &Amqp,
        address: &str,
    ) -> Result<(), AmqpError> {
        let OpenSession {
            handle,
            connection_end,
        } = &mut self.session;
        let attach = amqp.attach_receiver(handle, address, ReceiveMode::PeekLock);
        let barrier = connection_end.within(attach).await?;
        connection_end
            .within(async { Ok(barrier.close().await?) })
            .await
    }

    pub(crate) async fn close(self) -> Result<(), AmqpError> {
        let Self { receiver, session } = self;
        let close = async { Ok(receiver.close().await?) };
        session.connection_end.within(close).await
    }

    async fn drain(&mut self, amqp: &Amqp, address: &str) -> Result<(), AmqpError> {
        self.receiver.drain().await?;
        self.await_processed(amqp, address).await
    }

    async fn give_credit(&mut self, credit: u32) -> Result<(), AmqpError> {
        let Self { receiver, session } = self;
        let give = async { Ok(receiver.set_credit(credit).await?) };
        session.connection_end.within(give).await
    }

    async fn next(&mut self, deadline: Duration) -> Result<Option<IncomingMessage>, AmqpError> {
        let Self { receiver, session } = self;
        let next = async {
            match tokio::time::timeout(deadline, receiver.recv::<Body<Value>>()).await {
                Ok(delivery) => Ok(Some(incoming(delivery?))),
                Err(_elapsed) => Ok(None),
            }
        };
        // The deadline is no error, so it comes first.
        let within = deadline.saturating_add(RESPONSE_TIMEOUT);
        session.connection_end.within_timeout(within, next).await
    }
}

fn incoming(delivery: Delivery<Body<Value>>) -> IncomingMessage {
    IncomingMessage {
        delivery: DeliveryInfo::from(&delivery),
        message: ReceivedMessage::from_amqp(delivery.into_message()),
    }
}

fn modified(undeliverable_here: bool) -> Modified {
    Modified {
        delivery_failed: Some(true),
        undeliverable_here: Some(undeliverable_here),
        message_annotations: None,
    }
}

/// Encodes a reason as Service Bus expects it.
fn dead_letter(reason: Option<String>, description: Option<String>) -> definitions::Error {
    let mut info = OrderedMap::new();
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            info.insert(Symbol::from(key), Value::String(value));
        }
    };
    add("DeadLetterReason", reason);
    add("DeadLetterErrorDescription", description);
    definitions::Error::new(
        definitions::ErrorCondition::Custom(Symbol::from("com.microsoft:dead-letter")),
        None,
        Some(info),
    )
}
