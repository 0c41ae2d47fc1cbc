//! What must hold whatever the reference says: conclusions from the facts and effects alone.

use std::collections::{BTreeMap, BTreeSet};

use servicebus_broker::{ConsumerId, Effect, Expiry, Fact, FactKind, StoreKind, Timestamp};

use crate::system::System;
use crate::transition::{Rules, STORES, Step};

/// A store and a number in it.
type Place = (StoreKind, u64);

/// A fold over everything that was ever said.
#[derive(Debug)]
pub(crate) struct Ledger {
    eager: bool,
    /// Messages that came in and have not gone for a recorded reason.
    held: BTreeMap<Place, Held>,
    /// Consumers that were told to take and have not.
    told: BTreeSet<ConsumerId>,
    /// Consumers that know that there is more, because they took less than there was.
    knowing: BTreeSet<ConsumerId>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    /// End of its lock.
    lock: Option<Timestamp>,
    free_since: Timestamp,
    expires_at: Timestamp,
}

impl Ledger {
    pub(crate) fn new(rules: &Rules) -> Self {
        Self {
            eager: rules.settings.expiry == Expiry::Eager,
            held: BTreeMap::new(),
            told: BTreeSet::new(),
            knowing: BTreeSet::new(),
        }
    }

    /// Reads what a step caused, then looks at what there is.
    pub(crate) fn check(&mut self, step: &Step, system: &System, open: &[(StoreKind, u64)]) {
        for fact in system.facts.iter() {
            self.read(fact, system);
        }
        self.read_effects(step, system);
        self.note_who_took(step, system);
        for &(kind, id) in open {
            let waits = system.assigned(kind, id) > 0;
            let id = ConsumerId(id);
            let knows = self.told.contains(&id) || self.knowing.contains(&id);
            assert!(knows || !waits, "nobody told {id:?}");
        }
        for kind in STORES {
            self.compare_counts(kind, system);
        }
        if !matches!(step, Step::Advance(_) | Step::Open(..)) {
            self.assert_nothing_is_overdue(Timestamp::from_millis(system.now()));
        }
    }

    fn read_effects(&mut self, step: &Step, system: &System) {
        let asking = if let &Step::Credit(kind, id, _) = step {
            Some((ConsumerId(id), system.assigned(kind, id)))
        } else {
            None
        };
        for &Effect::Wake(consumer) in &system.effects {
            let new = self.told.insert(consumer);
            // Who sets its credit with nothing assigned is told again.
            let asks = asking.is_some_and(|(id, _)| id == consumer);
            assert!(new || asks, "{consumer:?} was told twice");
        }
        if let Some((id, 0)) = asking {
            self.told.remove(&id);
        }
    }

    fn note_who_took(&mut self, step: &Step, system: &System) {
        if let &Step::Take(kind, id, max) = step
            && max > 0
        {
            self.told.remove(&ConsumerId(id));
            match system.assigned(kind, id) {
                0 => self.knowing.remove(&ConsumerId(id)),
                _ => self.knowing.insert(ConsumerId(id)),
            };
        }
    }

    fn compare_counts(&self, kind: StoreKind, system: &System) {
        let held = || self.held.iter().filter(|(place, _)| place.0 == kind);
        let locked = held().filter(|(_, held)| held.lock.is_some());
        let counts = system.mailbox().counts(kind);
        assert_eq!(
            counts.active,
            held().count(),
            "a message of {kind:?} is lost"
        );
        assert_eq!(counts.locked, locked.count(), "a lock of {kind:?} is lost");
        let nothing = system.mailbox().store(kind).size() == 0;
        assert_eq!(nothing, counts.active == 0, "the size of {kind:?} is wrong");
    }

    fn read(&mut self, fact: &Fact, system: &System) {
        let place = (fact.store, fact.number.0);
        match fact.kind {
            FactKind::Enqueued { expires_at, .. } => self.enter(place, fact.at, expires_at),
            FactKind::Delivered { locked_until, .. } => {
                self.assert_deliverable(fact);
                assert!(fact.at < locked_until, "{fact:?} locks nothing");
                self.at(place).lock = Some(locked_until);
            }
            FactKind::LockRenewed { locked_until } => {
                self.assert_locked(fact);
                self.at(place).lock = Some(locked_until);
            }
            FactKind::Abandoned { .. } | FactKind::Released => {
                self.assert_locked(fact);
                self.free(place, fact.at);
            }
            FactKind::LockExpired { .. } => {
                assert_eq!(
                    self.at(place).lock,
                    Some(fact.at),
                    "{fact:?} at another time"
                );
                self.free(place, fact.at);
            }
            FactKind::Completed => {
                self.assert_locked(fact);
                self.held.remove(&place);
            }
            FactKind::ReceivedAndDeleted => {
                self.assert_deliverable(fact);
                self.held.remove(&place);
            }
            FactKind::Expired => {
                self.assert_expires_on_time(fact);
                self.held.remove(&place);
            }
            FactKind::DeadLettered {
                moved_to, reason, ..
            } => {
                if self.at(place).lock.is_some() {
                    self.assert_locked(fact);
                } else if system.facts.read(reason) == "TTLExpiredException" {
                    self.assert_expires_on_time(fact);
                }
                self.held.remove(&place);
                let there = (StoreKind::DeadLetters, moved_to.0);
                self.enter(there, fact.at, Timestamp::NEVER);
            }
            FactKind::Removed => {
                self.at(place);
                self.held.remove(&place);
            }
            FactKind::ClockAdvanced { .. } | FactKind::Refused { .. } => {
                panic!("only the shell says {fact:?}")
            }
        }
    }

    fn enter(&mut self, place: Place, at: Timestamp, expires_at: Timestamp) {
        let new = Held {
            lock: None,
            free_since: at,
            expires_at,
        };
        assert!(
            self.held.insert(place, new).is_none(),
            "{place:?} is not new"
        );
    }

    fn free(&mut self, place: Place, at: Timestamp) {
        let held = self.at(place);
        held.lock = None;
        held.free_since = at;
    }

    fn at(&mut self, place: Place) -> &mut Held {
        self.held
            .get_mut(&place)
            .unwrap_or_else(|| panic!("{place:?} is not there"))
    }

    fn assert_locked(&mut self, fact: &Fact) {
        let lock = self.at((fact.store, fact.number.0)).lock;
        assert!(
            lock.is_some_and(|until| fact.at < until),
            "{fact:?} without a lock"
        );
    }

    /// Nothing is handed out twice at a time, or after its time.
    fn assert_deliverable(&mut self, fact: &Fact) {
        let held = self.at((fact.store, fact.number.0));
        assert_eq!(held.lock, None, "{fact:?} under somebody's lock");
        assert!(fact.at < held.expires_at, "{fact:?} past its time");
    }

    /// Not too early; and not too late, unless a lock or the absence of receivers delayed it.
    fn assert_expires_on_time(&mut self, fact: &Fact) {
        let eager = self.eager;
        let held = self.at((fact.store, fact.number.0));
        assert_eq!(held.lock, None, "{fact:?} under a lock");
        let due = held.expires_at.max(held.free_since);
        assert!(due <= fact.at, "{fact:?} too early");
        assert!(due == fact.at || !eager, "{fact:?} too late");
    }

    fn assert_nothing_is_overdue(&self, now: Timestamp) {
        for (place, held) in &self.held {
            match held.lock {
                Some(until) => assert!(now < until, "the lock of {place:?} should be over"),
                None => assert!(
                    now < held.expires_at || !self.eager,
                    "{place:?} should be gone"
                ),
            }
        }
    }
}
