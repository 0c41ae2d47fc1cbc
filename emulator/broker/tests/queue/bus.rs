//! A queue with a clock that tests turn by hand, and verbs that read like sentences.

mod letter;
mod rules;
mod sessions;
mod verbs;

use std::time::Duration;

use servicebus_broker::{
    ClientId, ConsumerId, Context, Counts, Delivery, Effect, Effects, EntityId, EntityPath,
    FactKind, Facts, IdSource, Mailbox, Message, Outcome, PropertyChanges, Queue, ReceiveMode,
    SequenceNumber, Stamp, StoreKind, Timestamp,
};

pub(crate) use letter::{Letter, annotation, letter, text};
pub(crate) use rules::Rules;
pub(crate) use sessions::{name, sessions};

pub(crate) const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// One queue, at a time of its own.
pub(crate) struct Bus {
    queue: Queue,
    pub(crate) now: Timestamp,
    ids: Counting,
    pub(crate) effects: Effects,
    pub(crate) facts: Facts,
    receivers: u64,
    /// Who asks.
    pub(crate) client: ClientId,
    /// Whether the invariants are left alone, for histories that are too long to check at every step.
    pub(crate) unchecked: bool,
}

/// Somebody who receives from one of the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Receiver {
    pub(crate) store: StoreKind,
    pub(crate) id: ConsumerId,
}

/// Numbers that differ, from a counter.
pub(crate) struct Counting(pub(crate) u64);

