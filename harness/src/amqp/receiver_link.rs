//! A receiving link, and how it is cancelled without losing a message.
//!
//! A link that is closed while a message is on its way leaves that message locked without a receiver. So credit is
//! taken back first, and what was already sent is waited for. The client library does not show when a drain
//! is complete; two more round trips on the same session do, because the emulator works through a session in
//! order and everything of a turn is written before the next.

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

use super::{Amqp, AmqpError, OpenSession, ReceiveMode};
use crate::{background::CancelSignal, received_message::ReceivedMessage};

/// What becomes of a received message.
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

/// A link that receives.
#[derive(Debug)]
pub(crate) struct ReceiverLink {
    // Dropped in this order: the link is closed before its session.
    receiver: Receiver,
    session: OpenSession,
}

/// A message that came over a receiver's link.
#[derive(Debug)]
pub(crate) struct IncomingMessage {
    pub(crate) message: ReceivedMessage,
    pub(crate) delivery: DeliveryInfo,
}

impl ReceiverLink {
    pub(crate) fn new(session: OpenSession, receiver: Receiver) -> Self {
        Self { receiver, session }
    }

    /// Waits for one message, up to the deadline or until the receive is cancelled; then nothing is left in
    /// flight.
    pub(crate) async fn receive(
        mut self,
        amqp: &Amqp,
        address: &str,
        deadline: Duration,
        cancel: &mut CancelSignal,
    ) -> Result<Option<(Self, IncomingMessage)>, AmqpError> {
        self.receiver.set_credit(1).await?;
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
            // The receive was cancelled: the message is released.
            (Some(straggler), None) => self.settle(straggler.delivery, Outcome::Release).await?,
            (None, _) => self.close().await?,
        }
        Ok(None)
    }

    /// Waits for one message of the session that the link holds, and keeps the link. Credit is taken back and not
    /// drained: after a drain the client library counts deliveries twice.
    pub(crate) async fn receive_of_session(
        &mut self,
        amqp: &Amqp,
        address: &str,
        deadline: Duration,
        cancel: &mut CancelSignal,
    ) -> Result<Option<IncomingMessage>, AmqpError> {
        self.receiver.set_credit(1).await?;
        let incoming = tokio::select! {
            incoming = self.next(deadline) => Some(incoming?),
            () = cancel.wait() => None,
        };
        if let Some(Some(incoming)) = incoming {
            return Ok(Some(incoming));
        }
        self.receiver.set_credit(0).await?;
        self.pass_barrier(amqp, &format!("{address}/$management"))
            .await?;
        let straggler = self.next(Duration::ZERO).await?;
        match (straggler, incoming) {
            (Some(straggler), None) => {
                // The receive was cancelled: the message is released.
                self.dispose(straggler.delivery, Outcome::Release).await?;
                Ok(None)
            }
            (straggler, _) => Ok(straggler),
        }
    }

    /// Takes what is ready now, up to `credit` messages, and closes the link: after a drain the client
    /// library counts deliveries twice, so that more credit would be too much.
    pub(crate) async fn take_ready(
        mut self,
        amqp: &Amqp,
        address: &str,
        credit: u32,
    ) -> Result<Vec<IncomingMessage>, AmqpError> {
        self.receiver.set_credit(credit).await?;
        self.drain(amqp, address).await?;
        let mut taken = Vec::new();
        while let Some(incoming) = self.next(Duration::ZERO).await? {
            taken.push(incoming);
        }
        self.close().await?;
        Ok(taken)
    }

    /// Settles a message and closes the link, which the emulator answers after it has settled.
    pub(crate) async fn settle(
        self,
        delivery: DeliveryInfo,
        outcome: Outcome,
    ) -> Result<(), AmqpError> {
        self.dispose(delivery, outcome).await?;
        self.close().await
    }

    /// Settles a message, and leaves the link as it is.
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
        self.session.ending.within(dispose).await
    }

    /// Waits until the emulator has dealt with everything that was said on the session before.
    pub(crate) async fn pass_barrier(
        &mut self,
        amqp: &Amqp,
        address: &str,
    ) -> Result<(), AmqpError> {
        let OpenSession { handle, ending } = &mut self.session;
        let attach = amqp.attach_receiver(handle, address, ReceiveMode::PeekLock);
        let barrier = ending.within(attach).await?;
        ending.within(async { Ok(barrier.close().await?) }).await
    }

    pub(crate) async fn close(self) -> Result<(), AmqpError> {
        let Self { receiver, session } = self;
        let close = async { Ok(receiver.close().await?) };
        session.ending.within(close).await
    }

    async fn drain(&mut self, amqp: &Amqp, address: &str) -> Result<(), AmqpError> {
        self.receiver.drain().await?;
        self.pass_barrier(amqp, address).await
    }

    async fn next(&mut self, deadline: Duration) -> Result<Option<IncomingMessage>, AmqpError> {
        match tokio::time::timeout(deadline, self.receiver.recv::<Body<Value>>()).await {
            Ok(delivery) => Ok(Some(incoming(delivery?))),
            Err(_elapsed) => Ok(None),
        }
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

/// The shape in which Service Bus expects a reason.
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
