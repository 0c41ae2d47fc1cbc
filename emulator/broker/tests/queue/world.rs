//! Several entities that forward to each other, with the smallest possible shell.

mod topics;
mod transactions;

use std::cell::{Ref, RefCell};
use std::ops::DerefMut;
use std::sync::Arc;
use std::time::Duration;

use servicebus_broker::filter::Rule;
use servicebus_broker::{
    BrokerProperties, ClientId, Context, Delivery, Effects, Entities, Entity, EntityDescription,
    EntityKind, EntityPath, Events, FollowUps, Message, Namespace, NamespaceSettings, Outcome,
    PropertyChanges, ReceiveMode, ReceiverId, SendError, SequenceNumber, SessionAccess, SplitMix64,
    SubQueue, Timestamp, create, delete, follow_up,
};

use crate::bus::{DROPPED, MessageBuilder, Rules, START, message, text};
pub(crate) use topics::{acting, correlation, rule, sql};
pub(crate) use transactions::{abandon, dead_lettered, defer};

/// Queues, topics and subscriptions by name, with one clock, whose effects are carried out after every operation.
pub(crate) struct World {
    namespace: Namespace<RefCell<Entity>>,
    pub(crate) now: Timestamp,
    ids: SplitMix64,
    effects: Effects,
    pub(crate) events: Events,
    follow_ups: FollowUps,
    /// The operation that another client runs just before this entity is accessed the next time.
    interruption: Option<(EntityPath, Interruption)>,
    receivers: u64,
    /// How many milliseconds the time is ahead of that of clients.
    pub(crate) ahead: i64,
}

type Interruption = Box<dyn FnOnce(&mut World)>;

impl World {
    pub(crate) fn new() -> Self {
        Self {
            namespace: Namespace::default(),
            now: START,
            ids: SplitMix64(0),
            effects: Effects::new(),
            events: Events::new(),
            follow_ups: FollowUps::default(),
            interruption: None,
            receivers: 0,
            ahead: 0,
        }
    }

    /// A chain of queues, each of which forwards to the next; the last keeps its messages.
    pub(crate) fn chain(names: &[&str]) -> Self {
        let mut world = Self::new();
        for pair in names.windows(2) {
            world.declare(pair[0], Rules::default().forward_to(pair[1]));
        }
        world.declare(names[names.len() - 1], Rules::default());
        world
    }

    /// Declares a queue.
    pub(crate) fn declare(&mut self, name: &str, rules: Rules) {
        self.create(
            EntityKind::Queue,
            path(name),
            rules.queue,
            &rules.settings,
            vec![],
        );
    }

    fn create(
        &mut self,
        kind: EntityKind,
        path: EntityPath,
        description: EntityDescription,
        settings: &NamespaceSettings,
        rules: Vec<Rule>,
    ) {
        let problems = description.problems(kind, settings.tier);
        assert!(problems.is_empty(), "{problems:?}");
        let now = self.now;
        let created = create(self, &path, rules, |id| {
            RefCell::new(Entity::new(
                kind,
                id,
                path.clone(),
                description,
                settings,
                now,
            ))
        });
        created.expect("its name is free");
    }

    pub(crate) fn delete(&mut self, name: &str) {
        let id = self.entity(name).id();
        assert!(delete(self, &path(name), id), "it is declared");
    }

    /// Takes an entity away and leaves its subscriptions, which go after it, for later.
    pub(crate) fn remove_alone(&mut self, name: &str) {
        let removed = self.namespace.remove(&path(name), None);
        removed.expect("it is declared");
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.namespace.find(&path(name)).is_some()
    }

    pub(crate) fn update(&mut self, name: &str, change: impl FnOnce(&mut EntityDescription)) {
        self.operate(name, |entity, cx| {
            let mut description = entity.description().clone();
            change(&mut description);
            entity.update(cx, description);
        });
    }

    /// Lets another client run an operation just before `name` is accessed the next time.
    pub(crate) fn interrupt_before(&mut self, name: &str, work: impl FnOnce(&mut Self) + 'static) {
        self.interruption = Some((path(name), Box::new(work)));
    }

    pub(crate) fn send(&mut self, name: &str, id: &str) -> SequenceNumber {
        self.post(name, &message(id)).unwrap()
    }

