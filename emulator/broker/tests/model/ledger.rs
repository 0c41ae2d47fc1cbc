//! Invariants that do not depend on the reference: checked from the events and effects alone.

use std::collections::BTreeSet;

use servicebus_broker::{Expiry, ReceiverId, SequenceNumber, SubQueue};

use crate::event::{ModelEvent, ModelKind, session_text};
use crate::history::{QUEUES, Rules, SessionUse, Step, StoreAddress};
use crate::world::World;

/// The state that follows from all events.
#[derive(Debug)]
pub(crate) struct Ledger {
    eager: bool,
    /// Messages that arrived and have not left for a recorded reason.
    held: [Vec<Held>; QUEUES],
    /// Sessions that a receiver holds.
    sessions: [BTreeSet<u8>; QUEUES],
    /// Receivers that were woken and have not taken yet.
    notified: BTreeSet<u64>,
    /// Receivers that know that there are more messages, because they took fewer than were reserved.
    knowing: BTreeSet<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    store: SubQueue,
    number: u64,
    state: State,
    free_since: i64,
    /// `None` if it does not expire, or if an update may have changed it.
    expires_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    /// Until then; deferred before or not.
    Locked(i64, bool),
    Deferred,
    Scheduled(i64),
}

impl Ledger {
    pub(crate) fn new(rules: &Rules) -> Self {
        Self {
            eager: rules.settings.expiry == Expiry::Eager,
            held: [(); QUEUES].map(|()| Vec::new()),
            sessions: [(); QUEUES].map(|()| BTreeSet::new()),
            notified: BTreeSet::new(),
            knowing: BTreeSet::new(),
        }
    }

