//! A session that the test holds, as a competing receiver would.
//!
//! The link that holds it stays open until the session is closed or dropped; then it is free for the next receiver,
//! with what was not settled at its old place.

use std::{sync::Arc, time::Duration, time::SystemTime};

use bytes::Bytes;
use fe2o3_amqp::link::delivery::DeliveryInfo;
use tokio::sync::Mutex;

use super::{LockedMessage, SubQueueClient};
use crate::{
    action::Action,
    amqp::{Accepted, ReceiverLink, SettleAs},
    background::CancelSignal,
    connections::Connections,
    error::amqp::AmqpError,
    error::{Error, ErrorKind},
    text,
};

/// The condition by which the emulator says that another receiver holds a session.
const TAKEN: &str = "com.microsoft:session-cannot-be-locked";
/// The condition by which the emulator says that no session was available in time.
const NONE: &str = "com.microsoft:timeout";
/// The condition by which the emulator says that a session is not held any longer.
pub(super) const LOCK_LOST: &str = "com.microsoft:session-lock-lost";

/// A session that the test holds: it receives its messages in order, and no other receiver does.
#[derive(Debug)]
#[must_use = "a session is free for others when it is dropped"]
pub struct SessionReceiver {
    client: SubQueueClient,
    id: String,
    locked_until: SystemTime,
    link: Arc<SessionLink>,
}

/// The link of a session, which its messages are settled on; none when it was closed.
#[derive(Debug)]
pub(super) struct SessionLink(Mutex<Option<ReceiverLink>>);

impl SubQueueClient {
    /// Accepts a session by its id, whether it has messages or not.
    ///
    /// # Panics
    ///
    /// When another receiver holds it, or the queue has no sessions.
    #[track_caller]
    pub fn accept_session<'a>(&'a self, id: &'a str) -> Action<'a, SessionReceiver> {
        Action::new(async move {
            match self.accepted(Some(id.to_owned()), Duration::ZERO).await {
                Ok(accepted) => Ok(SessionReceiver::new(self.clone(), accepted)),
                Err(source) if is(&source, TAKEN) => {
                    let holder = self.holder(id).await;
                    let holder = holder.as_deref().unwrap_or("another receiver");
                    let sentence = format!("{self}: the session {id:?} is held by {holder}");
                    Err(self.error(ErrorKind::SessionCannotBeLocked, sentence))
                }
                Err(source) => Err(self.not_accepted(source).await),
            }
        })
    }

    /// Accepts the available session whose oldest message has waited longest, and waits for one up to a deadline in real
    /// time.
    ///
    /// # Panics
    ///
    /// When there was none in time, or the queue has no sessions.
    #[track_caller]
    pub fn accept_next_session(&self, within: Duration) -> Action<'_, SessionReceiver> {
        Action::new(async move {
            match self.accepted(None, within).await {
                Ok(accepted) => Ok(SessionReceiver::new(self.clone(), accepted)),
                Err(source) if is(&source, NONE) => {
                    let counts = self.try_counts().await.unwrap_or_default();
                    let within = text::seconds(within);
                    let sentence = format!(
                        "{self}: no session was available within {within}; it holds {counts}"
                    );
                    Err(self.error(ErrorKind::Timeout, sentence))
                }
                Err(source) => Err(self.not_accepted(source).await),
            }
        })
    }

    async fn accepted(
        &self,
        wanted: Option<String>,
        timeout: Duration,
    ) -> Result<Accepted, AmqpError> {
        self.run(move |client| async move {
            let amqp = &client.connections.amqp;
            let path = &client.path;
            amqp.accept_session(path, wanted.as_deref(), timeout).await
        })
        .await
    }

    async fn not_accepted(&self, source: AmqpError) -> Error {
        let operation = format!("accept a session of {self}");
        self.amqp_error(operation, source).await
    }

    /// Names the client that holds a session, for the text of an error.
    async fn holder(&self, id: &str) -> Option<String> {
        let sessions = self.try_sessions().await.unwrap_or_default();
        let held = sessions
            .into_iter()
            .find(|session| session.session_id == id);
        held?.holder
    }
}

impl SessionReceiver {
    fn new(client: SubQueueClient, accepted: Accepted) -> Self {
        Self {
            client,
            id: accepted.session,
            locked_until: accepted.locked_until,
            link: Arc::new(SessionLink(Mutex::new(Some(accepted.receiver)))),
        }
    }

    /// Returns the id of the session.
    pub fn session_id(&self) -> &str {
        &self.id
    }

    /// Returns until when it is locked, by the client's clock.
    pub fn locked_until(&self) -> SystemTime {
        self.locked_until
    }

