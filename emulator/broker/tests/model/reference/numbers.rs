//! Operations on messages by sequence number, and deletion of messages.

use servicebus_broker::ReceiveMode;
use servicebus_broker::SubQueue::Active;

use super::queue::{ModelMessage, State};
use super::sending::seen_as;
use super::{ModelKind, Reference};
use crate::history::{ObservedMessage, StoreAddress};

impl Reference {
    /// All or none; expired messages count as missing.
    pub(crate) fn receive_deferred(
        &mut self,
        place @ (q, kind): StoreAddress,
        numbers: &[u64],
        mode: ReceiveMode,
        id: u64,
        session: Option<u8>,
    ) -> Result<Vec<ObservedMessage>, &'static str> {
        self.begin(q);
        let now = self.now;
        if !self.at(q).description.status.can_receive() {
            return Err("disabled");
        }
        let queue = self.at(q);
        if queue.has_sessions(kind) && session.is_none_or(|s| queue.sessions.hold(s).is_none()) {
            return Err("session lock lost");
        }
        let is_meant = |l: &ModelMessage| session.is_none() || l.draft.session == session;
        for &requested in numbers {
            let messages = &self.store(q, kind).messages;
            let expired = messages.iter().find(|l| {
                let is_over = l.expires_at.is_some_and(|at| at <= now);
                l.shown() == requested && l.state == State::Deferred && is_over && is_meant(l)
            });
            if let Some(number) = expired.map(|message| message.number) {
                self.expire(q, number, now);
            }
        }
        self.serve(q);
        let mut places = Vec::new();
        for &requested in numbers {
            let messages = &self.store(q, kind).messages;
            let deferred = messages.iter().find(|l| l.shown() == requested);
            match deferred.filter(|l| l.state == State::Deferred && is_meant(l)) {
                Some(message) if !places.contains(&message.number) => places.push(message.number),
                _ => return Err("not found"),
            }
        }
        if numbers
            .iter()
            .any(|requested| requested >> 48 != numbers[0] >> 48)
        {
            return Err("different partitions");
        }
        let seen = places.into_iter().map(|number| ObservedMessage {
            state: Some(1),
            ..self.hand_over(place, number, mode, id)
        });
        let seen = seen.collect();
        self.serve(q);
        Ok(seen)
    }

    /// All or none; returns which of them are not scheduled, or which one occurs twice.
    pub(crate) fn cancel(&mut self, q: usize, numbers: &[u64]) -> Vec<u64> {
        self.begin(q);
        let messages = &self.store(q, Active).messages;
        let scheduled = |requested: u64| {
            let mut messages = messages.iter();
            messages.any(|l| l.shown() == requested && matches!(l.state, State::Scheduled(_)))
        };
        let requested = numbers.iter().copied();
        let missing: Vec<u64> = requested
            .filter(|&requested| !scheduled(requested))
            .collect();
        if !missing.is_empty() {
            return missing;
        }
        let mut places = 0..numbers.len();
        if let Some(place) = places.find(|&place| numbers[..place].contains(&numbers[place])) {
            return vec![numbers[place]; 2];
        }
        for &requested in numbers {
            let mut messages = self.store(q, Active).messages.iter();
            let Some(number) = messages.find(|l| l.shown() == requested).map(|l| l.number) else {
                continue;
            };
            let message = self.remove((q, Active), number);
            self.note((q, Active), number, ModelKind::Cancelled);
            let queue = self.at(q);
            let id = seen_as(&message.draft, queue.description.enable_partitioning);
            for (_, since) in queue.seen.iter_mut().filter(|(seen, _)| *seen == id) {
                *since = message.enqueued_at;
            }
        }
        self.serve(q);
        missing
    }

    /// The first that are old enough, unless a receiver has them.
    pub(crate) fn delete(
        &mut self,
        (q, kind): StoreAddress,
        max: usize,
        before: i64,
        session: Option<u8>,
    ) -> usize {
        self.begin(q);
        let sends_on = self.at(q).sends_on(kind);
        let messages = self.store(q, kind).messages.iter();
        let free = messages.filter(|l| l.state == State::Ready && (l.stays || !sends_on));
        let old = free.filter(|message| message.enqueued_at < before);
        let old = old.filter(|message| session.is_none() || message.draft.session == session);
        let numbers: Vec<u64> = old.take(max).map(|message| message.number).collect();
        for &number in &numbers {
            self.remove((q, kind), number);
            self.note((q, kind), number, ModelKind::Deleted);
        }
        self.serve(q);
        numbers.len()
    }
}
