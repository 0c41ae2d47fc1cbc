//! Scripted faults of a namespace: which operations they match, and what they do (harness.md §8).
//!
//! This module holds the script and counts matches; the code of each operation carries out the effect. Without faults and
//! log, an operation costs one relaxed load. The operation log belongs here because it shows what faults match on.

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
pub(crate) use held::REQUESTS;
use log::OperationLog;
pub(crate) use postponed::Postponed;
pub(crate) use scripted::{
    Affected, ClockWaits, Lock, MatchContext, Scripted, Traits, WaitKey, Waiter,
};
pub(crate) use servicebus_control_api::{Effect, ErrorText, Operation, Wait, When};

/// Maximum number of faults of a namespace.
pub(crate) const MAX: usize = 1000;

/// Faults exist.
const ANY: u8 = 1;
/// A fault matches on message properties.
const INSIDE: u8 = 2;
/// A fault matches on the party of a connection.
const PARTY: u8 = 4;
/// Operations are recorded.
const LOG: u8 = 8;

/// The faults of a namespace, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Flags, which let operations skip the lock when nothing is scripted.
    summary: AtomicU8,
    script: Mutex<Script>,
    log: Mutex<OperationLog>,
    /// Operations that wait for the namespace's time.
    pub(crate) waits: ClockWaits,
    /// Operations that wait until they are released.
    pub(crate) postponed: Postponed,
    /// All waiting operations.
    pub(crate) held: HeldOperations,
}

#[derive(Debug, Default)]
struct Script {
    made: u64,
    /// How often faults were added or removed.
    changes: u64,
    faults: BTreeMap<u64, Scripted>,
}

/// The faults that apply to one operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MatchedFaults {
    /// The effect that takes time.
    pub(crate) first: Option<MatchedFault>,
    /// The effect that follows.
    pub(crate) then: Option<MatchedFault>,
}

/// The effect of one fault on an operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MatchedFault {
    /// The operation that the fault is scripted for.
    pub(crate) operation: Operation,
    pub(crate) effect: Effect,
    id: u64,
    seed: Option<u64>,
}

impl Faults {
    /// Adds a fault without a source.
    #[cfg(test)]
    pub(crate) fn add(&self, fault: Fault) -> Option<ScriptedFault> {
        self.add_written(fault, [None, None])
    }

    /// Adds a fault together with its source text and location in a test, and returns it with its id; `None` when the limit
    /// of faults is reached.
    pub(crate) fn add_written(
        &self,
        fault: Fault,
        [written, written_at]: [Option<String>; 2],
    ) -> Option<ScriptedFault> {
        self.insert(|id| {
            let mut scripted = Scripted::new(id, fault);
            scripted.state.written = written;
            scripted.state.written_at = written_at;
            scripted
        })
    }

    /// Adds a fault that an exploration has planned from the operation log, in the same way.
    pub(crate) fn add_planned(&self, fault: Fault) -> Option<ScriptedFault> {
        self.insert(|id| Scripted::planned(id, fault))
    }

    fn insert(&self, scripted: impl FnOnce(u64) -> Scripted) -> Option<ScriptedFault> {
        let mut script = self.script();
        if script.faults.len() >= MAX {
            return None;
        }
        script.made += 1;
        let scripted = scripted(script.made);
        let state = scripted.state.clone();
        script.faults.insert(state.id, scripted);
        self.changed(&mut script);
        Some(state)
    }

    /// Returns all faults in the order in which they were added.
    pub(crate) fn all(&self) -> Vec<ScriptedFault> {
        let script = self.script();
        let faults = script.faults.values();
        faults.map(|scripted| scripted.state.clone()).collect()
    }

    /// Removes a fault; returns whether it existed.
    pub(crate) fn remove(&self, id: u64) -> bool {
        let mut script = self.script();
        let removed = script.faults.remove(&id).is_some();
        self.changed(&mut script);
        removed
    }

    pub(crate) fn clear(&self) {
        let mut script = self.script();
        script.faults.clear();
        self.changed(&mut script);
    }

    /// Returns how often faults were added or removed.
    pub(crate) fn changes(&self) -> u64 {
        self.script().changes
    }

    /// Starts or stops recording operations; discards what was recorded before.
    pub(crate) fn record_operations(&self, records: bool) {
        let mut log = self.log.lock();
        *log = OperationLog::default();
        match records {
            true => self.summary.fetch_or(LOG, Ordering::Relaxed),
            false => self.summary.fetch_and(!LOG, Ordering::Relaxed),
        };
    }

    pub(crate) fn records(&self) -> bool {
        self.summary.load(Ordering::Relaxed) & LOG != 0
    }

    /// Returns up to `limit` operations that follow number `after` in the log.
    pub(crate) fn operations(&self, after: u64, limit: usize) -> Operations {
        self.log.lock().page(after, limit, self.records())
    }

    /// Adds an operation to the log, if it is kept, with the faults that apply.
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

    /// Returns whether the key of a connection matters, so that the connection counts as open only once its key is known.
    pub(crate) fn needs_party(&self) -> bool {
        self.summary.load(Ordering::Relaxed) & (PARTY | LOG) != 0
    }

    /// Returns whether faults exist or operations are recorded.
    pub(crate) fn any(&self) -> bool {
        self.summary.load(Ordering::Relaxed) != 0
    }

    /// Returns whether a fault or the log needs message properties.
    pub(crate) fn needs_messages(&self) -> bool {
        self.summary.load(Ordering::Relaxed) & (INSIDE | LOG) != 0
    }

    /// Matches a beginning operation. Every matching fault counts it; of those that take effect now, returns the first that
    /// takes time and the first of the others.
    pub(crate) fn find_match(&self, context: &MatchContext<'_>) -> MatchedFaults {
        let mut matched = MatchedFaults::default();
        for scripted in self.script().faults.values_mut() {
            let Some(effect) = scripted.match_operation(context) else {
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

    /// Counts a change of the faults, and updates the flags.
    fn changed(&self, script: &mut Script) {
        script.changes += 1;
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
        // The closure never returns `None`, so the update cannot fail.
        let _ = self.summary.fetch_update(set, fetch, changed);
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock()
    }
}

impl MatchedFault {
    /// Renders the operation and the effect as JSON for a timeline.
    pub(crate) fn applied(&self) -> String {
        let applied = AppliedEffect {
            operation: self.operation,
            effect: self.effect.clone(),
        };
        // These types always serialize.
        serde_json::to_string(&applied).unwrap_or_default()
    }

    /// Renders the text for the timeline.
    pub(crate) fn text(&self) -> String {
        let text = described(&self.effect, self.operation);
        match self.seed {
            Some(seed) => format!("{text} (by chance, seed {seed})"),
            None => text,
        }
    }
}

/// Describes in a sentence what an effect does to an operation.
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
