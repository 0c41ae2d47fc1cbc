//! The state of one reference queue: lists of messages, receivers, credit and ids.

use servicebus_broker::{EntityDescription, ReceiveMode, SubQueue};

use super::sessions::Sessions;
use crate::event::queue_of;
use crate::history::{Draft, Properties};
use crate::world::wire::section_size;

#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) description: EntityDescription,
    pub(crate) stores: [Store; 3],
    /// Ids, each with the start of its window.
    pub(crate) seen: Vec<(String, i64)>,
    pub(crate) sessions: Sessions,
    pub(crate) used_at: i64,
    pub(crate) is_idle: bool,
    /// Messages without a key so far.
    pub(crate) spread: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) last: u64,
    pub(crate) messages: Vec<ModelMessage>,
    pub(crate) receivers: Vec<(u64, ReceiveMode)>,
    /// Receivers that take only messages with even ids.
    pub(crate) selecting: Vec<u64>,
    /// Receivers with credit, in the order in which they are served.
    pub(crate) waiting: Vec<(u64, usize)>,
    /// When refused forwarding is retried; until then nothing is forwarded.
    pub(crate) retries_at: Option<i64>,
    /// Whether a task is about to forward.
    pub(crate) is_announced: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct ModelMessage {
    pub(crate) number: u64,
    pub(crate) partition: u64,
    pub(crate) enqueued_number: u64,
    /// Whether that is the number of another entity.
    pub(crate) is_moved: bool,
    /// Whether it became active at its scheduled time.
    pub(crate) was_scheduled: bool,
    pub(crate) draft: Draft,
    /// Size of the sent message.
    pub(crate) bytes: u64,
    pub(crate) enqueued_at: i64,
    pub(crate) expires_at: Option<i64>,
    pub(crate) count: u32,
    pub(crate) hops: u8,
    /// Whether it is not forwarded although its store forwards.
    pub(crate) stays: bool,
    /// Where it was dead-lettered before it was forwarded.
    pub(crate) source: Option<usize>,
    /// The receiver that had it when its lock ended.
    pub(crate) former: Option<u64>,
    pub(crate) properties: Properties,
    pub(crate) size: u64,
    pub(crate) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Assigned(u64),
    Locked {
        token: usize,
        until: i64,
        receiver: u64,
        was_deferred: bool,
    },
    Deferred,
    Scheduled(i64),
}

impl Queue {
    pub(crate) fn new(description: EntityDescription, now: i64) -> Self {
        Self {
            description,
            stores: [(); 3].map(|()| Store::default()),
            seen: Vec::new(),
            sessions: Sessions::default(),
            used_at: now,
            is_idle: false,
            spread: 0,
        }
    }

    pub(crate) fn store(&self, kind: SubQueue) -> &Store {
        &self.stores[kind as usize]
    }

    pub(crate) fn store_mut(&mut self, kind: SubQueue) -> &mut Store {
        &mut self.stores[kind as usize]
    }

    /// The forwarding target of a store's messages.
    pub(crate) fn target(&self, kind: SubQueue) -> Option<usize> {
        let path = match kind {
            SubQueue::Active => &self.description.forward_to,
            SubQueue::DeadLetter => &self.description.forward_dead_lettered_messages_to,
            SubQueue::TransferDeadLetter => &None,
        };
        queue_of(path.as_ref()?.as_str())
    }

    pub(crate) fn serves(&self, kind: SubQueue) -> bool {
        let forwards = kind == SubQueue::Active && self.target(kind).is_some();
        self.description.status.can_receive() && !forwards
    }

    /// Whether ready messages of a store are forwarded to another queue.
    pub(crate) fn sends_on(&self, kind: SubQueue) -> bool {
        self.target(kind).is_some() && self.store(kind).retries_at.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.stores.iter().map(|store| store.messages.len()).sum()
    }

    pub(crate) fn size(&self) -> u64 {
        let messages = self.stores.iter().flat_map(|store| &store.messages);
        let messages: u64 = messages.map(|message| message.size).sum();
        messages + self.sessions.size()
    }

    /// Whether a receiver receives from a store: with credit, or waiting for a session.
    pub(crate) fn is_awaited(&self, kind: SubQueue) -> bool {
        let waits = self.has_sessions(kind) && !self.sessions.waiting.is_empty();
        waits || self.store(kind).is_active()
    }

    /// How many bytes more it may hold.
    pub(crate) fn room(&self) -> u64 {
        self.max_size().saturating_sub(self.size())
    }

    pub(crate) fn max_size(&self) -> u64 {
        let partitions = if self.description.enable_partitioning {
            16
        } else {
            1
        };
        (self.description.max_size_in_megabytes << 20) * partitions
    }

    /// How long a message lives: its own time under the entity's ceiling, or the entity's.
    pub(crate) fn lifetime(&self, draft: &Draft) -> Option<i64> {
        let default = self.description.default_message_time_to_live;
        let default = default.map(|default| default.as_millis() as i64);
        let own = draft.time_to_live.map(i64::from);
        own.into_iter().chain(default).min()
    }
}

