//! Scripted faults of a namespace: which operations they are applied to, and how (harness.md §8).
//!
//! Here is the script and how often it was met; what a fault does is carried out where the operation is. Where nothing
//! is scripted and nothing recorded an operation costs one relaxed load. The operation log is kept here too: what it has is
//! what faults see.

mod held;
mod log;
mod postponed;
mod random;
mod scripted;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::{Mutex, MutexGuard};
use servicebus_broker::Timestamp;
use servicebus_control_api::{AppliedEffect, Fault, Operations, ScriptedFault};

pub(crate) use held::HeldOperation;
use held::HeldOperations;
use log::OperationLog;
pub(crate) use postponed::Postponed;
pub(crate) use scripted::{Affected, MatchContext, Scripted, Traits};
pub(crate) use scripted::{Sleeper, Waits};
pub(crate) use servicebus_control_api::{Effect, ErrorText, Operation, Wait, When};

/// Most faults that a namespace may have at a time.
pub(crate) const MAX: usize = 1000;

/// There is a fault.
const ANY: u8 = 1;
/// There is one that asks for properties of messages.
const INSIDE: u8 = 2;
/// There is one that asks for the party of a connection.
const PARTY: u8 = 4;
/// Operations are recorded.
const LOG: u8 = 8;

/// The faults of a namespace, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// What there is, so that operations take no lock where nothing is scripted.
    summary: AtomicU8,
    script: Mutex<Script>,
    log: Mutex<OperationLog>,
    /// The operations that wait for the namespace's time.
    pub(crate) waits: Waits,
    /// The operations that wait until they are released.
    pub(crate) postponed: Postponed,
    /// The operations that wait for anything.
    pub(crate) held: HeldOperations,
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
    /// The id of the fault.
    id: u64,
    seed: Option<u64>,
}

impl Faults {
    /// Adds a fault and returns it with its id; none when there are as many as there may be.
    pub(crate) fn add(&self, fault: Fault) -> Option<ScriptedFault> {
        self.add_written(fault, [None, None])
    }

    /// The same with how and where a test writes it.
    pub(crate) fn add_written(
        &self,
        fault: Fault,
        [written, written_at]: [Option<String>; 2],
    ) -> Option<ScriptedFault> {
        let mut script = self.script();
        if script.faults.len() >= MAX {
            return None;
        }
        script.made += 1;
        let mut scripted = Scripted::new(script.made, fault);
        scripted.state.written = written;
        scripted.state.written_at = written_at;
        let state = scripted.state.clone();
        script.faults.insert(state.id, scripted);
        self.summarise(&script);
        Some(state)
    }

