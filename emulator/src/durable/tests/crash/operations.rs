//! The operations of clients and operators in a history.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use servicebus_broker::filter::{Filter, Rule, SqlFilter};
use servicebus_broker::{
    ClientId, Context, Delivery, Entity, EntityDescription, EntityKind, LockToken, Message,
    Outcome, PropertyChanges, ReceiveMode, ReceiverId, RuleChange, SequenceNumber, SessionAccess,
    SessionName, SubQueue, Transaction,
};
use servicebus_test_support::message::Message as Sent;
use servicebus_test_support::value::text;

use super::{SeededRng, Steps};
use crate::namespace::tests::path;
use crate::namespace::{Caller, Ids, Namespace};
use crate::router::ConnectionId;

/// A client that sends, receives and administers.
pub(super) struct Client {
    caller: Caller,
    ids: Ids,
    receivers: u64,
    messages: u64,
    /// Locks that it has not settled, with their queues.
    held: Vec<(&'static str, LockToken)>,
    deferred: Vec<SequenceNumber>,
    scheduled: Vec<SequenceNumber>,
    /// Ids that the queue with duplicate detection has accepted.
    pub(super) known: BTreeSet<String>,
    /// How far the machine's clock was moved forward.
    put: Arc<AtomicI64>,
    /// Notified after each operation, which must be present completely or not at all.
    steps: Arc<Steps>,
}

impl Client {
    /// A client of a process; earlier ones have sent fewer than `messages`.
    pub(super) fn new(
        put: Arc<AtomicI64>,
        seed: u64,
        messages: u64,
        known: BTreeSet<String>,
        steps: Arc<Steps>,
    ) -> Self {
        Self {
            caller: Caller::new(ConnectionId(1), Some(seed)),
            ids: Ids::new(Some(seed), 2),
            receivers: 0,
            messages,
            held: Vec::new(),
            deferred: Vec::new(),
            scheduled: Vec::new(),
            known,
            put,
            steps,
        }
    }

    /// Creates the initial entities.
    pub(super) fn set_up(&self, namespace: &Namespace) {
        let to = |name: &str| EntityDescription {
            forward_to: Some(path(name)),
            ..plain()
        };
        let all: [(EntityKind, &str, EntityDescription); 8] = [
            (EntityKind::Queue, "q", plain()),
            (EntityKind::Queue, "f", to("q")),
            (EntityKind::Queue, "g", to("f")),
            (
                EntityKind::Queue,
                "d",
                EntityDescription {
                    requires_duplicate_detection: true,
                    ..plain()
                },
            ),
            (
                EntityKind::Queue,
                "s",
                EntityDescription {
                    requires_session: true,
                    ..plain()
                },
            ),
            (EntityKind::Topic, "t", plain()),
            (EntityKind::Subscription, "t/subscriptions/a", plain()),
            (EntityKind::Subscription, "t/subscriptions/b", to("q")),
        ];
        for (kind, name, description) in all {
            let rules = match kind {
                EntityKind::Subscription => vec![Rule::default_rule(namespace.clock.now())],
                EntityKind::Queue | EntityKind::Topic => Vec::new(),
            };
            let made = namespace.create(kind, &path(name), description, rules);
            made.expect("it was not there");
            self.steps.add(namespace, &self.known);
        }
    }

    /// Runs one operation, which may find nothing to do.
    pub(super) fn act(&mut self, namespace: &Namespace, rng: &mut SeededRng) {
        match rng.below(20) {
            0..5 => self.send(namespace, rng),
            5 => self.send_batch(namespace, rng),
            6 => self.schedule(namespace, rng),
            7 => self.cancel(namespace),
            8 | 9 => self.receive(namespace, rng),
            10 | 11 => self.settle(namespace, rng),
            12 => self.receive_deferred(namespace),
            13 => self.use_session(namespace, rng),
            14..17 => self.transact(namespace, rng),
            17 => self.change_rule(namespace, rng),
            18 => self.administer(namespace, rng),
            _ => self.wait(namespace, rng),
        }
    }

    fn message(&mut self, rng: &mut SeededRng) -> Sent {
        self.messages += 1;
        let length = [20, 300, 3000, 9000][rng.below(4)];
        let body: Vec<u8> = (0..length).map(|_| rng.below(256) as u8).collect();
        let session = format!("s{}", rng.below(2));
        Sent::new(&format!("m{}", self.messages))
            .session(&session)
            .application("kind", text(["one", "two"][rng.below(2)]))
            .body(body)
    }

    fn parse(&mut self, sent: &Sent) -> Message {
        let message = Message::parse(sent.encode().into(), &mut self.ids);
        message.expect("it is legal")
    }

    fn at<T>(
        &mut self,
        namespace: &Namespace,
        name: &str,
        work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let entity = namespace.entity(&path(name))?;
        let done = namespace.operate(&entity, &mut self.caller, work);
        self.steps.add(namespace, &self.known);
        Some(done)
    }

