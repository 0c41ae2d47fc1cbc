//! Faults that a test scripts: what goes wrong on the emulator's side of the wire, and when.
//!
//! A fault is an operation, which of them, and what becomes of it. One that never fired fails the test at the end of its
//! namespace: a test that scripts a fault relies on it.

mod builder;
mod effect;
mod random;

use std::{sync::Arc, time::Duration};

use crate::{action::Action, connections::Connections};

pub use builder::FaultBuilder;
pub use effect::Effect;
pub use random::RandomFaults;
pub use servicebus_control_api::Operation;

/// The faults of a namespace.
#[derive(Debug, Clone)]
pub struct Faults {
    connections: Arc<Connections>,
}

/// A fault that was scripted.
#[derive(Debug, Clone)]
pub struct Fault {
    connections: Arc<Connections>,
    id: u64,
}

impl Faults {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections }
    }

    /// Begins a fault at the first operation of this kind from now on.
    pub fn on(&self, operation: Operation) -> FaultBuilder {
        FaultBuilder::new(Arc::clone(&self.connections), operation)
    }

    /// Begins random faults. The same seed picks the same operations again: by their number on each entity,
    /// unaffected by others.
    pub fn random(&self, seed: u64) -> RandomFaults {
        RandomFaults::new(Arc::clone(&self.connections), seed)
    }

    /// Lets every connection that is opened from now on have this latency, in real time: how long it takes to say
    /// something and hear the answer. At most 60 s.
    ///
    /// # Panics
    ///
    /// When the emulator refuses it.
    #[track_caller]
    pub fn latency(&self, length: Duration) -> Action<'_, Fault> {
        let all = self.on(Operation::Connect).every(1);
        all.apply(Effect::latency(length))
    }

    /// Lets storing a message take so long from now on, in real time; messages that are in flight together are stored
    /// together.
    ///
    /// # Panics
    ///
    /// When the emulator refuses it.
    #[track_caller]
    pub fn store_latency(&self, length: Duration) -> Action<'_, Fault> {
        let all = self.on(Operation::Send).every(1);
        all.apply(Effect::delay_real(length))
    }

    /// Lets happen what happens to clients when the service is updated: all locks of messages and sessions are lost, and
    /// all links but those to `$cbs` are detached with `amqp:link:detach-forced`.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn service_update(&self) -> Action<'_, ()> {
        Action::new(self.connections.ask(|backend| backend.update_service()))
    }
}

impl Fault {
    /// Returns how often it fired.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer, or the fault was removed.
    #[track_caller]
    pub fn hits(&self) -> Action<'_, u64> {
        Action::new(async move {
            let id = self.id;
            let request = self.connections.ask(move |backend| backend.fault(id));
            Ok(request.await?.hits)
        })
    }

    /// Takes the fault out; it need not fire any longer.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer, or the fault was removed already.
    #[track_caller]
    pub fn remove(&self) -> Action<'_, ()> {
        Action::new(async move {
            let id = self.id;
            let removed = self
                .connections
                .ask(move |backend| backend.remove_fault(id));
            removed.await?;
            self.connections.script.forget(self.id);
            Ok(())
        })
    }
}
