//! Numbers of messages, as the service counts them.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many messages a queue holds, by what can be done with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
#[non_exhaustive]
pub struct Counts {
    /// In the queue and neither scheduled nor dead; locked and deferred ones are part of it.
    pub active: u64,
    /// In the dead-letter queue.
    pub dead_letter: u64,
    /// In the transfer dead-letter queue.
    pub transfer_dead_letter: u64,
    /// Waiting for their time.
    pub scheduled: u64,
    /// Waiting to be forwarded.
    pub transfer: u64,
    /// Received with a lock that still holds.
    pub locked: u64,
    /// Deferred.
    pub deferred: u64,
    /// The size of all of them in bytes.
    pub size_bytes: u64,
}

impl Counts {
    /// Returns how many can be received now.
    pub fn ready(&self) -> u64 {
        self.active.saturating_sub(self.locked + self.deferred)
    }

    /// Returns how many are in the queue itself, in any state.
    pub fn present(&self) -> u64 {
        self.active + self.scheduled
    }
}

/// What is there, without what is not: `2 active (1 locked), 1 dead-lettered`.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = [(self.locked, "locked"), (self.deferred, "deferred")];
        let mut active = format!("{} active", self.active);
        let within = listed(&within);
        if !within.is_empty() {
            active = format!("{active} ({within})");
        }
        let beside = listed(&[
            (self.scheduled, "scheduled"),
            (self.dead_letter, "dead-lettered"),
            (self.transfer_dead_letter, "transfer-dead-lettered"),
            (self.transfer, "waiting to be forwarded"),
        ]);
        match (self.active, beside.as_str()) {
            (0, "") => f.write_str("no messages"),
            (0, beside) => f.write_str(beside),
            (_, "") => f.write_str(&active),
            (_, beside) => write!(f, "{active}, {beside}"),
        }
    }
}

fn listed(numbers: &[(u64, &str)]) -> String {
    let present = numbers.iter().filter(|(number, _)| *number > 0);
    Vec::from_iter(present.map(|(number, word)| format!("{number} {word}"))).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_there_is_shown() {
        assert_eq!(Counts::default().to_string(), "no messages");
        let counts = Counts {
            active: 2,
            locked: 1,
            dead_letter: 1,
            ..Counts::default()
        };
        assert_eq!(counts.to_string(), "2 active (1 locked), 1 dead-lettered");
    }

    #[test]
    fn ready_is_neither_locked_nor_deferred() {
        let counts = Counts {
            active: 4,
            locked: 1,
            deferred: 2,
            ..Counts::default()
        };
        assert_eq!(counts.ready(), 1);
    }
}
