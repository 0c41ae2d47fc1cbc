//! Faults that a test scripts: what goes wrong on the emulator's side of the wire, and when.
//!
//! A fault is an operation, which of them, and what becomes of it. One that never fired fails the test at the end of its
//! bus: whoever scripts a fault relies on it.

mod script;
mod verdict;

use std::{panic::Location, sync::Arc};

use serde::Deserialize;
use serde_json::json;

use crate::{bus::or_panic, control::ControlError, doors::Doors};

pub(crate) use script::Script;
use script::Set;
pub(crate) use verdict::Verdict;

/// What a client does that can be spoiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// A transaction is committed or rolled back by its client.
    Discharge,
}

/// What becomes of an operation.
#[derive(Debug, Clone, Copy)]
enum Effect {
    LoseReply,
}

/// The faults of a bus.
#[derive(Debug, Clone)]
pub struct Faults {
    doors: Arc<Doors>,
}

/// Which operation is to be spoiled.
#[derive(Debug, Clone)]
#[must_use = "nothing goes wrong before it is said what"]
pub struct FaultOn {
    doors: Arc<Doors>,
    operation: Operation,
    entity: Option<String>,
    nth: u64,
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
        FaultOn {
            doors: Arc::clone(&self.doors),
            operation,
            entity: None,
            nth: 1,
        }
    }
}

impl FaultOn {
    /// Narrows it to operations that concern a queue, topic or subscription.
    pub fn entity(mut self, path: impl Into<String>) -> Self {
        self.entity = Some(path.into());
        self
    }

    /// Picks another than the first of them, counted from 1.
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = nth;
        self
    }

    /// Lets it happen, and the client never hears of it.
    ///
    /// # Panics
    ///
    /// When the emulator refuses the fault.
    #[track_caller]
    pub fn lose_reply(self) -> impl Future<Output = Fault> + Send {
        let at = Location::caller();
        or_panic(at, self.set(Effect::LoseReply, at))
    }

    /// Lets it happen without the client hearing of it, or says why that cannot be scripted.
    #[track_caller]
    pub fn try_lose_reply(self) -> impl Future<Output = Result<Fault, ControlError>> + Send {
        self.set(Effect::LoseReply, Location::caller())
    }

    async fn set(
        self,
        effect: Effect,
        at: &'static Location<'static>,
    ) -> Result<Fault, ControlError> {
        let body = json!({
            "operation": self.operation.name(),
            "entity": self.entity,
            "nth": self.nth,
            "effect": effect.name(),
        });
        let add = |doors: Arc<Doors>| async move {
            doors.control.post::<Numbered>("faults", &body).await
        };
        let Numbered { id } = self.doors.run(add).await?;
        self.doors.script.add(Set {
            id,
            operation: self.operation,
            words: self.words(effect),
            at,
        });
        let doors = self.doors;
        Ok(Fault { doors, id })
    }

    /// The fault as it is written in a test.
    fn words(&self, effect: Effect) -> String {
        let entity = self.entity.as_ref();
        let entity = entity.map(|entity| format!(".entity({entity:?})"));
        format!(
            "on(Operation::{:?}){}.nth({}).{}()",
            self.operation,
            entity.unwrap_or_default(),
            self.nth,
            effect.name().replace('-', "_")
        )
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

impl Operation {
    /// Returns the name by which the control API knows the operation.
    fn name(self) -> &'static str {
        match self {
            Self::Discharge => "discharge",
        }
    }
}

impl Effect {
    fn name(self) -> &'static str {
        match self {
            Self::LoseReply => "lose-reply",
        }
    }
}

#[derive(Debug, Deserialize)]
struct Numbered {
    id: u64,
}

/// A fault as the emulator has it.
#[derive(Debug, Deserialize)]
struct Met {
    id: u64,
    /// Operations that it was scripted for.
    matched: u64,
    /// Operations of the same kind that concerned other entities.
    elsewhere: u64,
    hits: u64,
}
