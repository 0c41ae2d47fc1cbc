//! Restarts the emulator of a namespace.

use std::sync::Arc;

use super::ServiceBus;
use crate::{action::Action, connections::Connections, error::Error, running::Termination};

impl ServiceBus {
    /// Shuts the emulator down gracefully and restarts it: clients are notified and disconnected, and locked messages become
    /// available again, with the delivery counted. The namespace keeps its content, addresses and connection strings; its
    /// entities are as the topology declares them. The record continues with an event `restarted`. Faults end with the
    /// emulator.
    ///
    /// # Panics
    ///
    /// Panics if the namespace was started without [`data`](crate::Builder::data) and [`durable`](crate::Builder::durable),
    /// because then nothing is stored, or if the emulator does not start again.
    #[track_caller]
    pub fn restart(&self) -> Action<'_, ()> {
        Action::new(self.restart_with(Termination::Stop))
    }

    /// Kills the emulator and restarts it: connections break without a close frame, and operations that are not in the data
    /// directory yet are lost. No client received an outcome for those. The record, which continues with an event `crashed`,
    /// marks them as `undone-sent` or `undone-completed`; the last operations may be missing from it. Otherwise as
    /// [`Self::restart`].
    ///
    /// # Panics
    ///
    /// As [`Self::restart`] does.
    #[track_caller]
    pub fn crash(&self) -> Action<'_, ()> {
        Action::new(self.restart_with(Termination::Crash))
    }

    async fn restart_with(&self, termination: Termination) -> Result<(), Error> {
        if self.data.is_none() {
            return Err(Error::start(
                "this namespace is only in memory, and a restart would lose it; start it with `ServiceBus::builder().durable()`, or with `data` and a directory",
            ));
        }
        let restarted = self.running.restart(termination);
        let start = |connections: Arc<Connections>| async move {
            connections.backend.save_record().await?;
            restarted.await?;
            connections.amqp.reset().await;
            connections.backend.continue_record(termination).await?;
            Ok(())
        };
        self.connections.run(start).await
    }
}
