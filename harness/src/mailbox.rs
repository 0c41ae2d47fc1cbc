//! Acting on queues, topics and subscriptions as another party would.
//!
//! A [`Mailbox`] is what can be looked into and received from: a queue or subscription, or one of its dead-letter
//! queues. A [`QueueHandle`] is the mailbox of a queue that can also be sent to, a [`SubscriptionHandle`] that of a
//! subscription; a [`TopicHandle`] can be sent to only. Handles are cheap to clone, check nothing before they are
//! used, and do not keep their bus alive.

mod counts;
mod deferred;
mod error;
mod purge;
mod queue;
mod received;
mod schedule;
mod send;
mod session;
mod sessions;
mod subscription;
mod topic;

use std::{fmt, panic::Location, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};

use crate::{
    amqp::{AmqpError, Arrived, Consumer, ReceiveMode},
    bus::or_panic,
    catalog::{Catalog, Declared},
    comparison::observe,
    control::ControlError,
    doors::{Doors, GivenUp},
    kind::EntityKind,
    peeked::{MessageState, PeekedMessage},
    settled::{self, SettledError},
    timeline::{Answer, Event, Timeline},
};

pub use counts::Counts;
pub use error::{
    AcceptSessionError, CancelError, CountsError, DeleteMessagesError, LoseSessionError, PeekError,
    PurgeError, ReceiveError, RenewError, ScheduleError, SendError, SessionError, SessionsError,
    SettleError, TimelineError, UnknownEntity,
};
pub use purge::Purged;
pub use queue::QueueHandle;
pub use received::Received;
pub use schedule::Due;
pub use session::HeldSession;
pub use sessions::SessionInfo;
pub(crate) use sessions::state_text;
pub use subscription::SubscriptionHandle;
pub use topic::TopicHandle;

/// How long a receive waits in real time, unless said otherwise.
const RECEIVE_WITHIN: Duration = Duration::from_secs(5);

/// A queue or subscription, or a dead-letter queue of one.
#[derive(Debug, Clone)]
pub struct Mailbox {
    pub(crate) doors: Arc<Doors>,
    kind: EntityKind,
    owner: String,
    path: String,
}

impl Mailbox {
    /// Returns the address, such as `orders/$DeadLetterQueue`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the queue, topic or subscription it belongs to: `orders`, `prices/Subscriptions/eu`.
    pub fn owner_path(&self) -> &str {
        &self.owner
    }

    /// Returns what kind of entity it belongs to.
    pub fn kind(&self) -> EntityKind {
        self.kind
    }

    pub(crate) fn new(doors: Arc<Doors>, kind: EntityKind, owner: String) -> Self {
        Self {
            doors,
            kind,
            path: owner.clone(),
            owner,
        }
    }

    /// Looks at every message in order of sequence number, without touching any.
    ///
    /// # Panics
    ///
    /// When the queue is unknown or the emulator does not answer.
    #[track_caller]
    pub fn peek(&self) -> impl Future<Output = Vec<PeekedMessage>> + Send {
        or_panic(Location::caller(), self.try_peek())
    }

    /// Looks at every message, or says why not.
    pub async fn try_peek(&self) -> Result<Vec<PeekedMessage>, PeekError> {
        let peeked = self
            .run(|mailbox| async move { mailbox.doors.amqp.peek(&mailbox.path).await })
            .await;
        match peeked {
            Ok(messages) => Ok(messages),
            Err(error) => Err(match self.unknown_by(error.condition()).await {
                Some(unknown) => unknown.into(),
                None => PeekError::Amqp {
                    path: self.path.clone(),
                    source: error,
                },
            }),
        }
    }

    /// Counts the messages by what can be done with them.
    ///
    /// # Panics
    ///
    /// When the queue is unknown or the emulator does not answer.
    #[track_caller]
    pub fn counts(&self) -> impl Future<Output = Counts> + Send {
        or_panic(Location::caller(), self.try_counts())
    }

