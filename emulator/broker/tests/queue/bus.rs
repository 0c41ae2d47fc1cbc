//! A queue with a clock that tests control, and short operations.

mod message;
mod rules;
mod sessions;
mod verbs;

use std::time::Duration;

use servicebus_broker::filter::SqlFilter;
use servicebus_broker::{
    BrokerProperties, ClientId, Context, Counts, Delivery, Effect, Effects, Entity, EntityId,
    EntityKind, EntityPath, EventKind, Events, Message, Outcome, PropertyChanges, ReceiveMode,
    ReceiverId, SequenceNumber, SplitMix64, SubQueue, Timestamp,
};

pub(crate) use message::{MessageBuilder, annotation, message, text};
pub(crate) use rules::Rules;
pub(crate) use sessions::{name, sessions};

pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// The number that stands for a duplicate, which has none.
pub(crate) const DROPPED: SequenceNumber = SequenceNumber(0);

/// One queue, at a time of its own.
pub(crate) struct Bus {
    queue: Entity,
    pub(crate) now: Timestamp,
    ids: SplitMix64,
    pub(crate) effects: Effects,
    pub(crate) events: Events,
    receivers: u64,
    /// The client.
    pub(crate) client: ClientId,
    /// Whether invariants are not checked, for histories that are too long to check every step.
    pub(crate) unchecked: bool,
}

/// A receiver of one of the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receiver {
    pub(crate) store: SubQueue,
    pub(crate) id: ReceiverId,
}

/// A queue with the defaults: locks of a minute, ten deliveries, no time to live.
pub(crate) fn bus() -> Bus {
    Rules::default().bus()
}

