//! Clients of queues, topics and subscriptions, by which a test acts as another party.
//!
//! A [`SubQueueClient`] peeks at and receives from a queue, a subscription, or one of their dead-letter queues. A
//! [`QueueClient`] also sends to its queue, a [`SubscriptionClient`] belongs to a subscription, and a [`TopicClient`] only
//! sends. Clients are cheap to clone, check nothing before their first use, and do not keep their namespace alive.

mod deferred;
mod entity_clients;
mod error;
mod exchange;
mod locked_message;
mod purge;
mod send;
mod session_receiver;
mod settlement;

use std::{fmt, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use servicebus_assertions::{EntityAddress, Event, TEST_CLIENT, Timeline};

use crate::{
    action::Action,
    amqp::{IncomingMessage, ReceiveMode, ReceiverLink, SettleAs},
    backend::{Backend, BoxFuture, TimelineQuery},
    background::CancelSignal,
    catalog::EntityKind,
    catalog::{Catalog, EntitySettings},
    connections::Connections,
    error::Error,
    error::{amqp::AmqpError, control::ControlError},
    observer::observe,
    received_message::{MessageState, ReceivedMessage},
};

pub use entity_clients::{QueueClient, SubscriptionClient, TopicClient};
pub use locked_message::LockedMessage;
use locked_message::SettlementPath;
pub use purge::Purged;
pub use servicebus_assertions::ScheduledEnqueueTime;
use servicebus_control_api::Receiver;
pub use servicebus_control_api::{Counts, Session as SessionInfo};
pub use session_receiver::SessionReceiver;

/// A client of a queue or subscription, or of a dead-letter queue of one.
#[derive(Debug, Clone)]
pub struct SubQueueClient {
    pub(crate) connections: Arc<Connections>,
    address: EntityAddress,
}

impl SubQueueClient {
    /// Returns the address, such as `orders/$DeadLetterQueue`.
    pub fn path(&self) -> &str {
        self.address.path()
    }

    /// Returns the path of the queue, topic or subscription it belongs to: `orders`, `prices/Subscriptions/eu`.
    pub fn owner_path(&self) -> &str {
        self.address.owner_path()
    }

    /// Returns the kind of the entity it belongs to.
    pub fn kind(&self) -> EntityKind {
        self.address.kind()
    }

    pub(crate) fn new(connections: Arc<Connections>, kind: EntityKind, owner: String) -> Self {
        Self {
            connections,
            address: EntityAddress::new(kind, owner),
        }
    }

    /// Peeks every message, in order of sequence number.
    #[track_caller]
    pub fn peek(&self) -> Action<'_, Vec<ReceivedMessage>> {
        Action::new(self.try_peek())
    }

    pub(crate) async fn try_peek(&self) -> Result<Vec<ReceivedMessage>, Error> {
        let peeked = self.exchange(|amqp, path| Box::pin(amqp.peek(path))).await;
        self.outcome(format!("peek {self}"), peeked).await
    }

    /// Counts the messages by their state.
    #[track_caller]
    pub fn counts(&self) -> Action<'_, Counts> {
        Action::new(self.try_counts())
    }

    pub(crate) async fn try_counts(&self) -> Result<Counts, Error> {
        let operation = format!("count the messages of {self}");
        let counted = self.ask(operation, |client| client.backend().counts(client.path()));
        let mut counts = counted.await?;
        if self.backend().control_url().is_none() {
            counts.deferred = self.count_deferred_by_peek().await?;
        }
        Ok(counts)
    }

    /// Counts the deferred messages by a peek, for a namespace that does not count them.
    async fn count_deferred_by_peek(&self) -> Result<u64, Error> {
        if self.kind() == EntityKind::Topic {
            return Ok(0);
        }
        let peeked = self.try_peek().await?;
        let deferred = peeked.iter();
        let deferred = deferred.filter(|message| message.state == MessageState::Deferred);
        Ok(deferred.count() as u64)
    }

    /// Receives one message with a lock, as a competing receiver would.
    ///
    /// # Panics
    ///
    /// Panics if no message arrives within 5 s of real time; the panic says what the queue holds.
    #[track_caller]
    pub fn receive(&self) -> Action<'_, LockedMessage> {
        Action::new(self.try_receive(self.connections.within))
    }

    /// Receives one message with a lock; waits up to a deadline in real time. With zero it takes only what is ready.
    #[track_caller]
    pub fn receive_within(&self, within: Duration) -> Action<'_, LockedMessage> {
        Action::new(self.try_receive(within))
    }

    /// Receives one message with a lock; waits up to a deadline in real time.
    ///
    /// With zero it takes only what is ready. No message is lost between the deadline and the answer: the receive waits for
    /// messages in flight.
    pub(crate) async fn try_receive(&self, within: Duration) -> Result<LockedMessage, Error> {
        let (receiver, incoming) = self.receive_one(ReceiveMode::PeekLock, within).await?;
        let hold = SettlementPath::Link(Box::new(receiver), incoming.delivery);
        Ok(LockedMessage::new(self.clone(), hold, incoming.message))
    }

    /// Receives and deletes one message.
    ///
    /// # Panics
    ///
    /// Panics if no message arrives within 5 s of real time; the panic says what the queue holds.
    #[track_caller]
    pub fn receive_and_delete(&self) -> Action<'_, ReceivedMessage> {
        Action::new(self.try_receive_and_delete(self.connections.within))
    }

    /// Receives and deletes one message; waits up to a deadline in real time. With zero it takes only what is ready.
    #[track_caller]
    pub fn receive_and_delete_within(&self, within: Duration) -> Action<'_, ReceivedMessage> {
        Action::new(self.try_receive_and_delete(within))
    }

    /// Receives and deletes one message; waits up to a deadline in real time.
    pub(crate) async fn try_receive_and_delete(
        &self,
        within: Duration,
    ) -> Result<ReceivedMessage, Error> {
        let received = self.receive_one(ReceiveMode::ReceiveAndDelete, within);
        Ok(received.await?.1.message)
    }

    /// Returns the events of this queue so far.
    #[track_caller]
    pub fn timeline(&self) -> Action<'_, Timeline> {
        Action::new(self.try_timeline())
    }

    /// Returns the events of this queue so far.
    pub(crate) async fn try_timeline(&self) -> Result<Timeline, Error> {
        let (timeline, _) = self.fetch_timeline(false).await?;
        Ok(timeline)
    }

    /// Returns the events of the message with this sequence number only.
    pub(crate) async fn events_of(&self, sequence_number: i64) -> Result<Vec<Event>, ControlError> {
        self.run(|client| async move {
            let query = TimelineQuery {
                entity: client.path(),
                sequence_number: Some(sequence_number),
                messages: false,
            };
            Ok(client.backend().timeline(query).await?.events)
        })
        .await
    }

    /// Returns the events and, if requested, their messages, as far as the emulator keeps these.
    pub(crate) async fn fetch_timeline(
        &self,
        messages: bool,
    ) -> Result<(Timeline, Option<Vec<ReceivedMessage>>), Error> {
        let operation = format!("get the timeline of {self}");
        let request = self.ask(operation, move |client| {
            let query = TimelineQuery {
                entity: client.path(),
                sequence_number: None,
                messages,
            };
            client.backend().timeline(query)
        });
        let mut answer = request.await?;
        let messages = answer.messages.take().map(decode_messages);
        let declared = self.declared().await;
        let limit = declared.and_then(|declared| declared.max_delivery_count);
        Ok((Timeline::new(self.path(), answer, limit), messages))
    }

    /// Returns the receivers of the code under test.
    pub(crate) async fn try_receivers(&self) -> Result<Vec<Receiver>, Error> {
        let operation = format!("list the receivers of {self}");
        let listed = self.ask(operation, |client| {
            client.backend().receivers(client.path())
        });
        let mut receivers = listed.await?;
        receivers.retain(|receiver| receiver.client != TEST_CLIENT);
        Ok(receivers)
    }

    async fn receive_one(
        &self,
        mode: ReceiveMode,
        within: Duration,
    ) -> Result<(ReceiverLink, IncomingMessage), Error> {
        let client = self.clone();
        let receive = move |_, mut cancel: CancelSignal| async move {
            let (amqp, path) = (&client.connections.amqp, client.path());
            let attach = Box::pin(amqp.receiver_link(path, mode));
            let receiver = client.unless_reply_lost(attach).await?;
            receiver.receive(amqp, path, within, &mut cancel).await
        };
        type Received = Result<Option<(ReceiverLink, IncomingMessage)>, AmqpError>;
        let release = |received: Received| async move {
            if let Ok(Some((link, incoming))) = received {
                // If this fails, the connection has ended, and the lock with it.
                let _ = link.settle(incoming.delivery, SettleAs::Release).await;
            }
        };
        let received = self.connections.run_to_end(receive, release).await;
        let rendered = match &received {
            Ok(Some((_, incoming))) => format!("{:?}", incoming.message.body_text()),
            Ok(None) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        };
        observe(format!("receive from {self}"), rendered);
        match received {
            Ok(Some(received)) => Ok(received),
            Ok(None) => Err(self.nothing_came("no message arrived", within).await),
            Err(source) => Err(self.receive_error(source).await),
        }
    }

    /// Sends the namespace a request about this entity; an error names the operation.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        operation: String,
        request: impl for<'a> FnOnce(&'a Self) -> BoxFuture<'a, T> + Send + 'static,
    ) -> Result<T, Error> {
        let request = self.run(|client| async move { request(&client).await });
        match request.await {
            Ok(answer) => Ok(answer),
            Err(source) => Err(self.control_error(operation, source).await),
        }
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.connections.backend
    }

    /// Runs an operation on the background runtime, with a clone of this client.
    pub(crate) fn run<T, F>(
        &self,
        operation: impl FnOnce(Self) -> F,
    ) -> impl Future<Output = T> + Send
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.connections.run(|_| operation(self.clone()))
    }

    /// Returns the entities that the namespace holds now.
    pub(crate) async fn catalog(&self) -> Catalog {
        self.run(|client| async move { client.connections.catalog().await })
            .await
    }

    /// Returns the description of its owner.
    pub(crate) async fn declared(&self) -> Option<EntitySettings> {
        let catalog = self.catalog().await;
        catalog.find(self.kind(), self.owner_path()).cloned()
    }

    /// Waits for the namespace to become idle.
    pub(crate) async fn wait_idle(&self, within: Duration) -> Result<(), Error> {
        self.run(move |client| async move { client.connections.wait_idle(within).await })
            .await
    }

    pub(crate) fn sub_queue(&self) -> &EntityAddress {
        &self.address
    }

    /// Returns a client of another sub-queue of the same entity.
    pub(crate) fn at(&self, address: EntityAddress) -> Self {
        Self {
            address,
            ..self.clone()
        }
    }

    pub(crate) fn dead_letter_queue(&self) -> Self {
        self.at(self.address.dead_letter_queue())
    }

    /// Returns a client of its transfer dead-letter queue.
    pub(crate) fn transfer_dead_letter_queue(&self) -> Self {
        self.at(self.address.transfer_dead_letter_queue())
    }
}

impl fmt::Display for SubQueueClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path())
    }
}

/// A client of an entity or of a sub-queue: the subject of an assertion.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a client of a queue, topic or subscription",
    label = "an assertion takes the client of an entity: `servicebus.queue(\"orders\")`",
    note = "a name does not identify the namespace of its entity"
)]
pub trait EntityClient: AsRef<SubQueueClient> {}

impl EntityClient for SubQueueClient {}
impl<T: EntityClient + ?Sized> EntityClient for &T {}

impl AsRef<Self> for SubQueueClient {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Decodes messages of the control API. One that cannot be decoded becomes an empty message, so that positions stay right.
fn decode_messages(messages: Vec<String>) -> Vec<ReceivedMessage> {
    let messages = messages.into_iter().map(|encoded| {
        let bytes = BASE64_STANDARD.decode(encoded).ok()?;
        crate::amqp::decode(&bytes).ok()
    });
    messages.map(Option::unwrap_or_default).collect()
}
