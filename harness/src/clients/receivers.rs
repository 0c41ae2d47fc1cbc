//! The receivers of the code under test, waiting for one, and the sessions with their holders.

use std::time::{Duration, Instant};

use servicebus_control_api::{LoseSessionLock, Receiver};

use super::{SessionInfo, SubQueueClient};

use crate::{
    action::Action,
    amqp::CONTAINER,
    error::{Error, ErrorKind},
    text,
};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

impl SubQueueClient {
    /// Waits until a client of the code under test receives here: a receiver is attached and has asked for messages, or
    /// waits for a session. The test's own receives do not count.
    ///
    /// A test that starts a worker in a task of its own waits for it before it moves the clock or waits for an idle
    /// namespace: until then neither knows that there will be a worker.
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # async fn test(servicebus: ServiceBus, work: impl Future<Output = ()> + Send + 'static) {
    /// let orders = servicebus.queue("orders");
    /// tokio::spawn(work);
    /// orders.wait_for_receiver().await;
    /// orders.send("12").await;
    /// servicebus.wait_idle().await;
    /// assert_completed!(orders).await;
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When none comes in time: within 5 s, or what [`Builder::within`](crate::Builder::within) says.
    #[track_caller]
    pub fn wait_for_receiver(&self) -> Action<'_, ()> {
        self.wait_for_receiver_within(self.connections.within)
    }

    /// Waits until a client of the code under test receives here, up to a deadline in real time.
    ///
    /// # Panics
    ///
    /// When none comes in time.
    #[track_caller]
    pub fn wait_for_receiver_within(&self, within: Duration) -> Action<'_, ()> {
        Action::new(self.run(move |client| async move { client.found_receiver(within).await }))
    }

    async fn found_receiver(self, within: Duration) -> Result<(), Error> {
        let started = Instant::now();
        while self.try_receivers().await?.is_empty() {
            if started.elapsed() >= within {
                let within = text::seconds(within);
                let mut sentence = format!("{self}: no client came to receive within {within}");
                if let Some(why) = crate::assertion::why_no_client_came(&self).await {
                    sentence += &format!("\n\nhint: {why}");
                }
                return Err(self.error(ErrorKind::Timeout, sentence));
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Returns the receivers of the code under test.
    pub(crate) async fn try_receivers(&self) -> Result<Vec<Receiver>, Error> {
        let asked = self
            .run(|client| async move { client.connections.backend.receivers(&client.path).await });
        match asked.await {
            Ok(mut receivers) => {
                receivers.retain(|receiver| receiver.client != CONTAINER);
                Ok(receivers)
            }
            Err(error) => {
                let operation = format!("list the receivers of {self}");
                Err(self.control_error(operation, error).await)
            }
        }
    }
}

impl SubQueueClient {
    /// Returns the sessions that have messages, a holder or a state, in the order of their ids.
    ///
    /// # Panics
    ///
    /// When the queue has no sessions or the emulator does not answer.
    #[track_caller]
    pub fn sessions(&self) -> Action<'_, Vec<SessionInfo>> {
        Action::new(self.try_sessions())
    }

    /// Returns the sessions, or says why not.
    pub(crate) async fn try_sessions(&self) -> Result<Vec<SessionInfo>, Error> {
        let listed = self
            .run(|client| async move { client.connections.backend.sessions(&client.path).await })
            .await;
        match listed {
            Ok(sessions) => Ok(sessions),
            Err(error) => {
                let operation = format!("list the sessions of {self}");
                Err(self.control_error(operation, error).await)
            }
        }
    }

    /// Ends the lock of a session as if its time had run out.
    ///
    /// # Panics
    ///
    /// When no receiver holds it.
    #[track_caller]
    pub fn lose_session_lock<'a>(&'a self, id: &'a str) -> Action<'a, ()> {
        Action::new(async move {
            let lock = LoseSessionLock {
                entity: self.path.clone(),
                session: id.to_owned(),
            };
            let lost = self.run(move |client| async move {
                client.connections.backend.lose_session_lock(&lock).await
            });
            match lost.await {
                Ok(()) => Ok(()),
                Err(error) => {
                    let operation = format!("take the session {id:?} of {self} away");
                    Err(self.control_error(operation, error).await)
                }
            }
        })
    }
}