    fn send(&mut self, namespace: &Namespace, rng: &mut SeededRng) {
        let name = ["q", "d", "s", "f", "g", "t", "t", "x"][rng.below(8)];
        let sent = self.message(rng);
        // The same message again is a duplicate.
        let again = self.known.first().filter(|_| rng.one_in(3)).cloned();
        let sent = match again.filter(|_| name == "d") {
            Some(id) => sent.property(0, text(&id)),
            None => sent,
        };
        let message = self.parse(&sent);
        let id = message.id().into_owned();
        let is_there = namespace.entity(&path(name)).is_some();
        let is_new = name == "d" && is_there && !self.known.contains(&id);
        if is_new {
            self.known.insert(id);
        }
        let done = self.at(namespace, name, |entity, cx| entity.send(cx, message));
        if name == "d" {
            assert_eq!(matches!(done, Some(Ok(Some(_)))), is_new);
        }
    }

    fn send_batch(&mut self, namespace: &Namespace, rng: &mut SeededRng) {
        let name = ["q", "s", "f", "t"][rng.below(4)];
        let sent: Vec<Sent> = (0..2 + rng.below(3)).map(|_| self.message(rng)).collect();
        let messages = sent.iter().map(|sent| self.parse(sent)).collect();
        self.at(namespace, name, |entity, cx| {
            entity.send_batch(cx, messages)
        });
    }

    fn schedule(&mut self, namespace: &Namespace, rng: &mut SeededRng) {
        let name = ["q", "f", "t"][rng.below(3)];
        let at = namespace.clock.now().as_millis() + 30_000 * (1 + rng.below(4) as i64);
        let sent = self.message(rng).scheduled_at(at);
        let message = self.parse(&sent);
        let done = self.at(namespace, name, |entity, cx| entity.send(cx, message));
        if let Some(Ok(Some(number))) = done
            && name == "q"
        {
            self.scheduled.push(number);
        }
    }

    fn cancel(&mut self, namespace: &Namespace) {
        if let Some(number) = self.scheduled.pop() {
            self.at(namespace, "q", |entity, cx| {
                entity.cancel_scheduled(cx, &[number])
            });
        }
    }

    fn receiver(&mut self) -> ReceiverId {
        self.receivers += 1;
        ReceiverId(1 << 32 | self.receivers)
    }

    fn receive(&mut self, namespace: &Namespace, rng: &mut SeededRng) {
        let name = ["q", "d", "t/subscriptions/a"][rng.below(3)];
        let mode = match rng.one_in(6) {
            true => ReceiveMode::ReceiveAndDelete,
            false => ReceiveMode::PeekLock,
        };
        let id = self.receiver();
        let taken = self.at(namespace, name, |entity, cx| {
            let mut taken: Vec<Delivery> = Vec::new();
            entity.attach_receiver(SubQueue::Active, id, mode);
            entity.set_credit(cx, SubQueue::Active, id, 1);
            entity.acquire(cx, SubQueue::Active, id, 1, usize::MAX, &mut taken);
            entity.detach_keeping_locks(cx, SubQueue::Active, id);
            taken
        });
        if mode == ReceiveMode::PeekLock {
            let taken = taken.into_iter().flatten();
            self.held
                .extend(taken.map(|delivery| (name, delivery.token)));
        }
    }

    fn settle(&mut self, namespace: &Namespace, rng: &mut SeededRng) {
        if self.held.is_empty() {
            return;
        }
        let (name, token) = self.held.remove(rng.below(self.held.len()));
        let changes = PropertyChanges::new();
        let outcome = match rng.below(5) {
            0 => Outcome::Abandon { changes },
            1 => Outcome::Defer { changes },
            2 => Outcome::DeadLetter {
                reason: Some("bad".into()),
                description: None,
                changes,
            },
            _ => Outcome::Complete,
        };
        let is_deferred = matches!(outcome, Outcome::Defer { .. });
        let number = self.at(namespace, name, |entity, cx| {
            let held = entity.locked_delivery(SubQueue::Active, token);
            let number = held.map(|held| held.number);
            let settled = entity.settle(cx, SubQueue::Active, token, outcome);
            settled.ok().and(number)
        });
        if is_deferred && name == "q" {
            self.deferred.extend(number.flatten());
        }
    }

    fn receive_deferred(&mut self, namespace: &Namespace) {
        let Some(number) = self.deferred.pop() else {
            return;
        };
        let (id, mode) = (self.receiver(), ReceiveMode::PeekLock);
        let taken = self.at(namespace, "q", |entity, cx| {
            entity.receive_deferred(cx, SubQueue::Active, &[number], mode, id, None)
        });
        let taken = taken.and_then(Result::ok).into_iter().flatten();
        self.held
            .extend(taken.map(|delivery| ("q", delivery.token)));
    }

