//! Locks: their begin, renewal and end.

use servicebus_broker::{ReceiveMode, SubQueue};

use super::queue::{ModelMessage, State};
use super::time::Cause;
use super::{ModelKind, Reference};
use crate::history::{Answer, Key, ObservedMessage, Outcome, StoreAddress};

impl Reference {
    pub(crate) fn take(
        &mut self,
        (q, kind): StoreAddress,
        id: u64,
        max: usize,
    ) -> Vec<ObservedMessage> {
        self.begin(q);
        let store = self.store(q, kind);
        let numbers = store.reserved_to(id);
        let mut receivers = store.receivers.iter();
        let mode = receivers.find(|receiver| receiver.0 == id).expect("open").1;
        let numbers = numbers.into_iter().take(max);
        let seen = numbers.map(|number| self.hand_over((q, kind), number, mode, id));
        let seen = seen.collect();
        self.serve(q);
        seen
    }

    pub(crate) fn hand_over(
        &mut self,
        (q, kind): StoreAddress,
        number: u64,
        mode: ReceiveMode,
        receiver: u64,
    ) -> ObservedMessage {
        let token = self.tokens;
        self.tokens += 1;
        let now = self.now;
        let queue = self.at(q);
        let until = now + queue.description.lock_duration.as_millis() as i64;
        let locks = mode == ReceiveMode::PeekLock;
        let message = queue.store_mut(kind).message(number).clone();
        let hold = (message.draft.session.filter(|_| queue.has_sessions(kind)))
            .and_then(|session| queue.sessions.hold(session));
        // In a session the lock ends with that of the session.
        let shown = hold.map_or(until, |hold| hold.until);
        let (until, receiver) = hold.map_or((until, receiver), |hold| (i64::MAX, hold.receiver));
        let seen = queue.received(kind, &message, locks.then_some(shown));
        if locks {
            queue.store_mut(kind).message(number).state = State::Locked {
                token,
                until,
                receiver,
                was_deferred: message.is_deferred(),
            };
            let what = ModelKind::Delivered(message.count + 1, shown);
            self.note((q, kind), number, what);
        } else {
            // Its credit is used up.
            queue.store_mut(kind).message(number).state = State::Ready;
            self.remove((q, kind), number);
            self.note((q, kind), number, ModelKind::ReceivedAndDeleted);
        }
        seen
    }

    pub(crate) fn settle_all(
        &mut self,
        place @ (q, kind): StoreAddress,
        keys: &[Key],
        outcome: &Outcome,
    ) -> Answer {
        self.begin(q);
        if !self.at(q).description.status.can_receive() {
            return Answer::Settled(Some("disabled"));
        }
        let mut numbers = Vec::new();
        for &key in keys {
            match self.locked_by(place, key) {
                Some(number) if !numbers.contains(&number) => numbers.push(number),
                _ if self.at(q).has_sessions(kind) => {
                    return Answer::Settled(Some("session lock lost"));
                }
                _ => return Answer::Settled(Some("lock lost")),
            }
        }
        if matches!(outcome, Outcome::DeadLetter(..)) && kind != SubQueue::Active {
            return Answer::Settled(Some("dead already"));
        }
        for number in numbers {
            self.begin(q);
            self.settle(place, number, outcome);
            self.serve(q);
        }
        Answer::Settled(None)
    }

    fn settle(&mut self, place @ (q, kind): StoreAddress, number: u64, outcome: &Outcome) {
        let now = self.now;
        let message = self.store(q, kind).message(number);
        match outcome {
            Outcome::Complete => {
                self.remove(place, number);
                self.note(place, number, ModelKind::Completed);
            }
            Outcome::Abandon(properties) => {
                message.count += u32::from(kind == SubQueue::Active);
                message.set(properties);
                let buried = !properties.0.is_empty() && message.is_outgrown();
                let count = message.count;
                self.note(place, number, ModelKind::Abandoned(count));
                match buried && kind == SubQueue::Active {
                    true => self.move_to_dead_letters(q, number, now, Cause::HeaderSize),
                    false => self.unlock(place, number, now),
                }
            }
            Outcome::Release => {
                self.note(place, number, ModelKind::Released);
                self.unlock(place, number, now);
            }
            Outcome::Defer(properties) => {
                message.count += u32::from(kind == SubQueue::Active);
                message.set(properties);
                let buried = !properties.0.is_empty() && message.is_outgrown();
                let count = message.count;
                message.state = State::Deferred;
                self.note(place, number, ModelKind::Deferred);
                let limit = self.at(q).description.max_delivery_count;
                if kind == SubQueue::Active && buried {
                    self.move_to_dead_letters(q, number, now, Cause::HeaderSize);
                } else if kind == SubQueue::Active && count >= limit {
                    self.move_to_dead_letters(q, number, now, Cause::Deliveries(limit));
                }
            }
            Outcome::DeadLetter(reason, description, properties) => {
                message.set(properties);
                self.move_to_dead_letters(q, number, now, Cause::Client(*reason, *description));
            }
        }
    }

    pub(crate) fn renew(
        &mut self,
        place @ (q, kind): StoreAddress,
        keys: &[Key],
    ) -> Result<Vec<i64>, Option<usize>> {
        self.begin(q);
        let now = self.now;
        let renewed = now + self.at(q).description.lock_duration.as_millis() as i64;
        if !self.at(q).description.status.can_receive() {
            return Err(None);
        }
        let mut numbers = Vec::new();
        for (at, &key) in keys.iter().enumerate() {
            numbers.push(self.locked_by(place, key).ok_or(Some(at))?);
        }
        if self.at(q).has_sessions(kind) {
            return Err(None);
        }
        let mut ends = Vec::new();
        for number in numbers {
            let State::Locked { until, .. } = &mut self.store(q, kind).message(number).state else {
                panic!("#{number} has no lock");
            };
            *until = renewed.max(*until + 1);
            let until = *until;
            self.note(place, number, ModelKind::Renewed(until));
            ends.push(until);
        }
        Ok(ends)
    }

    fn locked_by(&mut self, (q, kind): StoreAddress, key: Key) -> Option<u64> {
        let holds = |l: &&ModelMessage| matches!(l.state, State::Locked { token, .. } if key == Key::Given(token));
        let messages = &self.store(q, kind).messages;
        messages.iter().find(holds).map(|message| message.number)
    }
}
