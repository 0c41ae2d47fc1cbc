//! Compares the real queues with the reference: everything visible after each step.

use servicebus_broker::{
    BrokerProperties, Events, Message, ReceiveMode, ReceiverId, SequenceNumber, SubQueue,
};

use crate::START;
use crate::event::id_of;
use crate::history::{NAMES, ObservedMessage, QUEUES, Rules, Step, StoreAddress, Transition};
use crate::ledger::Ledger;
use crate::names::Names;
use crate::reference::{ListedSession, Queue, Reference};
use crate::world::World;
use crate::world::wire::properties;

pub(crate) struct Pair {
    pub(crate) names: Names,
    reference: Reference,
    world: World,
    ledger: Ledger,
    /// The history so far, if it is printed.
    pub(crate) steps: Option<Vec<Step>>,
}

/// Applies a history to both; panics at the first difference.
pub(crate) fn run(rules: &Rules, transitions: &[Transition]) {
    let mut pair = Pair::new(rules);
    for transition in transitions {
        pair.follow(transition);
    }
    pair.receive_what_is_left();
}

impl Pair {
    pub(crate) fn new(rules: &Rules) -> Self {
        Self {
            names: Names::new(rules),
            reference: Reference::new(rules, START),
            world: World::new(rules, START, 1),
            ledger: Ledger::new(rules),
            steps: None,
        }
    }

    pub(crate) fn follow(&mut self, transition: &Transition) {
        if let Some(step) = self.names.resolve(transition, &self.reference) {
            self.take(&step);
        }
    }

    /// Applies one step to both and compares the results.
    fn take(&mut self, step: &Step) {
        if let Some(steps) = &mut self.steps {
            steps.push(step.clone());
        }
        let answer = self.world.apply(step);
        let expected = self.reference.apply(step);
        self.compare_words(step);
        assert_eq!(answer, expected, "answers to {step:?}");
        assert_eq!(self.world.lost, self.reference.lost, "lost by {step:?}");
        self.names.learn(step, &answer);
        for q in 0..QUEUES {
            if self.world.touched[q] || self.reference.touched[q] {
                self.compare(q, step);
            }
        }
        self.names.forget_lost(|q| self.world.entity(q).is_some());
        let events = &self.reference.log;
        self.ledger
            .check(step, events, &self.world, &self.names.open);
        self.world.events = Events::new();
        self.world.wire.clear();
        self.world.woken.clear();
        self.world.lost.clear();
        self.reference.lost.clear();
        self.reference.log.clear();
        self.world.touched = [false; QUEUES];
        self.reference.touched = [false; QUEUES];
    }

    fn compare_words(&mut self, step: &Step) {
        let same = self.world.events().eq(self.reference.log.iter().cloned());
        if !same {
            let events: Vec<_> = self.world.events().collect();
            assert_eq!(events, self.reference.log, "what {step:?} caused");
        }
    }

    fn compare(&self, q: usize, step: &Step) {
        let expected = self.reference.queue(q);
        let Some(entity) = self.world.entity(q) else {
            assert!(expected.is_none(), "{} is gone after {step:?}", NAMES[q]);
            return;
        };
        let expected = expected.unwrap_or_else(|| panic!("{} stays after {step:?}", NAMES[q]));
        entity.check_invariants();
        for kind in SubQueue::ALL {
            self.compare_store((q, kind), expected, step);
            assert_eq!(
                entity.counts(kind),
                expected.counts(kind),
                "counts of {kind:?} of {} after {step:?}",
                NAMES[q]
            );
        }
        assert_eq!(
            self.world.deadline(q),
            self.reference.deadline(q),
            "deadline of {} after {step:?}",
            NAMES[q]
        );
        let sessions = entity
            .snapshot_sessions()
            .map(|session| ListedSession::of(&session));
        assert_eq!(
            sessions.collect::<Vec<_>>(),
            expected.listed_sessions(),
            "sessions of {} after {step:?}",
            NAMES[q]
        );
        for &((at, kind), id) in &self.names.open {
            if at == q {
                let reserved = entity.reserved(kind, ReceiverId(id));
                let expected = expected.store(kind).reserved_to(id).len();
                assert_eq!(reserved, expected, "reserved to {id} after {step:?}");
            }
        }
    }

