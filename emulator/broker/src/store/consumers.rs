//! Who waits for messages of a store, and in which order they are served.
//!
//! Consumers with credit take turns, one message each (spec/observed.md 17); whose credit was used up waits behind the
//! others when it has some again. What is assigned still counts as credit until its owner takes it.

use std::collections::BTreeMap;

use super::assigned::Assigned;
use super::numbers::Numbers;
use crate::operation::receive::ReceiveMode;
use crate::{ConsumerId, SequenceNumber};

/// The consumers of one store.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    table: BTreeMap<ConsumerId, Consumer>,
    /// Those with credit, in the order in which they are served.
    turns: BTreeMap<Turn, ConsumerId>,
    /// How many entries are assigned, to all consumers together.
    assigned: usize,
}

/// One link, or whatever else takes messages.
#[derive(Debug)]
struct Consumer {
    mode: ReceiveMode,
    /// Given to it and not yet taken.
    assigned: Assigned,
    /// What it has locked, where that matters when it goes (decision D2).
    held: Numbers,
    /// Beyond what is assigned to it.
    credit: u32,
    /// Its place in `turns`, while it has credit.
    turn: Option<Turn>,
    /// Whether it has been told that something is assigned.
    woken: bool,
}

/// A place in the order in which consumers are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn(u64);

/// What a consumer leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Estate {
    /// Assigned to it and never taken.
    pub(crate) assigned: Vec<SequenceNumber>,
    /// Under its locks, where that matters.
    pub(crate) held: Numbers,
}

impl Consumers {
    pub(crate) fn add(&mut self, id: ConsumerId, mode: ReceiveMode) {
        let consumer = Consumer {
            mode,
            assigned: Assigned::new(),
            held: Numbers::new(),
            credit: 0,
            turn: None,
            woken: false,
        };
        let old = self.table.insert(id, consumer);
        debug_assert!(old.is_none(), "consumer ids are never used again");
    }

    /// Forgets a consumer and its credit.
    pub(crate) fn remove(&mut self, id: ConsumerId) -> Estate {
        let Some(consumer) = self.table.remove(&id) else {
            return Estate::default();
        };
        if let Some(turn) = consumer.turn {
            self.turns.remove(&turn);
        }
        self.assigned -= consumer.assigned.len();
        Estate {
            assigned: consumer.assigned.numbers().collect(),
            held: consumer.held,
        }
    }

    /// Whether somebody with credit waits or has something assigned (decision D1).
    pub(crate) fn is_active(&self) -> bool {
        !self.turns.is_empty() || self.has_assigned()
    }

    /// Whether something is assigned and not yet taken.
    pub(crate) fn has_assigned(&self) -> bool {
        self.assigned > 0
    }

    /// How many entries are assigned to this consumer.
    pub(crate) fn assigned_to(&self, id: ConsumerId) -> usize {
        self.table.get(&id).map_or(0, |c| c.assigned.len())
    }

    /// Sets the credit of a consumer, what is assigned to it included; returns assigned entries that
    /// it no longer has credit for.
    pub(crate) fn set_credit(&mut self, id: ConsumerId, credit: u32) -> Vec<SequenceNumber> {
        let Some(consumer) = self.table.get_mut(&id) else {
            return Vec::new();
        };
        let mut returned = Vec::new();
        while consumer.assigned.len() > credit as usize {
            returned.extend(consumer.assigned.pop_last());
        }
        if consumer.assigned.is_empty() {
            // An owner without credit does not come to take, whatever it was told.
            consumer.woken = false;
        }
        self.assigned -= returned.len();
        consumer.credit = credit - consumer.assigned.len() as u32;
        self.queue_up(id);
        returned
    }

    /// Assigns `number` to the consumer whose turn it is, but to `former` only if no other has credit; says to which, and
    /// whether it must be told.
    pub(crate) fn assign_next(
        &mut self,
        number: SequenceNumber,
        former: Option<ConsumerId>,
    ) -> Option<(ConsumerId, bool)> {
        let mut turns = self.turns.values().take(2).copied();
        let first = turns.next()?;
        let other = turns.next().filter(|_| former == Some(first));
        let id = other.unwrap_or(first);
        let wake = self.assign_to(id, number)?;
        if self.turns.len() > 1
            && let Some(consumer) = self.table.get_mut(&id)
            && let Some(turn) = consumer.turn.take()
        {
            self.turns.remove(&turn);
            self.queue_up(id);
        }
        Some((id, wake))
    }

    /// Assigns `number` to one consumer if it has credit; says whether it must be told.
    pub(crate) fn assign_to(&mut self, id: ConsumerId, number: SequenceNumber) -> Option<bool> {
        let consumer = self.table.get_mut(&id)?;
        consumer.credit = consumer.credit.checked_sub(1)?;
        consumer.assigned.insert(number);
        self.assigned += 1;
        let is_told = std::mem::replace(&mut consumer.woken, true);
        self.queue_up(id);
        Some(!is_told)
    }

    /// Whether this consumer waits with credit.
    pub(crate) fn has_credit_of(&self, id: ConsumerId) -> bool {
        self.table.get(&id).is_some_and(|c| c.credit > 0)
    }

    /// The last entry that is assigned to this consumer.
    pub(crate) fn last_assigned(&self, id: ConsumerId) -> Option<SequenceNumber> {
        self.table.get(&id)?.assigned.last()
    }

