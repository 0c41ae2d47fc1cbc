//! Deadlines of the reference, and where a message goes when its lock ends.

use std::rc::Rc;

use servicebus_broker::SubQueue::{self, Active, DeadLetter, TransferDeadLetter};
use servicebus_broker::{EntityDescription, Expiry, FailedForwards};

use super::queue::{ModelMessage, State};
use super::{ModelKind, Reference};
use crate::history::{QUEUES, StoreAddress};

/// Why a message is dead-lettered.
pub(crate) enum Cause {
    Deliveries(u32),
    Expired,
    HeaderSize,
    /// With reason and description.
    Transfer(&'static str, String),
    Hops,
    NoSession,
    Client(Option<&'static str>, Option<&'static str>),
}

/// The kinds of deadlines, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due(i64, SubQueue, DueEvent, u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DueEvent {
    LockEnds,
    SessionLockEnds,
    Expires,
    Activates,
    Retries,
}

impl Reference {
    pub(crate) fn let_pass(&mut self, q: usize) {
        self.run_due(q, i64::MIN);
        if self.idle_at(q).is_some_and(|at| at <= self.now) {
            self.at(q).is_idle = true;
            self.leaving.push(q);
        }
    }

    /// Everything that is due by now, in order; not before `earliest`.
    pub(crate) fn run_due(&mut self, q: usize, earliest: i64) {
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
                DueEvent::LockEnds => self.expire_lock((q, kind), number, at),
                DueEvent::SessionLockEnds => self.session_lock_expired(q, number, at),
                DueEvent::Expires => self.expire(q, number, at),
                DueEvent::Activates => {
                    let message = self.remove((q, Active), number);
                    let moved_to = (self.store(q, Active).last + 1) | (message.partition << 48);
                    self.note_at(at, (q, Active), number, ModelKind::Activated(moved_to));
                    let message = ModelMessage {
                        enqueued_number: match message.is_moved {
                            true => message.enqueued_number,
                            false => moved_to,
                        },
                        was_scheduled: true,
                        ..message
                    };
                    self.enqueue(q, at, message, false);
                    // Until now the scheduled message kept the queue from being idle.
                    self.at(q).used_at = at;
                }
                DueEvent::Retries => {
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
        let in_store = |kind: SubQueue| {
            let store = queue.store(kind);
            let expires = eager || queue.target(kind).is_some() || queue.is_awaited(kind);
            store.messages.iter().filter_map(move |l| match l.state {
                State::Locked { until, .. } if until < i64::MAX => {
                    Some(Due(until, kind, DueEvent::LockEnds, l.number))
                }
                State::Scheduled(at) => Some(Due(at, kind, DueEvent::Activates, l.number)),
                State::Ready | State::Assigned(_) if expires => {
                    Some(Due(l.expires_at?, kind, DueEvent::Expires, l.number))
                }
                State::Locked { .. } | State::Ready | State::Assigned(_) | State::Deferred => None,
            })
        };
        let holds = queue.sessions.holds.iter();
        let retry = |kind| {
            Some(Due(
                queue.store(kind).retries_at?,
                kind,
                DueEvent::Retries,
                0,
            ))
        };
        let retries = SubQueue::ALL.into_iter().filter_map(retry);
        let sessions = holds.map(|h| Due(h.until, Active, DueEvent::SessionLockEnds, h.receiver));
        let messages = SubQueue::ALL.into_iter().flat_map(in_store);
        messages.chain(sessions).chain(retries).min()
    }

    /// When an idle queue is deleted.
    fn idle_at(&self, q: usize) -> Option<i64> {
        let queue = self.queue(q)?;
        let idle = queue.description.auto_delete_on_idle?.as_millis() as i64;
        let is_kept = queue.is_idle
            || queue.description.forward_to.is_some()
            || queue
                .description
                .forward_dead_lettered_messages_to
                .is_some()
            || queue
                .store(Active)
                .messages
                .iter()
                .any(ModelMessage::is_scheduled)
            || SubQueue::ALL.into_iter().any(|kind| queue.is_awaited(kind));
        (!is_kept).then_some(queue.used_at + idle)
    }

    pub(crate) fn expire_lock(&mut self, place @ (q, kind): StoreAddress, number: u64, at: i64) {
        let message = self.store(q, kind).message(number);
        message.count += u32::from(kind == Active);
        let count = message.count;
        let State::Locked {
            receiver: former, ..
        } = message.state
        else {
            panic!("#{number} has no lock");
        };
        self.note_at(at, place, number, ModelKind::LockExpired(count));
        self.unlock(place, number, at);
        let mut messages = self.store(q, kind).messages.iter_mut();
        let back = messages.find(|l| l.number == number && l.state == State::Ready);
        if let Some(message) = back {
            message.former = Some(former);
        }
    }

    /// A lock has ended: expiry precedes the delivery limit, but not for deferred messages.
    pub(crate) fn unlock(&mut self, (q, kind): StoreAddress, number: u64, at: i64) {
        let limit = self.at(q).description.max_delivery_count;
        let message = self.store(q, kind).message(number);
        if !message.is_deferred() && message.expires_at.is_some_and(|expires| expires <= at) {
            self.expire(q, number, at);
        } else if kind == Active && message.count >= limit {
            self.move_to_dead_letters(q, number, at, Cause::Deliveries(limit));
        } else {
            message.state = match message.is_deferred() {
                true => State::Deferred,
                false => State::Ready,
            };
        }
    }

    pub(crate) fn expire(&mut self, q: usize, number: u64, at: i64) {
        if self.at(q).description.dead_lettering_on_message_expiration {
            self.move_to_dead_letters(q, number, at, Cause::Expired);
        } else {
            self.remove((q, Active), number);
            self.note_at(at, (q, Active), number, ModelKind::Expired);
        }
    }

    /// Moves a message to the dead letters, or to the transfer dead letters.
    pub(crate) fn move_to_dead_letters(&mut self, q: usize, number: u64, at: i64, cause: Cause) {
        let transfer = matches!(cause, Cause::Transfer(..) | Cause::Hops);
        let kept_apart = self.settings.failed_forwards == FailedForwards::TransferDeadLetter;
        let place = match transfer && kept_apart {
            true => TransferDeadLetter,
            false => DeadLetter,
        };
        let by_client = matches!(cause, Cause::Client(..));
        let (reason, description) = cause.texts();
        let mut message = self.remove((q, Active), number);
        let texts = [
            ("DeadLetterReason", &reason),
            ("DeadLetterErrorDescription", &description),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                message.properties.set(name, Rc::from(text.as_str()));
            }
        }
        message.measure();
        let store = self.store(q, place);
        store.last += 1;
        let there = store.last;
        let message = ModelMessage {
            number: there,
            is_moved: true,
            expires_at: None,
            stays: false,
            former: None,
            state: State::Ready,
            ..message
        };
        let there = message.shown();
        self.push((q, place), message);
        let (reason, description) = (reason.unwrap_or_default(), description.unwrap_or_default());
        let what = match place {
            TransferDeadLetter => ModelKind::TransferFailed(there, reason, description),
            Active | DeadLetter => ModelKind::DeadLettered(there, reason, description),
        };
        self.write(at, (q, Active), number, by_client, what);
    }

