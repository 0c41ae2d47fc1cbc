//! Forwards messages to other queues, one store after the other, until nothing moves any more.

use servicebus_broker::SubQueue::{Active, DeadLetter};

use super::queue::{ModelMessage, State};
use super::sending::Refused;
use super::time::Cause;
use super::{ModelKind, Reference};
use crate::history::StoreAddress;

/// Messages of one transfer, which determines the order in which others come between them.
const BATCH: usize = 64;
/// How long refused dead letters wait, in milliseconds.
const RETRY: i64 = 30_000;

impl Reference {
    pub(crate) fn forward(&mut self) {
        while let Some(place @ (q, _)) = self.agenda.pop_front() {
            if self.queue(q).is_none() {
                continue;
            }
            while self.carry(place) {}
        }
    }

    /// Forwards everything from a store to its target; returns false if there was nothing.
    fn carry(&mut self, place @ (q, kind): StoreAddress) -> bool {
        self.let_pass(q);
        self.store(q, kind).is_announced = false;
        let Some(target) = self.at(q).target(kind) else {
            return false;
        };
        let mut batch = Vec::new();
        let going = self.going(place);
        let going_on = !going.is_empty();
        for number in going {
            let message = self.store(q, kind).message(number).clone();
            match (message.hops, kind) {
                (0..4, _) => batch.push(message),
                (_, Active) => self.move_to_dead_letters(q, number, self.now, Cause::Hops),
                // It stays a dead letter.
                _ => self.store(q, kind).message(number).stays = true,
            }
        }
        // No effect announces messages in transfer.
        self.store(q, kind).is_announced = true;
        self.serve(q);
        if batch.is_empty() {
            self.store(q, kind).is_announced = false;
            return going_on;
        }
        if self.queue(target).is_some() {
            self.begin(target);
        }
        let mut answers = Vec::new();
        for message in batch {
            let number = message.number;
            let answer = self.transfer(place, target, message);
            let may_pass = |refused: &Refused| refused.reason != "InvalidOperationException";
            let stops = kind == DeadLetter && answer.as_ref().is_err_and(may_pass);
            answers.push((number, answer));
            if stops {
                break;
            }
        }
        // It may be the same queue, whose messages are still in transfer.
        if self.is_there(target) {
            self.serve(target);
        }
        self.store(q, kind).is_announced = false;
        self.let_go(place, target, answers);
        true
    }

    fn going(&mut self, (q, kind): StoreAddress) -> Vec<u64> {
        if !self.at(q).sends_on(kind) {
            return Vec::new();
        }
        let messages = self.store(q, kind).messages.iter();
        let going = messages.filter(|l| l.state == State::Ready && !l.stays);
        going.take(BATCH).map(|message| message.number).collect()
    }

    /// A queue that has asked to be deleted counts as deleted.
    pub(crate) fn is_there(&self, q: usize) -> bool {
        self.queue(q).is_some_and(|queue| !queue.is_idle)
    }

    fn transfer(
        &mut self,
        (q, kind): StoreAddress,
        to: usize,
        mut message: ModelMessage,
    ) -> Result<(), Refused> {
        if kind == DeadLetter {
            message.source = Some(q);
            message.measure();
        }
        self.check_quota(to, self.needed(to, &message.draft, message.size))?;
        let key = self.key(to, &message.draft)?;
        if self.is_duplicate(to, &message.draft, self.now, false) {
            return Ok(());
        }
        let exceeds_header_limit = message.is_outgrown();
        let lacks_session = self.at(to).has_sessions(Active) && message.draft.session.is_none();
        let partition = self.partition(to, key);
        let message = ModelMessage {
            partition,
            is_moved: true,
            count: 0,
            hops: message.hops + 1,
            stays: false,
            ..message
        };
        let number = self.enqueue(to, self.now, message, false);
        if lacks_session {
            self.move_to_dead_letters(to, number, self.now, Cause::NoSession);
        } else if exceeds_header_limit {
            self.move_to_dead_letters(to, number, self.now, Cause::HeaderSize);
        }
        Ok(())
    }

    /// Removes what arrived; dead-letters what failed, unless it is a dead letter: that waits, or stays if waiting does not
    /// help.
    fn let_go(
        &mut self,
        place @ (q, kind): StoreAddress,
        target: usize,
        answers: Vec<(u64, Result<(), Refused>)>,
    ) {
        let now = self.now;
        for (number, answer) in answers {
            match answer {
                Ok(()) => {
                    self.remove(place, number);
                    self.note_at(now, place, number, ModelKind::Forwarded(target));
                }
                Err(Refused { reason, text }) if kind == Active => {
                    self.move_to_dead_letters(q, number, now, Cause::Transfer(reason, text));
                }
                Err(refused) if refused.reason == "InvalidOperationException" => {
                    self.store(q, kind).message(number).stays = true;
                }
                Err(_) => self.store(q, kind).retries_at = Some(now + RETRY),
            }
        }
        self.serve(q);
    }
}