    /// Applies the events of a step, then checks the stores.
    pub(crate) fn check(
        &mut self,
        step: &Step,
        events: &[ModelEvent],
        world: &World,
        open: &[(StoreAddress, u64)],
    ) {
        self.forget_expiries(step);
        if let Step::Restart = step {
            self.forget_receivers(world);
        }
        for event in events {
            let loses = matches!(
                step,
                Step::Update(..)
                    | Step::LoseLocks(_)
                    | Step::Session(_, _, SessionUse::Lose)
                    | Step::Restart
            );
            self.read(event, loses);
            if let ModelKind::SessionRenewed(session, until) = event.what {
                self.renew_locks_of(event.queue, session, until, world);
            }
            self.forget_expiries(step);
        }
        self.read_effects(step, world);
        self.note_who_took(step, world);
        for &(place, id) in open {
            let waits = world.reserved(place, id) > 0;
            let knows = self.notified.contains(&id) || self.knowing.contains(&id);
            assert!(knows || !waits, "{id} was not told");
        }
        for (q, held) in self.held.iter_mut().enumerate() {
            match world.entity(q) {
                None => {
                    held.clear();
                    self.sessions[q].clear();
                }
                Some(entity) if world.touched[q] => {
                    let active = entity.counts(SubQueue::Active);
                    let count = |kind| held.iter().filter(|held| held.store == kind).count();
                    let counts = (active.active + active.scheduled, active.dead_letter);
                    let expected = (count(SubQueue::Active), count(SubQueue::DeadLetter));
                    assert_eq!(counts, expected, "a message is lost");
                    if !matches!(step, Step::Open(..) | Step::Create(..)) {
                        assert_nothing_is_overdue(held, world.now(), self.eager);
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// The locks of sessions end without an event, including those that were due and had not ended yet.
    fn forget_receivers(&mut self, world: &World) {
        self.notified.clear();
        self.knowing.clear();
        for (q, held) in self.held.iter_mut().enumerate() {
            self.sessions[q].clear();
            let entity = world.entity(q);
            let has_sessions = entity.is_some_and(|entity| entity.description().requires_session);
            let own = held
                .iter_mut()
                .filter(|held| held.store == SubQueue::Active);
            for held in own.filter(|_| has_sessions) {
                if let State::Locked(until, _) = &mut held.state {
                    *until = (*until).max(world.now());
                }
            }
        }
    }

    /// An update may change when messages expire, without an event.
    fn forget_expiries(&mut self, step: &Step) {
        if let &Step::Update(q, _) = step {
            let held = self.held[q].iter_mut();
            held.for_each(|held| held.expires_at = None);
        }
    }

    /// Locks of messages last as long as that of their session.
    fn renew_locks_of(&mut self, q: usize, session: u8, until: i64, world: &World) {
        let entity = world.entity(q).expect("it was renewed there");
        let session = session_text(session);
        for (broker_properties, message) in entity.snapshot(SubQueue::Active, SequenceNumber(0)) {
            let own = message.session_id().is_some_and(|own| own == session);
            let number = broker_properties.sequence_number.0;
            let mut held = self.held[q].iter_mut();
            let held = held.find(|h| own && h.store == SubQueue::Active && h.number == number);
            if let Some(Held {
                state: State::Locked(end, _),
                ..
            }) = held
            {
                *end = until;
            }
        }
    }

    fn read_effects(&mut self, step: &Step, world: &World) {
        let asking = if let Step::Credit(place, id, _)
        | Step::Take(place, id, _)
        | Step::Skip(place, id) = *step
        {
            Some((id, world.reserved(place, id)))
        } else {
            None
        };
        for &ReceiverId(receiver) in &world.woken {
            let new = self.notified.insert(receiver);
            // A receiver that takes, or sets its credit with nothing reserved, is woken again.
            let asks = asking.is_some_and(|(id, _)| id == receiver);
            assert!(new || asks, "{receiver} was told twice");
        }
        if let (Step::Credit(..), Some((id, 0))) = (step, asking) {
            self.notified.remove(&id);
        }
    }

    fn note_who_took(&mut self, step: &Step, world: &World) {
        // A receiver that skips a message has looked at it all the same.
        if let Step::Take(place, id, 1..) | Step::Skip(place, id) = *step {
            self.notified.remove(&id);
            match world.reserved(place, id) {
                0 => self.knowing.remove(&id),
                _ => self.knowing.insert(id),
            };
        }
    }

    /// `drops_locks`: whether locks may end before their time.
    fn read(&mut self, event: &ModelEvent, drops_locks: bool) {
        let at = event.at;
        match event.what {
            ModelKind::Enqueued(_, _, expires_at) => {
                self.enter(event, event.store, event.number).expires_at = expires_at;
            }
            ModelKind::Scheduled(_, _, active_at) => {
                self.enter(event, event.store, event.number).state = State::Scheduled(active_at);
            }
            ModelKind::Activated(_) => {
                let held = self.leave(event);
                assert_eq!(
                    held.state,
                    State::Scheduled(at),
                    "{event:?} at another time"
                );
            }
            ModelKind::Cancelled => {
                let state = self.leave(event).state;
                assert!(
                    matches!(state, State::Scheduled(due) if at < due),
                    "{event:?} too late"
                );
            }
            ModelKind::Delivered(_, until) => {
                assert!(at < until, "{event:?} locks nothing");
                let held = self.at(event);
                held.assert_deliverable(event);
                held.state = State::Locked(until, held.state == State::Deferred);
            }
            ModelKind::Renewed(until) => {
                let deferred = self.at(event).assert_locked(event);
                self.at(event).state = State::Locked(until, deferred);
            }
            ModelKind::Abandoned(_) | ModelKind::Released => {
                let deferred = self.at(event).assert_locked(event);
                self.at(event).free(at, deferred);
            }
            ModelKind::LockExpired(_) => self.at(event).expire_lock(event, drops_locks),
            ModelKind::Deferred => {
                self.at(event).assert_locked(event);
                self.at(event).free(at, true);
            }
            ModelKind::Completed => {
                self.leave(event).assert_locked(event);
            }
            ModelKind::ReceivedAndDeleted => self.leave(event).assert_deliverable(event),
            ModelKind::Expired => {
                let eager = self.eager;
                self.leave(event).assert_expires_on_time(event, eager);
            }
            ModelKind::DeadLettered(there, ref reason, _) => self.read_burial(event, there, reason),
            ModelKind::TransferFailed(there, ..) => {
                self.leave_free(event);
                self.enter(event, SubQueue::TransferDeadLetter, there);
            }
            ModelKind::Forwarded(_) | ModelKind::Deleted => self.leave_free(event),
            ModelKind::Removed => {
                self.leave(event);
            }
            ModelKind::SessionAccepted(..)
            | ModelKind::SessionRenewed(..)
            | ModelKind::StateSet(..)
            | ModelKind::SessionExpired(_)
            | ModelKind::SessionReleased(_) => self.read_session(event),
            ModelKind::Duplicate(_) => assert_eq!(event.number, 0, "{event:?} was kept"),
        }
    }

    fn leave_free(&mut self, event: &ModelEvent) {
        let state = self.leave(event).state;
        assert_eq!(state, State::Free, "{event:?} was not free");
    }

    fn read_burial(&mut self, event: &ModelEvent, there: u64, reason: &str) {
        let held = self.leave(event);
        if event.by_client {
            held.assert_locked(event);
        }
        if reason == "TTLExpiredException" && !event.by_client {
            held.assert_expires_on_time(event, self.eager);
        }
        self.enter(event, SubQueue::DeadLetter, there);
    }

    /// A session is held by one at a time.
    fn read_session(&mut self, event: &ModelEvent) {
        let held = &mut self.sessions[event.queue];
        if let ModelKind::SessionAccepted(session, until) = event.what {
            assert!(event.at < until, "{event:?} locks nothing");
            assert!(held.insert(session), "{event:?}: it is held");
        } else if let ModelKind::SessionRenewed(session, _) | ModelKind::StateSet(session, _) =
            event.what
        {
            assert!(held.contains(&session), "{event:?}: it is not held");
        } else if let ModelKind::SessionExpired(session) | ModelKind::SessionReleased(session) =
            event.what
        {
            assert!(held.remove(&session), "{event:?}: it is not held");
        }
    }

    fn enter(&mut self, event: &ModelEvent, store: SubQueue, number: u64) -> &mut Held {
        let held = &mut self.held[event.queue];
        let is_new = !held.iter().any(|h| h.store == store && h.number == number);
        assert!(is_new, "{event:?}: {number} is not new");
        held.push(Held {
            store,
            number,
            state: State::Free,
            free_since: event.at,
            expires_at: None,
        });
        held.last_mut().expect("it was pushed")
    }

    fn place(&self, event: &ModelEvent) -> usize {
        let mut held = self.held[event.queue].iter();
        held.position(|h| h.store == event.store && h.number == event.number)
            .unwrap_or_else(|| panic!("{event:?} is not there"))
    }

    fn at(&mut self, event: &ModelEvent) -> &mut Held {
        let place = self.place(event);
        &mut self.held[event.queue][place]
    }

    fn leave(&mut self, event: &ModelEvent) -> Held {
        let place = self.place(event);
        self.held[event.queue].swap_remove(place)
    }
}

impl Held {
    fn free(&mut self, at: i64, deferred: bool) {
        self.free_since = at;
        self.state = match deferred {
            true => State::Deferred,
            false => State::Free,
        };
    }

    fn expire_lock(&mut self, event: &ModelEvent, drops_locks: bool) {
        let State::Locked(until, deferred) = self.state else {
            panic!("{event:?} without a lock");
        };
        let dropped = drops_locks && event.at < until;
        assert!(until == event.at || dropped, "{event:?} at another time");
        self.free(event.at, deferred);
    }

    /// Returns whether the message was deferred before.
    fn assert_locked(&self, event: &ModelEvent) -> bool {
        match self.state {
            State::Locked(until, deferred) if event.at < until => deferred,
            State::Locked(..) | State::Free | State::Deferred | State::Scheduled(_) => {
                panic!("{event:?} without a lock: {self:?}")
            }
        }
    }

    /// No message is delivered twice at a time, or after its time.
    fn assert_deliverable(&self, event: &ModelEvent) {
        let free = matches!(self.state, State::Free | State::Deferred);
        assert!(free, "{event:?} is {self:?}");
        assert!(
            self.expires_at
                .is_none_or(|expires_at| event.at < expires_at),
            "{event:?} past its time"
        );
    }

    /// Not too early; and not too late, unless a lock, a deferral or the absence of receivers delayed it.
    fn assert_expires_on_time(&self, event: &ModelEvent, eager: bool) {
        let Some(expires_at) = self.expires_at else {
            return;
        };
        assert!(
            matches!(self.state, State::Free | State::Deferred),
            "{event:?} is {self:?}"
        );
        let due = expires_at.max(self.free_since);
        assert!(due <= event.at, "{event:?} too early");
        let punctual = due == event.at || !eager || self.state == State::Deferred;
        assert!(punctual, "{event:?} too late");
    }
}

fn assert_nothing_is_overdue(all: &[Held], now: i64, eager: bool) {
    for held in all {
        let due = match held.state {
            State::Locked(until, _) => Some(until),
            State::Scheduled(at) => Some(at),
            State::Free if eager => held.expires_at,
            State::Free | State::Deferred => None,
        };
        assert!(due.is_none_or(|due| now < due), "{held:?} is overdue");
    }
}
