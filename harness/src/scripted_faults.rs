//! The faults that a test has scripted, until its namespace ends.

use std::{
    panic::Location,
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;

use crate::text;

/// The faults that must fire before the namespace ends.
#[derive(Debug, Default)]
pub(crate) struct ScriptedFaults {
    faults: Mutex<Vec<ScriptedFault>>,
    /// The seeds of random faults.
    seeds: Mutex<Vec<u64>>,
    /// What to report of faults that had not fired when their emulator was restarted.
    ended_unfired: Mutex<Vec<String>>,
    /// How often the emulator was restarted: each numbers its faults from 1.
    restarts: AtomicU64,
}

#[derive(Debug, Clone)]
pub(crate) struct ScriptedFault {
    pub(crate) id: u64,
    /// The fault as the test's source code has it.
    pub(crate) source_text: String,
    /// Its line.
    pub(crate) at: &'static Location<'static>,
}

impl ScriptedFaults {
    pub(crate) fn add(&self, fault: ScriptedFault) {
        self.faults.lock().push(fault);
    }

    pub(crate) fn remove(&self, id: u64) {
        self.faults.lock().retain(|fault| fault.id != id);
    }

    pub(crate) fn has_faults(&self) -> bool {
        !self.faults.lock().is_empty()
    }

    /// Returns whether any fault is left to check.
    pub(crate) fn needs_check(&self) -> bool {
        self.has_faults() || !self.ended_unfired.lock().is_empty()
    }

    /// Records a restart of the emulator, and what to report of faults that had not fired before it.
    pub(crate) fn record_restart(&self, unfired: Vec<String>) {
        self.ended_unfired.lock().extend(unfired);
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often the emulator was restarted.
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// Returns and removes what to report of faults that had not fired before a restart.
    pub(crate) fn take_ended_unfired(&self) -> Vec<String> {
        std::mem::take(&mut *self.ended_unfired.lock())
    }

    /// Returns whether any fault was scripted or random faults were started.
    pub(crate) fn may_fire(&self) -> bool {
        self.has_faults() || self.has_random_faults()
    }

    pub(crate) fn has_random_faults(&self) -> bool {
        !self.seeds.lock().is_empty()
    }

    /// Returns and removes all faults, so that they are checked once.
    pub(crate) fn take(&self) -> Vec<ScriptedFault> {
        std::mem::take(&mut *self.faults.lock())
    }

    /// Records that random faults fire from now on.
    pub(crate) fn record_seed(&self, seed: u64) {
        self.seeds.lock().push(seed);
    }

    /// Describes the random faults of a test that fails, with the calls that repeat them: how many fired, if that is known.
    pub(crate) fn describe_random(&self, fired: Option<u64>) -> String {
        let seeds = self.seeds.lock();
        let calls = seeds.iter().map(|seed| format!("faults().random({seed})"));
        let calls = Vec::from_iter(calls).join(", ");
        match fired {
            None => format!("random faults were started: {calls}"),
            Some(0) => format!("no random fault fired: {calls}"),
            Some(fired) => format!("{} fired: {calls}", text::count(fired, "random fault")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_faults_can_be_repeated() {
        let scripted = ScriptedFaults::default();
        assert!(!scripted.has_random_faults());
        scripted.record_seed(17);
        scripted.record_seed(4);
        for (fired, begin) in [
            (None, "random faults were started"),
            (Some(0), "no random fault fired"),
            (Some(1), "1 random fault fired"),
            (Some(2), "2 random faults fired"),
        ] {
            let rendered = format!("{begin}: faults().random(17), faults().random(4)");
            assert_eq!(scripted.describe_random(fired), rendered);
        }
    }
}
