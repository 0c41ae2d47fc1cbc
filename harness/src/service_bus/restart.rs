//! The emulator of a namespace ends and comes back.

use std::sync::Arc;

use super::ServiceBus;
use crate::{action::Action, connections::Connections, error::Error, running::Ending};

impl ServiceBus {
    /// Ends the emulator in good order and starts it again: clients are told and disconnected, and messages that were locked come
    /// back, with the delivery counted. What the namespace holds goes on, at the same addresses and under the same connection strings;
    /// entities are as the topology declares them. The record goes on with an event `restarted`. Faults end with the emulator.
    ///
    /// # Panics
    ///
    /// When the namespace was started without [`data`](crate::Builder::data) and [`durable`](crate::Builder::durable), for then nothing would be kept, or when
    /// the emulator does not start again.
    #[track_caller]
    pub fn restart(&self) -> Action<'_, ()> {
        Action::new(self.start_again(Ending::Stop))
    }

    /// Kills the emulator and starts it again: connections break without a word, and what is not in the data directory by then is
    /// gone. No client was told that such a thing was done. In the record, which goes on with an event `crashed`, it is marked:
    /// `undone-sent`, `undone-completed`; what happened in the very last moment may not stand there at all. The rest is as with
    /// [`Self::restart`].
    ///
    /// # Panics
    ///
    /// As [`Self::restart`] does.
    #[track_caller]
    pub fn crash(&self) -> Action<'_, ()> {
        Action::new(self.start_again(Ending::Crash))
    }

    async fn start_again(&self, ending: Ending) -> Result<(), Error> {
        if self.data.is_none() {
            return Err(Error::start(
                "this namespace is in memory alone, and nothing of it would be left; start it with `ServiceBus::builder().durable()`, or with `data` and a directory",
            ));
        }
        let restarted = self.running.restart(ending);
        let start = |connections: Arc<Connections>| async move {
            connections.backend.remember().await?;
            restarted.await?;
            connections.amqp.forget().await;
            connections.backend.go_on(ending).await?;
            Ok(())
        };
        self.connections.run(start).await
    }
}
