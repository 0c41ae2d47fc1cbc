//! The end of a namespace: whether every fault has fired that was scripted on it.
//!
//! It is a part of the namespace and goes before the emulator does. A drop cannot await, so it blocks while the background
//! runtime asks the emulator; where no fault was scripted it asks nothing and does not block.

use std::{
    sync::{Arc, mpsc},
    thread,
};

use servicebus_control_api::{Faults, ScriptedFault};

use super::{Operation, script::Set};
use crate::{connections::Connections, control::ControlError};

/// What to do about faults that never fired.
const HINT: &str =
    "hint: have the test do what the fault is on, or take the fault out with `remove()`";

/// Judges when it is dropped; a test that fails already is left alone.
#[derive(Debug)]
pub(crate) struct FaultCheck {
    connections: Arc<Connections>,
}

impl FaultCheck {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections }
    }

    /// Judges where it is possible to wait.
    ///
    /// # Panics
    ///
    /// When a fault has not fired.
    pub(crate) async fn check(self) {
        let sets = self.connections.script.take();
        if sets.is_empty() {
            return;
        }
        let check = |connections: Arc<Connections>| async move { check(&connections, &sets).await };
        if let Err(failure) = self.connections.run(check).await {
            panic!("{failure}");
        }
    }
}

impl Drop for FaultCheck {
    fn drop(&mut self) {
        let by_chance = self.connections.script.by_chance();
        if thread::panicking() && !by_chance.is_empty() {
            eprintln!("{by_chance}");
        }
        let sets = self.connections.script.take();
        if sets.is_empty() || thread::panicking() {
            return;
        }
        let (sender, receiver) = mpsc::channel();
        let connections = Arc::clone(&self.connections);
        let _asking = self.connections.background.spawn(async move {
            // The send fails only when the test thread has ended.
            let _ = sender.send(check(&connections, &sets).await);
        });
        // The question has a deadline of its own.
        if let Ok(Err(failure)) = receiver.recv() {
            panic!("{failure}");
        }
    }
}

/// Finds the faults that have not fired, or fails with all that is known of them.
async fn check(connections: &Connections, sets: &[Set]) -> Result<(), String> {
    let met = connections.backend.faults().await;
    let failures: Vec<_> = sets.iter().filter_map(|set| failure(set, &met)).collect();
    match failures.is_empty() {
        true => Ok(()),
        false => Err(format!("{}\n{HINT}", failures.join("\n"))),
    }
}

fn failure(set: &Set, met: &Result<Faults, ControlError>) -> Option<String> {
    let near = match met {
        Ok(listed) => {
            let met = listed.faults.iter().find(|met| met.id == set.id)?;
            if met.hits > 0 {
                return None;
            }
            near(set.operation, met)
        }
        Err(error) => format!("or it is not known: {error}"),
    };
    Some(format!(
        "a fault never fired: {}\n  {near}\n  scripted at {}",
        set.source_text, set.at
    ))
}

/// Says what came near.
fn near(operation: Operation, met: &ScriptedFault) -> String {
    let (one, several) = operation.nouns();
    let count = |number: u64| match number {
        1 => format!("1 {one}"),
        number => format!("{number} {several}"),
    };
    let ScriptedFault {
        matched,
        elsewhere,
        different,
        ..
    } = met;
    let (matched, elsewhere, different) = (*matched, *elsewhere, *different);
    let mut parts = Vec::new();
    if matched > 0 {
        parts.push(format!("only {} came", count(matched)));
    }
    for (number, place) in [
        (different, "without what was asked for"),
        (elsewhere, "in other entities"),
    ] {
        match number {
            0 => {}
            number if parts.is_empty() => parts.push(format!("{} came, {place}", count(number))),
            number => parts.push(format!("{number} {place}")),
        }
    }
    match parts.is_empty() {
        true => format!("no {one} came"),
        false => parts.join(", and "),
    }
}
