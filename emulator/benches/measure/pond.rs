//! Mailboxes called directly, with what surrounds them in the emulator: a timeline, and forwarding between them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use servicebus_broker::filter::Rule;
use servicebus_broker::{
    ClientId, ConsumerId, Context, Delivery, Effect, Effects, Entities, EntityId, EntityPath,
    Facts, LockToken, Mailbox, Message, NamespaceSettings, Outcome as Settle, QueueDescription,
    ReceiveMode, SequenceNumber, SessionAccess, StoreKind, SubscriptionDescription, Timeline,
    Timestamp, TopicDescription, forward,
};
use servicebus_codec::Writer;

use crate::core::Counter;

const ACTIVE: StoreKind = StoreKind::Active;
const BODY: [u8; 100] = [b'x'; 100];

/// Some queues; the first is where everything happens unless another is named.
#[derive(Debug)]
pub(crate) struct Pond {
    mailboxes: BTreeMap<EntityPath, Mailbox>,
    first: EntityPath,
    pub(crate) now: Timestamp,
    ids: Counter,
    effects: Effects,
    facts: Facts,
    timeline: Timeline,
    sources: VecDeque<(EntityPath, StoreKind)>,
    consumers: u64,
}

/// A message of a hundred bytes with this id, scheduled if asked.
pub(crate) fn letter(id: u32, scheduled_at: Option<Timestamp>) -> Bytes {
    let mut bytes = Vec::with_capacity(BODY.len() + 100);
    let mut out = Writer::new(&mut bytes);
    if let Some(at) = scheduled_at {
        out.descriptor(0x72);
        let annotations = out.begin_map();
        out.symbol("x-opt-scheduled-enqueue-time");
        out.timestamp(at.as_millis());
        out.end(annotations, 2);
    }
    out.descriptor(0x73);
    let properties = out.begin_list();
    out.string(&format!("message-{id:010}"));
    out.end(properties, 1);
    out.descriptor(0x75);
    out.binary(&BODY);
    bytes.into()
}

impl Pond {
    /// One queue.
    pub(crate) fn new(description: &QueueDescription) -> Self {
        Self::of(vec![("first", description.clone())])
    }

    /// Several queues, the first first.
    pub(crate) fn of(queues: Vec<(&str, QueueDescription)>) -> Self {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let settings = NamespaceSettings::default();
        let path = |name: &str| name.parse::<EntityPath>().expect("our own name is legal");
        let first = path(queues.first().expect("at least one queue").0);
        let mailboxes = queues
            .into_iter()
            .zip(1..)
            .map(|((name, description), id)| {
                let mailbox = Mailbox::new(EntityId(id), path(name), description, &settings, now);
                (path(name), mailbox)
            });
        Self {
            mailboxes: mailboxes.collect(),
            first,
            now,
            ids: Counter::default(),
            effects: Effects::new(),
            facts: Facts::new(),
            timeline: Timeline::new(Timeline::CAPACITY),
            sources: VecDeque::new(),
            consumers: 0,
        }
    }

    /// A topic with subscriptions that have these rules.
    pub(crate) fn topic(
        topic: &TopicDescription,
        subscription: &SubscriptionDescription,
        rules: Vec<Vec<Rule>>,
    ) -> Self {
        let mut pond = Self::of(vec![("first", QueueDescription::default())]);
        let settings = NamespaceSettings::default();
        let (first, now) = (pond.first.clone(), pond.now);
        let mailbox = Mailbox::topic(EntityId(1), first.clone(), topic, &settings, now);
        pond.mailboxes.insert(first.clone(), mailbox);
        for (rules, id) in rules.into_iter().zip(2..) {
            let path = first.subscription(&format!("s{id}"));
            let path = path.expect("our own name is legal");
            let id = EntityId(id);
            let mailbox = Mailbox::subscription(id, path.clone(), subscription, &settings, now);
            pond.mailboxes.insert(path.clone(), mailbox);
            pond.operate(|topic, cx| topic.subscribe(cx, &path, rules));
        }
        pond
    }

