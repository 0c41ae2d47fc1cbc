//! Faults that a test scripts: what goes wrong on the emulator's side of a connection, and when.
//!
//! A fault consists of an operation, which of its occurrences, and an effect. A fault that has not fired when the namespace
//! ends fails the test, because a test that scripts a fault relies on it.

mod builder;
mod effect;
mod random;

use std::{sync::Arc, time::Duration};

use crate::{action::Action, connections::Connections, error::Error, error::ErrorKind};

pub use builder::FaultBuilder;
pub use effect::Effect;
pub use random::RandomFaults;
pub use servicebus_control_api::Operation;

/// The faults of a namespace.
#[derive(Debug, Clone)]
pub struct Faults {
    connections: Arc<Connections>,
}

/// A scripted fault.
#[derive(Debug, Clone)]
pub struct Fault {
    connections: Arc<Connections>,
    id: u64,
    /// How often the emulator had been restarted before.
    restarts: u64,
}

impl Faults {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections }
    }

    /// Begins a fault at the next operation of this kind.
    pub fn on(&self, operation: Operation) -> FaultBuilder {
        FaultBuilder::new(Arc::clone(&self.connections), operation)
    }

    /// Begins random faults. The same seed selects the same operations again, by their number on each entity, independently
    /// of other entities.
    pub fn random(&self, seed: u64) -> RandomFaults {
        RandomFaults::new(Arc::clone(&self.connections), seed)
    }

    /// Adds this latency to every connection that is opened from now on: the time from a request to its answer, in real
    /// time, at most 60 s.
    #[track_caller]
    pub fn latency(&self, length: Duration) -> Action<'_, Fault> {
        let all = self.on(Operation::Connect).every(1);
        all.apply(Effect::latency(length))
    }

    /// Delays storing a message by this much from now on, in real time; messages in flight together are stored together.
    #[track_caller]
    pub fn store_latency(&self, length: Duration) -> Action<'_, Fault> {
        let all = self.on(Operation::Send).every(1);
        all.apply(Effect::delay_real(length))
    }

    /// Updates the service: all locks of messages and sessions are lost, and all links but those to `$cbs` are detached with
    /// `amqp:link:detach-forced`.
    #[track_caller]
    pub fn service_update(&self) -> Action<'_, ()> {
        Action::new(self.connections.ask(|backend| backend.update_service()))
    }
}

impl Fault {
    /// Returns how often the fault fired.
    ///
    /// # Panics
    ///
    /// Panics if the emulator does not answer, or was restarted, or the fault was removed.
    #[track_caller]
    pub fn hits(&self) -> Action<'_, u64> {
        Action::new(async move {
            let id = self.current_id()?;
            let request = self.connections.ask(move |backend| backend.fault(id));
            Ok(request.await?.hits)
        })
    }

    /// Removes the fault, which then need not fire.
    ///
    /// # Panics
    ///
    /// Panics if the emulator does not answer, or was restarted, or the fault was removed already.
    #[track_caller]
    pub fn remove(&self) -> Action<'_, ()> {
        Action::new(async move {
            let id = self.current_id()?;
            let removed = self
                .connections
                .ask(move |backend| backend.remove_fault(id));
            removed.await?;
            self.connections.scripted_faults.remove(id);
            Ok(())
        })
    }

    /// Returns its number, unless it belongs to an emulator before a restart.
    fn current_id(&self) -> Result<u64, Error> {
        if self.restarts == self.connections.scripted_faults.restarts() {
            return Ok(self.id);
        }
        Err(Error::new(
            ErrorKind::InvalidArgument,
            None,
            "the fault ended with the emulator, which was restarted since",
        ))
    }
}
