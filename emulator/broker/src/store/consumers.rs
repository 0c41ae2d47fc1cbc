//! Who waits for messages of a store, and in which order they are served.
//!
//! Credit is served in the order in which it arrived (semantics §2.4): each increase takes a ticket, and an
//! entry that is taken away again gives its credit back under the ticket it was assigned for. What is
//! assigned still counts as credit until its owner takes it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::assigned::Assigned;
use super::numbers::Numbers;
use crate::operation::receive::ReceiveMode;
use crate::{ConsumerId, SequenceNumber};

/// Increases that one consumer may have waiting under tickets of their own; further ones join its last, so that
/// a client that asks in steps of one cannot make the queue longer than this.
const GRANTS_EACH: usize = 64;

/// The consumers of one store.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    table: BTreeMap<ConsumerId, Consumer>,
    /// Credit that waits, in order of arrival.
    grants: BTreeMap<Ticket, Grant>,
    /// The last one given out.
    latest: Ticket,
    /// How many entries are assigned, to all consumers together.
    assigned: usize,
}

/// One link, or whatever else takes messages.
#[derive(Debug)]
struct Consumer {
    mode: ReceiveMode,
    /// Given to it and not yet taken, with the ticket whose credit each used.
    assigned: Assigned<Ticket>,
    /// What it has locked, where that matters when it goes (decision D2).
    held: Numbers,
    /// Its credit in `grants`.
    granted: u32,
    /// Its tickets in `grants`.
    tickets: BTreeSet<Ticket>,
    /// Whether it has been told that something is assigned.
    woken: bool,
}

/// A place in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Ticket(u64);

#[derive(Debug)]
struct Grant {
    consumer: ConsumerId,
    credit: u32,
}

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
            granted: 0,
            tickets: BTreeSet::new(),
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
        for ticket in &consumer.tickets {
            self.grants.remove(ticket);
        }
        self.assigned -= consumer.assigned.len();
        Estate {
            assigned: consumer.assigned.numbers().collect(),
            held: consumer.held,
        }
    }

    /// Whether somebody with credit waits or has something assigned (decision D1).
    pub(crate) fn is_active(&self) -> bool {
        !self.grants.is_empty() || self.has_assigned()
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
        let granted = credit - consumer.assigned.len() as u32;
        let before = consumer.granted;
        match granted.cmp(&before) {
            Ordering::Greater => self.grant(id, granted - before),
            Ordering::Less => self.revoke(id, before - granted),
            Ordering::Equal => {}
        }
        returned
    }

    /// Assigns `number` to whoever is next; says whom, and whether it must be told.
    pub(crate) fn assign_next(&mut self, number: SequenceNumber) -> Option<(ConsumerId, bool)> {
        let (&ticket, grant) = self.grants.first_key_value()?;
        let id = grant.consumer;
        Some((id, self.assign_under(ticket, id, number)?))
    }

    /// Assigns `number` to one consumer if it has credit; says whether it must be told.
    pub(crate) fn assign_to(&mut self, id: ConsumerId, number: SequenceNumber) -> Option<bool> {
        let ticket = *self.table.get(&id)?.tickets.first()?;
        self.assign_under(ticket, id, number)
    }

    /// Whether this consumer waits with credit.
    pub(crate) fn has_credit_of(&self, id: ConsumerId) -> bool {
        self.table.get(&id).is_some_and(|c| c.granted > 0)
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

    /// Takes an assigned entry away again; its credit waits where it waited before.
    pub(crate) fn unassign(&mut self, id: ConsumerId, number: SequenceNumber) {
        let ticket = self
            .table
            .get_mut(&id)
            .and_then(|c| c.assigned.remove(number));
        if let Some(ticket) = ticket {
            self.assigned -= 1;
            self.wait(id, ticket, 1);
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

    /// Uses a credit of this ticket, which is the consumer's.
    fn assign_under(
        &mut self,
        ticket: Ticket,
        id: ConsumerId,
        number: SequenceNumber,
    ) -> Option<bool> {
        let consumer = self.table.get_mut(&id)?;
        let grant = self.grants.get_mut(&ticket)?;
        grant.credit -= 1;
        if grant.credit == 0 {
            self.grants.remove(&ticket);
            consumer.tickets.remove(&ticket);
        }
        consumer.granted -= 1;
        consumer.assigned.insert(number, ticket);
        self.assigned += 1;
        Some(!std::mem::replace(&mut consumer.woken, true))
    }

    /// Adds credit that has just arrived.
    fn grant(&mut self, id: ConsumerId, credit: u32) {
        let latest = self.grants.get(&self.latest);
        if latest.is_none_or(|latest| latest.consumer != id) {
            self.latest.0 += 1;
        }
        self.wait(id, self.latest, credit);
    }

    /// Lets credit wait at its place in the order of arrival.
    fn wait(&mut self, id: ConsumerId, ticket: Ticket, credit: u32) {
        let Some(consumer) = self.table.get_mut(&id) else {
            return;
        };
        consumer.granted += credit;
        consumer.tickets.insert(ticket);
        let new = Grant {
            consumer: id,
            credit: 0,
        };
        self.grants.entry(ticket).or_insert(new).credit += credit;
        if consumer.tickets.len() > GRANTS_EACH
            && let Some(excess) = consumer.tickets.pop_last()
            && let Some(joined) = self.grants.remove(&excess)
            && let Some(last) = consumer.tickets.last()
            && let Some(last) = self.grants.get_mut(last)
        {
            last.credit += joined.credit;
        }
    }

    /// Takes credit away, the latest first.
    fn revoke(&mut self, id: ConsumerId, mut credit: u32) {
        let Some(consumer) = self.table.get_mut(&id) else {
            return;
        };
        consumer.granted -= credit;
        while credit > 0
            && let Some(&ticket) = consumer.tickets.last()
            && let Some(grant) = self.grants.get_mut(&ticket)
        {
            let taken = credit.min(grant.credit);
            grant.credit -= taken;
            credit -= taken;
            if grant.credit == 0 {
                self.grants.remove(&ticket);
                consumer.tickets.remove(&ticket);
            }
        }
    }
}

#[cfg(any(test, feature = "check"))]
impl Consumers {
    pub(crate) fn has_credit(&self) -> bool {
        !self.grants.is_empty()
    }

    pub(crate) fn check_invariants(&self, assigned: &BTreeMap<ConsumerId, Vec<SequenceNumber>>) {
        for (&id, consumer) in &self.table {
            let own = || self.grants.iter().filter(|(_, grant)| grant.consumer == id);
            let credit: u32 = own().map(|(_, grant)| grant.credit).sum();
            assert_eq!(
                consumer.granted, credit,
                "credit and grants of {id:?} differ"
            );
            assert!(
                consumer.tickets.iter().eq(own().map(|(ticket, _)| ticket)),
                "tickets and grants of {id:?} differ"
            );
            assert!(
                consumer.tickets.len() <= GRANTS_EACH,
                "{id:?} has too many grants"
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
            self.grants
                .values()
                .all(|grant| known(&grant.consumer) && grant.credit > 0),
            "a grant is empty or belongs to nobody"
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