    /// Counts the messages, or says why not.
    pub async fn try_counts(&self) -> Result<Counts, CountsError> {
        let counted = self
            .run(|mailbox| async move {
                let query = [("entity", mailbox.path.as_str())];
                mailbox.doors.control.get("counts", &query).await
            })
            .await;
        match counted {
            Ok(counts) if self.doors.control.is_emulator() => Ok(counts),
            Ok(counts) => Ok(Counts {
                deferred: self.peeked_as_deferred().await?,
                ..counts
            }),
            Err(error) => Err(match self.unknown_if(error.status() == Some(404)).await {
                Some(unknown) => unknown.into(),
                None => CountsError::Control {
                    path: self.path.clone(),
                    source: error,
                },
            }),
        }
    }

    /// Counts what was put aside where nobody says how many that are.
    async fn peeked_as_deferred(&self) -> Result<u64, CountsError> {
        if self.kind == EntityKind::Topic {
            return Ok(0);
        }
        let peeked = self.try_peek().await?;
        let deferred = peeked.iter();
        let deferred = deferred.filter(|message| message.state == MessageState::Deferred);
        Ok(deferred.count() as u64)
    }

    /// Receives one message with a lock, as a competing consumer would.
    ///
    /// # Panics
    ///
    /// When none comes within 5 s of real time; the text says what the queue holds.
    #[track_caller]
    pub fn receive(&self) -> impl Future<Output = Received> + Send {
        or_panic(Location::caller(), self.try_receive(RECEIVE_WITHIN))
    }

    /// Receives one message with a lock, and waits for it up to a deadline in real time.
    ///
    /// With a deadline of zero it takes what is ready at once. A message is never lost between the deadline
    /// and the answer: what is on its way is waited for.
    pub async fn try_receive(&self, within: Duration) -> Result<Received, ReceiveError> {
        match self.arrival(ReceiveMode::PeekLock, within).await {
            Ok(Some((consumer, arrived))) => Ok(Received::new(self.clone(), consumer, arrived)),
            Ok(None) => Err(self.nothing_came(within).await),
            Err(source) => Err(self.receive_error(source).await),
        }
    }

    /// Receives one message and deletes it at once.
    ///
    /// # Panics
    ///
    /// When none comes within 5 s of real time; the text says what the queue holds.
    #[track_caller]
    pub fn receive_and_delete(&self) -> impl Future<Output = PeekedMessage> + Send {
        or_panic(
            Location::caller(),
            self.try_receive_and_delete(RECEIVE_WITHIN),
        )
    }

    /// Receives one message, deletes it at once, and waits for it up to a deadline in real time.
    pub async fn try_receive_and_delete(
        &self,
        within: Duration,
    ) -> Result<PeekedMessage, ReceiveError> {
        match self.arrival(ReceiveMode::ReceiveAndDelete, within).await {
            Ok(Some((_consumer, arrived))) => Ok(arrived.message),
            Ok(None) => Err(self.nothing_came(within).await),
            Err(source) => Err(self.receive_error(source).await),
        }
    }

    /// Returns what happened here so far, or says why not.
    pub async fn try_timeline(&self) -> Result<Timeline, TimelineError> {
        self.ask_for_timeline(&[]).await
    }

    /// The same with the messages behind the events, where the emulator keeps them.
    pub(crate) async fn timeline_with_messages(&self) -> Result<Timeline, TimelineError> {
        self.ask_for_timeline(&[("messages", "true")]).await
    }

    /// Returns what happened to the message of this number, and to nothing else.
    pub(crate) async fn events_of(&self, sequence_number: i64) -> Result<Vec<Event>, ControlError> {
        self.run(|mailbox| async move {
            let number = sequence_number.to_string();
            let query = [
                ("entity", mailbox.path.as_str()),
                ("sequence_number", &number),
            ];
            let answer: Answer = mailbox.doors.control.get("timeline", &query).await?;
            Ok(answer.events)
        })
        .await
    }

