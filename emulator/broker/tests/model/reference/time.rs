//! What time does to the reference's messages, and where a message goes when its lock is over.

use std::rc::Rc;

use servicebus_broker::StoreKind::{self, Active, DeadLetters, TransferDeadLetters};
use servicebus_broker::{Expiry, FailedForwards, QueueDescription};

use super::queue::{Letter, State};
use super::{Reference, What};
use crate::history::Place;

/// Why a message is dead-lettered.
pub(super) enum Cause {
    Deliveries(u32),
    Expired,
    HeaderSize,
    /// With reason and description.
    Transfer(&'static str, String),
    Hops,
    NoSession,
    Client(Option<&'static str>, Option<&'static str>),
}

/// What is due, when, in the order in which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due(i64, StoreKind, Event, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    LockEnds,
    SessionLockEnds,
    Expires,
    Activates,
    Retries,
}

impl Reference {
    pub(super) fn let_pass(&mut self, q: usize) {
        self.let_happen(q, i64::MIN);
        if self.idle_at(q).is_some_and(|at| at <= self.now) {
            self.at(q).is_idle = true;
            self.leaving.push(q);
        }
    }

    /// Everything that is due by now, in order; nothing of it before `earliest`.
    pub(super) fn let_happen(&mut self, q: usize, earliest: i64) {
        self.touched[q] = true;
        let mut last = None;
        while let Some(Due(at, kind, event, number)) =
            self.next_due(q).filter(|due| due.0 <= self.now)
        {
            let at = at.max(earliest);
            if last.replace(at).is_some_and(|last| last < at) {
                self.serve_granted(q);
            }
            match event {
                Event::LockEnds => self.lock_expired((q, kind), number, at),
                Event::SessionLockEnds => self.session_lock_expired(q, number, at),
                Event::Expires => self.expire(q, number, at),
                Event::Activates => {
                    let letter = self.remove((q, Active), number);
                    let moved_to = (self.store(q, Active).last + 1) | (letter.partition << 48);
                    self.note_at(at, (q, Active), number, What::Activated(moved_to));
                    let letter = Letter {
                        enqueued_number: match letter.is_moved {
                            true => letter.enqueued_number,
                            false => moved_to,
                        },
                        was_scheduled: true,
                        ..letter
                    };
                    self.enqueue(q, at, letter, false);
                    // Until now the scheduled message kept the queue.
                    self.at(q).used_at = at;
                }
                Event::Retries => {
                    let store = self.store(q, kind);
                    store.retries_at = None;
                    store.restore_all();
                }
            }
        }
        if last.is_some() {
            self.serve(q);
        }
    }

    pub(crate) fn deadline(&self, q: usize) -> Option<i64> {
        let due = self.next_due(q).map(|due| due.0);
        due.into_iter().chain(self.idle_at(q)).min()
    }

    fn next_due(&self, q: usize) -> Option<Due> {
        let queue = self.queue(q)?;
        let eager = self.settings.expiry == Expiry::Eager;
        let in_store = |kind: StoreKind| {
            let store = queue.store(kind);
            let expires = eager || queue.target(kind).is_some() || queue.is_awaited(kind);
            store.letters.iter().filter_map(move |l| match l.state {
                State::Locked { until, .. } if until < i64::MAX => {
                    Some(Due(until, kind, Event::LockEnds, l.number))
                }
                State::Scheduled(at) => Some(Due(at, kind, Event::Activates, l.number)),
                State::Ready | State::Assigned(_) if expires => {
                    Some(Due(l.expires_at?, kind, Event::Expires, l.number))
                }
                State::Locked { .. } | State::Ready | State::Assigned(_) | State::Deferred => None,
            })
        };
        let holds = queue.sessions.holds.iter();
        let retry = |kind| Some(Due(queue.store(kind).retries_at?, kind, Event::Retries, 0));
        let retries = StoreKind::ALL.into_iter().filter_map(retry);
        let sessions = holds.map(|h| Due(h.until, Active, Event::SessionLockEnds, h.consumer));
        let messages = StoreKind::ALL.into_iter().flat_map(in_store);
        messages.chain(sessions).chain(retries).min()
    }

    /// When a queue is deleted because nobody uses it.
    fn idle_at(&self, q: usize) -> Option<i64> {
        let queue = self.queue(q)?;
        let idle = queue.description.auto_delete_on_idle?.as_millis() as i64;
        let is_kept = queue.is_idle
            || queue.description.forward_to.is_some()
            || queue
                .description
                .forward_dead_lettered_messages_to
                .is_some()
            || queue.store(Active).letters.iter().any(Letter::is_scheduled)
            || StoreKind::ALL
                .into_iter()
                .any(|kind| queue.is_awaited(kind));
        (!is_kept).then_some(queue.used_at + idle)
    }

    pub(super) fn lock_expired(&mut self, place @ (q, kind): Place, number: u64, at: i64) {
        let letter = self.store(q, kind).letter(number);
        letter.count += u32::from(kind == Active);
        let count = letter.count;
        let State::Locked {
            consumer: former, ..
        } = letter.state
        else {
            panic!("#{number} has no lock");
        };
        self.note_at(at, place, number, What::LockExpired(count));
        self.unlock(place, number, at);
        let mut letters = self.store(q, kind).letters.iter_mut();
        let back = letters.find(|l| l.number == number && l.state == State::Ready);
        if let Some(letter) = back {
            letter.former = Some(former);
        }
    }

