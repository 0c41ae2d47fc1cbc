//! The faults that a test has scripted, until its namespace ends.

use std::panic::Location;

use parking_lot::Mutex;

/// The faults that must fire before the namespace ends.
#[derive(Debug, Default)]
pub(crate) struct Script {
    sets: Mutex<Vec<Set>>,
    /// The seeds of random faults.
    seeds: Mutex<Vec<u64>>,
}

/// A scripted fault.
#[derive(Debug, Clone)]
pub(crate) struct Set {
    pub(crate) id: u64,
    /// The fault as the test's source code has it.
    pub(crate) source_text: String,
    /// Its line.
    pub(crate) at: &'static Location<'static>,
}

impl Script {
    pub(crate) fn add(&self, set: Set) {
        self.sets.lock().push(set);
    }

    pub(crate) fn forget(&self, id: u64) {
        self.sets.lock().retain(|set| set.id != id);
    }

    pub(crate) fn has_faults(&self) -> bool {
        !self.sets.lock().is_empty()
    }

    /// Returns whether any fault was scripted or random faults were started.
    pub(crate) fn may_fire(&self) -> bool {
        self.has_faults() || !self.seeds.lock().is_empty()
    }

    /// Returns and removes all faults, so that they are checked once.
    pub(crate) fn take(&self) -> Vec<Set> {
        std::mem::take(&mut *self.sets.lock())
    }

    /// Records that random faults fire from now on.
    pub(crate) fn play_by_chance(&self, seed: u64) {
        self.seeds.lock().push(seed);
    }

    /// Returns how to repeat the random faults, for a test that fails; empty without random faults.
    pub(crate) fn by_chance(&self) -> String {
        let seeds = self.seeds.lock();
        let calls = seeds.iter().map(|seed| format!("faults().random({seed})"));
        let calls = Vec::from_iter(calls);
        match calls.is_empty() {
            true => String::new(),
            false => format!("faults fired by chance: {}", calls.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_to_chance_can_be_repeated() {
        let script = Script::default();
        assert_eq!(script.by_chance(), "");
        script.play_by_chance(17);
        script.play_by_chance(4);
        let rendered = "faults fired by chance: faults().random(17), faults().random(4)";
        assert_eq!(script.by_chance(), rendered);
    }
}