    /// Receives the next message of the session.
    ///
    /// # Panics
    ///
    /// When none comes within 5 s of real time, or the session was lost.
    #[track_caller]
    pub fn receive(&self) -> Action<'_, LockedMessage> {
        Action::new(self.try_receive(self.client.connections.within))
    }

    /// Receives the next message of the session, and waits for it up to a deadline in real time: with zero, it takes
    /// what is ready at once.
    ///
    /// # Panics
    ///
    /// When nothing came in time.
    #[track_caller]
    pub fn receive_within(&self, within: Duration) -> Action<'_, LockedMessage> {
        Action::new(self.try_receive(within))
    }

    /// Receives the next message of the session, and waits for it up to a deadline in real time.
    pub(crate) async fn try_receive(&self, within: Duration) -> Result<LockedMessage, Error> {
        let link = Arc::clone(&self.link);
        let path = self.client.path.clone();
        let receive = move |connections: Arc<Connections>, mut cancel: CancelSignal| async move {
            let mut link = link.0.lock().await;
            let receiver = link.as_mut().ok_or_else(closed)?;
            let received =
                receiver.receive_of_session(&connections.amqp, &path, within, &mut cancel);
            received.await
        };
        match self.client.connections.run_to_end(receive).await {
            Ok(Some(incoming)) => {
                let link = Arc::clone(&self.link);
                let client = self.client.clone();
                Ok(LockedMessage::of_session(client, link, incoming))
            }
            Ok(None) => Err(self.client.nothing_came(within).await),
            Err(source) => Err(self.client.receive_error(source).await),
        }
    }

    /// Receives a deferred message of the session by its sequence number.
    ///
    /// # Panics
    ///
    /// When no deferred message of the session has this sequence number, or the session was lost.
    #[track_caller]
    pub fn receive_deferred(&self, sequence_number: i64) -> Action<'_, LockedMessage> {
        Action::new(async move {
            let id = self.id.clone();
            let received = self.client.run(move |client| async move {
                let amqp = &client.connections.amqp;
                amqp.receive_deferred_of_session(&client.path, sequence_number, &id)
                    .await
            });
            match received.await {
                Ok((token, message)) => Ok(LockedMessage::by_sequence_number(
                    self.client.clone(),
                    token,
                    message,
                )),
                Err(source) => Err(self.client.not_received(sequence_number, source).await),
            }
        })
    }

    /// Renews the lock by the lock duration of the queue and returns its new end, by the client's clock.
    ///
    /// # Panics
    ///
    /// When the session was lost.
    #[track_caller]
    pub fn renew_lock(&mut self) -> Action<'_, SystemTime> {
        Action::new(async move {
            let id = self.id.clone();
            let renewed = self.client.run(move |client| async move {
                let amqp = &client.connections.amqp;
                amqp.renew_session_lock(&client.path, &id).await
            });
            match renewed.await {
                Ok(end) => {
                    self.locked_until = end;
                    Ok(end)
                }
                Err(source) => Err(self.error(source).await),
            }
        })
    }

    /// Returns what is kept with the session; nothing when there is none.
    ///
    /// # Panics
    ///
    /// When the session was lost.
    #[track_caller]
    pub fn state(&self) -> Action<'_, Option<Bytes>> {
        Action::new(async move {
            let id = self.id.clone();
            let state = self.client.run(move |client| async move {
                let amqp = &client.connections.amqp;
                amqp.session_state(&client.path, &id).await
            });
            match state.await {
                Ok(state) => Ok(state),
                Err(source) => Err(self.error(source).await),
            }
        })
    }

    /// Keeps something with the session, up to 256 KiB, or 1 MiB in the premium tier. It outlives the messages.
    ///
    /// # Panics
    ///
    /// When the session was lost, or it is too much.
    #[track_caller]
    pub fn set_state(&self, state: impl Into<Bytes>) -> Action<'_, ()> {
        Action::new(self.try_set_state(Some(state.into())))
    }

    /// Keeps nothing with the session any longer.
    ///
    /// # Panics
    ///
    /// When the session was lost.
    #[track_caller]
    pub fn clear_state(&self) -> Action<'_, ()> {
        Action::new(self.try_set_state(None))
    }

    /// Keeps something with the session, or nothing any longer, or says why not.
    pub(crate) async fn try_set_state(&self, state: Option<Bytes>) -> Result<(), Error> {
        let id = self.id.clone();
        let set = self.client.run(move |client| async move {
            let amqp = &client.connections.amqp;
            amqp.set_session_state(&client.path, &id, state).await
        });
        match set.await {
            Ok(()) => Ok(()),
            Err(source) => Err(self.error(source).await),
        }
    }

    /// Lets the session go: when this returns the next receiver may have it.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer. A session that was lost is let go without complaint.
    #[track_caller]
    pub fn close(self) -> Action<'static, ()> {
        Action::new(async move {
            let link = Arc::clone(&self.link);
            let close = |_| async move {
                match link.0.lock().await.take() {
                    Some(receiver) => receiver.close().await,
                    None => Ok(()),
                }
            };
            match self.client.run(close).await {
                Ok(()) => Ok(()),
                Err(source) if is(&source, LOCK_LOST) => Ok(()),
                Err(source) => Err(self.error(source).await),
            }
        })
    }

    async fn error(&self, source: AmqpError) -> Error {
        let (client, session) = (&self.client, &self.id);
        if is(&source, LOCK_LOST) {
            let sentence = format!("the session {session:?} of {client} is not held any longer");
            let error = client.error(ErrorKind::SessionLockLost, sentence);
            let timeline = client.try_timeline().await.ok();
            return error.with_timeline(timeline.map(|timeline| {
                let of_session = timeline.of_session(session);
                of_session.titled(&format!("session {session}")).to_string()
            }));
        }
        let operation = format!("use the session {session:?} of {client}");
        Error::of(operation, &client.path, source)
    }
}

impl SessionLink {
    /// Settles a message, and waits until the emulator has dealt with that.
    pub(super) async fn settle(
        &self,
        connections: &Connections,
        path: &str,
        delivery: DeliveryInfo,
        outcome: SettleAs,
    ) -> Result<(), AmqpError> {
        let mut link = self.0.lock().await;
        let receiver = link.as_mut().ok_or_else(closed)?;
        receiver.dispose(delivery, outcome).await?;
        let barrier = format!("{path}/$management");
        receiver.pass_barrier(&connections.amqp, &barrier).await
    }
}

fn closed() -> AmqpError {
    AmqpError::Protocol("the session was closed".to_owned())
}

pub(super) fn is(error: &AmqpError, condition: &str) -> bool {
    let found = error.condition();
    found.is_some_and(|found| found.condition == condition)
}