impl Store {
    pub(crate) fn message(&mut self, number: u64) -> &mut ModelMessage {
        let mut messages = self.messages.iter_mut();
        messages
            .find(|message| message.number == number)
            .expect("the message is there")
    }

    /// Removes all receivers.
    pub(crate) fn restart(&mut self) {
        self.receivers.clear();
        self.selecting.clear();
        self.waiting.clear();
        self.retries_at = None;
        self.is_announced = false;
        for message in &mut self.messages {
            message.former = None;
            if let State::Assigned(_) = message.state {
                message.state = State::Ready;
            }
        }
    }

    pub(crate) fn reserved_to(&self, id: u64) -> Vec<u64> {
        let own = |l: &&ModelMessage| l.state == State::Assigned(id);
        self.messages.iter().filter(own).map(|l| l.number).collect()
    }

    pub(crate) fn count(&self, which: impl Fn(&State) -> bool) -> usize {
        self.messages.iter().filter(|l| which(&l.state)).count()
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.waiting.is_empty() || self.count(|s| matches!(s, State::Assigned(_))) > 0
    }

    /// Removes a reservation, and gives its credit back.
    pub(crate) fn restore(&mut self, receiver: u64) {
        match self.waiting.iter_mut().find(|(id, _)| *id == receiver) {
            Some((_, credit)) => *credit += 1,
            None => self.waiting.push((receiver, 1)),
        }
    }

    pub(crate) fn restore_all(&mut self) {
        let mut receivers = Vec::new();
        for message in &mut self.messages {
            if let State::Assigned(receiver) = message.state {
                message.state = State::Ready;
                receivers.push(receiver);
            }
        }
        receivers.sort_unstable();
        receivers.into_iter().for_each(|id| self.restore(id));
    }

    /// Returns the next delivery: the first receiver by turn for which something is ready, and the first message that it
    /// takes; but a message that it had before goes to another one that takes it, if there is one.
    pub(crate) fn next_pair(
        &self,
        is_served: impl Fn(&ModelMessage) -> bool,
    ) -> Option<(usize, u64)> {
        let takes = |id: u64, message: &ModelMessage| {
            message.draft.id.is_multiple_of(2) || !self.selecting.contains(&id)
        };
        let mut waiting = self.waiting.iter();
        let (at, id) = waiting.find_map(|&(id, _)| {
            let mut messages = self.messages.iter();
            let at = messages.position(|message| {
                message.state == State::Ready && is_served(message) && takes(id, message)
            });
            Some((at?, id))
        })?;
        let message = &self.messages[at];
        let others = self.waiting.iter().map(|&(other, _)| other);
        let mut others = others.filter(|other| *other != id && takes(*other, message));
        let other = others.next().filter(|_| message.former == Some(id));
        Some((at, other.unwrap_or(id)))
    }

    /// Uses one credit of a receiver, and its turn.
    pub(crate) fn spend_credit(&mut self, receiver: u64) {
        let at = self.waiting.iter().position(|&(id, _)| id == receiver);
        let (id, credit) = self.waiting.remove(at.expect("it waits"));
        if credit > 1 {
            self.waiting.push((id, credit - 1));
        }
    }
}

impl ModelMessage {
    /// As clients see it.
    pub(crate) fn shown(&self) -> u64 {
        self.number | self.partition << 48
    }

    pub(crate) fn is_deferred(&self) -> bool {
        matches!(
            self.state,
            State::Deferred
                | State::Locked {
                    was_deferred: true,
                    ..
                }
        )
    }

    pub(crate) fn is_scheduled(&self) -> bool {
        matches!(self.state, State::Scheduled(_))
    }

    /// When it is locked, until when.
    pub(crate) fn locked_until(&self) -> Option<i64> {
        if let State::Locked { until, .. } = self.state {
            Some(until)
        } else {
            None
        }
    }

    /// When its time to live begins.
    pub(crate) fn lives_since(&self) -> i64 {
        if let State::Scheduled(at) = self.state {
            at
        } else {
            self.enqueued_at
        }
    }

    pub(crate) fn set(&mut self, properties: &Properties) {
        for (name, text) in &properties.0 {
            self.properties.set(name, text.clone());
        }
        self.measure();
    }

    pub(crate) fn measure(&mut self) {
        self.size = self.bytes + self.source.map_or(0, |_| 1);
        if !self.properties.0.is_empty() {
            self.size += section_size(&self.properties);
        }
    }

    /// Whether a property, or all of them together, exceed Service Bus's limits; lengths near the limit do not occur.
    pub(crate) fn is_outgrown(&self) -> bool {
        let lengths = self.properties.0.iter().map(|(_, text)| text.len());
        lengths.clone().any(|length| length > 32 * 1024) || lengths.sum::<usize>() > 63 * 1024
    }
}
