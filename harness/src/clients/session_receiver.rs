//! A session that the test holds as a competing receiver.
//!
//! The link that holds the session stays open until the session is closed or dropped. Then the next receiver can accept it,
//! with unsettled messages at their old positions.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use servicebus_control_api::LoseSessionLock;
use tokio::sync::Mutex;

use super::{
    LockedMessage, SessionInfo, SubQueueClient,
    exchange::Exchange,
    locked_message::{SessionLink, SettlementPath, closed},
};
use crate::{
    action::Action,
    amqp::{AcceptedSession, Amqp, IncomingMessage, SettleAs},
    background::CancelSignal,
    connections::Connections,
    error::amqp::{AmqpError, SESSION_CANNOT_BE_LOCKED, SESSION_LOCK_LOST, TIMEOUT},
    error::{Error, ErrorKind},
};

/// A session that the test holds: it receives the session's messages in order, and no other receiver does.
#[derive(Debug)]
#[must_use = "a session is free for others when it is dropped"]
pub struct SessionReceiver {
    client: SubQueueClient,
    id: String,
    locked_until: SystemTime,
    link: Arc<SessionLink>,
}

impl SubQueueClient {
    /// Accepts a session by its id, whether it has messages or not.
    ///
    /// # Panics
    ///
    /// Panics if another receiver holds the session, or the queue has no sessions.
    #[track_caller]
    pub fn accept_session<'a>(&'a self, id: &'a str) -> Action<'a, SessionReceiver> {
        Action::new(async move {
            match self.accepted(Some(id.to_owned()), Duration::ZERO).await {
                Ok(accepted) => Ok(SessionReceiver::new(self.clone(), accepted)),
                Err(source) if source.is(SESSION_CANNOT_BE_LOCKED) => {
                    let holder = self.holder(id).await;
                    let holder = holder.as_deref().unwrap_or("another receiver");
                    let sentence = format!("{self}: the session {id:?} is held by {holder}");
                    Err(self.error(ErrorKind::SessionCannotBeLocked, sentence))
                }
                Err(source) => Err(self.not_accepted(source).await),
            }
        })
    }

    /// Accepts the available session whose oldest message has waited longest; waits for one up to a deadline in real time.
    ///
    /// # Panics
    ///
    /// Panics if no session becomes available in time, or the queue has no sessions.
    #[track_caller]
    pub fn accept_next_session(&self, within: Duration) -> Action<'_, SessionReceiver> {
        Action::new(async move {
            match self.accepted(None, within).await {
                Ok(accepted) => Ok(SessionReceiver::new(self.clone(), accepted)),
                Err(source) if source.is(TIMEOUT) => {
                    Err(self.nothing_came("no session was available", within).await)
                }
                Err(source) => Err(self.not_accepted(source).await),
            }
        })
    }

    /// Returns the sessions that have messages, a holder or a state, ordered by id.
    ///
    /// # Panics
    ///
    /// Panics if the queue has no sessions or the emulator does not answer.
    #[track_caller]
    pub fn sessions(&self) -> Action<'_, Vec<SessionInfo>> {
        Action::new(self.try_sessions())
    }

    pub(crate) async fn try_sessions(&self) -> Result<Vec<SessionInfo>, Error> {
        let operation = format!("list the sessions of {self}");
        let listed = self.ask(operation, |client| client.backend().sessions(client.path()));
        listed.await
    }

    /// Ends the lock of a session as if it had expired.
    ///
    /// # Panics
    ///
    /// Panics if no receiver holds the session.
    #[track_caller]
    pub fn lose_session_lock<'a>(&'a self, id: &'a str) -> Action<'a, ()> {
        let lock = LoseSessionLock {
            entity: self.path().to_owned(),
            session: id.to_owned(),
        };
        let operation = format!("end the lock of the session {id:?} of {self}");
        Action::new(self.ask(operation, |client| {
            Box::pin(async move { client.backend().lose_session_lock(&lock).await })
        }))
    }

    async fn accepted(
        &self,
        wanted: Option<String>,
        timeout: Duration,
    ) -> Result<AcceptedSession, AmqpError> {
        self.exchange(move |amqp, path| Box::pin(amqp.accept_session(path, wanted, timeout)))
            .await
    }

    async fn not_accepted(&self, source: AmqpError) -> Error {
        let operation = format!("accept a session of {self}");
        self.amqp_error(operation, source).await
    }

    /// Returns the client that holds a session, for an error message.
    async fn holder(&self, id: &str) -> Option<String> {
        let sessions = self.try_sessions().await.unwrap_or_default();
        let held = sessions
            .into_iter()
            .find(|session| session.session_id == id);
        held?.holder
    }
}

impl SessionReceiver {
    fn new(client: SubQueueClient, accepted: AcceptedSession) -> Self {
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

    /// Returns the end of the lock, by the client's clock.
    pub fn locked_until(&self) -> SystemTime {
        self.locked_until
    }

    /// Receives the next message of the session.
    ///
    /// # Panics
    ///
    /// Panics if no message arrives within 5 s of real time, or the session was lost.
    #[track_caller]
    pub fn receive(&self) -> Action<'_, LockedMessage> {
        Action::new(self.try_receive(self.client.connections.within))
    }