    pub(crate) fn post(
        &mut self,
        name: &str,
        message: &MessageBuilder,
    ) -> Result<SequenceNumber, SendError> {
        let message = message.message(&mut self.ids);
        let sent = self.operate(name, |entity, cx| entity.send(cx, message));
        sent.map(|number| number.unwrap_or(DROPPED))
    }

    /// Sends a message as it is encoded here.
    pub(crate) fn send_encoded(&mut self, name: &str, payload: &[u8]) -> SequenceNumber {
        let message = Message::parse(payload.to_vec().into(), &mut self.ids).unwrap();
        let sent = self.operate(name, |entity, cx| entity.send(cx, message));
        sent.unwrap().unwrap_or(DROPPED)
    }

    pub(crate) fn post_all(
        &mut self,
        name: &str,
        messages: &[MessageBuilder],
    ) -> Result<(), SendError> {
        let messages = self.built(messages);
        let sent = self.operate(name, |entity, cx| entity.send_batch(cx, messages));
        sent.map(|_| ())
    }

    /// The next message of a store, if there is one.
    pub(crate) fn take(
        &mut self,
        name: &str,
        store: SubQueue,
        mode: ReceiveMode,
    ) -> Option<Delivery> {
        let (taken, id) = self.open_and_take(name, store, mode);
        self.operate(name, |entity, cx| entity.detach_receiver(cx, store, id));
        taken
    }

    /// The same by a receiver that stays, and asks for no more.
    pub(crate) fn take_and_stay(
        &mut self,
        name: &str,
        store: SubQueue,
        mode: ReceiveMode,
    ) -> Option<(Delivery, ReceiverId)> {
        let (taken, id) = self.open_and_take(name, store, mode);
        self.operate(name, |entity, cx| entity.set_credit(cx, store, id, 0));
        Some((taken?, id))
    }

    /// Receives a message of the next available session by a receiver that keeps the session.
    pub(crate) fn take_from_next_session(&mut self, name: &str) -> Option<(Delivery, ReceiverId)> {
        self.receivers += 1;
        let id = ReceiverId(self.receivers);
        let store = SubQueue::Active;
        let mut taken = Vec::new();
        let accepted = self.operate(name, |entity, cx| {
            let mode = ReceiveMode::PeekLock;
            let accepted =
                entity.attach_session_receiver(cx, id, mode, None, SessionAccess::Exclusive);
            entity.set_credit(cx, store, id, 1);
            entity.acquire(cx, store, id, 1, usize::MAX, &mut taken);
            accepted
        });
        if accepted.is_ok_and(|accepted| accepted.is_none()) {
            self.operate(name, |entity, cx| entity.detach_receiver(cx, store, id));
        }
        Some((taken.pop()?, id))
    }

    fn open_and_take(
        &mut self,
        name: &str,
        store: SubQueue,
        mode: ReceiveMode,
    ) -> (Option<Delivery>, ReceiverId) {
        self.receivers += 1;
        let id = ReceiverId(self.receivers);
        let mut taken = Vec::new();
        self.operate(name, |entity, cx| {
            entity.attach_receiver(store, id, mode);
            entity.set_credit(cx, store, id, 1);
            entity.acquire(cx, store, id, 1, usize::MAX, &mut taken);
        });
        (taken.pop(), id)
    }

    /// Receives and deletes the next message.
    pub(crate) fn receive(&mut self, name: &str) -> Option<Delivery> {
        self.take(name, SubQueue::Active, ReceiveMode::ReceiveAndDelete)
    }

    /// Receives the next message under a lock and settles it.
    pub(crate) fn settle_next(&mut self, name: &str, outcome: Outcome) {
        let delivery = self.take(name, SubQueue::Active, ReceiveMode::PeekLock);
        let token = delivery.expect("a message is ready").token;
        self.operate(name, |entity, cx| {
            entity.settle(cx, SubQueue::Active, token, outcome)
        })
        .unwrap();
    }

    /// Dead-letters the next message with this reason.
    pub(crate) fn dead_letter_next(&mut self, name: &str, reason: &str) {
        let outcome = Outcome::DeadLetter {
            reason: Some(reason.to_owned()),
            description: None,
            changes: PropertyChanges::new(),
        };
        self.settle_next(name, outcome);
    }

