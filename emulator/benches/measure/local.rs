//! Entities called directly, with the state that surrounds them in the emulator: a timeline, and forwarding.

use std::cell::{Ref, RefCell};
use std::ops::DerefMut;
use std::sync::Arc;

use bytes::Bytes;
use servicebus_broker::filter::Rule;
use servicebus_broker::{
    ClientId, Context, Delivery, Effects, Entities, Entity, EntityDescription, EntityKind,
    EntityPath, Events, FollowUps, IdSource, LockToken, Message, Namespace, NamespaceSettings,
    Outcome as Settle, ReceiveMode, ReceiverId, SequenceNumber, SessionAccess, SubQueue, Timeline,
    Timestamp, create, follow_up,
};
use servicebus_codec::Writer;

const ACTIVE: SubQueue = SubQueue::Active;
const BODY: [u8; 100] = [b'x'; 100];

/// Some queues; operations work on the first unless they name another.
#[derive(Debug)]
pub(crate) struct LocalNamespace {
    namespace: Namespace<RefCell<Entity>>,
    first: EntityPath,
    pub(crate) now: Timestamp,
    ids: Counter,
    effects: Effects,
    events: Events,
    timeline: Timeline,
    follow_ups: FollowUps,
    consumers: u64,
}

/// Distinct numbers, from a counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(u64);

impl IdSource for Counter {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0
    }
}

