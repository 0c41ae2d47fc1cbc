//! Messages that somebody names by their numbers, or clears away.

use servicebus_broker::ReceiveMode;
use servicebus_broker::StoreKind::Active;

use super::queue::{Letter, State};
use super::sending::seen_as;
use super::{Reference, What};
use crate::history::{Place, Seen};

impl Reference {
    /// All or none; what has expired is not there any more.
    pub(super) fn receive_deferred(
        &mut self,
        place @ (q, kind): Place,
        numbers: &[u64],
        mode: ReceiveMode,
        id: u64,
        session: Option<u8>,
    ) -> Result<Vec<Seen>, &'static str> {
        self.begin(q);
        let now = self.now;
        if !self.at(q).description.status.can_receive() {
            return Err("disabled");
        }
        let queue = self.at(q);
        if queue.has_sessions(kind) && session.is_none_or(|s| queue.sessions.hold(s).is_none()) {
            return Err("session lock lost");
        }
        let is_meant = |l: &Letter| session.is_none() || l.draft.session == session;
        for &asked in numbers {
            let letters = &self.store(q, kind).letters;
            let expired = letters.iter().find(|l| {
                let is_over = l.expires_at.is_some_and(|at| at <= now);
                l.shown() == asked && l.state == State::Deferred && is_over && is_meant(l)
            });
            if let Some(number) = expired.map(|letter| letter.number) {
                self.expire(q, number, now);
            }
        }
        self.serve(q);
        let mut places = Vec::new();
        for &asked in numbers {
            let letters = &self.store(q, kind).letters;
            let deferred = letters.iter().find(|l| l.shown() == asked);
            match deferred.filter(|l| l.state == State::Deferred && is_meant(l)) {
                Some(letter) if !places.contains(&letter.number) => places.push(letter.number),
                _ => return Err("not found"),
            }
        }
        let seen = places.into_iter().map(|number| Seen {
            state: Some(1),
            ..self.hand_over(place, number, mode, id)
        });
        let seen = seen.collect();
        self.serve(q);
        Ok(seen)
    }

    /// All or none; says which of them are not scheduled.
    pub(super) fn cancel(&mut self, q: usize, numbers: &[u64]) -> Vec<u64> {
        self.begin(q);
        let letters = &self.store(q, Active).letters;
        let scheduled = |asked: u64| {
            let mut letters = letters.iter();
            letters.any(|l| l.shown() == asked && matches!(l.state, State::Scheduled(_)))
        };
        let asked = numbers.iter().copied();
        let missing: Vec<u64> = asked.filter(|&asked| !scheduled(asked)).collect();
        if !missing.is_empty() {
            return missing;
        }
        for &asked in numbers {
            let mut letters = self.store(q, Active).letters.iter();
            let Some(number) = letters.find(|l| l.shown() == asked).map(|l| l.number) else {
                // Named twice.
                continue;
            };
            let letter = self.remove((q, Active), number);
            self.note((q, Active), number, What::Cancelled);
            let queue = self.at(q);
            let id = seen_as(&letter.draft, queue.description.enable_partitioning);
            for (_, since) in queue.seen.iter_mut().filter(|(seen, _)| *seen == id) {
                *since = letter.enqueued_at;
            }
        }
        self.serve(q);
        missing
    }

    /// The first that are old enough, unless somebody has them.
    pub(super) fn delete(
        &mut self,
        (q, kind): Place,
        max: usize,
        before: i64,
        session: Option<u8>,
    ) -> usize {
        self.begin(q);
        let sends_on = self.at(q).sends_on(kind);
        let letters = self.store(q, kind).letters.iter();
        let free = letters.filter(|l| l.state == State::Ready && (l.stays || !sends_on));
        let old = free.filter(|letter| letter.enqueued_at < before);
        let old = old.filter(|letter| session.is_none() || letter.draft.session == session);
        let numbers: Vec<u64> = old.take(max).map(|letter| letter.number).collect();
        for &number in &numbers {
            self.remove((q, kind), number);
            self.note((q, kind), number, What::Deleted);
        }
        self.serve(q);
        numbers.len()
    }
}