    /// Notes that a consumer is told that there is something for it; says whether it must be.
    pub(crate) fn wake(&mut self, id: ConsumerId) -> bool {
        let consumer = self.table.get_mut(&id);
        consumer.is_some_and(|consumer| !std::mem::replace(&mut consumer.woken, true))
    }

    /// Lets a consumer be told of what comes from now on.
    pub(crate) fn listen(&mut self, id: ConsumerId) {
        if let Some(consumer) = self.table.get_mut(&id) {
            consumer.woken = false;
        }
    }

    /// Takes an assigned entry away again, which gives its credit back.
    pub(crate) fn unassign(&mut self, id: ConsumerId, number: SequenceNumber) {
        if let Some(consumer) = self.table.get_mut(&id)
            && consumer.assigned.remove(number)
        {
            consumer.credit += 1;
            self.assigned -= 1;
            self.queue_up(id);
        }
    }

    /// Takes all assigned entries away again.
    pub(crate) fn unassign_all(&mut self) -> Vec<SequenceNumber> {
        let each = |(&id, consumer): (&ConsumerId, &Consumer)| {
            let numbers = consumer.assigned.numbers();
            numbers.map(move |number| (id, number)).collect::<Vec<_>>()
        };
        let assigned: Vec<_> = self.table.iter().flat_map(each).collect();
        for &(id, number) in &assigned {
            self.unassign(id, number);
        }
        assigned.into_iter().map(|(_, number)| number).collect()
    }

    /// The first entry that is assigned to a consumer, and how it receives.
    pub(crate) fn first_assigned(&self, id: ConsumerId) -> Option<(SequenceNumber, ReceiveMode)> {
        let consumer = self.table.get(&id)?;
        let number = consumer.assigned.first()?;
        Some((number, consumer.mode))
    }

    /// The first entry that is assigned to a consumer, which from now on is told again when there is more.
    pub(crate) fn take(&mut self, id: ConsumerId) -> Option<(SequenceNumber, ReceiveMode)> {
        let consumer = self.table.get_mut(&id)?;
        consumer.woken = false;
        let number = consumer.assigned.pop_first()?;
        self.assigned -= 1;
        Some((number, consumer.mode))
    }

    /// Notes that a consumer has locked an entry.
    pub(crate) fn hold(&mut self, id: ConsumerId, number: SequenceNumber) {
        if let Some(consumer) = self.table.get_mut(&id) {
            consumer.held.insert((), number);
        }
    }

    /// Notes that the lock of a consumer is over.
    pub(crate) fn let_go(&mut self, id: ConsumerId, number: SequenceNumber) {
        if let Some(consumer) = self.table.get_mut(&id) {
            consumer.held.remove((), number);
        }
    }

    /// Gives a consumer that has credit the last turn unless it has one, and takes it from one that has none.
    fn queue_up(&mut self, id: ConsumerId) {
        let Some(consumer) = self.table.get_mut(&id) else {
            return;
        };
        match (consumer.turn, consumer.credit) {
            (Some(turn), 0) => {
                self.turns.remove(&turn);
                consumer.turn = None;
            }
            (None, 1..) => {
                let last = self.turns.last_key_value();
                let turn = Turn(last.map_or(0, |(last, _)| last.0 + 1));
                self.turns.insert(turn, id);
                consumer.turn = Some(turn);
            }
            (Some(_), 1..) | (None, 0) => {}
        }
    }
}

#[cfg(any(test, feature = "check"))]
impl Consumers {
    pub(crate) fn has_credit(&self) -> bool {
        !self.turns.is_empty()
    }

    pub(crate) fn check_invariants(&self, assigned: &BTreeMap<ConsumerId, Vec<SequenceNumber>>) {
        for (&id, consumer) in &self.table {
            assert_eq!(
                consumer.turn.is_some(),
                consumer.credit > 0,
                "turn and credit of {id:?} differ"
            );
            let turns = self.turns.iter().filter(|(_, other)| **other == id);
            assert!(
                turns.map(|(turn, _)| turn).eq(&consumer.turn),
                "turns of {id:?} differ"
            );
            let expected = assigned.get(&id).map(Vec::as_slice).unwrap_or_default();
            assert!(
                consumer.assigned.numbers().eq(expected.iter().copied()),
                "entries and what is assigned to {id:?} differ"
            );
        }
        let known = |id: &ConsumerId| self.table.contains_key(id);
        assert!(
            assigned.keys().all(known),
            "assigned to a consumer that is gone"
        );
        assert!(
            self.turns.values().all(known),
            "a turn is of a consumer that is gone"
        );
        assert_eq!(
            self.assigned,
            assigned.values().map(Vec::len).sum(),
            "the number of assigned entries differs"
        );
    }

    /// What a consumer that is still here has locked, as noted.
    pub(crate) fn held(&self) -> impl Iterator<Item = (ConsumerId, SequenceNumber)> {
        let each = |(&id, consumer): (&ConsumerId, &'_ Consumer)| {
            consumer
                .held
                .numbers()
                .map(move |number| (id, number))
                .collect::<Vec<_>>()
        };
        self.table.iter().flat_map(each)
    }

    pub(crate) fn knows(&self, id: ConsumerId) -> bool {
        self.table.contains_key(&id)
    }
}
