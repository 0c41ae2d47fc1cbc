//! What must always hold of a store: every index agrees with the entries.
//!
//! Called after every operation in our own tests; the most exact description of the store there is.

use std::collections::{BTreeMap, BTreeSet};

use super::MessageStore;
use super::entry::State;
use crate::{Entity, LocksOnDetach, ReceiverId, SequenceNumber, Timestamp};

impl Entity {
    /// Panics with what is wrong if anything is.
    pub fn check_invariants(&self) {
        for store in self.stores() {
            store.check_invariants();
        }
        if let Some(history) = &self.history {
            history.check_invariants();
        }
    }
}

/// What the entries alone say that the indexes must be.
#[derive(Debug, Default)]
struct Expected {
    ready: BTreeSet<SequenceNumber>,
    locks: BTreeSet<(Timestamp, SequenceNumber)>,
    expiries: BTreeSet<(Timestamp, SequenceNumber)>,
    activations: BTreeSet<(Timestamp, SequenceNumber)>,
    forwarding: BTreeSet<SequenceNumber>,
    reserved: BTreeMap<ReceiverId, Vec<SequenceNumber>>,
    deferred: usize,
    size: u64,
}

impl MessageStore {
    fn check_invariants(&self) {
        let expected = self.expected();
        self.locks.check_invariants(&expected.locks, "locks");
        self.expiries
            .check_invariants(&expected.expiries, "expiries");
        self.activations
            .check_invariants(&expected.activations, "activations");
        assert_eq!(
            self.forwards.all(),
            expected.forwarding,
            "what is on its way and entries differ"
        );
        assert_eq!(
            self.deferred, expected.deferred,
            "deferred and entries differ"
        );
        assert_eq!(self.size, expected.size, "size and entries differ");
        match &self.sessions {
            Some(sessions) => {
                assert!(self.ready.len() == 0, "each session has its own");
                self.check_sessions(sessions);
            }
            None => {
                assert!(
                    self.ready.numbers().eq(expected.ready.iter().copied()),
                    "ready and entries differ"
                );
                let is_ready = |number| expected.ready.contains(number);
                assert!(
                    self.returned
                        .iter()
                        .flat_map(|all| all.keys())
                        .all(is_ready),
                    "came back and is not ready"
                );
                assert!(
                    self.ready.len() == 0 || !self.policy.serves || !self.receivers.has_credit(),
                    "somebody waits while a message is ready"
                );
            }
        }
        let (by_store, by_itself) = self.forwards.by_target();
        assert!(
            self.policy.forwards || by_store.is_empty(),
            "in a store that does not forward something waits to be"
        );
        let goes_later = |number: &SequenceNumber| {
            let entry = self.entries.get(number.0);
            entry.is_some_and(|entry| entry.activates_at().is_some())
        };
        assert!(
            (by_itself.difference(&expected.forwarding)).all(goes_later),
            "something with a destination of its own is neither on its way nor scheduled"
        );
        let is_locked = |number: SequenceNumber| {
            self.entries
                .get(number.0)
                .is_some_and(|e| e.lock().is_some())
        };
        assert!(
            (self.enlistments.iter()).all(|all| all.numbers().all(is_locked)),
            "a transaction settles what is not locked"
        );
        self.receivers.check_invariants(&expected.reserved);
        self.check_held();
    }

    fn expected(&self) -> Expected {
        let mut expected = Expected::default();
        for (number, entry) in self.entries.iter() {
            let number = SequenceNumber(number);
            expected.size += entry.message.size();
            expected.deferred += usize::from(entry.is_deferred());
            match entry.state {
                State::Ready => {
                    expected.ready.insert(number);
                }
                State::Assigned(receiver) => {
                    expected.reserved.entry(receiver).or_default().push(number);
                }
                State::Locked(lock) => {
                    expected.locks.insert((lock.until, number));
                }
                State::Scheduled(at) => {
                    expected.activations.insert((at, number));
                }
                State::Forwarding => {
                    expected.forwarding.insert(number);
                }
                State::Deferred => {}
            }
            if entry.can_expire() && !self.forwards.is_in_transfer(number) {
                expected.expiries.insert((entry.expires_at, number));
            }
            let limit = self.policy.max_delivery_count.unwrap_or(u32::MAX);
            // What goes on to another entity begins there anew, whatever the limit has become here.
            assert!(
                entry.delivery_count < limit || entry.state == State::Forwarding,
                "{number} is past its deliveries"
            );
            assert!(number <= self.last, "{number} was never given out");
        }
        expected
    }

    /// What receivers hold is known where it is released when they go, and nowhere else.
    fn check_held(&self) {
        let locks = self.entries.iter().filter_map(|(number, entry)| {
            let holder = entry.lock()?.receiver;
            let noted =
                self.policy.locks_on_detach == LocksOnDetach::Release && self.sessions.is_none();
            (noted && self.receivers.knows(holder)).then_some((holder, SequenceNumber(number)))
        });
        let mut locks: Vec<_> = locks.collect();
        locks.sort_unstable();
        assert!(
            self.receivers.held().eq(locks),
            "locks and what receivers hold differ"
        );
    }
}
