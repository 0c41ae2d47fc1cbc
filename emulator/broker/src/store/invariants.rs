//! The invariants of a store: every index agrees with the entries.
//!
//! Checked after every operation in our own tests; also the most exact description of the store.

use std::collections::{BTreeMap, BTreeSet};

use super::{MessageStore, State};
use crate::ids::{Offset, ReceiverId};
use crate::time::Timestamp;

/// The contents of the indexes as computed from the entries alone.
#[derive(Debug, Default)]
struct Expected {
    ready: BTreeSet<Offset>,
    locks: BTreeSet<(Timestamp, Offset)>,
    expiries: BTreeSet<(Timestamp, Offset)>,
    activations: BTreeSet<(Timestamp, Offset)>,
    forwarding: BTreeSet<Offset>,
    reserved: BTreeMap<ReceiverId, Vec<Offset>>,
    deferred: usize,
    size: u64,
}

impl MessageStore {
    pub(crate) fn check_invariants(&self) {
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
                    self.ready.offsets().eq(expected.ready.iter().copied()),
                    "ready and entries differ"
                );
                let is_ready = |offset| expected.ready.contains(offset);
                assert!(
                    self.returned
                        .iter()
                        .flat_map(|all| all.keys())
                        .all(is_ready),
                    "came back and is not ready"
                );
                assert!(
                    self.ready.len() == 0 || !self.policy.serves() || !self.receivers.has_credit(),
                    "a receiver waits while a message is ready"
                );
            }
        }
        let (by_store, by_itself) = self.forwards.by_target();
        assert!(
            self.policy.forwards() || by_store.is_empty(),
            "in a store that does not forward something waits to be"
        );
        let goes_later = |offset: &Offset| {
            let entry = self.entries.get(*offset);
            entry.is_some_and(|entry| entry.activates_at().is_some())
        };
        assert!(
            (by_itself.difference(&expected.forwarding)).all(goes_later),
            "something with a destination of its own is neither on its way nor scheduled"
        );
        let is_locked =
            |offset: Offset| self.entries.get(offset).is_some_and(|e| e.lock().is_some());
        assert!(
            (self.enlistments.iter()).all(|all| all.offsets().all(is_locked)),
            "a transaction settles what is not locked"
        );
        self.receivers.check_invariants(&expected.reserved);
        self.check_held();
    }

    fn expected(&self) -> Expected {
        let mut expected = Expected::default();
        for (offset, entry) in self.entries.iter() {
            expected.size += entry.message.size();
            expected.deferred += usize::from(entry.is_deferred());
            match entry.state {
                State::Ready => {
                    expected.ready.insert(offset);
                }
                State::Reserved(receiver) => {
                    expected.reserved.entry(receiver).or_default().push(offset);
                }
                State::Locked(lock) => {
                    expected
                        .locks
                        .extend(lock.until.get().map(|at| (at, offset)));
                }
                State::Scheduled(at) => {
                    expected.activations.insert((at, offset));
                }
                State::Forwarding => {
                    expected.forwarding.insert(offset);
                }
                State::Deferred => {}
            }
            if entry.can_expire() && !self.forwards.is_in_transfer(offset) {
                let at = entry.expires_at.get();
                expected.expiries.extend(at.map(|at| (at, offset)));
            }
            // A forwarded message starts anew at its target, under any limit here.
            assert!(
                self.policy.exhausted_by(entry.delivery_count).is_none()
                    || entry.state == State::Forwarding,
                "{offset:?} is past its deliveries"
            );
            assert!(offset < self.next, "{offset:?} was never given out");
        }
        expected
    }

    /// Checks that the locks of receivers are recorded only where a detach releases them.
    fn check_held(&self) {
        let locks = self.entries.iter().filter_map(|(offset, entry)| {
            let holder = entry.lock()?.receiver;
            let noted = self.policy.releases_on_detach() && self.sessions.is_none();
            (noted && self.receivers.knows(holder)).then_some((holder, offset))
        });
        let mut locks: Vec<_> = locks.collect();
        locks.sort_unstable();
        assert!(
            self.receivers.held().eq(locks),
            "locks and what receivers hold differ"
        );
    }
}
