//! The receivers of a store, and the order in which they are served.
//!
//! Receivers with credit take turns, one message each (spec/observed.md 17); a receiver that has used up its credit queues
//! behind the others when it gets more. A reserved message counts as credit until its owner takes it.

mod reserved;

use std::collections::BTreeMap;

use super::MessageStore;
use super::indexes::SequenceSet;
use super::selecting::Selection;
use crate::filter::SqlFilter;
use crate::ids::{Offset, ReceiverId};
use reserved::Reserved;

/// How a receiver receives (semantics §2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveMode {
    /// Under a lock, until it is settled.
    PeekLock,
    /// Removed on delivery.
    ReceiveAndDelete,
}

#[derive(Debug, Default)]
pub(crate) struct Receivers {
    table: BTreeMap<ReceiverId, Receiver>,
    /// Receivers with credit, in the order in which they are served.
    turns: BTreeMap<Turn, ReceiverId>,
    /// The number of reserved entries of all receivers.
    reserved: usize,
    /// The number of receivers with selectors.
    selecting: usize,
}

/// A link, or another consumer of messages.
#[derive(Debug)]
struct Receiver {
    mode: ReceiveMode,
    /// Entries reserved for it and not taken yet.
    reserved: Reserved,
    /// Entries that it has locked, if that matters when it detaches (decision D2).
    held: SequenceSet,
    /// Credit beyond the reserved entries.
    credit: u32,
    /// Its place in `turns`, while it has credit.
    turn: Option<Turn>,
    /// Whether it has been woken for reserved entries.
    woken: bool,
    /// Whether it has ever had credit.
    had_credit: bool,
    /// Its selector; `None` for all messages.
    selection: Option<Box<Selection>>,
}

impl Receiver {
    /// Whether it has credit and has not looked at everything that is ready.
    fn is_searching(&self) -> bool {
        let selection = self.selection.as_ref();
        self.credit > 0 && selection.is_some_and(|selection| selection.is_behind())
    }
}

/// A place in the order in which receivers are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn(u64);

/// The entries of a removed receiver.
#[derive(Debug, Default)]
pub(crate) struct Released {
    /// Reserved for it and never taken.
    pub(crate) reserved: Vec<Offset>,
    /// Locked by it, if that matters.
    pub(crate) held: SequenceSet,
}

impl Receivers {
    pub(crate) fn add(
        &mut self,
        id: ReceiverId,
        mode: ReceiveMode,
        selection: Option<Box<Selection>>,
    ) {
        self.selecting += usize::from(selection.is_some());
        let receiver = Receiver {
            mode,
            reserved: Reserved::new(),
            held: SequenceSet::new(),
            credit: 0,
            turn: None,
            woken: false,
            had_credit: false,
            selection,
        };
        let old = self.table.insert(id, receiver);
        debug_assert!(old.is_none(), "receiver ids are never used again");
    }

    /// Removes a receiver and its credit.
    pub(crate) fn remove(&mut self, id: ReceiverId) -> Released {
        let Some(receiver) = self.table.remove(&id) else {
            return Released::default();
        };
        if let Some(turn) = receiver.turn {
            self.turns.remove(&turn);
        }
        self.reserved -= receiver.reserved.len();
        self.selecting -= usize::from(receiver.selection.is_some());
        Released {
            reserved: receiver.reserved.offsets().collect(),
            held: receiver.held,
        }
    }

    /// Returns whether a receiver waits with credit or has reserved entries (decision D1).
    pub(crate) fn is_active(&self) -> bool {
        !self.turns.is_empty() || self.has_reserved()
    }

    /// Returns the receivers that have asked for messages since they attached, with the credit that is left.
    pub(crate) fn asking(&self) -> impl Iterator<Item = (ReceiverId, u32)> {
        let receivers = self
            .table
            .iter()
            .filter(|(_, receiver)| receiver.had_credit);
        receivers.map(|(&id, receiver)| (id, receiver.credit + receiver.reserved.len() as u32))
    }

    /// Returns whether entries are reserved and not taken, or a receiver is still looking for some.
    pub(crate) fn has_reserved(&self) -> bool {
        self.reserved > 0
            || self.have_selectors() && self.table.values().any(Receiver::is_searching)
    }

