//! Restarts the emulator of a namespace.

use std::sync::Arc;

use super::ServiceBus;
use crate::{
    action::Action, connections::Connections, end_check::take_unfired, error::Error,
    running::Termination,
};

impl ServiceBus {
    /// Shuts the emulator down gracefully and restarts it: clients are notified and disconnected, and locked messages become
    /// available again, with the delivery counted. The namespace keeps its content, addresses and connection strings; its
    /// entities are as the topology declares them. The record continues with an event `restarted`. Faults end with the
    /// emulator; one that has not fired fails the test when the namespace ends. A restart that failed can be repeated.
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
            let earlier = *connections.unfinished_restart.lock();
            let termination = match earlier {
                Some(earlier) => earlier,
                None => {
                    let unfired = take_unfired(&connections).await;
                    connections.scripted_faults.record_restart(unfired);
                    connections.backend.save_record().await?;
                    *connections.unfinished_restart.lock() = Some(termination);
                    termination
                }
            };
            restarted.await?;
            *connections.unfinished_restart.lock() = None;
            connections.amqp.reset().await;
            connections.backend.continue_record(termination).await?;
            Ok(())
        };
        self.connections.run(start).await
    }
}
