//! The invariants of sessions: every index agrees with the messages and with the sessions.

use std::collections::{BTreeMap, BTreeSet};

use super::{Session, SessionReceiverState, Sessions};
use crate::ids::Offset;
use crate::store::{MessageStore, State};
use crate::time::Deadline;

/// The state of one session as computed from the entries alone.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    messages: usize,
    ready: BTreeSet<Offset>,
    locked: BTreeSet<Offset>,
    deferred: usize,
    scheduled: usize,
}

impl MessageStore {
    /// Checks the invariants of the sessions.
    ///
    /// # Panics
    ///
    /// If one does not hold, with a description of it.
    pub(crate) fn check_sessions(&self, sessions: &Sessions) {
        let mut expected = BTreeMap::<_, Expected>::new();
        let passing = |offset| self.forwards.destination(offset).is_some();
        for (offset, entry) in self.entries.iter().filter(|(n, _)| !passing(*n)) {
            let slot = sessions.of.get(offset).expect("a message has no session");
            let own = expected.entry(*slot).or_default();
            let first = sessions.offsets(*slot, offset).next();
            assert_eq!(first, Some(offset), "not among those of its session");
            own.messages += 1;
            own.deferred += usize::from(entry.is_deferred());
            own.scheduled += usize::from(entry.activates_at().is_some());
            let holder = sessions.get(*slot).and_then(|session| session.lock);
            let holder = holder.map(|lock| lock.receiver);
            match entry.state {
                State::Ready => {
                    own.ready.insert(offset);
                }
                State::Reserved(receiver) => {
                    assert_eq!(holder, Some(receiver), "{offset:?} is not its holder's");
                }
                State::Locked(lock) => {
                    own.locked.insert(offset);
                    assert_eq!(
                        holder,
                        Some(lock.receiver),
                        "{offset:?} is not its holder's"
                    );
                    assert_eq!(
                        lock.until,
                        Deadline::NONE,
                        "{offset:?} has an end of its own"
                    );
                }
                State::Deferred | State::Scheduled(_) | State::Forwarding => {}
            }
        }
        let passing = self.entries.iter().filter(|(n, _)| passing(*n)).count();
        assert_eq!(
            sessions.of.len(),
            self.entries.len() - passing,
            "messages and sessions differ"
        );
        assert_eq!(sessions.members.len(), sessions.of.len());
        for (&slot, own) in &expected {
            let session = sessions.get(slot).expect("a message has no session");
            assert_eq!(
                &Expected::of(session),
                own,
                "{} and entries differ",
                session.name
            );
        }
        let is_empty = |session: &Session| session.messages == 0;
        let with_messages = sessions.iter().filter(|session| !is_empty(session)).count();
        assert_eq!(
            with_messages,
            expected.len(),
            "a session has messages that are not there"
        );
        sessions.check_indexes();
        if self.policy.serves() {
            self.check_served(sessions);
        }
    }

    /// Checks that no receiver waits while messages or sessions are available to it.
    fn check_served(&self, sessions: &Sessions) {
        assert!(
            sessions.waiting.is_empty() || sessions.available.is_empty(),
            "a receiver waits while a session is available"
        );
        assert!(sessions.changed.is_empty(), "a session was not served");
        for session in sessions.iter() {
            let (Some(lock), Some(&first)) = (session.lock, session.ready.first()) else {
                continue;
            };
            let last = self.receivers.last_reserved(lock.receiver);
            assert!(
                !self.receivers.has_credit_of(lock.receiver)
                    && last.is_none_or(|last| last < first),
                "{first:?} of {} is not served although it is next",
                session.name
            );
        }
    }
}

impl Expected {
    fn of(session: &Session) -> Self {
        Self {
            messages: session.messages,
            ready: session.ready.clone(),
            locked: session.locked.clone(),
            deferred: session.deferred,
            scheduled: session.scheduled,
        }
    }
}

impl Sessions {
    fn check_indexes(&self) {
        let mut available = BTreeMap::new();
        let mut ends = BTreeMap::new();
        let mut holders = BTreeMap::new();
        let (mut state_bytes, mut locked) = (0, 0);
        for (name, &slot) in &self.names {
            let session = self.get(slot).expect("a name leads to its session");
            assert_eq!(&session.name, name, "a name leads to another session");
            assert!(!session.is_over(), "nothing is to be known of {name}");
            assert!(
                !session.is_changed || self.changed.contains(&slot),
                "{name} is to be served and not among the changed"
            );
            available.extend(session.place().map(|place| (place, slot)));
            ends.extend(session.lock.map(|lock| ((lock.until, lock.receiver), slot)));
            holders.extend(session.lock.map(|lock| (lock.receiver, slot)));
            state_bytes += session.state_size();
            locked += session.locked.len();
        }
        assert_eq!(
            self.available, available,
            "the available and sessions differ"
        );
        assert_eq!(self.ends, ends, "ends of locks and sessions differ");
        assert_eq!(
            self.state_bytes, state_bytes,
            "the size of the states differs"
        );
        assert_eq!(self.locked, locked, "the number of locked messages differs");
        let used = self.slots.iter().flatten().count();
        assert_eq!(used, self.names.len(), "a session has no name");
        assert_eq!(used + self.free.len(), self.slots.len(), "a slot is lost");
        let mut waiting = BTreeMap::new();
        let mut held = BTreeMap::new();
        for (&receiver, standing) in &self.receiver_states {
            match *standing {
                SessionReceiverState::Waits(place) => {
                    waiting.insert(place, receiver);
                }
                SessionReceiverState::Holds(slot) => {
                    held.insert(receiver, slot);
                }
            }
        }
        assert_eq!(held, holders, "holders and locks differ");
        let order = self
            .waiting
            .iter()
            .map(|(&place, waiting)| (place, waiting.receiver));
        assert!(order.eq(waiting), "those who wait and their order differ");
    }
}
