//! Scripted faults of a namespace: which operation is spoiled, and how (harness.md §8).
//!
//! A fault strikes once, at the nth operation that it matches since it was set. What it does is carried out where the
//! operation is; here is only the script and how often it was met.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// What a client does that can be spoiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Operation {
    /// A transaction is committed or rolled back by its client.
    Discharge,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Effect {
    /// It happens, and the client never hears of it.
    LoseReply,
}

/// What is to go wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Fault {
    pub(crate) operation: Operation,
    /// The address of an entity that the operation must concern; any if there is none.
    pub(crate) entity: Option<String>,
    /// Which of these operations it strikes, from 1.
    pub(crate) nth: u64,
    pub(crate) effect: Effect,
}

/// A fault, and how often it was met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Scripted {
    pub(crate) id: u64,
    #[serde(flatten)]
    pub(crate) fault: Fault,
    /// Operations that it matched, the one that it struck included.
    pub(crate) matched: u64,
    /// Operations of the same kind that concern other entities.
    pub(crate) elsewhere: u64,
    /// How often it struck.
    pub(crate) hits: u64,
}

/// The faults of a namespace, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// How many there are, so that operations take no lock where nothing is scripted.
    count: AtomicUsize,
    script: Mutex<Script>,
}

#[derive(Debug, Default)]
struct Script {
    made: u64,
    faults: BTreeMap<u64, Scripted>,
}

impl Operation {
    pub(crate) const ALL: [Self; 1] = [Self::Discharge];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Discharge => "discharge",
        }
    }
}

impl Effect {
    pub(crate) const ALL: [Self; 1] = [Self::LoseReply];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::LoseReply => "lose-reply",
        }
    }
}

impl Faults {
    /// Adds a fault and returns it with its id.
    pub(crate) fn add(&self, fault: Fault) -> Scripted {
        let mut script = self.script();
        script.made += 1;
        let scripted = Scripted {
            id: script.made,
            fault,
            matched: 0,
            elsewhere: 0,
            hits: 0,
        };
        script.faults.insert(scripted.id, scripted.clone());
        self.count.store(script.faults.len(), Ordering::Release);
        scripted
    }

    /// All of them, in the order in which they were added.
    pub(crate) fn all(&self) -> Vec<Scripted> {
        self.script().faults.values().cloned().collect()
    }

    /// Takes a fault out; says whether there was one.
    pub(crate) fn remove(&self, id: u64) -> bool {
        let mut script = self.script();
        let removed = script.faults.remove(&id).is_some();
        self.count.store(script.faults.len(), Ordering::Release);
        removed
    }

    pub(crate) fn clear(&self) {
        let mut script = self.script();
        script.faults.clear();
        self.count.store(0, Ordering::Release);
    }

    /// Somebody does something that concerns these entities. Every fault counts it; returned is what the first of those
    /// does that strike now.
    pub(crate) fn strike<'a>(
        &self,
        operation: Operation,
        entities: impl Fn() -> Vec<&'a str>,
    ) -> Option<Effect> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let entities = entities();
        let mut struck = None;
        for scripted in self.script().faults.values_mut() {
            if scripted.fault.operation != operation {
                continue;
            }
            if !scripted.concerns(&entities) {
                scripted.elsewhere += 1;
                continue;
            }
            scripted.matched += 1;
            if scripted.matched == scripted.fault.nth && struck.is_none() {
                scripted.hits += 1;
                struck = Some(scripted.fault.effect);
            }
        }
        struck
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scripted {
    fn concerns(&self, entities: &[&str]) -> bool {
        let wanted = self.fault.entity.as_deref();
        wanted.is_none_or(|wanted| {
            let mut entities = entities.iter();
            entities.any(|entity| entity.eq_ignore_ascii_case(wanted))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(entity: Option<&str>, nth: u64) -> Fault {
        Fault {
            operation: Operation::Discharge,
            entity: entity.map(str::to_owned),
            nth,
            effect: Effect::LoseReply,
        }
    }

    #[test]
    fn a_fault_strikes_once_at_the_nth_operation_on_its_entity() {
        let faults = Faults::default();
        faults.add(fault(Some("Orders"), 2));
        let discharge = |entities: &[&'static str]| {
            let effect = faults.strike(Operation::Discharge, || entities.to_vec());
            effect == Some(Effect::LoseReply)
        };
        assert!(!discharge(&["orders"]));
        assert!(!discharge(&["other"]));
        assert!(!discharge(&[]));
        assert!(discharge(&["other", "orders"]));
        assert!(!discharge(&["orders"]));
        let [scripted] = &faults.all()[..] else {
            panic!("one was added");
        };
        let counts = [scripted.matched, scripted.elsewhere, scripted.hits];
        assert_eq!(counts, [3, 2, 1]);
    }

    #[test]
    fn of_two_faults_for_the_same_operation_the_first_strikes_and_both_count() {
        let faults = Faults::default();
        let first = faults.add(fault(None, 1));
        let second = faults.add(fault(None, 1));
        assert_ne!(first.id, second.id);
        let strike = || faults.strike(Operation::Discharge, Vec::new);
        assert_eq!(strike(), Some(Effect::LoseReply));
        assert_eq!(strike(), None);
        let hits: Vec<_> = faults.all().iter().map(|fault| fault.hits).collect();
        assert_eq!(hits, [1, 0]);
    }

    #[test]
    fn what_is_removed_counts_and_strikes_no_more() {
        let faults = Faults::default();
        let id = faults.add(fault(None, 1)).id;
        assert!(faults.remove(id));
        assert!(!faults.remove(id));
        assert_eq!(faults.strike(Operation::Discharge, Vec::new), None);
        faults.add(fault(None, 1));
        faults.clear();
        assert_eq!(faults.strike(Operation::Discharge, Vec::new), None);
    }

    #[test]
    fn names_are_those_of_the_control_api() {
        for operation in Operation::ALL {
            let json = serde_json::to_value(operation).unwrap();
            assert_eq!(json, operation.name());
        }
        for effect in Effect::ALL {
            assert_eq!(serde_json::to_value(effect).unwrap(), effect.name());
        }
    }
}
