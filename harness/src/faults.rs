//! Faults that a test scripts: what goes wrong on the emulator's side of the wire, and when.
//!
//! A fault is an operation, which of them, and what becomes of it. One that never fired fails the test at the end of its
//! bus: whoever scripts a fault relies on it.

mod effect;
mod on;
mod operation;
mod random;
mod script;
mod verdict;

use std::{panic::Location, sync::Arc, time::Duration};

use serde::Deserialize;

use crate::{bus::or_panic, control::ControlError, doors::Doors};

pub use effect::Effect;
pub use on::FaultOn;
pub use operation::Operation;
pub use random::RandomFaults;
pub(crate) use script::Script;
pub(crate) use verdict::Verdict;

/// The faults of a bus.
#[derive(Debug, Clone)]
pub struct Faults {
    doors: Arc<Doors>,
}

/// A fault that was scripted.
#[derive(Debug, Clone)]
pub struct Fault {
    doors: Arc<Doors>,
    id: u64,
}

impl Faults {
    pub(crate) fn new(doors: Arc<Doors>) -> Self {
        Self { doors }
    }

    /// Begins a fault at the first operation of this kind from now on.
    pub fn on(&self, operation: Operation) -> FaultOn {
        FaultOn::new(Arc::clone(&self.doors), operation)
    }

    /// Begins faults by chance. The same seed spoils the same operations again: by their number on each entity, whatever
    /// happens elsewhere.
    pub fn random(&self, seed: u64) -> RandomFaults {
        RandomFaults::new(Arc::clone(&self.doors), seed)
    }

    /// Lets every connection that is opened from now on have this latency, in real time: how long it takes to say
    /// something and hear the answer. At most 60 s.
    ///
    /// # Panics
    ///
    /// When the emulator refuses it.
    #[track_caller]
    pub fn round_trip(&self, length: Duration) -> impl Future<Output = Fault> + Send {
        let all = self.on(Operation::Connect).every(1);
        all.apply(Effect::round_trip(length))
    }

    /// Lets storing a message take so long from now on, in real time; messages that are in flight together are stored
    /// together.
    ///
    /// # Panics
    ///
    /// When the emulator refuses it.
    #[track_caller]
    pub fn storing(&self, length: Duration) -> impl Future<Output = Fault> + Send {
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
    pub fn service_update(&self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.clone().update())
    }

    /// Updates the service, or says why not.
    pub async fn try_service_update(&self) -> Result<(), ControlError> {
        self.clone().update().await
    }

    async fn update(self) -> Result<(), ControlError> {
        let update = |doors: Arc<Doors>| async move {
            let nothing = serde_json::json!({});
            let order = doors
                .control
                .order("service-update", &nothing, Duration::ZERO);
            order.await
        };
        self.doors.run(update).await
    }
}

impl Fault {
    /// Returns how often it fired.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer, or the fault was removed.
    #[track_caller]
    pub fn hits(&self) -> impl Future<Output = u64> + Send {
        or_panic(Location::caller(), self.try_hits())
    }

    /// Returns how often it fired, or says why that is not known.
    pub async fn try_hits(&self) -> Result<u64, ControlError> {
        let path = self.path();
        let ask = |doors: Arc<Doors>| async move { doors.control.get::<Met>(&path, &[]).await };
        self.doors.run(ask).await.map(|met| met.hits)
    }

    /// Takes the fault out; it need not fire any longer.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer, or the fault was removed already.
    #[track_caller]
    pub fn remove(&self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.try_remove())
    }

    /// Takes the fault out, or says why not.
    pub async fn try_remove(&self) -> Result<(), ControlError> {
        let path = self.path();
        let remove = |doors: Arc<Doors>| async move { doors.control.remove(&path).await };
        self.doors.run(remove).await?;
        self.doors.script.forget(self.id);
        Ok(())
    }

    fn path(&self) -> String {
        format!("faults/{}", self.id)
    }
}

/// A fault as the emulator has it.
#[derive(Debug, Deserialize)]
struct Met {
    id: u64,
    /// Operations that it was scripted for.
    matched: u64,
    /// Operations of the same kind that concerned other entities.
    elsewhere: u64,
    /// Those that concerned its entity, and lacked something else.
    different: u64,
    hits: u64,
}