    /// Returns whether there are receivers with selectors.
    pub(crate) fn have_selectors(&self) -> bool {
        self.selecting > 0
    }

    /// Returns the receivers with credit, in the order in which they are served.
    pub(crate) fn in_order(&self) -> Vec<ReceiverId> {
        self.turns.values().copied().collect()
    }

    /// Takes a receiver's selection, until it is put back.
    pub(crate) fn take_selection(&mut self, id: ReceiverId) -> Option<Box<Selection>> {
        self.table.get_mut(&id)?.selection.take()
    }

    pub(crate) fn put_selection(&mut self, id: ReceiverId, selection: Box<Selection>) {
        if let Some(receiver) = self.table.get_mut(&id) {
            receiver.selection = Some(selection);
        }
    }

    /// Returns whether a receiver has not looked at every ready message.
    pub(crate) fn is_searching(&self, id: ReceiverId) -> bool {
        self.table.get(&id).is_some_and(Receiver::is_searching)
    }

    /// Adds a ready entry to those that receivers with selectors must look at.
    pub(crate) fn mark_ready(&mut self, offset: Offset) {
        let receivers = self.table.values_mut();
        for selection in receivers.filter_map(|receiver| receiver.selection.as_mut()) {
            selection.mark_ready(offset);
        }
    }

    pub(crate) fn reserved_to(&self, id: ReceiverId) -> usize {
        self.table.get(&id).map_or(0, |c| c.reserved.len())
    }

    /// Sets the credit of a receiver, including its reserved entries; returns reserved entries beyond the new credit.
    pub(crate) fn set_credit(&mut self, id: ReceiverId, credit: u32) -> Vec<Offset> {
        let Some(receiver) = self.table.get_mut(&id) else {
            return Vec::new();
        };
        let mut returned = Vec::new();
        while receiver.reserved.len() > credit as usize {
            returned.extend(receiver.reserved.pop_last());
        }
        if receiver.reserved.is_empty() {
            // An owner without credit does not take, even when it was woken.
            receiver.woken = false;
        }
        self.reserved -= returned.len();
        receiver.had_credit |= credit > 0;
        receiver.credit = credit - receiver.reserved.len() as u32;
        self.update_turn(id);
        returned
    }

    /// Reserves `offset` for the next receiver, but for `former` only if no other has credit; returns the receiver and
    /// whether it must be woken.
    pub(crate) fn reserve_next(
        &mut self,
        offset: Offset,
        former: Option<ReceiverId>,
    ) -> Option<(ReceiverId, bool)> {
        let mut turns = self.turns.values().take(2).copied();
        let first = turns.next()?;
        let other = turns.next().filter(|_| former == Some(first));
        let id = other.unwrap_or(first);
        Some((id, self.reserve_in_turn(id, offset)?))
    }

    /// Reserves `offset` for a receiver with credit, whose turn then ends; returns whether it must be woken.
    pub(crate) fn reserve_in_turn(&mut self, id: ReceiverId, offset: Offset) -> Option<bool> {
        let wake = self.reserve_to(id, offset)?;
        if self.turns.len() > 1
            && let Some(receiver) = self.table.get_mut(&id)
            && let Some(turn) = receiver.turn.take()
        {
            self.turns.remove(&turn);
            self.update_turn(id);
        }
        Some(wake)
    }

    /// Reserves `offset` for one receiver if it has credit; returns whether it must be woken.
    pub(crate) fn reserve_to(&mut self, id: ReceiverId, offset: Offset) -> Option<bool> {
        let receiver = self.table.get_mut(&id)?;
        receiver.credit = receiver.credit.checked_sub(1)?;
        receiver.reserved.insert(offset);
        self.reserved += 1;
        let is_told = std::mem::replace(&mut receiver.woken, true);
        self.update_turn(id);
        Some(!is_told)
    }

