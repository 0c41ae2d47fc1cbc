//! Who waits for messages of a store, and in which order they are served.
//!
//! Receivers with credit take turns, one message each (spec/observed.md 17); whose credit was used up waits behind the
//! others when it has some again. What is reserved still counts as credit until its owner takes it.

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
    /// Removed when handed over.
    ReceiveAndDelete,
}

/// The receivers of one store.
#[derive(Debug, Default)]
pub(crate) struct Receivers {
    table: BTreeMap<ReceiverId, Receiver>,
    /// Those with credit, in the order in which they are served.
    turns: BTreeMap<Turn, ReceiverId>,
    /// How many entries are reserved, to all receivers together.
    reserved: usize,
    /// How many receivers select.
    selecting: usize,
}

/// One link, or what else takes messages.
#[derive(Debug)]
struct Receiver {
    mode: ReceiveMode,
    /// Given to it and not yet taken.
    reserved: Reserved,
    /// What it has locked, where that matters when it goes (decision D2).
    held: SequenceSet,
    /// Beyond what is reserved to it.
    credit: u32,
    /// Its place in `turns`, while it has credit.
    turn: Option<Turn>,
    /// Whether it has been told that something is reserved.
    woken: bool,
    /// Whether it has had credit at any time.
    has_asked: bool,
    /// What it selects; all messages if none.
    selection: Option<Box<Selection>>,
}

/// A place in the order in which receivers are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn(u64);

