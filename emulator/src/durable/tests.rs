#[cfg(feature = "durable")]
mod crash;
mod stored_namespaces;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Condvar, Mutex};
use servicebus_broker::filter::{Filter, Rule, SqlFilter};
use servicebus_broker::{
    ClientAffinity, Context, Entity, EntityDescription, EntityKind, LockToken, Message, Outcome,
    PropertyChanges, ReceiveMode, ReceiverId, SequenceNumber, SubQueue, Timestamp,
};

use super::*;
use crate::clock::tests::put_by_hand;
use crate::config::NamespaceConfig;
use crate::failures::Failures;
use crate::namespace::tests::path;
use crate::namespace::{Contents, Ids, Namespace};

/// Rows in memory that outlive their store.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    rows: BTreeMap<Vec<u8>, Bytes>,
    bodies: BTreeMap<Vec<u8>, Bytes>,
}

/// A disk whose writes the test permits.
struct Memory {
    stored: Arc<Mutex<Stored>>,
    gate: Arc<Gate>,
}

/// Whether a disk can write.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum State {
    #[default]
    Open,
    Closed,
    Broken(&'static str),
}

impl Gate {
    pub(crate) fn set(&self, state: State) {
        *self.state.lock() = state;
        self.changed.notify_all();
    }
}

impl Disk for Memory {
    fn space(&self) -> Arc<DiskSpace> {
        Arc::new(DiskSpace::new(Box::new(())))
    }

    fn write(&mut self, batch: Batch) -> Result<(), String> {
        let mut state = self.gate.state.lock();
        while *state == State::Closed {
            self.gate.changed.wait(&mut state);
        }
        if let State::Broken(reason) = *state {
            return Err(reason.into());
        }
        let stored = &mut *self.stored.lock();
        for prefix in batch.removed {
            stored.rows.retain(|key, _| !key.starts_with(&prefix));
        }
        let bodies = batch.bodies.into_iter();
        let bodies = bodies.map(|(body, bytes)| (body.0.get().to_be_bytes().to_vec(), bytes));
        put(&mut stored.rows, batch.rows);
        put(&mut stored.bodies, bodies);
        Ok(())
    }

    fn read(&self, table: Table, prefix: &[u8], each: &mut EachRow<'_>) -> Result<(), LoadError> {
        // The callback may ask for bytes.
        let rows = match table {
            Table::Rows => self.stored.lock().rows.clone(),
            Table::Bodies => self.stored.lock().bodies.clone(),
        };
        let mut rows = rows.iter().filter(|(key, _)| key.starts_with(prefix));
        rows.try_for_each(|(key, row)| each(key, row))
    }

    fn body(&self, body: BodyId) -> Result<Option<Bytes>, LoadError> {
        let key = body.0.get().to_be_bytes();
        Ok(self.stored.lock().bodies.get(&key[..]).cloned())
    }

    fn bodies(&self) -> Result<(u64, u64), LoadError> {
        let stored = self.stored.lock();
        let last = stored.bodies.last_key_value();
        let last = last.map_or(0, |(key, _)| {
            u64::from_be_bytes(key[..].try_into().expect("8"))
        });
        Ok((stored.bodies.len() as u64, last))
    }

    fn reader(&self) -> Box<dyn Bodies> {
        Box::new(Reader(Arc::clone(&self.stored)))
    }
}

struct Reader(Arc<Mutex<Stored>>);

struct StoredBodies(BTreeMap<Vec<u8>, Bytes>);

impl Bodies for Reader {
    fn snapshot(&self, _: &[BodyId]) -> Result<Box<dyn Snapshot>, LoadError> {
        Ok(Box::new(StoredBodies(self.0.lock().bodies.clone())))
    }
}

impl Snapshot for StoredBodies {
    fn body(&self, body: BodyId) -> Result<Option<Bytes>, LoadError> {
        Ok(self.0.get(&body.0.get().to_be_bytes()[..]).cloned())
    }
}

fn put(
    all: &mut BTreeMap<Vec<u8>, Bytes>,
    rows: impl IntoIterator<Item = (Vec<u8>, Option<Bytes>)>,
) {
    for (key, row) in rows {
        match row {
            Some(row) => drop(all.insert(key, row)),
            None => drop(all.remove(&key)),
        }
    }
}

