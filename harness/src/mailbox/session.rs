//! A session that the test holds, as a competing receiver would.
//!
//! The link that holds it stays open until the session is closed or dropped; then it is free for the next receiver,
//! with what was not settled at its old place.

use std::{panic::Location, sync::Arc, time::Duration, time::SystemTime};

use bytes::Bytes;
use fe2o3_amqp::link::delivery::DeliveryInfo;
use tokio::sync::Mutex;

use super::{AcceptSessionError, Mailbox, RECEIVE_WITHIN, ReceiveError, Received, SessionError};
use crate::{
    amqp::{Accepted, AmqpError, Consumer, SettleAs},
    bus::or_panic,
    doors::{Doors, GivenUp},
};

/// The condition by which the emulator says that somebody holds a session.
const TAKEN: &str = "com.microsoft:session-cannot-be-locked";
/// The condition by which the emulator says that no session was available in time.
const NONE: &str = "com.microsoft:timeout";
/// The condition by which the emulator says that a session is not held any longer.
pub(super) const LOCK_LOST: &str = "com.microsoft:session-lock-lost";

/// A session that the test holds: it receives its messages in order, and nobody else does.
#[derive(Debug)]
#[must_use = "a session is free for others when it is dropped"]
pub struct HeldSession {
    mailbox: Mailbox,
    id: String,
    locked_until: SystemTime,
    link: Arc<SessionLink>,
}

/// The link of a session, which its messages are settled on; none when it was closed.
#[derive(Debug)]
pub(super) struct SessionLink(Mutex<Option<Consumer>>);

impl Mailbox {
    /// Accepts a session by its id, whether it has messages or not.
    ///
    /// # Panics
    ///
    /// When somebody holds it, or the queue has no sessions.
    #[track_caller]
    pub fn accept_session(&self, id: &str) -> impl Future<Output = HeldSession> + Send {
        or_panic(Location::caller(), self.try_accept_session(id))
    }

    /// Accepts a session by its id, or says why not.
    pub async fn try_accept_session(&self, id: &str) -> Result<HeldSession, AcceptSessionError> {
        match self.accepted(Some(id.to_owned()), Duration::ZERO).await {
            Ok(accepted) => Ok(HeldSession::new(self.clone(), accepted)),
            Err(source) if is(&source, TAKEN) => Err(AcceptSessionError::Taken {
                path: self.path.clone(),
                holder: self.holder(id).await,
                session: id.to_owned(),
            }),
            Err(source) => Err(self.not_accepted(source).await),
        }
    }

    /// Accepts the available session whose oldest message has waited longest, and waits for one up to a deadline in real
    /// time.
    ///
    /// # Panics
    ///
    /// When there was none in time, or the queue has no sessions.
    #[track_caller]
    pub fn accept_next_session(
        &self,
        within: Duration,
    ) -> impl Future<Output = HeldSession> + Send {
        or_panic(Location::caller(), self.try_accept_next_session(within))
    }

    /// Accepts the next available session, or says why not.
    pub async fn try_accept_next_session(
        &self,
        within: Duration,
    ) -> Result<HeldSession, AcceptSessionError> {
        match self.accepted(None, within).await {
            Ok(accepted) => Ok(HeldSession::new(self.clone(), accepted)),
            Err(source) if is(&source, NONE) => Err(AcceptSessionError::NoneAvailable {
                path: self.path.clone(),
                within,
                counts: self.try_counts().await.unwrap_or_default(),
            }),
            Err(source) => Err(self.not_accepted(source).await),
        }
    }

    async fn accepted(
        &self,
        wanted: Option<String>,
        patience: Duration,
    ) -> Result<Accepted, AmqpError> {
        self.run(move |mailbox| async move {
            let amqp = &mailbox.doors.amqp;
            let path = &mailbox.path;
            amqp.accept_session(path, wanted.as_deref(), patience).await
        })
        .await
    }

    async fn not_accepted(&self, source: AmqpError) -> AcceptSessionError {
        match self.unknown_by(source.condition()).await {
            Some(unknown) => unknown.into(),
            None => AcceptSessionError::Amqp {
                path: self.path.clone(),
                source,
            },
        }
    }

    /// Names who holds a session, for the text of an error.
    async fn holder(&self, id: &str) -> Option<String> {
        let sessions = self.try_sessions().await.unwrap_or_default();
        let held = sessions.into_iter().find(|session| session.id == id);
        held?.holder
    }
}

impl HeldSession {
    fn new(mailbox: Mailbox, accepted: Accepted) -> Self {
        Self {
            mailbox,
            id: accepted.session,
            locked_until: accepted.locked_until,
            link: Arc::new(SessionLink(Mutex::new(Some(accepted.consumer)))),
        }
    }