    /// Accepts a session, sets its state, receives from it, and releases it.
    fn use_session(&mut self, namespace: &Namespace, rng: &mut SeededRng) {
        let name = SessionName::new(&format!("s{}", rng.below(2))).expect("it is legal");
        let (id, client) = (self.receiver(), ClientId(1));
        let state: Vec<u8> = (0..rng.below(200)).map(|_| rng.below(256) as u8).collect();
        let completes = rng.one_in(2);
        let accepted = self.at(namespace, "s", |entity, cx| {
            let mode = ReceiveMode::PeekLock;
            let access = SessionAccess::Exclusive;
            entity.attach_session_receiver(cx, id, mode, Some(&name), access)
        });
        if !matches!(accepted, Some(Ok(_))) {
            return;
        }
        self.at(namespace, "s", |entity, cx| {
            let state = Some(state.into()).filter(|state: &bytes::Bytes| !state.is_empty());
            entity.set_session_state(cx, client, &name, state)
        });
        let taken = self.at(namespace, "s", |entity, cx| {
            let mut taken: Vec<Delivery> = Vec::new();
            entity.set_credit(cx, SubQueue::Active, id, 1);
            entity.acquire(cx, SubQueue::Active, id, 1, usize::MAX, &mut taken);
            taken
        });
        if let Some(first) = taken.into_iter().flatten().next()
            && completes
        {
            self.at(namespace, "s", |entity, cx| {
                entity.settle(cx, SubQueue::Active, first.token, Outcome::Complete)
            });
        }
        self.at(namespace, "s", |entity, cx| {
            entity.detach_receiver(cx, SubQueue::Active, id);
        });
    }

    /// Sends to several entities and settles at one, all or none.
    fn transact(&mut self, namespace: &Namespace, rng: &mut SeededRng) {
        if namespace.entity(&path("q")).is_none() {
            return;
        }
        let mut transaction = Transaction::declare(self.caller.ids());
        // A transaction has one queue or topic; it sends to others via that one.
        let mut names = vec!["q"];
        let others = ["s", "f", "t"].map(path);
        for destination in [None, Some(&others[rng.below(3)])] {
            let sent = self.message(rng);
            let message = vec![self.parse(&sent)];
            let enlisted = self.at(namespace, "q", |entity, cx| match destination {
                Some(other) => entity.enlist_transfer(cx, &mut transaction, other, message),
                None => entity.enlist_send(cx, &mut transaction, message),
            });
            enlisted.expect("it is there").expect("there is room");
        }
        if let Some((name, token)) = self.held.pop() {
            self.at(namespace, name, |entity, cx| {
                let outcome = Outcome::Complete;
                let kind = SubQueue::Active;
                entity.enlist_settlement(cx, &mut transaction, kind, &[token], &outcome)
            });
            names.push(name);
        }
        names.sort_unstable();
        names.dedup();
        let entities = names
            .iter()
            .filter_map(|name| namespace.entity(&path(name)));
        let mut entities: Vec<_> = entities.collect();
        entities.sort_by_key(|entity| entity.id);
        if rng.one_in(5) {
            for entity in &entities {
                namespace.operate(entity, &mut self.caller, |entity, cx| {
                    entity.roll_back(cx, &transaction);
                });
                self.steps.add(namespace, &self.known);
            }
            return;
        }
        // It may fail, for example because a lock has ended.
        drop(namespace.commit(&entities, &mut self.caller, transaction));
        self.steps.add(namespace, &self.known);
    }

    fn change_rule(&mut self, namespace: &Namespace, rng: &mut SeededRng) {
        let Some(topic) = namespace.entity(&path("t")) else {
            return;
        };
        let condition = ["kind = 'one'", "kind = 'two'", "1 = 1"][rng.below(3)];
        let filter = SqlFilter::parse(condition, Default::default()).expect("it is legal");
        let rule = Rule {
            name: "own".into(),
            filter: Filter::Sql(filter),
            action: None,
            created_at: namespace.clock.now(),
        };
        let change = match rng.below(4) {
            0 => RuleChange::Add(rule),
            1 => RuleChange::Replace(rule),
            2 => RuleChange::Remove("own".into()),
            _ => RuleChange::Remove("$Default".into()),
        };
        let subscription = path("t/subscriptions/a");
        // It may be refused, for example because the rule does not exist.
        drop(namespace.change_rules(&topic, &subscription, change));
        self.steps.add(namespace, &self.known);
    }

    fn administer(&mut self, namespace: &Namespace, rng: &mut SeededRng) {
        match namespace.entity(&path("x")) {
            None => drop(namespace.create(EntityKind::Queue, &path("x"), plain(), Vec::new())),
            Some(_) if rng.one_in(2) => drop(namespace.delete(&path("x"))),
            Some(entity) => {
                let description = EntityDescription {
                    max_delivery_count: 5000 + rng.below(100) as u32,
                    ..plain()
                };
                namespace.update(&entity, description);
            }
        }
        self.steps.add(namespace, &self.known);
    }

    /// Advances time and runs what is due.
    fn wait(&mut self, namespace: &Namespace, rng: &mut SeededRng) {
        // The second process begins with an earlier wall time than the first one had.
        let by = namespace.clock.ahead() + 1_000 * (1 + rng.below(40) as i64);
        self.put.fetch_add(by, Ordering::Relaxed);
        while namespace.fire_due() {}
        self.steps.add(namespace, &self.known);
    }
}

fn plain() -> EntityDescription {
    EntityDescription {
        max_delivery_count: 5000,
        ..EntityDescription::default()
    }
}