    /// Removes every receiver with its reservations and its session; runs what is due, and ends all locks.
    pub(crate) fn restart(&mut self) {
        for q in 0..QUEUES {
            let Some(queue) = self.queues[q].as_mut() else {
                continue;
            };
            let mut kinds = SubQueue::ALL.into_iter();
            let was_awaited = kinds.any(|kind| queue.is_awaited(kind));
            queue.sessions.holds.clear();
            queue.sessions.waiting.clear();
            for store in &mut queue.stores {
                store.restart();
            }
            self.run_due(q, i64::MIN);
            if was_awaited {
                self.at(q).used_at = self.now;
            }
            self.lose_locks(q);
            self.let_pass(q);
            self.serve(q);
        }
    }

    pub(crate) fn lose_locks(&mut self, q: usize) {
        self.lose_sessions(q);
        for kind in SubQueue::ALL {
            let messages = self.store(q, kind).messages.iter();
            let locks = messages.filter_map(|l| Some((l.locked_until()?, l.number)));
            let mut locks: Vec<_> = locks.collect();
            locks.sort_unstable();
            for (_, number) in locks {
                self.expire_lock((q, kind), number, self.now);
            }
        }
    }

    pub(crate) fn update(&mut self, q: usize, description: EntityDescription) {
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
            != (EntityDescription {
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
            self.dead_letter_delivered_too_often(q);
        }
        self.run_due(q, self.now);
        self.serve(q);
    }

    /// A forwarded message begins anew.
    fn dead_letter_delivered_too_often(&mut self, q: usize) {
        let queue = self.at(q);
        let (limit, sends_on) = (queue.description.max_delivery_count, queue.sends_on(Active));
        let messages = queue.store(Active).messages.iter();
        let past = messages.filter(|l| match l.state {
            State::Ready => l.count >= limit && (l.stays || !sends_on),
            State::Deferred => l.count >= limit,
            State::Assigned(_) | State::Locked { .. } | State::Scheduled(_) => false,
        });
        for number in past.map(|message| message.number).collect::<Vec<_>>() {
            self.move_to_dead_letters(q, number, self.now, Cause::Deliveries(limit));
        }
    }

    /// Only messages without their own time to live.
    fn change_expiries(&mut self, q: usize) {
        let queue = self.at(q);
        let default = queue.description.default_message_time_to_live;
        let default = default.map(|default| default.as_millis() as i64);
        let messages = queue.store_mut(Active).messages.iter_mut();
        for message in messages.filter(|l| l.draft.time_to_live.is_none()) {
            message.expires_at = default.map(|default| message.lives_since() + default);
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