/// A process: a store with a namespace of the queues `a`, which can forward to `b`, and `b`.
pub(crate) struct Process {
    pub(crate) store: Arc<Store>,
    namespace: Namespace,
    pub(crate) gate: Arc<Gate>,
    failures: Failures,
}

/// Ends the process at once: unwritten changes are lost.
impl Drop for Process {
    fn drop(&mut self) {
        self.gate.set(State::Broken("the process has ended"));
        self.store.close();
    }
}

impl Process {
    pub(crate) fn start(stored: &Arc<Mutex<Stored>>) -> Self {
        let b = (path("b"), EntityDescription::default());
        let a = EntityDescription {
            forward_to: Some(path("b")),
            ..EntityDescription::default()
        };
        let config = NamespaceConfig {
            queues: vec![(path("a"), a), b],
            ..NamespaceConfig::new("one")
        };
        Self::open(stored, config, Contents::Declared { prunes: false })
    }

    /// Starts where the configuration does not declare the namespace.
    fn start_undeclared(stored: &Arc<Mutex<Stored>>) -> Self {
        Self::open(stored, NamespaceConfig::new("one"), Contents::Stored)
    }

    fn open(stored: &Arc<Mutex<Stored>>, config: NamespaceConfig, contents: Contents) -> Self {
        Self::open_at(stored, config, contents, 0)
    }

    /// Starts where the wall clock is so many milliseconds ahead.
    fn open_at(
        stored: &Arc<Mutex<Stored>>,
        config: NamespaceConfig,
        contents: Contents,
        ahead: i64,
    ) -> Self {
        let gate = Arc::<Gate>::default();
        let disk = Memory {
            stored: Arc::clone(stored),
            gate: Arc::clone(&gate),
        };
        let store = Store::open(Box::new(disk), "rows".into()).expect("it can be read");
        let (put, real) = put_by_hand();
        put.store(ahead, Ordering::Relaxed);
        let failures = Failures::default();
        let own = (store.namespace("one"), contents);
        let namespace = Namespace::open_stored(config, real, Some(1), false, failures.clone(), own);
        let namespace = namespace.expect("it is whole");
        store.remove_orphans().expect("it can be read");
        store.start(failures.clone()).expect("a thread can be made");
        Self {
            store,
            namespace,
            gate,
            failures,
        }
    }