    fn compare_store(&self, (q, kind): StoreAddress, expected: &Queue, step: &Step) {
        let entity = self.world.entity(q).expect("it is there");
        let mut messages = expected.store(kind).messages.iter();
        for (broker_properties, message) in entity.snapshot(kind, SequenceNumber(0)) {
            let expected = messages.next().map(|next| expected.browsed(kind, next));
            let same = expected
                .as_ref()
                .is_some_and(|expected| is_same(expected, &broker_properties, message));
            if !same {
                let seen = crate::world::wire::see(&broker_properties, message);
                assert_eq!(
                    Some(seen),
                    expected,
                    "{kind:?} of {} after {step:?}",
                    NAMES[q]
                );
            }
        }
        let message = messages.next();
        assert!(
            message.is_none(),
            "{message:?} is missing in {kind:?} of {} after {step:?}",
            NAMES[q]
        );
    }

    /// Compares the order of messages up to the last one.
    fn receive_what_is_left(&mut self) {
        for (place, id) in std::mem::take(&mut self.names.open) {
            if self.world.entity(place.0).is_some() {
                self.take(&Step::Close(place, id));
            }
        }
        for q in 0..QUEUES {
            self.receive_sessions_that_are_left(q);
            for (at, kind) in SubQueue::ALL.into_iter().enumerate() {
                let queue = self.reference.queue(q);
                if queue.is_some_and(|queue| queue.has_sessions(kind)) {
                    continue;
                }
                if self.world.entity(q).is_some() {
                    let place = (q, kind);
                    let id = u64::MAX - (q * 3 + at) as u64;
                    self.names.open.push((place, id));
                    self.take(&Step::Open(place, id, ReceiveMode::ReceiveAndDelete, false));
                    self.take(&Step::Credit(place, id, 10_000));
                }
                if self.world.entity(q).is_some() {
                    let id = u64::MAX - (q * 3 + at) as u64;
                    self.take(&Step::Take((q, kind), id, usize::MAX));
                }
            }
        }
    }
}

impl Pair {
    /// No session starves while a receiver completes what it gets: the oldest message is next.
    fn receive_sessions_that_are_left(&mut self, q: usize) {
        let has_sessions = |queue: &Queue| queue.has_sessions(SubQueue::Active);
        if !self.reference.queue(q).is_some_and(has_sessions) {
            return;
        }
        let place = (q, SubQueue::Active);
        for round in 0.. {
            let id = u64::MAX - 100 - (q * 100 + round) as u64;
            self.names.open.push((place, id));
            self.take(&Step::Accept(q, id, ReceiveMode::ReceiveAndDelete, None));
            let entity = self.world.entity(q);
            let Some(accepted) = entity.map(|entity| entity.accepted_session(ReceiverId(id)))
            else {
                return;
            };
            if accepted.is_some() {
                self.take(&Step::Credit(place, id, 10_000));
                self.take(&Step::Take(place, id, usize::MAX));
            }
            self.names.open.retain(|&(_, open)| open != id);
            self.take(&Step::Close(place, id));
            if accepted.is_none() {
                break;
            }
        }
        let entity = self.world.entity(q).expect("it was there just now");
        if entity.description().status.can_receive() {
            let active = entity.snapshot_sessions().map(|session| session.active);
            assert_eq!(
                active.sum::<usize>(),
                0,
                "a session of {} starves",
                NAMES[q]
            );
        }
    }
}

/// Does the same as `see` without creating anything.
fn is_same(
    seen: &ObservedMessage,
    broker_properties: &BrokerProperties,
    message: &Message,
) -> bool {
    let section = message.application_properties();
    seen.number == broker_properties.sequence_number.0
        && seen.enqueued_number
            == broker_properties
                .enqueued_sequence_number
                .map(|number| number.0)
        && seen.id == id_of(&message.id())
        && seen.size == message.size()
        && seen.delivery_count == broker_properties.delivery_count
        && seen.enqueued_at == broker_properties.enqueued_at.as_millis()
        && seen.time_to_live == broker_properties.time_to_live
        && seen.state == broker_properties.state
        && broker_properties.lock.is_none()
        && (seen.properties.0.is_empty() == section.is_empty())
        && (section.is_empty() || seen.properties == properties(section))
}