    async fn ask_for_timeline(
        &self,
        more: &'static [(&str, &str)],
    ) -> Result<Timeline, TimelineError> {
        let asked: Result<_, ControlError> = self
            .run(|mailbox| async move {
                let query = [&[("entity", mailbox.path.as_str())], more].concat();
                let control = &mailbox.doors.control;
                let mut answer: Answer = control.get("timeline", &query).await?;
                let messages = answer.messages.take().map(decoded);
                let catalog = mailbox.doors.catalog().await;
                let declared = catalog.find(mailbox.kind, &mailbox.owner);
                let limit = declared.and_then(|declared| declared.max_delivery_count);
                Ok(Timeline::new(&mailbox.path, answer, limit).with_messages(messages))
            })
            .await;
        match asked {
            Ok(timeline) => Ok(timeline),
            Err(error) => Err(match self.unknown_if(error.status() == Some(404)).await {
                Some(unknown) => unknown.into(),
                None => TimelineError::Control {
                    path: self.path.clone(),
                    source: error,
                },
            }),
        }
    }

    async fn arrival(
        &self,
        mode: ReceiveMode,
        within: Duration,
    ) -> Result<Option<(Consumer, Arrived)>, AmqpError> {
        let path = self.path.clone();
        let receive = move |doors: Arc<Doors>, mut given_up: GivenUp| async move {
            let consumer = doors.amqp.consumer(&path, mode).await?;
            let received = consumer.receive(&doors.amqp, &path, within, &mut given_up);
            received.await
        };
        let received = self.doors.run_to_end(receive).await;
        let told = match &received {
            Ok(Some((_, arrived))) => format!("{:?}", arrived.message.body_text()),
            Ok(None) => "nothing".to_owned(),
            Err(error) => error.to_string(),
        };
        observe(format!("receive from {self}"), told);
        received
    }

    /// Runs an operation on the background runtime, with a mailbox of its own.
    pub(crate) fn run<T, F>(
        &self,
        operation: impl FnOnce(Self) -> F,
    ) -> impl Future<Output = T> + Send
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.doors.run(|_| operation(self.clone()))
    }

    /// Returns what the bus holds now.
    pub(crate) async fn catalog(&self) -> Catalog {
        self.run(|mailbox| async move { mailbox.doors.catalog().await })
            .await
    }

    /// Returns what the bus says of its owner.
    pub(crate) async fn declared(&self) -> Option<Declared> {
        let catalog = self.catalog().await;
        catalog.find(self.kind, &self.owner).cloned()
    }

    /// Waits for the bus to come to rest.
    pub(crate) async fn settled(&self, within: Duration) -> Result<(), SettledError> {
        self.run(move |mailbox| async move { settled::wait(&mailbox.doors, within).await })
            .await
    }

    /// Returns the whole that it belongs to, or is.
    pub(crate) fn owner(&self) -> Self {
        Self {
            path: self.owner.clone(),
            ..self.clone()
        }
    }

    /// Returns where its dead letters lie; of dead letters it is where they are.
    pub(crate) fn graves(&self) -> Self {
        match (self.is_owner(), self.kind) {
            (false, _) => self.clone(),
            (true, EntityKind::Topic) => self.transfer_graves(),
            (true, EntityKind::Queue | EntityKind::Subscription) => self.below("$DeadLetterQueue"),
        }
    }

    /// Returns where those lie that could not go on.
    pub(crate) fn transfer_graves(&self) -> Self {
        self.below("$Transfer/$DeadLetterQueue")
    }

    /// Returns whether it is an entity of its own and not its dead letters.
    pub(crate) fn is_owner(&self) -> bool {
        self.path == self.owner
    }

    fn below(&self, suffix: &str) -> Self {
        Self {
            path: format!("{}/{suffix}", self.owner),
            ..self.clone()
        }
    }
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

impl AsRef<Self> for Mailbox {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Reads messages as the control API shows them. One that cannot be read is an empty one: its place counts.
fn decoded(messages: Vec<String>) -> Vec<PeekedMessage> {
    let messages = messages.into_iter().map(|encoded| {
        let bytes = BASE64_STANDARD.decode(encoded).ok()?;
        crate::amqp::decode(&bytes).ok()
    });
    messages.map(Option::unwrap_or_default).collect()
}