    /// Advances time from one deadline to the next.
    pub(crate) fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        while let Some(at) = self.first_deadline().filter(|at| *at <= end) {
            self.now = at.max(self.now);
            for entity in self.due(self.now, 1) {
                Entities::operate(self, &entity, |entity, cx| entity.handle_timeout(cx));
                follow_up(self, usize::MAX);
            }
        }
        self.now = end;
    }

    /// The contents of a store, read without side effects.
    pub(crate) fn peek(&self, name: &str, store: SubQueue) -> Vec<(BrokerProperties, Message)> {
        let entity = self.entity(name);
        let seen = entity.snapshot(store, SequenceNumber(1));
        seen.map(|(properties, message)| (properties, message.clone()))
            .collect()
    }

    /// The only message of a store.
    pub(crate) fn the_only(&self, name: &str, store: SubQueue) -> (BrokerProperties, Message) {
        let mut seen = self.peek(name, store);
        assert_eq!(seen.len(), 1, "one message in {name} {store:?}");
        seen.remove(0)
    }

    /// The ids in a store, in order.
    pub(crate) fn held(&self, name: &str, store: SubQueue) -> Vec<String> {
        let seen = self.peek(name, store);
        seen.iter()
            .map(|(_, message)| message.id().into_owned())
            .collect()
    }

    pub(crate) fn queued(&self, name: &str) -> Vec<String> {
        self.held(name, SubQueue::Active)
    }

    pub(crate) fn dead_letters(&self, name: &str) -> Vec<String> {
        self.held(name, SubQueue::DeadLetter)
    }

    pub(crate) fn transfer_dead_letters(&self, name: &str) -> Vec<String> {
        self.held(name, SubQueue::TransferDeadLetter)
    }

    /// Why the messages of a store are there.
    pub(crate) fn reasons(&self, name: &str, store: SubQueue) -> Vec<String> {
        let seen = self.peek(name, store);
        let reason =
            |(_, message): &(BrokerProperties, Message)| text(message, "DeadLetterReason").unwrap();
        seen.iter().map(reason).collect()
    }

    /// The messages as they arrive.
    fn built(&mut self, messages: &[MessageBuilder]) -> Vec<Message> {
        let all = messages.iter();
        all.map(|message| message.message(&mut self.ids)).collect()
    }

    pub(crate) fn entity(&self, name: &str) -> Ref<'_, Entity> {
        let entity = self.namespace.find(&path(name));
        entity.expect("it is declared").borrow()
    }

    /// Every message that is anywhere.
    pub(crate) fn everything(&self) -> Vec<String> {
        let entities = self.namespace.all();
        let names: Vec<String> = entities
            .map(|entity| entity.borrow().path().to_string())
            .collect();
        let places = names
            .iter()
            .flat_map(|name| SubQueue::ALL.map(|kind| (name, kind)));
        places
            .flat_map(|(name, kind)| self.held(name, kind))
            .collect()
    }

    pub(crate) fn operate<T>(
        &mut self,
        name: &str,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> T {
        let result = self.with_entity(&path(name), work);
        follow_up(self, usize::MAX);
        result.expect("it is declared")
    }
}

impl Entities for World {
    type Cell = RefCell<Entity>;

    fn namespace(&mut self) -> impl DerefMut<Target = Namespace<RefCell<Entity>>> {
        &mut self.namespace
    }

    fn operate<T>(
        &mut self,
        entity: &Arc<RefCell<Entity>>,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let mut entity = entity.borrow_mut();
        let mut cx = Context {
            now: self.now,
            has_room: true,
            client: ClientId(7),
            ids: &mut self.ids,
            effects: &mut self.effects,
            events: &mut self.events,
        };
        let result = work(&mut entity, &mut cx);
        entity.check_invariants();
        self.namespace.index(&mut entity);
        self.follow_ups.take(&mut self.effects, |_| ());
        Some(result)
    }

    fn with_entity<T>(
        &mut self,
        path: &EntityPath,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> Option<T> {
        if let Some((_, interrupt)) = self.interruption.take_if(|(at, _)| at == path) {
            interrupt(self);
        }
        let entity = self.namespace.find(path).cloned()?;
        Entities::operate(self, &entity, work)
    }

    fn ahead(&self) -> i64 {
        self.ahead
    }

    fn follow_ups(&mut self) -> &mut FollowUps {
        &mut self.follow_ups
    }
}

fn path(name: &str) -> EntityPath {
    EntityPath::of_address(name).expect("the path of an entity")
}