pub(crate) fn rules() -> Rules {
    Rules::default()
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

impl Bus {
    /// A queue that was just declared.
    pub(crate) fn of(rules: Rules) -> Self {
        let path: EntityPath = "orders".parse().unwrap();
        let problems = rules.queue.problems(EntityKind::Queue, rules.settings.tier);
        assert!(problems.is_empty(), "{problems:?}");
        Self {
            queue: Entity::new(
                EntityKind::Queue,
                EntityId(1),
                path,
                rules.queue,
                &rules.settings,
                START,
            ),
            now: START,
            ids: SplitMix64(0),
            effects: Effects::new(),
            events: Events::new(),
            receivers: 0,
            client: ClientId(7),
            unchecked: false,
        }
    }

    /// Sends a message with this id.
    pub(crate) fn send(&mut self, id: &str) -> SequenceNumber {
        self.post(&message(id)).unwrap()
    }

    pub(crate) fn send_all(&mut self, ids: &[&str]) -> Vec<SequenceNumber> {
        let messages: Vec<MessageBuilder> = ids.iter().map(|id| message(id)).collect();
        self.post_all(&messages).unwrap()
    }

    /// This queue with these messages.
    pub(crate) fn with(mut self, ids: &[&str]) -> Self {
        self.send_all(ids);
        self
    }

    /// This queue with a message that lives so long.
    pub(crate) fn with_ttl(mut self, id: &str, time_to_live: Duration) -> Self {
        self.send_with_ttl(id, time_to_live);
        self
    }

    pub(crate) fn send_with_ttl(&mut self, id: &str, time_to_live: Duration) -> SequenceNumber {
        self.post(&message(id).time_to_live(time_to_live)).unwrap()
    }

    pub(crate) fn open(&mut self, store: SubQueue, mode: ReceiveMode) -> Receiver {
        self.receivers += 1;
        let id = ReceiverId(self.receivers);
        self.queue.attach_receiver(store, id, mode);
        Receiver { store, id }
    }

    /// A receiver of the queue that locks what a selector matches.
    pub(crate) fn selecting(&mut self, selector: &str) -> Receiver {
        self.receivers += 1;
        let (store, id) = (SubQueue::Active, ReceiverId(self.receivers));
        let selector = SqlFilter::selector(selector).unwrap();
        let mode = ReceiveMode::PeekLock;
        self.queue
            .attach_selecting_receiver(store, id, mode, selector);
        Receiver { store, id }
    }

    /// Whether a receiver can get nothing more for now.
    pub(crate) fn is_drained(&self, receiver: Receiver) -> bool {
        self.queue.is_drained(receiver.store, receiver.id)
    }

    /// A receiver of the queue that locks what it receives.
    pub(crate) fn receiver(&mut self) -> Receiver {
        self.open(SubQueue::Active, ReceiveMode::PeekLock)
    }

    /// The same with this credit.
    pub(crate) fn receiver_with_credit(&mut self, credit: u32) -> Receiver {
        let receiver = self.receiver();
        self.credit(receiver, credit);
        receiver
    }

    pub(crate) fn deleting_receiver(&mut self) -> Receiver {
        self.open(SubQueue::Active, ReceiveMode::ReceiveAndDelete)
    }

    pub(crate) fn dead_letter_receiver(&mut self) -> Receiver {
        self.open(SubQueue::DeadLetter, ReceiveMode::PeekLock)
    }

    pub(crate) fn close(&mut self, Receiver { store, id }: Receiver) {
        self.operate(|entity, cx| entity.detach_receiver(cx, store, id));
    }

    pub(crate) fn dismiss(&mut self, Receiver { store, id }: Receiver) {
        self.operate(|entity, cx| entity.detach_keeping_locks(cx, store, id));
    }

    pub(crate) fn credit(&mut self, Receiver { store, id }: Receiver, credit: u32) {
        self.operate(|entity, cx| entity.set_credit(cx, store, id, credit));
    }

    pub(crate) fn reserved(&self, receiver: Receiver) -> usize {
        self.queue.reserved(receiver.store, receiver.id)
    }

    /// Everything that is reserved to a receiver.
    pub(crate) fn take(&mut self, receiver: Receiver) -> Vec<Delivery> {
        self.take_up_to(receiver, usize::MAX)
    }

    pub(crate) fn take_up_to(&mut self, receiver: Receiver, max: usize) -> Vec<Delivery> {
        self.take_bytes(receiver, max, usize::MAX)
    }

    pub(crate) fn take_bytes(
        &mut self,
        receiver: Receiver,
        max: usize,
        bytes: usize,
    ) -> Vec<Delivery> {
        let Receiver { store, id } = receiver;
        let mut taken = Vec::new();
        self.operate(|entity, cx| entity.acquire(cx, store, id, max, bytes, &mut taken));
        taken
    }

    /// What a receiver gets that asks for up to `count` messages and waits for none.
    pub(crate) fn receive(&mut self, receiver: Receiver, count: u32) -> Vec<Delivery> {
        self.credit(receiver, count);
        let taken = self.take(receiver);
        self.credit(receiver, 0);
        taken
    }

    pub(crate) fn receive_one(&mut self, receiver: Receiver) -> Delivery {
        self.receive(receiver, 1).pop().expect("a message is ready")
    }

    /// A new receiver of the queue, and the message that it locks.
    pub(crate) fn receive_first(&mut self) -> (Receiver, Delivery) {
        let receiver = self.receiver();
        (receiver, self.receive_one(receiver))
    }

    /// Advances time and fires the shell's timer once, at the end.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.pass(by);
        while self.operate(Entity::handle_timeout) > 0 {}
    }

    /// Advances time without running deadlines.
    pub(crate) fn pass(&mut self, by: Duration) {
        self.now = self.now + by;
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.queue.next_deadline()
    }

    pub(crate) fn entity(&self) -> &Entity {
        &self.queue
    }

    pub(crate) fn counts(&self) -> Counts {
        self.queue.counts(SubQueue::Active)
    }

    pub(crate) fn peek(&mut self, store: SubQueue) -> Vec<(BrokerProperties, Message)> {
        self.peek_from(store, 1, usize::MAX)
    }

    pub(crate) fn peek_from(
        &mut self,
        store: SubQueue,
        from: u64,
        max: usize,
    ) -> Vec<(BrokerProperties, Message)> {
        let from = SequenceNumber(from);
        let browsed = self.operate(|entity, cx| entity.peek(cx, store, from, max, None));
        browsed
            .into_iter()
            .map(|seen| (seen.broker_properties, seen.message))
            .collect()
    }

    /// The ids of what is in the queue, locked ones included.
    pub(crate) fn queued(&mut self) -> Vec<String> {
        let seen = self.peek(SubQueue::Active);
        seen.iter()
            .map(|(_, message)| message.id().into_owned())
            .collect()
    }

    pub(crate) fn dead_letters(&mut self) -> Vec<String> {
        let seen = self.peek(SubQueue::DeadLetter);
        seen.iter()
            .map(|(_, message)| message.id().into_owned())
            .collect()
    }

    /// The only dead letter, with its reason and description.
    pub(crate) fn the_dead_letter(&mut self) -> (BrokerProperties, Option<String>, Option<String>) {
        let mut seen = self.peek(SubQueue::DeadLetter);
        let (properties, message) = seen.pop().expect("a dead letter");
        assert!(seen.is_empty(), "more than one dead letter");
        let texts =
            ["DeadLetterReason", "DeadLetterErrorDescription"].map(|name| text(&message, name));
        let [reason, description] = texts;
        (properties, reason, description)
    }

    /// Times and kinds of all events.
    pub(crate) fn history(&self) -> Vec<(Timestamp, EventKind)> {
        self.events
            .iter()
            .map(|event| (event.at, event.kind))
            .collect()
    }

    /// The receivers that were woken since the last call.
    pub(crate) fn woken(&mut self) -> Vec<ReceiverId> {
        let woken = self.effects.drain(..).filter_map(|effect| match effect {
            Effect::Wake(receiver) => Some(receiver),
            Effect::SessionLost(_) | Effect::Forward(..) | Effect::Delete(..) => None,
        });
        woken.collect()
    }

    pub(crate) fn operate<T>(
        &mut self,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> T {
        let mut cx = Context {
            now: self.now,
            has_room: true,
            client: self.client,
            ids: &mut self.ids,
            effects: &mut self.effects,
            events: &mut self.events,
        };
        let result = work(&mut self.queue, &mut cx);
        if !self.unchecked {
            self.queue.check_invariants();
        }
        result
    }
}

pub(crate) fn dead_letter(reason: Option<&str>, description: Option<&str>) -> Outcome {
    Outcome::DeadLetter {
        reason: reason.map(Into::into),
        description: description.map(Into::into),
        changes: PropertyChanges::new(),
    }
}

pub(crate) fn ids(deliveries: &[Delivery]) -> Vec<String> {
    deliveries
        .iter()
        .map(|delivery| delivery.message.id().into_owned())
        .collect()
}