    /// Returns the next receiver except `id` and those with selectors.
    pub(crate) fn next_except(&self, id: ReceiverId) -> Option<ReceiverId> {
        let takes_all = |id: &ReceiverId| {
            let receiver = self.table.get(id);
            receiver.is_some_and(|receiver| receiver.selection.is_none())
        };
        let mut waiting = self.turns.values().copied();
        waiting.find(|other| *other != id && takes_all(other))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Returns whether this receiver is attached.
    pub(crate) fn knows(&self, id: ReceiverId) -> bool {
        self.table.contains_key(&id)
    }

    /// Returns whether this receiver waits with credit.
    pub(crate) fn has_credit_of(&self, id: ReceiverId) -> bool {
        self.table.get(&id).is_some_and(|c| c.credit > 0)
    }

    pub(crate) fn last_reserved(&self, id: ReceiverId) -> Option<Offset> {
        self.table.get(&id)?.reserved.last()
    }

    /// Marks a receiver as woken; returns whether it was not.
    pub(crate) fn wake(&mut self, id: ReceiverId) -> bool {
        let receiver = self.table.get_mut(&id);
        receiver.is_some_and(|receiver| !std::mem::replace(&mut receiver.woken, true))
    }

    /// Wakes the next receiver by turn that has not looked at every ready message, unless it is woken already; returns it.
    pub(crate) fn wake_searching(&mut self) -> Option<ReceiverId> {
        let is_next = |id: &ReceiverId| {
            let receiver = self.table.get(id);
            receiver.is_some_and(|receiver| receiver.is_searching() && !receiver.woken)
        };
        let id = self.turns.values().copied().find(is_next)?;
        self.wake(id).then_some(id)
    }

    /// Lets a receiver be woken for messages that become ready from now on.
    pub(crate) fn listen(&mut self, id: ReceiverId) {
        if let Some(receiver) = self.table.get_mut(&id) {
            receiver.woken = false;
        }
    }

    /// Removes a reservation and gives its credit back.
    pub(crate) fn unreserve(&mut self, id: ReceiverId, offset: Offset) {
        if let Some(receiver) = self.table.get_mut(&id)
            && receiver.reserved.remove(offset)
        {
            receiver.credit += 1;
            self.reserved -= 1;
            self.update_turn(id);
        }
    }

    /// Removes all reservations.
    pub(crate) fn unreserve_all(&mut self) -> Vec<Offset> {
        let each = |(&id, receiver): (&ReceiverId, &Receiver)| {
            let offsets = receiver.reserved.offsets();
            offsets.map(move |offset| (id, offset)).collect::<Vec<_>>()
        };
        let reserved: Vec<_> = self.table.iter().flat_map(each).collect();
        for &(id, offset) in &reserved {
            self.unreserve(id, offset);
        }
        reserved.into_iter().map(|(_, offset)| offset).collect()
    }

    /// Returns the first entry that is reserved for a receiver, and the receive mode.
    pub(crate) fn first_reserved(&self, id: ReceiverId) -> Option<(Offset, ReceiveMode)> {
        let receiver = self.table.get(&id)?;
        let offset = receiver.reserved.first()?;
        Some((offset, receiver.mode))
    }

    /// Takes the first entry that is reserved for a receiver, which can be woken again from now on.
    pub(crate) fn acquire(&mut self, id: ReceiverId) -> Option<(Offset, ReceiveMode)> {
        let receiver = self.table.get_mut(&id)?;
        receiver.woken = false;
        let offset = receiver.reserved.pop_first()?;
        self.reserved -= 1;
        Some((offset, receiver.mode))
    }

    /// Records that a receiver has locked an entry.
    pub(crate) fn hold(&mut self, id: ReceiverId, offset: Offset) {
        if let Some(receiver) = self.table.get_mut(&id) {
            receiver.held.insert((), offset);
        }
    }

    /// Records that the lock of a receiver has ended.
    pub(crate) fn release_lock(&mut self, id: ReceiverId, offset: Offset) {
        if let Some(receiver) = self.table.get_mut(&id) {
            receiver.held.remove((), offset);
        }
    }

    /// Queues a receiver with credit last unless it has a turn, and removes the turn of one without credit.
    fn update_turn(&mut self, id: ReceiverId) {
        let Some(receiver) = self.table.get_mut(&id) else {
            return;
        };
        match (receiver.turn, receiver.credit) {
            (Some(turn), 0) => {
                self.turns.remove(&turn);
                receiver.turn = None;
            }
            (None, 1..) => {
                let last = self.turns.last_key_value();
                let turn = Turn(last.map_or(0, |(last, _)| last.0 + 1));
                self.turns.insert(turn, id);
                receiver.turn = Some(turn);
            }
            (Some(_), 1..) | (None, 0) => {}
        }
    }
}

impl MessageStore {
    /// Registers a receiver without credit, with or without a selector.
    pub(crate) fn attach(
        &mut self,
        id: ReceiverId,
        mode: ReceiveMode,
        selector: Option<SqlFilter>,
    ) {
        let selection = selector.map(|selector| Box::new(Selection::new(selector)));
        self.receivers.add(id, mode, selection);
    }