/// What a receiver leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Released {
    /// Reserved to it and never taken.
    pub(crate) reserved: Vec<Offset>,
    /// Under its locks, where that matters.
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
            has_asked: false,
            selection,
        };
        let old = self.table.insert(id, receiver);
        debug_assert!(old.is_none(), "receiver ids are never used again");
    }

    /// Forgets a receiver and its credit.
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

    /// Whether a receiver with credit waits or has something reserved (decision D1).
    pub(crate) fn is_active(&self) -> bool {
        !self.turns.is_empty() || self.has_reserved()
    }

    /// The receivers that have asked for messages since they attached, with the credit that each has left.
    pub(crate) fn asking(&self) -> impl Iterator<Item = (ReceiverId, u32)> {
        let receivers = self.table.iter().filter(|(_, receiver)| receiver.has_asked);
        receivers.map(|(&id, receiver)| (id, receiver.credit + receiver.reserved.len() as u32))
    }

    /// Whether something is reserved and not yet taken, or is still looked for.
    pub(crate) fn has_reserved(&self) -> bool {
        self.reserved > 0 || self.have_selectors() && self.looking().next().is_some()
    }

    /// Whether there are receivers that do not take every message.
    pub(crate) fn have_selectors(&self) -> bool {
        self.selecting > 0
    }

    /// The receivers with credit that have not looked at everything that is ready.
    pub(crate) fn looking(&self) -> impl Iterator<Item = ReceiverId> {
        let receivers = self.table.iter().filter(|(_, receiver)| {
            let selection = receiver.selection.as_ref();
            receiver.credit > 0 && selection.is_some_and(|selection| selection.is_behind())
        });
        receivers.map(|(&id, _)| id)
    }

    /// The receivers with credit, in the order in which they are served.
    pub(crate) fn in_turn(&self) -> Vec<ReceiverId> {
        self.turns.values().copied().collect()
    }

    /// What a receiver selects, until it is put back.
    pub(crate) fn take_selection(&mut self, id: ReceiverId) -> Option<Box<Selection>> {
        self.table.get_mut(&id)?.selection.take()
    }

    pub(crate) fn put_selection(&mut self, id: ReceiverId, selection: Box<Selection>) {
        if let Some(receiver) = self.table.get_mut(&id) {
            receiver.selection = Some(selection);
        }
    }

    /// Whether a receiver has yet to look at what is ready.
    pub(crate) fn is_looking(&self, id: ReceiverId) -> bool {
        self.have_selectors() && self.looking().any(|looking| looking == id)
    }

    /// An entry is ready, which those who select have not seen as such.
    pub(crate) fn note_ready(&mut self, offset: Offset) {
        let receivers = self.table.values_mut();
        for selection in receivers.filter_map(|receiver| receiver.selection.as_mut()) {
            selection.note_ready(offset);
        }
    }

    /// How many entries are reserved to this receiver.
    pub(crate) fn reserved_to(&self, id: ReceiverId) -> usize {
        self.table.get(&id).map_or(0, |c| c.reserved.len())
    }

    /// Sets the credit of a receiver, what is reserved to it included; returns reserved entries that
    /// it no longer has credit for.
    pub(crate) fn set_credit(&mut self, id: ReceiverId, credit: u32) -> Vec<Offset> {
        let Some(receiver) = self.table.get_mut(&id) else {
            return Vec::new();
        };
        let mut returned = Vec::new();
        while receiver.reserved.len() > credit as usize {
            returned.extend(receiver.reserved.pop_last());
        }
        if receiver.reserved.is_empty() {
            // An owner without credit does not come to take, even when it was told to.
            receiver.woken = false;
        }
        self.reserved -= returned.len();
        receiver.has_asked |= credit > 0;
        receiver.credit = credit - receiver.reserved.len() as u32;
        self.queue_up(id);
        returned
    }

    /// Assigns `offset` to the receiver whose turn it is, but to `former` only if no other has credit; says to which, and
    /// whether it must be told.
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

    /// Assigns `offset` to a receiver with credit, whose turn is over by that; says whether it must be told.
    pub(crate) fn reserve_in_turn(&mut self, id: ReceiverId, offset: Offset) -> Option<bool> {
        let wake = self.reserve_to(id, offset)?;
        if self.turns.len() > 1
            && let Some(receiver) = self.table.get_mut(&id)
            && let Some(turn) = receiver.turn.take()
        {
            self.turns.remove(&turn);
            self.queue_up(id);
        }
        Some(wake)
    }

    /// Assigns `offset` to one receiver if it has credit; says whether it must be told.
    pub(crate) fn reserve_to(&mut self, id: ReceiverId, offset: Offset) -> Option<bool> {
        let receiver = self.table.get_mut(&id)?;
        receiver.credit = receiver.credit.checked_sub(1)?;
        receiver.reserved.insert(offset);
        self.reserved += 1;
        let is_told = std::mem::replace(&mut receiver.woken, true);
        self.queue_up(id);
        Some(!is_told)
    }

    /// The receiver whose turn it is, this one left out and those that do not take every message.
    pub(crate) fn waiting_beside(&self, id: ReceiverId) -> Option<ReceiverId> {
        let takes_all = |id: &ReceiverId| {
            let receiver = self.table.get(id);
            receiver.is_some_and(|receiver| receiver.selection.is_none())
        };
        let mut waiting = self.turns.values().copied();
        waiting.find(|other| *other != id && takes_all(other))
    }

    /// Whether this receiver is attached.
    pub(crate) fn knows(&self, id: ReceiverId) -> bool {
        self.table.contains_key(&id)
    }

    /// Whether this receiver waits with credit.
    pub(crate) fn has_credit_of(&self, id: ReceiverId) -> bool {
        self.table.get(&id).is_some_and(|c| c.credit > 0)
    }

    /// The last entry that is reserved to this receiver.
    pub(crate) fn last_reserved(&self, id: ReceiverId) -> Option<Offset> {
        self.table.get(&id)?.reserved.last()
    }

    /// Notes that a receiver is told that there is something for it; says whether it must be.
    pub(crate) fn wake(&mut self, id: ReceiverId) -> bool {
        let receiver = self.table.get_mut(&id);
        receiver.is_some_and(|receiver| !std::mem::replace(&mut receiver.woken, true))
    }

    /// Lets a receiver be told of what comes from now on.
    pub(crate) fn listen(&mut self, id: ReceiverId) {
        if let Some(receiver) = self.table.get_mut(&id) {
            receiver.woken = false;
        }
    }

    /// Takes a reserved entry away again, which gives its credit back.
    pub(crate) fn unreserve(&mut self, id: ReceiverId, offset: Offset) {
        if let Some(receiver) = self.table.get_mut(&id)
            && receiver.reserved.remove(offset)
        {
            receiver.credit += 1;
            self.reserved -= 1;
            self.queue_up(id);
        }
    }

    /// Takes all reserved entries away again.
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

    /// The first entry that is reserved to a receiver, and how it receives.
    pub(crate) fn first_reserved(&self, id: ReceiverId) -> Option<(Offset, ReceiveMode)> {
        let receiver = self.table.get(&id)?;
        let offset = receiver.reserved.first()?;
        Some((offset, receiver.mode))
    }

    /// The first entry that is reserved to a receiver, which from now on is told again when there is more.
    pub(crate) fn acquire(&mut self, id: ReceiverId) -> Option<(Offset, ReceiveMode)> {
        let receiver = self.table.get_mut(&id)?;
        receiver.woken = false;
        let offset = receiver.reserved.pop_first()?;
        self.reserved -= 1;
        Some((offset, receiver.mode))
    }

    /// Notes that a receiver has locked an entry.
    pub(crate) fn hold(&mut self, id: ReceiverId, offset: Offset) {
        if let Some(receiver) = self.table.get_mut(&id) {
            receiver.held.insert((), offset);
        }
    }

    /// Notes that the lock of a receiver is over.
    pub(crate) fn release_lock(&mut self, id: ReceiverId, offset: Offset) {
        if let Some(receiver) = self.table.get_mut(&id) {
            receiver.held.remove((), offset);
        }
    }

    /// Gives a receiver that has credit the last turn unless it has one, and takes it from one that has none.
    fn queue_up(&mut self, id: ReceiverId) {
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
    /// Registers a receiver without credit, which takes what it selects, or every message.
    pub(crate) fn attach(
        &mut self,
        id: ReceiverId,
        mode: ReceiveMode,
        selector: Option<SqlFilter>,
    ) {
        let selection = selector.map(|selector| Box::new(Selection::new(selector)));
        self.receivers.add(id, mode, selection);
    }

    /// Forgets a receiver: what was reserved to it is ready again. Returns what it has locked, where that is noted.
    pub(crate) fn detach(&mut self, id: ReceiverId) -> SequenceSet {
        let released = self.receivers.remove(id);
        self.put_all_back(released.reserved);
        released.held
    }

    /// Sets the credit of a receiver, what is reserved to it included; what it has no credit for is ready again.
    pub(crate) fn set_credit(&mut self, id: ReceiverId, credit: u32) {
        let returned = self.receivers.set_credit(id, credit);
        self.put_all_back(returned);
    }

    /// Makes everything ready again that is reserved.
    pub(crate) fn unreserve_all(&mut self) {
        let reserved = self.receivers.unreserve_all();
        self.put_all_back(reserved);
    }

    fn put_all_back(&mut self, offsets: Vec<Offset>) {
        for offset in offsets {
            self.put_back(offset);
        }
    }

    /// The receivers.
    pub(crate) fn receivers(&self) -> &Receivers {
        &self.receivers
    }

    /// Says that a receiver is told that there is something for it; says whether it must be.
    pub(crate) fn wake(&mut self, id: ReceiverId) -> bool {
        self.receivers.wake(id)
    }

    /// Lets a receiver be told of what comes from now on.
    pub(crate) fn listen(&mut self, id: ReceiverId) {
        self.receivers.listen(id);
    }

    /// The first message that is reserved to a receiver, which is its own now and must be handed out.
    pub(crate) fn acquire(&mut self, id: ReceiverId) -> Option<(Offset, ReceiveMode)> {
        self.receivers.acquire(id)
    }
}

#[cfg(any(test, feature = "check"))]
impl Receivers {
    /// Whether a receiver waits that takes every message.
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

    /// What a receiver that is still here has locked, as noted.
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
