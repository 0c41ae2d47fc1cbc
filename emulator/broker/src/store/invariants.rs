//! What must always hold of a store: every index agrees with the entries.
//!
//! Called after every operation in our own tests; the most exact description of the store there is.

use std::collections::BTreeMap;

use super::MessageStore;
use super::entry::State;
use crate::{ConsumerId, LocksOnDetach, Mailbox, SequenceNumber, Timestamp};

impl Mailbox {
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

impl MessageStore {
    fn check_invariants(&self) {
        let mut ready = Vec::new();
        let mut locks = Vec::new();
        let mut expiries = Vec::new();
        let mut assigned = BTreeMap::<ConsumerId, Vec<SequenceNumber>>::new();
        let mut size = 0;
        for (number, entry) in self.entries.iter() {
            let number = SequenceNumber(number);
            size += entry.message.size();
            match entry.state {
                State::Ready => ready.push(number),
                State::Assigned(consumer) => assigned.entry(consumer).or_default().push(number),
                State::Locked(lock) => locks.push((lock.until, number)),
            }
            let limit = self.policy.max_delivery_count.unwrap_or(u32::MAX);
            assert!(
                entry.delivery_count < limit,
                "{number} is past its deliveries"
            );
            if entry.expires_at < Timestamp::NEVER && entry.lock().is_none() {
                expiries.push((entry.expires_at, number));
            }
            assert!(number <= self.last, "{number} was never given out");
        }
        locks.sort_unstable();
        expiries.sort_unstable();
        assert!(
            self.ready.iter().copied().eq(ready),
            "ready and entries differ"
        );
        assert!(
            self.locks.iter().copied().eq(locks),
            "locks and entries differ"
        );
        assert!(
            self.expiries.iter().copied().eq(expiries),
            "expiries and entries differ"
        );
        assert_eq!(self.size, size, "size and entries differ");
        assert!(
            self.ready.is_empty() || !self.consumers.has_credit(),
            "somebody waits while a message is ready"
        );
        self.consumers.check_invariants(&assigned);
        self.check_held();
    }

    /// What consumers hold is known where it is released when they go, and nowhere else.
    fn check_held(&self) {
        let locks = self.entries.iter().filter_map(|(number, entry)| {
            let holder = entry.lock()?.consumer;
            let noted = self.policy.locks_on_detach == LocksOnDetach::Release;
            (noted && self.consumers.knows(holder)).then_some((holder, SequenceNumber(number)))
        });
        let mut locks: Vec<_> = locks.collect();
        locks.sort_unstable();
        assert!(
            self.consumers.held().eq(locks),
            "locks and what consumers hold differ"
        );
    }
}