    /// Removes a receiver: its reserved entries are ready again. Returns its recorded locks.
    pub(crate) fn detach(&mut self, id: ReceiverId) -> SequenceSet {
        let released = self.receivers.remove(id);
        self.requeue_all(released.reserved);
        released.held
    }

    /// Sets the credit of a receiver, including its reserved entries; those beyond it are ready again.
    pub(crate) fn set_credit(&mut self, id: ReceiverId, credit: u32) {
        let returned = self.receivers.set_credit(id, credit);
        self.requeue_all(returned);
    }

    /// Makes all reserved entries ready again.
    pub(crate) fn unreserve_all(&mut self) {
        let reserved = self.receivers.unreserve_all();
        self.requeue_all(reserved);
    }

    fn requeue_all(&mut self, offsets: Vec<Offset>) {
        for offset in offsets {
            self.requeue(offset);
        }
    }

    pub(crate) fn receivers(&self) -> &Receivers {
        &self.receivers
    }

    /// Marks a receiver as woken; returns whether it was not.
    pub(crate) fn wake(&mut self, id: ReceiverId) -> bool {
        self.receivers.wake(id)
    }

    /// Lets a receiver be woken again.
    pub(crate) fn listen(&mut self, id: ReceiverId) {
        self.receivers.listen(id);
    }

    /// Takes the first message that is reserved for a receiver, which the caller must hand out.
    pub(crate) fn acquire(&mut self, id: ReceiverId) -> Option<(Offset, ReceiveMode)> {
        self.receivers.acquire(id)
    }
}

#[cfg(any(test, feature = "check"))]
impl Receivers {
    /// Returns whether a receiver without selector waits with credit.
    pub(crate) fn has_credit(&self) -> bool {
        let mut waiting = self.turns.values();
        waiting.any(|id| self.table[id].selection.is_none())
    }

    pub(crate) fn check_invariants(&self, reserved: &BTreeMap<ReceiverId, Vec<Offset>>) {
        for (&id, receiver) in &self.table {
            assert_eq!(
                receiver.turn.is_some(),
                receiver.credit > 0,
                "turn and credit of {id:?} differ"
            );
            let turns = self.turns.iter().filter(|(_, other)| **other == id);
            assert!(
                turns.map(|(turn, _)| turn).eq(&receiver.turn),
                "turns of {id:?} differ"
            );
            let expected = reserved.get(&id).map(Vec::as_slice).unwrap_or_default();
            assert!(
                receiver.reserved.offsets().eq(expected.iter().copied()),
                "entries and what is reserved to {id:?} differ"
            );
        }
        let known = |id: &ReceiverId| self.table.contains_key(id);
        assert!(
            reserved.keys().all(known),
            "reserved to a receiver that is gone"
        );
        assert!(
            self.turns.values().all(known),
            "a turn is of a receiver that is gone"
        );
        assert_eq!(
            self.reserved,
            reserved.values().map(Vec::len).sum(),
            "the number of reserved entries differs"
        );
    }

    /// Returns the recorded locks of attached receivers.
    pub(crate) fn held(&self) -> impl Iterator<Item = (ReceiverId, Offset)> {
        let each = |(&id, receiver): (&ReceiverId, &'_ Receiver)| {
            receiver
                .held
                .offsets()
                .map(move |offset| (id, offset))
                .collect::<Vec<_>>()
        };
        self.table.iter().flat_map(each)
    }
}