    pub(crate) fn send(&mut self, encoded: Bytes) -> SequenceNumber {
        let message = Message::parse(encoded, &mut self.ids).expect("our own message is sound");
        self.operate(|mailbox, cx| mailbox.send(cx, message))
            .expect("there is room")
    }

    /// A consumer of the first queue with this credit.
    pub(crate) fn receiver(&mut self, mode: ReceiveMode, credit: u32) -> ConsumerId {
        self.consumers += 1;
        let id = ConsumerId(self.consumers);
        self.operate(|mailbox, cx| {
            mailbox.open_consumer(ACTIVE, id, mode);
            mailbox.set_credit(cx, ACTIVE, id, credit);
        });
        id
    }

    /// A consumer without credit that holds the next available session, which there must be.
    pub(crate) fn next_session(&mut self) -> ConsumerId {
        self.consumers += 1;
        let id = ConsumerId(self.consumers);
        let mode = ReceiveMode::PeekLock;
        let opened = self.operate(|mailbox, cx| {
            mailbox.open_session_consumer(cx, id, mode, None, SessionAccess::Exclusive)
        });
        assert!(
            opened.is_ok_and(|accepted| accepted.is_some()),
            "no session is available"
        );
        id
    }

    /// Gives a consumer of the first queue this credit.
    pub(crate) fn ask(&mut self, id: ConsumerId, credit: u32) {
        self.operate(|mailbox, cx| mailbox.set_credit(cx, ACTIVE, id, credit));
    }

    /// Ends a consumer of the first queue.
    pub(crate) fn close(&mut self, id: ConsumerId) {
        self.operate(|mailbox, cx| mailbox.close_consumer(cx, ACTIVE, id));
    }

    pub(crate) fn take(&mut self, id: ConsumerId, max: usize) -> Vec<Delivery> {
        let mut taken = Vec::new();
        self.operate(|mailbox, cx| mailbox.take(cx, ACTIVE, id, max, usize::MAX, &mut taken));
        taken
    }

    pub(crate) fn complete(&mut self, tokens: &[LockToken]) {
        self.operate(|mailbox, cx| {
            for &token in tokens {
                let settled = mailbox.settle(cx, ACTIVE, token, Settle::Complete);
                settled.expect("the lock is held");
            }
        });
    }

    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.mailbox(&self.first).next_deadline()
    }

    pub(crate) fn mailbox(&self, path: &EntityPath) -> &Mailbox {
        &self.mailboxes[path]
    }

    /// Does something to the first queue, and lets follow what follows.
    pub(crate) fn operate<T>(
        &mut self,
        work: impl FnOnce(&mut Mailbox, &mut Context<'_>) -> T,
    ) -> T {
        let first = self.first.clone();
        let result = self.with_entity(&first, work);
        if !self.sources.is_empty() {
            forward(self, usize::MAX);
        }
        result.expect("the first queue is there")
    }
}

impl Entities for Pond {
    fn with_entity<T>(
        &mut self,
        path: &EntityPath,
        work: impl FnOnce(&mut Mailbox, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let mailbox = self.mailboxes.get_mut(path)?;
        let mut cx = Context {
            now: self.now,
            client: ClientId(1),
            ids: &mut self.ids,
            effects: &mut self.effects,
            facts: &mut self.facts,
        };
        let result = work(mailbox, &mut cx);
        self.timeline.absorb(&mut self.facts);
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Forward(path, kind) => self.sources.push_back((path, kind)),
                Effect::Wake(_) | Effect::SessionLost(_) | Effect::Delete(_) => {}
            }
        }
        Some(result)
    }

    fn next_source(&mut self) -> Option<(EntityPath, StoreKind)> {
        self.sources.pop_front()
    }
}