    /// Receives the next message of the session; waits up to a deadline in real time. With zero it takes only what is ready.
    #[track_caller]
    pub fn receive_within(&self, within: Duration) -> Action<'_, LockedMessage> {
        Action::new(self.try_receive(within))
    }

    /// Receives the next message of the session; waits up to a deadline in real time.
    pub(crate) async fn try_receive(&self, within: Duration) -> Result<LockedMessage, Error> {
        let link = Arc::clone(&self.link);
        let path = self.client.path().to_owned();
        let receive = move |connections: Arc<Connections>, mut cancel: CancelSignal| async move {
            let mut link = link.0.lock().await;
            let receiver = link.as_mut().ok_or_else(closed)?;
            let received =
                receiver.receive_from_session(&connections.amqp, &path, within, &mut cancel);
            received.await
        };
        let link = Arc::clone(&self.link);
        let release = |received: Result<Option<IncomingMessage>, AmqpError>| async move {
            if let (Ok(Some(incoming)), Some(link)) = (received, &*link.0.lock().await) {
                // If this fails, the connection has ended, and the session's lock with it.
                let _ = link.dispose(incoming.delivery, SettleAs::Release).await;
            }
        };
        match self.client.connections.run_to_end(receive, release).await {
            Ok(Some(incoming)) => {
                let hold = SettlementPath::Session(Arc::clone(&self.link), incoming.delivery);
                let client = self.client.clone();
                Ok(LockedMessage::new(client, hold, incoming.message))
            }
            Ok(None) => {
                let what = format!("no message of the session {:?} arrived", self.id);
                Err(self.client.nothing_came(&what, within).await)
            }
            Err(source) => Err(self.client.receive_error(source).await),
        }
    }

    /// Receives a deferred message of the session by its sequence number.
    ///
    /// # Panics
    ///
    /// Panics if no deferred message of the session has this sequence number, or the session was lost.
    #[track_caller]
    pub fn receive_deferred(&self, sequence_number: i64) -> Action<'_, LockedMessage> {
        let session = Some(self.id.clone());
        Action::new(self.client.lock_deferred(sequence_number, session))
    }

    /// Renews the lock by the lock duration of the queue and returns its new end, by the client's clock.
    #[track_caller]
    pub fn renew_lock(&mut self) -> Action<'_, SystemTime> {
        Action::new(async move {
            let renewed = self.ask(|amqp, path, id| Box::pin(amqp.renew_session_lock(path, id)));
            self.locked_until = renewed.await?;
            Ok(self.locked_until)
        })
    }

    /// Returns the state of the session; `None` if it has none.
    #[track_caller]
    pub fn state(&self) -> Action<'_, Option<Bytes>> {
        Action::new(self.ask(|amqp, path, id| Box::pin(amqp.session_state(path, id))))
    }

    /// Sets the state of the session, up to 256 KiB, or 1 MiB in the premium tier. The state outlives the messages.
    ///
    /// # Panics
    ///
    /// Panics if the session was lost, or the state is too large.
    #[track_caller]
    pub fn set_state(&self, state: impl Into<Bytes>) -> Action<'_, ()> {
        Action::new(self.store_state(Some(state.into())))
    }

    /// Clears the state of the session.
    #[track_caller]
    pub fn clear_state(&self) -> Action<'_, ()> {
        Action::new(self.store_state(None))
    }

    async fn store_state(&self, state: Option<Bytes>) -> Result<(), Error> {
        self.ask(|amqp, path, id| Box::pin(amqp.set_session_state(path, id, state)))
            .await
    }

    /// Sends a request about the session.
    async fn ask<T: Send + 'static>(
        &self,
        request: impl for<'a> FnOnce(&'a Amqp, &'a str, String) -> Exchange<'a, T> + Send + 'static,
    ) -> Result<T, Error> {
        let id = self.id.clone();
        let request = self
            .client
            .exchange(move |amqp, path| request(amqp, path, id));
        match request.await {
            Ok(answer) => Ok(answer),
            Err(source) => Err(self.error(source).await),
        }
    }

    /// Closes the session: when this returns, the next receiver can accept it. Closing a session that was lost does not
    /// panic.
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
                Err(source) if source.is(SESSION_LOCK_LOST) => Ok(()),
                Err(source) => Err(self.error(source).await),
            }
        })
    }

    async fn error(&self, source: AmqpError) -> Error {
        let (client, session) = (&self.client, &self.id);
        if source.is(SESSION_LOCK_LOST) {
            let sentence =
                format!("the session {session:?} of {client} is no longer locked by this receiver");
            let error = client.error(ErrorKind::SessionLockLost, sentence);
            let timeline = client.try_timeline().await.ok();
            return error.with_timeline(timeline.map(|timeline| {
                let of_session = timeline.of_session(session);
                of_session.titled(&format!("session {session}")).to_string()
            }));
        }
        let operation = format!("use the session {session:?} of {client}");
        Error::of(operation, client.path(), source)
    }
}
