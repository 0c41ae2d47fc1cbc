//! The real queues, driven by the reference's steps and time, with the smallest possible shell that carries out their
//! effects.

mod persistence;
mod sessions;
pub(crate) mod wire;

use std::cell::{Ref, RefCell};
use std::ops::DerefMut;
use std::sync::Arc;

use servicebus_broker::filter::SqlFilter;
use servicebus_broker::{
    CancelError, ClientId, Context, Delivery, Effects, Entities, Entity, EntityDescription,
    EntityId, EntityKind, EntityPath, Events, FollowUps, LockToken, Message, Namespace,
    NamespaceSettings, Notice, Outcome as Settlement, ReceiveDeferredError, ReceiveMode,
    ReceiverId, RenewError, SendError, SequenceNumber, SettleError, SplitMix64, Timestamp,
    follow_up,
};
use uuid::Uuid;

use crate::event::{ModelEvent, queue_of};
use crate::history::{
    Answer, EncodedMessage, Key, NAMES, ObservedMessage, Outcome, QUEUES, Rules, Step, StoreAddress,
};
use persistence::RecordedState;
pub(crate) use sessions::session_name;
use wire::{changes, see};

/// The selector of receivers that do not take every message.
const EVEN: &str = "JMSMessageID IN ('m0', 'm2', 'm4', 'm6')";

/// The client in these histories.
pub(crate) const CLIENT: ClientId = ClientId(7);

#[derive(Debug)]
pub(crate) struct World {
    settings: NamespaceSettings,
    paths: Vec<EntityPath>,
    namespace: Namespace<RefCell<Entity>>,
    now: Timestamp,
    client: ClientId,
    ids: SplitMix64,
    pub(crate) tokens: Vec<LockToken>,
    effects: Effects,
    pub(crate) events: Events,
    follow_ups: FollowUps,
    /// Receivers that were woken, since this was last cleared.
    pub(crate) woken: Vec<ReceiverId>,
    /// Receivers that lost their sessions, since this was last cleared.
    pub(crate) lost: Vec<u64>,
    /// Queues that a step changed, since this was last cleared.
    pub(crate) touched: [bool; QUEUES],
    /// Delivered bytes.
    pub(crate) wire: Vec<u8>,
    recorded: RecordedState,
}

impl World {
    pub(crate) fn new(rules: &Rules, now: i64, seed: u64) -> Self {
        let paths = NAMES.map(|name| name.parse().expect("a name is a path"));
        let mut world = Self {
            settings: rules.settings,
            paths: paths.to_vec(),
            namespace: Namespace::default(),
            now: Timestamp::from_millis(now),
            client: CLIENT,
            ids: SplitMix64(seed),
            tokens: Vec::new(),
            effects: Effects::new(),
            events: Events::new(),
            follow_ups: FollowUps::default(),
            woken: Vec::new(),
            lost: Vec::new(),
            touched: [false; QUEUES],
            wire: Vec::new(),
            recorded: RecordedState::default(),
        };
        for (at, description) in rules.queues.iter().enumerate() {
            world.create(at, description.clone());
        }
        world
    }

    /// Runs a step and its effects.
    pub(crate) fn apply(&mut self, step: &Step) -> Answer {
        let answer = self.answer(step);
        self.client = ClientId::BROKER;
        follow_up(self, usize::MAX);
        self.client = CLIENT;
        answer
    }

