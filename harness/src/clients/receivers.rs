//! The receivers of the code under test, and the sessions with their holders.

use servicebus_control_api::{LoseSessionLock, Receiver};

use super::{SessionInfo, SubQueueClient};

use crate::{action::Action, amqp::CONTAINER, error::Error};

impl SubQueueClient {
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