    /// All of them, in the order in which they were added.
    pub(crate) fn all(&self) -> Vec<ScriptedFault> {
        let script = self.script();
        let faults = script.faults.values();
        faults.map(|scripted| scripted.state.clone()).collect()
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

    /// Records operations from now on, or no more; what was recorded before is gone.
    pub(crate) fn record_operations(&self, records: bool) {
        let mut log = self.log.lock();
        *log = OperationLog::default();
        match records {
            true => self.summary.fetch_or(LOG, Ordering::Relaxed),
            false => self.summary.fetch_and(!LOG, Ordering::Relaxed),
        };
    }

    /// Whether operations are recorded.
    pub(crate) fn records(&self) -> bool {
        self.summary.load(Ordering::Relaxed) & LOG != 0
    }

    /// The operations after this number in the log, so many at most.
    pub(crate) fn operations(&self, after: u64, limit: usize) -> Operations {
        self.log.lock().page(after, limit, self.records())
    }

    /// Puts an operation into the log, if there is one, with what becomes of it.
    pub(crate) fn record(
        &self,
        context: &MatchContext<'_>,
        matched: &MatchedFaults,
        (now, started_at): (Timestamp, Timestamp),
    ) {
        if self.records() {
            self.log.lock().push(context, matched, now, started_at);
        }
    }

    /// Whether it matters which key a connection uses, so that it counts as open when that is known.
    pub(crate) fn ask_party(&self) -> bool {
        self.summary.load(Ordering::Relaxed) & (PARTY | LOG) != 0
    }

    /// Whether anything is scripted or recorded.
    pub(crate) fn any(&self) -> bool {
        self.summary.load(Ordering::Relaxed) != 0
    }

    /// Whether a fault or the log asks for properties of messages.
    pub(crate) fn look_inside(&self) -> bool {
        self.summary.load(Ordering::Relaxed) & (INSIDE | LOG) != 0
    }

    /// An operation begins. Every fault counts it; returned is what those do that take effect now: of those that take
    /// time the first, and the first of the others.
    pub(crate) fn find_match(&self, context: &MatchContext<'_>) -> MatchedFaults {
        let mut matched = MatchedFaults::default();
        for scripted in self.script().faults.values_mut() {
            let Some(effect) = scripted.meet(context) else {
                continue;
            };
            let slot = match effect.only_takes_time() {
                true => &mut matched.first,
                false => &mut matched.then,
            };
            if slot.is_none() {
                scripted.state.hits += 1;
                *slot = Some(MatchedFault {
                    operation: scripted.state.fault.operation,
                    effect,
                    id: scripted.state.id,
                    seed: scripted.seed(),
                });
            }
        }
        matched
    }

    fn summarise(&self, script: &Script) {
        let mut faults = script.faults.values();
        let any = if script.faults.is_empty() { 0 } else { ANY };
        let inside = faults.any(|scripted| scripted.state.fault.filter.is_about_messages());
        let inside = if inside { INSIDE } else { 0 };
        let mut faults = script.faults.values();
        let party = faults.any(|scripted| scripted.state.fault.filter.party.is_some());
        let party = if party { PARTY } else { 0 };
        let of_faults = any | inside | party;
        let changed = |summary| Some(summary & LOG | of_faults);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        // It always changes something: the closure returns no `None`.
        let _ = self.summary.fetch_update(set, fetch, changed);
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock()
    }
}

impl MatchedFault {
    /// The operation and the effect, in JSON, as a timeline has them.
    pub(crate) fn applied(&self) -> String {
        let applied = AppliedEffect {
            operation: self.operation,
            effect: self.effect.clone(),
        };
        // Texts and numbers have a form in JSON.
        serde_json::to_string(&applied).unwrap_or_default()
    }

    /// Its text in the timeline.
    pub(crate) fn text(&self) -> String {
        let text = described(&self.effect, self.operation);
        match self.seed {
            Some(seed) => format!("{text} (by chance, seed {seed})"),
            None => text,
        }
    }
}

/// What an effect does to an operation, as a sentence.
fn described(effect: &Effect, operation: Operation) -> String {
    let (noun, _) = operation.nouns();
    let while_of = |wait: &Wait| {
        let seconds = wait.length().as_secs_f64();
        format!("{seconds} s of {} time", wait.clock())
    };
    match effect {
        Effect::LoseReply => format!("the reply to the {noun} was lost"),
        Effect::Reject(error) => format!("the {noun} was rejected with {}", error.condition),
        Effect::Answer { status, .. } => {
            format!("the {noun} was answered with the status {status}")
        }
        Effect::Detach { when, error } => {
            let (when, condition) = (when.name(), &error.condition);
            format!("the link was detached with {condition} {when} the {noun}")
        }
        Effect::Close { when, error } => {
            let (when, condition) = (when.name(), &error.condition);
            format!("the connection was closed with {condition} {when} the {noun}")
        }
        Effect::Drop { when } => format!("the connection was dropped {} the {noun}", when.name()),
        Effect::Delay(wait) => format!("the {noun} was delayed by {}", while_of(wait)),
        Effect::HoldBack { behind } => {
            format!("the outcome of the {noun} was held back behind {behind} later")
        }
        Effect::LoseLock => format!("the lock of the message was lost at the {noun}"),
        Effect::LoseSessionLock => format!("the lock of the session was lost at the {noun}"),
        Effect::DeliverTwice => {
            format!("the message comes again: the {noun} was confirmed in vain")
        }
        Effect::ExpireToken => format!("the tokens of the connection ended after the {noun}"),
        Effect::Stall(wait) => {
            format!("nothing is read from the connection for {}", while_of(wait))
        }
        Effect::Crash { when } => {
            format!("the client crashed {} the {noun}", when.name())
        }
        Effect::Postpone => format!("the {noun} waited until nothing else could happen"),
        Effect::Elsewhere => format!("the message of the {noun} went to another receiver"),
        Effect::Failover { when } => {
            format!("the service was updated {} the {noun}", when.name())
        }
        Effect::RoundTrip { length } => {
            let seconds = length.as_secs_f64();
            format!("round trips of the connection take {seconds} s")
        }
    }
}

#[cfg(test)]
mod tests;