    /// A lock is over: expiry comes before the delivery limit, but not for what is deferred.
    pub(super) fn unlock(&mut self, (q, kind): Place, number: u64, at: i64) {
        let limit = self.at(q).description.max_delivery_count;
        let letter = self.store(q, kind).letter(number);
        if !letter.is_deferred() && letter.expires_at.is_some_and(|expires| expires <= at) {
            self.expire(q, number, at);
        } else if kind == Active && letter.count >= limit {
            self.bury(q, number, at, Cause::Deliveries(limit));
        } else {
            letter.state = match letter.is_deferred() {
                true => State::Deferred,
                false => State::Ready,
            };
        }
    }

    pub(super) fn expire(&mut self, q: usize, number: u64, at: i64) {
        if self.at(q).description.dead_lettering_on_message_expiration {
            self.bury(q, number, at, Cause::Expired);
        } else {
            self.remove((q, Active), number);
            self.note_at(at, (q, Active), number, What::Expired);
        }
    }

    /// Moves a message to the dead letters, or to what could not be forwarded.
    pub(super) fn bury(&mut self, q: usize, number: u64, at: i64, cause: Cause) {
        let transfer = matches!(cause, Cause::Transfer(..) | Cause::Hops);
        let kept_apart = self.settings.failed_forwards == FailedForwards::TransferDeadLetter;
        let place = match transfer && kept_apart {
            true => TransferDeadLetters,
            false => DeadLetters,
        };
        let stays = matches!(cause, Cause::Hops) && !kept_apart;
        let by_client = matches!(cause, Cause::Client(..));
        let (reason, description) = cause.texts();
        let mut letter = self.remove((q, Active), number);
        let texts = [
            ("DeadLetterReason", &reason),
            ("DeadLetterErrorDescription", &description),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                letter.properties.set(name, Rc::from(text.as_str()));
            }
        }
        letter.measure();
        let store = self.store(q, place);
        store.last += 1;
        let there = store.last;
        let letter = Letter {
            number: there,
            is_moved: true,
            expires_at: None,
            stays,
            former: None,
            state: State::Ready,
            ..letter
        };
        let there = letter.shown();
        self.push((q, place), letter);
        let (reason, description) = (reason.unwrap_or_default(), description.unwrap_or_default());
        let what = match place {
            TransferDeadLetters => What::TransferFailed(there, reason, description),
            Active | DeadLetters => What::DeadLettered(there, reason, description),
        };
        self.write(at, (q, Active), number, by_client, what);
    }

    pub(super) fn lose_locks(&mut self, q: usize) {
        self.lose_sessions(q);
        for kind in StoreKind::ALL {
            let letters = self.store(q, kind).letters.iter();
            let locks = letters.filter_map(|l| Some((l.locked_until()?, l.number)));
            let mut locks: Vec<_> = locks.collect();
            locks.sort_unstable();
            for (_, number) in locks {
                self.lock_expired((q, kind), number, self.now);
            }
        }
    }

    pub(super) fn update(&mut self, q: usize, description: QueueDescription) {
        self.begin(q);
        self.forget_ids(q);
        let queue = self.at(q);
        let before = std::mem::replace(&mut queue.description, description.clone());
        queue
            .stores
            .iter_mut()
            .for_each(|store| store.restore_all());
        let status = before.status;
        if before
            != (QueueDescription {
                status,
                ..description.clone()
            })
        {
            self.lose_locks(q);
        }
        if before.default_message_time_to_live != description.default_message_time_to_live {
            self.change_expiries(q);
        }
        self.at(q).stores.iter_mut().for_each(|store| {
            store.retries_at = None;
        });
        if description.max_delivery_count < before.max_delivery_count {
            self.bury_delivered_too_often(q);
        }
        self.let_happen(q, self.now);
        self.serve(q);
    }

    /// What goes on begins anew elsewhere.
    fn bury_delivered_too_often(&mut self, q: usize) {
        let queue = self.at(q);
        let (limit, sends_on) = (queue.description.max_delivery_count, queue.sends_on(Active));
        let letters = queue.store(Active).letters.iter();
        let past = letters.filter(|l| match l.state {
            State::Ready => l.count >= limit && (l.stays || !sends_on),
            State::Deferred => l.count >= limit,
            State::Assigned(_) | State::Locked { .. } | State::Scheduled(_) => false,
        });
        for number in past.map(|letter| letter.number).collect::<Vec<_>>() {
            self.bury(q, number, self.now, Cause::Deliveries(limit));
        }
    }

    /// Of messages that brought no time to live.
    fn change_expiries(&mut self, q: usize) {
        let queue = self.at(q);
        let default = queue.description.default_message_time_to_live;
        let default = default.map(|default| default.as_millis() as i64);
        let letters = queue.store_mut(Active).letters.iter_mut();
        for letter in letters.filter(|l| l.draft.time_to_live.is_none()) {
            letter.expires_at = default.map(|default| letter.lives_since() + default);
        }
    }
}

impl Cause {
    fn texts(self) -> (Option<String>, Option<String>) {
        let (reason, description) = match self {
            Self::Client(reason, description) => {
                return (reason.map(str::to_owned), description.map(str::to_owned));
            }
            Self::Deliveries(limit) => (
                "MaxDeliveryCountExceeded",
                format!("Message could not be consumed after {limit} delivery attempts."),
            ),
            Self::Expired => (
                "TTLExpiredException",
                "The message expired and was dead lettered.".into(),
            ),
            Self::HeaderSize => (
                "HeaderSizeExceeded",
                "The size quota for this stream has been exceeded.".into(),
            ),
            Self::NoSession => (
                "Session ID is null.",
                "Session enabled entity doesn't allow a message whose session identifier is null."
                    .into(),
            ),
            Self::Hops => (
                "MaxTransferHopCountExceeded",
                "The maximum number of allowed hops when forwarding between queues. Value is set to 4."
                    .into(),
            ),
            Self::Transfer(reason, description) => (reason, description),
        };
        (Some(reason.into()), Some(description))
    }
}
