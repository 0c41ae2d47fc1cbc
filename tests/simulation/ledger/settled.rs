//! How clients settle what they have received.

use super::{Arrival, Ledger};
use crate::entities::ENTITIES;

/// How a copy is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Complete,
    CompleteIn(usize),
    Abandon,
    Release,
    Defer,
    DeadLetter(String),
}

impl Ledger {
    /// A copy is about to be settled.
    pub(crate) fn settling(&self, place: usize, arrival: &Arrival, outcome: Outcome) {
        let key = arrival.key;
        self.say(|| format!("m{key} at {}: {outcome:?}", ENTITIES[place].address));
        let mut records = self.records();
        let Some(copy) = records.copy(key, place) else {
            return;
        };
        copy.available = None;
        if let Some(held) = &mut copy.held {
            held.is_settling = true;
        }
        match outcome {
            Outcome::Complete => copy.maybe_gone |= copy.completed.is_none(),
            Outcome::CompleteIn(group) => {
                let until = arrival.locked_until.unwrap_or(0);
                copy.completing.push((group, until));
            }
            Outcome::DeadLetter(reason) => {
                copy.reasons.insert(reason);
            }
            Outcome::Abandon | Outcome::Release | Outcome::Defer => {}
        }
    }

    /// It was settled for sure.
    pub(crate) fn settled(&self, place: usize, arrival: &Arrival, outcome: Outcome) {
        let key = arrival.key;
        self.say(|| format!("m{key} at {}: sure {outcome:?}", ENTITIES[place].address));
        let now = self.now();
        let mut records = self.records();
        let Some(copy) = records.copy(key, place) else {
            return;
        };
        // What an earlier delivery came to says nothing of what became of a later one.
        let held = copy.held.map(|held| held.delivery);
        let is_last = held == Some(arrival.delivery);
        let is_dead_letter = copy.held.is_some_and(|held| held.is_dead_letter);
        let is_free = (is_last || ENTITIES[place].sessions) && !is_dead_letter;
        let goes_on = is_free && arrival.count + 1 < ENTITIES[place].max_delivery;
        match outcome {
            Outcome::Complete => {
                copy.completed.get_or_insert(now);
            }
            Outcome::Abandon if goes_on => copy.available = Some((place, now)),
            Outcome::Release if is_free => copy.available = Some((place, now)),
            Outcome::Abandon
            | Outcome::Release
            | Outcome::Defer
            | Outcome::DeadLetter(_)
            | Outcome::CompleteIn(_) => {}
        }
    }

    /// The emulator says that the lock was lost.
    pub(crate) fn lock_lost(&self, place: usize, key: usize, asked_while: i64) {
        let now = self.now();
        self.say(|| format!("m{key}: lock lost"));
        if now < asked_while {
            self.find(format!(
                "m{key} at {}: its lock was lost before its end",
                ENTITIES[place].address
            ));
        }
    }

    pub(crate) fn renewed(&self, place: usize, key: usize, until: i64) {
        let mut records = self.records();
        let Some(copy) = records.copy(key, place) else {
            return;
        };
        if let Some(held) = &mut copy.held {
            held.until = until;
        }
        if let Some((_, from)) = &mut copy.available {
            *from = until + 1;
        }
    }
}