    fn at<T>(&self, name: &str, work: impl FnOnce(&mut Entity, &mut Context<'_>) -> T) -> T {
        let entity = self.namespace.entity(&path(name)).expect("it is there");
        self.namespace.operate_as_broker(&entity, work)
    }

    pub(crate) fn send(&self, name: &str) {
        let body: &[u8] = &[0x00, 0x53, 0x75, 0xa0, 0x01, b'x'];
        let message = Message::parse(body.to_vec().into(), &mut Ids::new(Some(1), 1));
        let message = message.expect("it is legal");
        let sent = self.at(name, |entity, cx| entity.send(cx, message));
        sent.expect("there is room");
    }

    /// Receives the first message of a queue under a lock.
    fn lock(&self, name: &str) -> LockToken {
        let (id, mut taken) = (ReceiverId(1 << 32), Vec::new());
        self.at(name, |entity, cx| {
            entity.attach_receiver(SubQueue::Active, id, ReceiveMode::PeekLock);
            entity.set_credit(cx, SubQueue::Active, id, 1);
            entity.acquire(cx, SubQueue::Active, id, 1, usize::MAX, &mut taken);
        });
        taken.first().expect("there is one").token
    }

    fn active(&self, name: &str) -> usize {
        self.at(name, |entity, _| entity.counts(SubQueue::Active).active)
    }

    async fn flush(&self) {
        self.store.flush().await.expect("it can be written");
    }
}

#[tokio::test]
async fn a_forward_is_written_together_with_its_send() {
    let stored = Arc::default();
    let process = Process::start(&stored);
    process.flush().await;
    process.gate.set(State::Closed);
    process.send("a");
    let unwritten = process.store.flush();
    let waited = tokio::time::timeout(std::time::Duration::ZERO, unwritten).await;
    waited.expect_err("nothing is true before it is written");
    drop(process);
    // The other process finds nothing of it, neither here nor there.
    let process = Process::start(&stored);
    assert_eq!((process.active("a"), process.active("b")), (0, 0));
    process.send("a");
    process.flush().await;
    drop(process);
    let process = Process::start(&stored);
    assert_eq!((process.active("a"), process.active("b")), (0, 1));
    assert_eq!(stored.lock().bodies.len(), 1, "its bytes were written once");
    let token = process.lock("b");
    let done = process.at("b", |entity, cx| {
        entity.settle(cx, SubQueue::Active, token, Outcome::Complete)
    });
    done.expect("the lock is held");
    process.flush().await;
    assert!(stored.lock().bodies.is_empty());
}

#[tokio::test]
async fn after_a_failed_write_all_later_writes_fail() {
    let stored = Arc::default();
    let process = Process::start(&stored);
    process.flush().await;
    process.gate.set(State::Broken("no space"));
    process.send("b");
    let failed = process.store.flush().await;
    let failed = failed.expect_err("it is not written").to_string();
    assert!(failed.contains("no space"), "{failed}");
    assert_eq!(process.failures.all()[0].reason, failed);
    process.send("b");
    process.store.flush().await.expect_err("and will not be");
}

#[tokio::test]
async fn bodies_without_a_row_are_removed_at_the_start() {
    let stored = Arc::<Mutex<Stored>>::default();
    let process = Process::start(&stored);
    process.send("b");
    process.flush().await;
    drop(process);
    let orphan = 77u64.to_be_bytes().to_vec();
    stored
        .lock()
        .bodies
        .insert(orphan, Bytes::from_static(b"left"));
    let process = Process::start(&stored);
    process.send("b");
    process.flush().await;
    assert_eq!(stored.lock().bodies.len(), 2);
    assert!(stored.lock().bodies.keys().all(|key| key[7] != 77));
}

/// A request may have found a namespace just before its removal.
#[tokio::test]
async fn a_removed_namespace_stores_nothing_any_more() {
    let stored = Arc::<Mutex<Stored>>::default();
    let process = Process::start(&stored);
    process.send("b");
    process.namespace.end();
    process.flush().await;
    let (late, plain) = (path("late"), EntityDescription::default());
    let made = (process.namespace).create(EntityKind::Queue, &late, plain, Vec::new());
    made.expect("its name is free");
    process.send("late");
    process.namespace.freeze().await;
    process.flush().await;
    assert_eq!(stored.lock().rows.len(), 0);
    assert_eq!(stored.lock().bodies.len(), 0);
}

#[tokio::test]
async fn a_removed_namespace_keeps_no_memory() {
    let process = Process::start(&Arc::default());
    let (_, real) = put_by_hand();
    let own = (
        process.store.namespace("two"),
        Contents::Declared { prunes: false },
    );
    let (config, failures) = (NamespaceConfig::new("two"), Failures::default());
    let namespace = Namespace::open_stored(config, real, Some(1), false, failures, own);
    let namespace = Arc::new(namespace.expect("it is new"));
    namespace.store().expect("it is stored").serve(&namespace);
    namespace.end();
    assert_eq!(Arc::weak_count(&namespace), 0);
}

/// A JMS subscription is unchanged; entities of links have ended with them.
#[tokio::test]
async fn entities_bound_to_links_are_removed_at_the_next_start() {
    let stored = Arc::<Mutex<Stored>>::default();
    let process = Process::start(&stored);
    let client = |is_durable| ClientAffinity {
        client_id: "client".into(),
        is_durable,
        is_shared: true,
        selector: Some("a = 1".into()),
    };
    let make = |kind, name: &str, client: Option<ClientAffinity>| {
        let description = EntityDescription {
            client: client.map(Box::new),
            ..EntityDescription::default()
        };
        let made = process
            .namespace
            .create(kind, &path(name), description, Vec::new());
        made.expect("it was not there");
    };
    let temporary = "temporary-queue-0123456789abcdef0123456789abcdef";
    let of_administrator = "temporary-queue-00000000000000000000000000000000";
    make(EntityKind::Topic, "t", None);
    make(EntityKind::Queue, temporary, None);
    let entity = process.namespace.entity(&path(temporary));
    let entity = entity.expect("it was made");
    entity.mark_temporary();
    process.namespace.append_metadata(&entity);
    make(EntityKind::Queue, of_administrator, None);
    let durable = "t/subscriptions/s$client$D";
    let volatile = "t/subscriptions/s$client$ND";
    make(EntityKind::Subscription, durable, Some(client(true)));
    make(EntityKind::Subscription, volatile, Some(client(false)));
    process.flush().await;
    drop(process);
    let process = Process::start(&stored);
    let is_there = |name| process.namespace.entity(&path(name)).is_some();
    assert_eq!(
        [temporary, volatile, of_administrator, durable].map(is_there),
        [false, false, true, true]
    );
    let own = process.at(durable, |entity, _| entity.description().client.clone());
    assert_eq!(own.as_deref(), Some(&client(true)));
}

/// Selectors that are longer in the language of the service than a filter may be, or that select other messages there.
#[tokio::test]
async fn a_jms_selector_is_unchanged_after_a_restart() {
    let stored = Arc::<Mutex<Stored>>::default();
    let process = Process::start(&stored);
    let long = vec!["JMSPriority=4"; 55].join(" OR ");
    let subscription = path("t/subscriptions/s$client$D");
    let rule = |name: &str, selector: &str| Rule {
        name: name.into(),
        filter: Filter::Sql(SqlFilter::selector(selector).expect("it is legal")),
        ..Rule::default_rule(Timestamp::from_millis(0))
    };
    let rules = vec![rule("long", &long), rule("other", "NOT (color = 1)")];
    for (kind, path, rules) in [
        (EntityKind::Topic, path("t"), Vec::new()),
        (
            EntityKind::Subscription,
            subscription.clone(),
            rules.clone(),
        ),
    ] {
        let description = EntityDescription::default();
        let made = process.namespace.create(kind, &path, description, rules);
        made.expect("it was not there");
    }
    process.flush().await;
    drop(process);
    let process = Process::start(&stored);
    let own = process.at("t", |topic, _| {
        let rules = topic.rules_of(&subscription);
        rules.map(|rule| rule.filter.clone()).collect::<Vec<_>>()
    });
    assert_eq!(
        own,
        rules
            .into_iter()
            .map(|rule| rule.filter)
            .collect::<Vec<_>>()
    );
}

/// Bodies that are not in memory move with their messages, and are delivered as sent.
#[tokio::test]
async fn a_body_not_in_memory_is_delivered_as_sent() {
    let stored = Arc::<Mutex<Stored>>::default();
    let process = Process::start(&stored);
    let body = [&[0x00, 0x53, 0x75, 0xb0, 0, 0, 4, 0][..], &[7; 1024]].concat();
    let message = Message::parse(body.clone().into(), &mut Ids::new(Some(1), 1));
    let sent = message.expect("it is legal");
    let content = sent.content();
    let sent = process.at("a", |entity, cx| entity.send(cx, sent));
    sent.expect("there is room");
    process.flush().await;
    drop(process);
    let process = Process::start(&stored);
    let here = |process: &Process| {
        let entity = process.namespace.entity(&path("b")).expect("it is there");
        let look = |entity: &Entity| {
            let seen = entity.snapshot(SubQueue::Active, SequenceNumber(1));
            seen.map(|(_, message)| message.clone()).collect()
        };
        process
            .namespace
            .read_messages(&entity, look, |message| message)
    };
    let (mut seen, missing) = here(&process);
    assert!(seen[0].missing().is_some(), "memory does not have it");
    // A snapshot is unaffected by later changes of the message.
    let token = process.lock("b");
    let dead = Outcome::DeadLetter {
        reason: None,
        description: None,
        changes: PropertyChanges::new(),
    };
    let settle = |token, outcome| {
        let done = process.at("b", |entity, cx| {
            entity.settle(cx, SubQueue::Active, token, outcome)
        });
        done.expect("the lock is held");
    };
    settle(token, dead);
    process.flush().await;
    assert_eq!(
        stored.lock().bodies.len(),
        1,
        "it moved and was written once"
    );
    missing.fill(&mut seen);
    assert_eq!(seen[0].content(), content);
}
