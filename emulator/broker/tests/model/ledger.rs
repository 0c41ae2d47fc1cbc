//! What must hold whatever the reference says: conclusions from the facts and effects alone.

use std::collections::BTreeSet;

use servicebus_broker::{ConsumerId, Expiry, SequenceNumber, StoreKind};

use crate::history::{OfSession, Place, QUEUES, Rules, Step};
use crate::word::{What, Word, session_text};
use crate::world::World;

/// A fold over everything that was ever said.
#[derive(Debug)]
pub(crate) struct Ledger {
    eager: bool,
    /// Messages that came in and have not gone for a recorded reason.
    held: [Vec<Held>; QUEUES],
    /// Sessions that somebody holds.
    sessions: [BTreeSet<u8>; QUEUES],
    /// Consumers that were told to take and have not.
    told: BTreeSet<u64>,
    /// Consumers that know that there is more, because they took less than there was.
    knowing: BTreeSet<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    store: StoreKind,
    number: u64,
    state: State,
    free_since: i64,
    /// None when it does not expire, or when an update may have changed it.
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
            told: BTreeSet::new(),
            knowing: BTreeSet::new(),
        }
    }

    /// Reads what a step caused, then looks at what there is.
    pub(crate) fn check(
        &mut self,
        step: &Step,
        words: &[Word],
        world: &World,
        open: &[(Place, u64)],
    ) {
        self.forget_expiries(step);
        for word in words {
            let loses = matches!(
                step,
                Step::Update(..) | Step::LoseLocks(_) | Step::Session(_, _, OfSession::Lose)
            );
            self.read(word, loses);
            if let What::SessionRenewed(session, until) = word.what {
                self.renew_locks_of(word.queue, session, until, world);
            }
            self.forget_expiries(step);
        }
        self.read_effects(step, world);
        self.note_who_took(step, world);
        for &(place, id) in open {
            let waits = world.assigned(place, id) > 0;
            let knows = self.told.contains(&id) || self.knowing.contains(&id);
            assert!(knows || !waits, "nobody told {id}");
        }
        for (q, held) in self.held.iter_mut().enumerate() {
            match world.mailbox(q) {
                None => {
                    held.clear();
                    self.sessions[q].clear();
                }
                Some(mailbox) if world.touched[q] => {
                    let active = mailbox.counts(StoreKind::Active);
                    let count = |kind| held.iter().filter(|held| held.store == kind).count();
                    let counts = (active.active + active.scheduled, active.dead_letter);
                    let expected = (count(StoreKind::Active), count(StoreKind::DeadLetters));
                    assert_eq!(counts, expected, "a message is lost");
                    if !matches!(step, Step::Open(..) | Step::Create(..)) {
                        assert_nothing_is_overdue(held, world.now(), self.eager);
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// An update may change when messages expire, and says nothing of it.
    fn forget_expiries(&mut self, step: &Step) {
        if let &Step::Update(q, _) = step {
            let held = self.held[q].iter_mut();
            held.for_each(|held| held.expires_at = None);
        }
    }

    /// Locks of messages last as long as that of their session.
    fn renew_locks_of(&mut self, q: usize, session: u8, until: i64, world: &World) {
        let mailbox = world.mailbox(q).expect("it was renewed there");
        let session = session_text(session);
        for (stamp, message) in mailbox.look(StoreKind::Active, SequenceNumber(0)) {
            let own = message.session_id().is_some_and(|own| own == session);
            let number = stamp.sequence_number.0;
            let mut held = self.held[q].iter_mut();
            let held = held.find(|h| own && h.store == StoreKind::Active && h.number == number);
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
        let asking = if let Step::Credit(place, id, _) | Step::Take(place, id, _) = *step {
            Some((id, world.assigned(place, id)))
        } else {
            None
        };
        for &ConsumerId(consumer) in &world.woken {
            let new = self.told.insert(consumer);
            // Who takes, or sets its credit with nothing assigned, is told again.
            let asks = asking.is_some_and(|(id, _)| id == consumer);
            assert!(new || asks, "{consumer} was told twice");
        }
        if let (Step::Credit(..), Some((id, 0))) = (step, asking) {
            self.told.remove(&id);
        }
    }

    fn note_who_took(&mut self, step: &Step, world: &World) {
        if let &Step::Take(place, id, max) = step
            && max > 0
        {
            self.told.remove(&id);
            match world.assigned(place, id) {
                0 => self.knowing.remove(&id),
                _ => self.knowing.insert(id),
            };
        }
    }

    /// `drops_locks`: whether locks may end before their time.
    fn read(&mut self, word: &Word, drops_locks: bool) {
        let at = word.at;
        match word.what {
            What::Enqueued(_, _, expires_at) => {
                self.enter(word, word.store, word.number).expires_at = expires_at;
            }
            What::Scheduled(_, _, active_at) => {
                self.enter(word, word.store, word.number).state = State::Scheduled(active_at);
            }
            What::Activated(_) => {
                let held = self.leave(word);
                assert_eq!(held.state, State::Scheduled(at), "{word:?} at another time");
            }
            What::Cancelled => {
                let state = self.leave(word).state;
                assert!(
                    matches!(state, State::Scheduled(due) if at < due),
                    "{word:?} too late"
                );
            }
            What::Delivered(_, until) => {
                assert!(at < until, "{word:?} locks nothing");
                let held = self.at(word);
                held.assert_deliverable(word);
                held.state = State::Locked(until, held.state == State::Deferred);
            }
            What::Renewed(until) => {
                let deferred = self.at(word).assert_locked(word);
                self.at(word).state = State::Locked(until, deferred);
            }
            What::Abandoned(_) | What::Released => {
                let deferred = self.at(word).assert_locked(word);
                self.at(word).free(at, deferred);
            }
            What::LockExpired(_) => self.at(word).lock_expired(word, drops_locks),
            What::Deferred => {
                self.at(word).assert_locked(word);
                self.at(word).free(at, true);
            }
            What::Completed => {
                self.leave(word).assert_locked(word);
            }
            What::ReceivedAndDeleted => self.leave(word).assert_deliverable(word),
            What::Expired => {
                let eager = self.eager;
                self.leave(word).assert_expires_on_time(word, eager);
            }
            What::DeadLettered(there, ref reason, _) => self.read_burial(word, there, reason),
            What::TransferFailed(there, ..) => {
                assert_eq!(self.leave(word).state, State::Free, "{word:?} was not free");
                self.enter(word, StoreKind::TransferDeadLetters, there);
            }
            What::Forwarded(_) | What::Deleted => {
                assert_eq!(self.leave(word).state, State::Free, "{word:?} was not free");
            }
            What::Removed => {
                self.leave(word);
            }
            What::SessionAccepted(..)
            | What::SessionRenewed(..)
            | What::StateSet(..)
            | What::SessionExpired(_)
            | What::SessionReleased(_) => self.read_session(word),
            What::Duplicate(_) => assert_eq!(word.number, 0, "{word:?} was kept"),
        }
    }

    fn read_burial(&mut self, word: &Word, there: u64, reason: &str) {
        let held = self.leave(word);
        if word.by_client {
            held.assert_locked(word);
        }
        if reason == "TTLExpiredException" && !word.by_client {
            held.assert_expires_on_time(word, self.eager);
        }
        self.enter(word, StoreKind::DeadLetters, there);
    }

    /// A session is held by one at a time.
    fn read_session(&mut self, word: &Word) {
        let held = &mut self.sessions[word.queue];
        if let What::SessionAccepted(session, until) = word.what {
            assert!(word.at < until, "{word:?} locks nothing");
            assert!(held.insert(session), "{word:?}: somebody holds it");
        } else if let What::SessionRenewed(session, _) | What::StateSet(session, _) = word.what {
            assert!(held.contains(&session), "{word:?}: nobody holds it");
        } else if let What::SessionExpired(session) | What::SessionReleased(session) = word.what {
            assert!(held.remove(&session), "{word:?}: nobody holds it");
        }
    }

    fn enter(&mut self, word: &Word, store: StoreKind, number: u64) -> &mut Held {
        let held = &mut self.held[word.queue];
        let is_new = !held.iter().any(|h| h.store == store && h.number == number);
        assert!(is_new, "{word:?}: {number} is not new");
        held.push(Held {
            store,
            number,
            state: State::Free,
            free_since: word.at,
            expires_at: None,
        });
        held.last_mut().expect("it was pushed")
    }

    fn place(&self, word: &Word) -> usize {
        let mut held = self.held[word.queue].iter();
        held.position(|h| h.store == word.store && h.number == word.number)
            .unwrap_or_else(|| panic!("{word:?} is not there"))
    }

    fn at(&mut self, word: &Word) -> &mut Held {
        let place = self.place(word);
        &mut self.held[word.queue][place]
    }

    fn leave(&mut self, word: &Word) -> Held {
        let place = self.place(word);
        self.held[word.queue].swap_remove(place)
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

    fn lock_expired(&mut self, word: &Word, drops_locks: bool) {
        let State::Locked(until, deferred) = self.state else {
            panic!("{word:?} without a lock");
        };
        let dropped = drops_locks && word.at < until;
        assert!(until == word.at || dropped, "{word:?} at another time");
        self.free(word.at, deferred);
    }

    /// Says whether the message was deferred before.
    fn assert_locked(&self, word: &Word) -> bool {
        match self.state {
            State::Locked(until, deferred) if word.at < until => deferred,
            State::Locked(..) | State::Free | State::Deferred | State::Scheduled(_) => {
                panic!("{word:?} without a lock: {self:?}")
            }
        }
    }

    /// Nothing is handed out twice at a time, or after its time.
    fn assert_deliverable(&self, word: &Word) {
        let free = matches!(self.state, State::Free | State::Deferred);
        assert!(free, "{word:?} is {self:?}");
        assert!(
            self.expires_at
                .is_none_or(|expires_at| word.at < expires_at),
            "{word:?} past its time"
        );
    }

    /// Not too early; and not too late, unless a lock, a deferral or the absence of receivers delayed it.
    fn assert_expires_on_time(&self, word: &Word, eager: bool) {
        let Some(expires_at) = self.expires_at else {
            return;
        };
        assert!(
            matches!(self.state, State::Free | State::Deferred),
            "{word:?} is {self:?}"
        );
        let due = expires_at.max(self.free_since);
        assert!(due <= word.at, "{word:?} too early");
        let punctual = due == word.at || !eager || self.state == State::Deferred;
        assert!(punctual, "{word:?} too late");
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