    /// Returns the id of the session.
    pub fn id(&self) -> &str {
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
    pub fn receive(&self) -> impl Future<Output = Received> + Send {
        or_panic(Location::caller(), self.try_receive(RECEIVE_WITHIN))
    }

    /// Receives the next message of the session, and waits for it up to a deadline in real time.
    pub async fn try_receive(&self, within: Duration) -> Result<Received, ReceiveError> {
        let link = Arc::clone(&self.link);
        let path = self.mailbox.path.clone();
        let receive = move |doors: Arc<Doors>, mut given_up: GivenUp| async move {
            let mut link = link.0.lock().await;
            let consumer = link.as_mut().ok_or_else(closed)?;
            let received = consumer.receive_of_session(&doors.amqp, &path, within, &mut given_up);
            received.await
        };
        match self.mailbox.doors.run_to_end(receive).await {
            Ok(Some(arrived)) => {
                let link = Arc::clone(&self.link);
                let mailbox = self.mailbox.clone();
                Ok(Received::of_session(mailbox, link, arrived))
            }
            Ok(None) => Err(self.mailbox.nothing_came(within).await),
            Err(source) => Err(self.mailbox.receive_error(source).await),
        }
    }

    /// Receives a deferred message of the session by its number.
    ///
    /// # Panics
    ///
    /// When no deferred message of the session has this number, or the session was lost.
    #[track_caller]
    pub fn receive_deferred(&self, number: i64) -> impl Future<Output = Received> + Send {
        or_panic(Location::caller(), self.try_receive_deferred(number))
    }

    /// Receives a deferred message of the session by its number, or says why not.
    pub async fn try_receive_deferred(&self, number: i64) -> Result<Received, ReceiveError> {
        let id = self.id.clone();
        let received = self.mailbox.run(move |mailbox| async move {
            let amqp = &mailbox.doors.amqp;
            amqp.receive_deferred_of_session(&mailbox.path, number, &id)
                .await
        });
        match received.await {
            Ok((token, message)) => Ok(Received::by_number(self.mailbox.clone(), token, message)),
            Err(source) => Err(self.mailbox.not_received(number, source).await),
        }
    }

    /// Prolongs the lock by the lock duration of the queue and returns its new end, by the client's clock.
    ///
    /// # Panics
    ///
    /// When the session was lost.
    #[track_caller]
    pub fn renew_lock(&mut self) -> impl Future<Output = SystemTime> + Send {
        or_panic(Location::caller(), self.try_renew_lock())
    }

    /// Prolongs the lock and returns its new end, or says why not.
    pub async fn try_renew_lock(&mut self) -> Result<SystemTime, SessionError> {
        let id = self.id.clone();
        let renewed = self.mailbox.run(move |mailbox| async move {
            let amqp = &mailbox.doors.amqp;
            amqp.renew_session_lock(&mailbox.path, &id).await
        });
        let end = renewed.await.map_err(|source| self.error(source))?;
        self.locked_until = end;
        Ok(end)
    }

    /// Returns what is kept with the session; nothing when there is none.
    ///
    /// # Panics
    ///
    /// When the session was lost.
    #[track_caller]
    pub fn state(&self) -> impl Future<Output = Option<Bytes>> + Send {
        or_panic(Location::caller(), self.try_state())
    }

    /// Returns what is kept with the session, or says why not.
    pub async fn try_state(&self) -> Result<Option<Bytes>, SessionError> {
        let id = self.id.clone();
        let state = self.mailbox.run(move |mailbox| async move {
            let amqp = &mailbox.doors.amqp;
            amqp.session_state(&mailbox.path, &id).await
        });
        state.await.map_err(|source| self.error(source))
    }

    /// Keeps something with the session, up to 256 KiB, or 1 MiB in the premium tier. It outlives the messages.
    ///
    /// # Panics
    ///
    /// When the session was lost, or it is too much.
    #[track_caller]
    pub fn set_state(&self, state: impl Into<Bytes>) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.try_set_state(Some(state.into())))
    }

    /// Keeps nothing with the session any longer.
    ///
    /// # Panics
    ///
    /// When the session was lost.
    #[track_caller]
    pub fn clear_state(&self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.try_set_state(None))
    }

    /// Keeps something with the session, or nothing any longer, or says why not.
    pub async fn try_set_state(&self, state: Option<Bytes>) -> Result<(), SessionError> {
        let id = self.id.clone();
        let set = self.mailbox.run(move |mailbox| async move {
            let amqp = &mailbox.doors.amqp;
            amqp.set_session_state(&mailbox.path, &id, state).await
        });
        set.await.map_err(|source| self.error(source))
    }

    /// Lets the session go: when this returns the next receiver may have it.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer. A session that was lost is let go without complaint.
    #[track_caller]
    pub fn close(self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.try_close())
    }

    /// Lets the session go, or says why not.
    pub async fn try_close(self) -> Result<(), SessionError> {
        let link = Arc::clone(&self.link);
        let close = |_| async move {
            match link.0.lock().await.take() {
                Some(consumer) => consumer.close().await,
                None => Ok(()),
            }
        };
        match self.mailbox.run(close).await {
            Ok(()) => Ok(()),
            Err(source) if is(&source, LOCK_LOST) => Ok(()),
            Err(source) => Err(self.error(source)),
        }
    }

    fn error(&self, source: AmqpError) -> SessionError {
        let (path, session) = (self.mailbox.path.clone(), self.id.clone());
        match is(&source, LOCK_LOST) {
            true => SessionError::LockLost { path, session },
            false => SessionError::Amqp {
                path,
                session,
                source,
            },
        }
    }
}

impl SessionLink {
    /// Settles a message, and waits until the emulator has dealt with that.
    pub(super) async fn settle(
        &self,
        doors: &Doors,
        path: &str,
        delivery: DeliveryInfo,
        outcome: SettleAs,
    ) -> Result<(), AmqpError> {
        let mut link = self.0.lock().await;
        let consumer = link.as_mut().ok_or_else(closed)?;
        consumer.dispose(delivery, outcome).await?;
        let barrier = format!("{path}/$management");
        consumer.pass_barrier(&doors.amqp, &barrier).await
    }
}

fn closed() -> AmqpError {
    AmqpError::Protocol("the session was closed".to_owned())
}

pub(super) fn is(error: &AmqpError, condition: &str) -> bool {
    let found = error.condition();
    found.is_some_and(|found| found.condition == condition)
}