    pub(crate) fn entity(&self, queue: usize) -> Option<Ref<'_, Entity>> {
        Some(self.namespace.find(&self.paths[queue])?.borrow())
    }

    pub(crate) fn now(&self) -> i64 {
        self.now.as_millis()
    }

    /// The next deadline of a queue.
    pub(crate) fn deadline(&self, queue: usize) -> Option<i64> {
        let due = self.entity(queue)?.next_deadline();
        due.map(Timestamp::as_millis)
    }

    pub(crate) fn reserved(&self, (queue, kind): StoreAddress, id: u64) -> usize {
        let entity = self.entity(queue);
        entity.map_or(0, |entity| entity.reserved(kind, ReceiverId(id)))
    }

    /// Events since they were last cleared.
    pub(crate) fn events(&self) -> impl Iterator<Item = ModelEvent> {
        self.events
            .iter()
            .map(|event| ModelEvent::of(event, &self.events))
    }

    fn answer(&mut self, step: &Step) -> Answer {
        match step {
            Step::Send(queue, parcels, batch) => Answer::Sent(self.send(*queue, parcels, *batch)),
            &Step::Open((queue, kind), id, mode, selects) => {
                let selector = selects.then(|| SqlFilter::selector(EVEN).expect("it is one"));
                let id = ReceiverId(id);
                self.done(queue, |m, _| match selector {
                    Some(selector) => m.attach_selecting_receiver(kind, id, mode, selector),
                    None => m.attach_receiver(kind, id, mode),
                })
            }
            &Step::Close((queue, kind), id) => {
                self.done(queue, |m, cx| m.detach_receiver(cx, kind, ReceiverId(id)))
            }
            &Step::Credit((queue, kind), id, credit) => self.done(queue, |entity, cx| {
                entity.set_credit(cx, kind, ReceiverId(id), credit);
            }),
            &Step::Skip((queue, kind), id) => self.done(queue, |entity, cx| {
                entity.move_to_other_receiver(cx, kind, ReceiverId(id));
            }),
            &Step::Take(place, id, max) => self.take(place, ReceiverId(id), max),
            Step::Settle(place, key, outcome) => self.settle(*place, &[*key], outcome, false),
            Step::SettleAll(place, keys, outcome) => self.settle(*place, keys, outcome, true),
            Step::Renew(place, keys) => self.renew(*place, keys),
            Step::ReceiveDeferred(place, numbers, mode, id, session) => {
                self.receive_deferred(*place, numbers, *mode, ReceiverId(*id), *session)
            }
            &Step::Accept(queue, id, mode, wanted) => self.accept(queue, id, mode, wanted),
            &Step::Session(queue, session, what) => self.of_session(queue, session, what),
            Step::Cancel(queue, numbers) => self.cancel(*queue, numbers),
            &Step::DeleteMessages((queue, kind), max, before) => {
                let before = Timestamp::from_millis(before);
                Answer::Deleted(self.with(queue, |entity, cx| {
                    entity.delete_messages(cx, kind, max, before, None)
                }))
            }
            Step::Update(queue, description) => {
                let description = EntityDescription::clone(description);
                self.done(*queue, |entity, cx| {
                    entity.update(cx, description);
                })
            }
            &Step::LoseLocks(queue) => self.done(queue, Entity::lose_locks),
            &Step::Advance(to) => {
                self.now = Timestamp::from_millis(to);
                Answer::Done
            }
            &Step::Timeout(queue) => self.done(queue, |entity, cx| {
                entity.handle_timeout(cx);
            }),
            &Step::Browse(place, from, max) => Answer::Messages(self.peek(place, from, max)),
            &Step::Reset(queue) => self.done(queue, Entity::reset),
            Step::Create(queue, description) => {
                self.create(*queue, EntityDescription::clone(description));
                Answer::Done
            }
            Step::Restart => {
                self.restart();
                Answer::Done
            }
            &Step::Drop(queue) => {
                self.touched[queue] = true;
                self.namespace.remove(&self.paths[queue], None);
                self.recorded.forget(EntityId(queue as u32 + 1));
                Answer::Done
            }
        }
    }

    fn create(&mut self, at: usize, description: EntityDescription) {
        self.touched[at] = true;
        let id = EntityId(at as u32 + 1);
        let path = self.paths[at].clone();
        let queue = EntityKind::Queue;
        let mut made = Entity::new(
            queue,
            id,
            path.clone(),
            description,
            &self.settings,
            self.now,
        );
        made.record_changes();
        self.recorded.keep(&mut made);
        let created = self.namespace.insert(&path, |_| RefCell::new(made));
        created.expect("its name is free");
    }

    fn done(&mut self, queue: usize, work: impl FnOnce(&mut Entity, &mut Context<'_>)) -> Answer {
        self.with(queue, work);
        Answer::Done
    }

    fn with<T>(
        &mut self,
        queue: usize,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> T {
        let path = self.paths[queue].clone();
        self.with_entity(&path, work).expect("the queue is there")
    }

    fn send(
        &mut self,
        queue: usize,
        parcels: &[EncodedMessage],
        batch: bool,
    ) -> Result<Vec<u64>, String> {
        let messages: Vec<Message> = parcels
            .iter()
            .map(|parcel| Message::parse(parcel.payload.clone(), &mut self.ids).unwrap())
            .collect();
        let sent = self.with(queue, |entity, cx| match batch {
            true => entity.send_batch(cx, messages),
            false => messages
                .into_iter()
                .map(|message| entity.send(cx, message))
                .collect(),
        });
        let number = |number: Option<SequenceNumber>| number.map_or(0, |number| number.0);
        let sent = sent.map(|numbers| numbers.into_iter().map(number).collect());
        sent.map_err(|refused: SendError| refused.to_string())
    }

    fn take(&mut self, (queue, kind): StoreAddress, id: ReceiverId, max: usize) -> Answer {
        let mut taken: Vec<Delivery> = Vec::new();
        self.with(queue, |entity, cx| {
            entity.acquire(cx, kind, id, max, usize::MAX, &mut taken);
        });
        Answer::Messages(self.receive(&taken))
    }

    fn receive_deferred(
        &mut self,
        (queue, kind): StoreAddress,
        numbers: &[u64],
        mode: ReceiveMode,
        id: ReceiverId,
        session: Option<u8>,
    ) -> Answer {
        let session = session.map(session_name);
        let numbers: Vec<_> = numbers.iter().copied().map(SequenceNumber).collect();
        let taken = self.with(queue, |entity, cx| {
            entity.receive_deferred(cx, kind, &numbers, mode, id, session.as_ref())
        });
        let taken = taken.map(|taken| self.receive(&taken));
        Answer::Deferred(taken.map_err(|error| match error {
            ReceiveDeferredError::NotFound => "not found",
            ReceiveDeferredError::DifferentPartitions => "different partitions",
            ReceiveDeferredError::SessionLockLost => "session lock lost",
            ReceiveDeferredError::Disabled => "disabled",
        }))
    }

    /// Messages as they arrive.
    fn receive(&mut self, taken: &[Delivery]) -> Vec<ObservedMessage> {
        let mut all = Vec::with_capacity(taken.len());
        for Delivery {
            token,
            broker_properties,
            message,
        } in taken
        {
            self.tokens.push(*token);
            let begin = self.wire.len();
            let message = &self.recorded.whole(message);
            let encoded = message
                .encode(broker_properties, 0, &mut self.wire)
                .unwrap();
            let source = wire::source(&self.wire[begin..]).and_then(queue_of);
            self.wire.extend_from_slice(&encoded);
            all.push(ObservedMessage {
                source,
                ..see(broker_properties, message)
            });
        }
        all
    }

    fn settle(
        &mut self,
        (queue, kind): StoreAddress,
        keys: &[Key],
        outcome: &Outcome,
        all: bool,
    ) -> Answer {
        let tokens: Vec<LockToken> = keys.iter().map(|&key| self.token(key)).collect();
        let outcome = match outcome {
            Outcome::Complete => Settlement::Complete,
            Outcome::Abandon(properties) => Settlement::Abandon {
                changes: changes(properties),
            },
            Outcome::Release => Settlement::Release,
            Outcome::Defer(properties) => Settlement::Defer {
                changes: changes(properties),
            },
            Outcome::DeadLetter(reason, description, properties) => Settlement::DeadLetter {
                reason: reason.map(str::to_owned),
                description: description.map(str::to_owned),
                changes: changes(properties),
            },
        };
        let result = self.with(queue, |entity, cx| match all {
            true => entity.settle_all(cx, kind, &tokens, &outcome),
            false => entity.settle(cx, kind, tokens[0], outcome),
        });
        Answer::Settled(result.err().map(|error| match error {
            SettleError::LockLost => "lock lost",
            SettleError::SessionLockLost => "session lock lost",
            SettleError::Disabled => "disabled",
            SettleError::AlreadyDeadLettered => "dead already",
            SettleError::Properties(_) => "properties",
        }))
    }

    fn renew(&mut self, (queue, kind): StoreAddress, keys: &[Key]) -> Answer {
        let tokens: Vec<LockToken> = keys.iter().map(|&key| self.token(key)).collect();
        let result = self.with(queue, |entity, cx| entity.renew_locks(cx, kind, &tokens));
        let result = result.map(|ends| ends.into_iter().map(Timestamp::as_millis).collect());
        Answer::Renewed(result.map_err(|error| match error {
            RenewError::LockLost(lost) => tokens.iter().position(|&token| token == lost),
            RenewError::UnderSession(_) | RenewError::Disabled => None,
        }))
    }

    fn cancel(&mut self, queue: usize, numbers: &[u64]) -> Answer {
        let numbers: Vec<_> = numbers.iter().copied().map(SequenceNumber).collect();
        let result = self.with(queue, |entity, cx| entity.cancel_scheduled(cx, &numbers));
        let refused = result.err().map_or_else(Vec::new, |error| match error {
            CancelError::NotFound(missing) => missing,
            CancelError::Twice(number) => vec![number; 2],
        });
        Answer::Cancelled(refused.iter().map(|number| number.0).collect())
    }

    fn peek(&mut self, (queue, kind): StoreAddress, from: u64, max: usize) -> Vec<ObservedMessage> {
        let from = SequenceNumber(from);
        let browsed = self.with(queue, |entity, cx| entity.peek(cx, kind, from, max, None));
        let seen = browsed
            .iter()
            .map(|browsed| see(&browsed.broker_properties, &browsed.message));
        seen.collect()
    }

    fn token(&self, key: Key) -> LockToken {
        match key {
            Key::Given(at) => self.tokens[at],
            Key::Forged(at, bit) => LockToken::from(Uuid::from_u128(
                self.tokens[at].uuid().as_u128() ^ (1 << bit),
            )),
            Key::Garbage(bits) => LockToken::from(Uuid::from_u128(bits)),
        }
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
        let is_there = self.namespace.find(entity.path()).is_some();
        // The model does not cover what a deleted queue records of its messages.
        let (mut effects, mut events) = (Effects::new(), Events::new());
        let mut cx = Context {
            now: self.now,
            has_room: true,
            client: self.client,
            ids: &mut self.ids,
            effects: if is_there {
                &mut self.effects
            } else {
                &mut effects
            },
            events: if is_there {
                &mut self.events
            } else {
                &mut events
            },
        };
        let result = work(&mut entity, &mut cx);
        self.recorded.keep(&mut entity);
        self.touched[entity.id().0 as usize - 1] |= is_there;
        let (woken, lost) = (&mut self.woken, &mut self.lost);
        self.follow_ups
            .take(&mut self.effects, |notice| match notice {
                Notice::Wake(receiver) => woken.push(receiver),
                Notice::SessionLost(receiver) => lost.push(receiver.0),
            });
        Some(result)
    }

    fn follow_ups(&mut self) -> &mut FollowUps {
        &mut self.follow_ups
    }
}
