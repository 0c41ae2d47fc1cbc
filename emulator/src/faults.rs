//! Scripted faults of a namespace: which operations are spoiled, and how (harness.md §8).
//!
//! Here is the script and how often it was met; what a fault does is carried out where the operation is. Where nothing
//! is scripted an operation costs one relaxed load.

mod context;
mod effect;
mod fault;
mod operation;
mod random;
mod waits;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::{Mutex, MutexGuard};

pub(crate) use context::{MatchContext, Traits};
pub(crate) use effect::{Effect, Kind, Wait, When, Words};
pub(crate) use fault::{Fault, Narrowing, Pick, Scripted};
pub(crate) use operation::Operation;
pub(crate) use waits::{Sleeper, Waits};

/// Most faults that a namespace may have at a time.
pub(crate) const MAX: usize = 1000;

/// There is a fault.
const ANY: u8 = 1;
/// There is one that asks for properties of messages.
const INSIDE: u8 = 2;

/// The faults of a namespace, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// What there is, so that operations take no lock where nothing is scripted.
    summary: AtomicU8,
    script: Mutex<Script>,
    /// The operations that wait for the namespace's time.
    pub(crate) waits: Waits,
}

#[derive(Debug, Default)]
struct Script {
    made: u64,
    faults: BTreeMap<u64, Scripted>,
}

/// What becomes of one operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MatchedFaults {
    /// What takes time.
    pub(crate) first: Option<MatchedFault>,
    /// What goes wrong then.
    pub(crate) then: Option<MatchedFault>,
}

/// What one fault does to an operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MatchedFault {
    /// What it was scripted for.
    pub(crate) operation: Operation,
    pub(crate) effect: Effect,
    seed: Option<u64>,
}

impl Faults {
    /// Adds a fault and returns it with its id; none when there are as many as there may be.
    pub(crate) fn add(&self, fault: Fault) -> Option<Scripted> {
        let mut script = self.script();
        if script.faults.len() >= MAX {
            return None;
        }
        script.made += 1;
        let scripted = Scripted::new(script.made, fault);
        script.faults.insert(scripted.id, scripted.clone());
        self.summarise(&script);
        Some(scripted)
    }

    /// All of them, in the order in which they were added.
    pub(crate) fn all(&self) -> Vec<Scripted> {
        self.script().faults.values().cloned().collect()
    }

    /// Takes a fault out; says whether there was one.
    pub(crate) fn remove(&self, id: u64) -> bool {
        let mut script = self.script();
        let removed = script.faults.remove(&id).is_some();
        self.summarise(&script);
        removed
    }

    pub(crate) fn clear(&self) {
        let mut script = self.script();
        script.faults.clear();
        self.summarise(&script);
    }

    /// Whether anything is scripted.
    pub(crate) fn any(&self) -> bool {
        self.summary.load(Ordering::Relaxed) != 0
    }

    /// Whether a fault asks for properties of messages.
    pub(crate) fn look_inside(&self) -> bool {
        self.summary.load(Ordering::Relaxed) & INSIDE != 0
    }

    /// Somebody does something. Every fault counts it; returned is what those do that strike now: of those that take
    /// time the first, and the first of the others.
    pub(crate) fn find_match(&self, context: &MatchContext<'_>) -> MatchedFaults {
        let mut find_match = MatchedFaults::default();
        for scripted in self.script().faults.values_mut() {
            let Some(effect) = scripted.meet(context) else {
                continue;
            };
            let slot = match effect.only_takes_time() {
                true => &mut find_match.first,
                false => &mut find_match.then,
            };
            if slot.is_none() {
                scripted.hits += 1;
                *slot = Some(MatchedFault {
                    operation: scripted.fault.operation,
                    effect,
                    seed: scripted.seed(),
                });
            }
        }
        find_match
    }

    fn summarise(&self, script: &Script) {
        let mut faults = script.faults.values();
        let any = if script.faults.is_empty() { 0 } else { ANY };
        let inside = faults.any(|scripted| scripted.fault.looks_inside());
        let inside = if inside { INSIDE } else { 0 };
        self.summary.store(any | inside, Ordering::Relaxed);
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock()
    }
}

impl MatchedFault {
    /// What a timeline says of it.
    pub(crate) fn told(&self) -> String {
        let told = self.effect.told(self.operation);
        match self.seed {
            Some(seed) => format!("{told} (by chance, seed {seed})"),
            None => told,
        }
    }
}

#[cfg(test)]
mod tests;