/// A message of a hundred bytes with this id, scheduled if asked.
pub(crate) fn encoded(id: u32, scheduled_at: Option<Timestamp>) -> Bytes {
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

impl LocalNamespace {
    /// One queue.
    pub(crate) fn new(description: &EntityDescription) -> Self {
        Self::of(vec![("first", description.clone())])
    }

    /// Several queues, the first first.
    pub(crate) fn of(queues: Vec<(&str, EntityDescription)>) -> Self {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let path = |name: &str| name.parse::<EntityPath>().expect("our own name is legal");
        let first = path(queues.first().expect("at least one queue").0);
        let mut entities = Self {
            namespace: Namespace::default(),
            first,
            now,
            ids: Counter::default(),
            effects: Effects::new(),
            events: Events::new(),
            timeline: Timeline::new(Timeline::CAPACITY),
            follow_ups: FollowUps::default(),
            consumers: 0,
        };
        for (name, description) in queues {
            entities.create(EntityKind::Queue, &path(name), &description, vec![]);
        }
        entities
    }

    fn create(
        &mut self,
        kind: EntityKind,
        path: &EntityPath,
        description: &EntityDescription,
        rules: Vec<Rule>,
    ) {
        let (settings, now) = (NamespaceSettings::default(), self.now);
        let description = description.clone();
        let created = create(self, path, rules, |id| {
            RefCell::new(Entity::new(
                kind,
                id,
                path.clone(),
                description,
                &settings,
                now,
            ))
        });
        created.expect("its name is free");
    }

    /// A topic with subscriptions that have these rules.
    pub(crate) fn topic(
        topic: &EntityDescription,
        subscription: &EntityDescription,
        rules: Vec<Vec<Rule>>,
    ) -> Self {
        let mut entities = Self::of(vec![("first", EntityDescription::default())]);
        let first = entities.first.clone();
        entities.namespace.remove(&first, None);
        entities.create(EntityKind::Topic, &first, topic, vec![]);
        for (rules, id) in rules.into_iter().zip(2..) {
            let path = first.subscription(&format!("s{id}"));
            let path = path.expect("our own name is legal");
            entities.create(EntityKind::Subscription, &path, subscription, rules);
        }
        entities
    }

    pub(crate) fn parse(&mut self, encoded: Bytes) -> Message {
        Message::parse(encoded, &mut self.ids).expect("our own message is sound")
    }

    /// Sends messages one by one, as transfers are, under one lock.
    pub(crate) fn send_all(&mut self, messages: Vec<Message>) {
        self.at_first(|entity, cx| {
            for message in messages {
                entity.send(cx, message).expect("there is room");
            }
        });
    }

    /// The number of the message; none for a duplicate.
    pub(crate) fn send(&mut self, encoded: Bytes) -> Option<SequenceNumber> {
        let message = self.parse(encoded);
        let sent = self.at_first(|entity, cx| entity.send(cx, message));
        sent.expect("there is room")
    }

    /// A receiver of the first queue with this credit.
    pub(crate) fn receiver(&mut self, mode: ReceiveMode, credit: u32) -> ReceiverId {
        self.consumers += 1;
        let id = ReceiverId(self.consumers);
        self.at_first(|entity, cx| {
            entity.attach_receiver(ACTIVE, id, mode);
            entity.set_credit(cx, ACTIVE, id, credit);
        });
        id
    }

    /// Returns a receiver without credit that holds the next available session, which must exist.
    pub(crate) fn next_session(&mut self) -> ReceiverId {
        self.consumers += 1;
        let id = ReceiverId(self.consumers);
        let mode = ReceiveMode::PeekLock;
        let opened = self.at_first(|entity, cx| {
            entity.attach_session_receiver(cx, id, mode, None, SessionAccess::Exclusive)
        });
        assert!(
            opened.is_ok_and(|accepted| accepted.is_some()),
            "no session is available"
        );
        id
    }

    /// Gives a receiver of the first queue this credit.
    pub(crate) fn ask(&mut self, id: ReceiverId, credit: u32) {
        self.at_first(|entity, cx| entity.set_credit(cx, ACTIVE, id, credit));
    }

    /// Ends a receiver of the first queue.
    pub(crate) fn close(&mut self, id: ReceiverId) {
        self.at_first(|entity, cx| entity.detach_receiver(cx, ACTIVE, id));
    }

    pub(crate) fn take(&mut self, id: ReceiverId, max: usize) -> Vec<Delivery> {
        let mut taken = Vec::new();
        self.at_first(|entity, cx| entity.acquire(cx, ACTIVE, id, max, usize::MAX, &mut taken));
        taken
    }

    pub(crate) fn complete(&mut self, tokens: impl IntoIterator<Item = LockToken>) {
        self.at_first(|entity, cx| {
            for token in tokens {
                let settled = entity.settle(cx, ACTIVE, token, Settle::Complete);
                settled.expect("the lock is held");
            }
        });
    }

    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.entity(&self.first).next_deadline()
    }

    pub(crate) fn entity(&self, path: &EntityPath) -> Ref<'_, Entity> {
        self.namespace.find(path).expect("it was created").borrow()
    }

    /// Runs an operation on the first queue, and its follow-ups.
    pub(crate) fn at_first<T>(
        &mut self,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> T {
        let first = self.first.clone();
        let result = self.with_entity(&first, work);
        if !self.follow_ups.is_empty() {
            follow_up(self, usize::MAX);
        }
        result.expect("the first queue is there")
    }
}

impl Entities for LocalNamespace {
    type Cell = RefCell<Entity>;

    fn namespace(&mut self) -> impl DerefMut<Target = Namespace<RefCell<Entity>>> {
        &mut self.namespace
    }

    fn operate<T>(
        &mut self,
        entity: &Arc<RefCell<Entity>>,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let mut cx = Context {
            now: self.now,
            has_room: true,
            client: ClientId(1),
            ids: &mut self.ids,
            effects: &mut self.effects,
            events: &mut self.events,
        };
        let entity = &mut *entity.borrow_mut();
        let result = work(entity, &mut cx);
        if entity.changes_index() {
            self.namespace.index(entity);
        }
        self.timeline.absorb(&mut self.events);
        self.follow_ups.take(&mut self.effects, |_| ());
        Some(result)
    }

    fn follow_ups(&mut self) -> &mut FollowUps {
        &mut self.follow_ups
    }
}