impl IdSource for Counting {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0
    }
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
        let problems = rules.queue.problems(rules.settings.tier);
        assert!(problems.is_empty(), "{problems:?}");
        Self {
            queue: Queue::new(EntityId(1), path, rules.queue, &rules.settings, START),
            now: START,
            ids: Counting(0),
            effects: Effects::new(),
            facts: Facts::new(),
            receivers: 0,
            client: ClientId(7),
            unchecked: false,
        }
    }

    /// Sends a message with this id.
    pub(crate) fn send(&mut self, id: &str) -> SequenceNumber {
        self.post(&letter(id)).unwrap()
    }

    pub(crate) fn send_all(&mut self, ids: &[&str]) -> Vec<SequenceNumber> {
        let letters: Vec<Letter> = ids.iter().map(|id| letter(id)).collect();
        self.post_all(&letters).unwrap()
    }

    pub(crate) fn send_with_ttl(&mut self, id: &str, time_to_live: Duration) -> SequenceNumber {
        self.post(&letter(id).time_to_live(time_to_live)).unwrap()
    }

    pub(crate) fn open(&mut self, store: StoreKind, mode: ReceiveMode) -> Receiver {
        self.receivers += 1;
        let id = ConsumerId(self.receivers);
        self.queue.mailbox.open_consumer(store, id, mode);
        Receiver { store, id }
    }

    /// A receiver of the queue that locks what it receives.
    pub(crate) fn receiver(&mut self) -> Receiver {
        self.open(StoreKind::Active, ReceiveMode::PeekLock)
    }

    /// The same with this credit.
    pub(crate) fn receiver_with_credit(&mut self, credit: u32) -> Receiver {
        let receiver = self.receiver();
        self.credit(receiver, credit);
        receiver
    }

    pub(crate) fn deleting_receiver(&mut self) -> Receiver {
        self.open(StoreKind::Active, ReceiveMode::ReceiveAndDelete)
    }

    pub(crate) fn dead_letter_receiver(&mut self) -> Receiver {
        self.open(StoreKind::DeadLetters, ReceiveMode::PeekLock)
    }

    pub(crate) fn close(&mut self, Receiver { store, id }: Receiver) {
        self.operate(|mailbox, cx| mailbox.close_consumer(cx, store, id));
    }

    pub(crate) fn dismiss(&mut self, Receiver { store, id }: Receiver) {
        self.operate(|mailbox, cx| mailbox.dismiss_consumer(cx, store, id));
    }

    pub(crate) fn credit(&mut self, Receiver { store, id }: Receiver, credit: u32) {
        self.operate(|mailbox, cx| mailbox.set_credit(cx, store, id, credit));
    }

    pub(crate) fn assigned(&self, receiver: Receiver) -> usize {
        self.queue.mailbox.assigned(receiver.store, receiver.id)
    }

    /// Everything that is assigned to a receiver.
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
        self.operate(|mailbox, cx| mailbox.take(cx, store, id, max, bytes, &mut taken));
        taken
    }

    /// What a receiver gets that asks for up to `count` messages now and waits for none.
    pub(crate) fn receive(&mut self, receiver: Receiver, count: u32) -> Vec<Delivery> {
        self.credit(receiver, count);
        let taken = self.take(receiver);
        self.credit(receiver, 0);
        taken
    }

    pub(crate) fn receive_one(&mut self, receiver: Receiver) -> Delivery {
        self.receive(receiver, 1).pop().expect("a message is ready")
    }

    /// Lets time pass and fires the timer that a shell would have set, once, at the end.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.pass(by);
        while self.operate(Mailbox::handle_timeout) > 0 {}
    }

    /// Lets time pass without anybody noticing.
    pub(crate) fn pass(&mut self, by: Duration) {
        self.now = self.now + by;
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.queue.mailbox.next_deadline()
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.queue.mailbox
    }

    pub(crate) fn counts(&self) -> Counts {
        self.queue.mailbox.counts(StoreKind::Active)
    }

    pub(crate) fn peek(&mut self, store: StoreKind) -> Vec<(Stamp, Message)> {
        self.peek_from(store, 1, usize::MAX)
    }

    pub(crate) fn peek_from(
        &mut self,
        store: StoreKind,
        from: u64,
        max: usize,
    ) -> Vec<(Stamp, Message)> {
        let from = SequenceNumber(from);
        let browsed = self.operate(|mailbox, cx| mailbox.browse(cx, store, from, max, None));
        browsed
            .into_iter()
            .map(|seen| (seen.stamp, seen.message))
            .collect()
    }

    /// The ids of what is in the queue, whoever has it.
    pub(crate) fn queued(&mut self) -> Vec<String> {
        let seen = self.peek(StoreKind::Active);
        seen.iter()
            .map(|(_, message)| message.id().into_owned())
            .collect()
    }

    pub(crate) fn dead_letters(&mut self) -> Vec<String> {
        let seen = self.peek(StoreKind::DeadLetters);
        seen.iter()
            .map(|(_, message)| message.id().into_owned())
            .collect()
    }

    /// The only dead letter, with its reason and description.
    pub(crate) fn the_dead_letter(&mut self) -> (Stamp, Option<String>, Option<String>) {
        let mut seen = self.peek(StoreKind::DeadLetters);
        let (stamp, message) = seen.pop().expect("a dead letter");
        assert!(seen.is_empty(), "more than one dead letter");
        let texts =
            ["DeadLetterReason", "DeadLetterErrorDescription"].map(|name| text(&message, name));
        let [reason, description] = texts;
        (stamp, reason, description)
    }

    /// When, and what, since the beginning.
    pub(crate) fn history(&self) -> Vec<(Timestamp, FactKind)> {
        self.facts.iter().map(|fact| (fact.at, fact.kind)).collect()
    }

    /// Who was told to take since the last time that was asked.
    pub(crate) fn woken(&mut self) -> Vec<ConsumerId> {
        let woken = self.effects.drain(..).filter_map(|effect| match effect {
            Effect::Wake(consumer) => Some(consumer),
            Effect::SessionLost(_) | Effect::Forward(..) | Effect::Delete(_) => None,
        });
        woken.collect()
    }

    pub(crate) fn operate<T>(
        &mut self,
        work: impl FnOnce(&mut Mailbox, &mut Context<'_>) -> T,
    ) -> T {
        let mut cx = Context {
            now: self.now,
            client: self.client,
            ids: &mut self.ids,
            effects: &mut self.effects,
            facts: &mut self.facts,
        };
        let result = work(&mut self.queue.mailbox, &mut cx);
        if !self.unchecked {
            self.queue.mailbox.check_invariants();
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
