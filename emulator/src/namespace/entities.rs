//! The entities of a namespace, each behind its lock: created, changed and removed at run time.
//!
//! It also counts how many sends to an entity wait for their outcome, and the maximum. A send counts from the turn in which
//! it arrived until its outcome is in the socket, as its sender sees it. Settled sends, sends over HTTP and scheduled ones
//! do not count.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use parking_lot::{Mutex, MutexGuard};
use servicebus_broker::filter::Rule;
use servicebus_broker::{
    Context, Entity, EntityCell, EntityDescription, EntityId, EntityKind, EntityPath, SendError,
    create, delete, lose_locks,
};

use super::Namespace;
use super::metadata::EntityMetadata;
use crate::blocking::{self, run_blocking};
use crate::lock_order::{Ordered, Rank, take};

/// Maximum number of queues and topics of a namespace (semantics §1).
const MAX_ENTITIES: usize = 10_000;

/// An entity behind its lock.
#[derive(Debug)]
pub(crate) struct SharedEntity {
    pub(crate) id: EntityId,
    pub(crate) path: EntityPath,
    pub(crate) kind: EntityKind,
    entity: Mutex<Entity>,
    metadata: Mutex<EntityMetadata>,
    deleted: AtomicBool,
    /// Sends that wait for their outcome.
    pub(crate) sends: Sends,
}

impl SharedEntity {
    pub(super) fn new(entity: Entity, metadata: EntityMetadata) -> Self {
        Self {
            id: entity.id(),
            path: entity.path().clone(),
            kind: entity.kind(),
            entity: Mutex::new(entity),
            metadata: Mutex::new(metadata),
            deleted: AtomicBool::new(false),
            sends: Sends::default(),
        }
    }

    pub(super) fn lock(&self) -> Ordered<MutexGuard<'_, Entity>> {
        #[cfg(test)]
        tests::VISITS.set(tests::VISITS.get() + 1);
        take(Rank::Entity(self.id), || blocking::lock(&self.entity))
    }

    /// Accesses its metadata. The lock of the metadata comes after that of any entity: `with` must lock none.
    pub(crate) fn metadata<T>(&self, with: impl FnOnce(&mut EntityMetadata) -> T) -> T {
        with(&mut take(Rank::Inner, || self.metadata.lock()))
    }

    /// Returns whether it is no longer in the namespace; other references to it must be dropped.
    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// Returns the error of a broken entity.
    pub(crate) fn broken(&self) -> Option<SendError> {
        self.lock().check_not_broken().err()
    }
}

impl EntityCell for SharedEntity {
    fn id(&self) -> EntityId {
        self.id
    }

    fn lock(&self) -> impl std::ops::DerefMut<Target = Entity> {
        self.lock()
    }

    fn on_removed(&self) {
        self.deleted.store(true, Ordering::Release);
    }
}

impl Namespace {
    /// Locks out concurrent changes, for an operation that reads properties to change them.
    pub(crate) fn administer(&self) -> Ordered<MutexGuard<'_, ()>> {
        take(Rank::Administering, || blocking::lock(&self.administering))
    }

    /// Adds an entity; a subscription with these rules, to which its topic publishes from now on. Returns the existing one
    /// if the path is taken.
    pub(crate) fn create(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        description: EntityDescription,
        rules: Vec<Rule>,
    ) -> Result<Arc<SharedEntity>, Arc<SharedEntity>> {
        let (settings, now) = (&self.config.settings, self.clock.now());
        let make = |id| {
            let mut entity = Entity::new(kind, id, path.clone(), description, settings, now);
            if self.store.is_some() {
                entity.record_changes();
            }
            SharedEntity::new(entity, EntityMetadata::new(now))
        };
        self.with_entities(|entities| create(entities, path, rules, make))
    }

    /// Returns the limit of queues and topics if it is reached.
    pub(crate) fn limit_reached(&self) -> Option<usize> {
        (self.index_of_entities().queues_and_topics() >= MAX_ENTITIES).then_some(MAX_ENTITIES)
    }

    /// Changes the settings of an entity; its links follow in their next turn. Returns false if it is deleted.
    pub(crate) fn update(&self, entity: &SharedEntity, description: EntityDescription) -> bool {
        let change = |locked: &mut Entity, cx: &mut Context<'_>| {
            // Under its lock: a deleted one must not be changed.
            (!locked.is_deleted()).then(|| {
                let used = locked.last_used(cx.now);
                let ends_locks = locked.update(cx, description);
                entity.metadata(|metadata| metadata.changed(used, cx.now));
                ends_locks
            })
        };
        let changed = run_blocking(|| self.operate_as_broker(entity, change));
        if changed == Some(true) {
            // An update of a topic drops the locks of all its subscriptions (decision D17).
            self.lose_locks(entity);
        }
        self.entities_changed();
        // It may have been idle, and deleted by this very change.
        changed.is_some() && !entity.is_deleted()
    }

    /// Ends every lock of an entity, and of the subscriptions of a topic.
    pub(crate) fn lose_locks(&self, entity: &SharedEntity) {
        self.with_entities(|entities| lose_locks(entities, &entity.path));
    }

    /// Removes an entity with its contents, and the subscriptions of a topic; its links are detached in their next turn.
    pub(crate) fn delete(&self, path: &EntityPath) -> Option<Arc<SharedEntity>> {
        let entity = self.entity(path)?;
        let is_gone =
            run_blocking(|| self.with_entities(|entities| delete(entities, path, entity.id)));
        is_gone.then(|| {
            self.entities_changed();
            entity
        })
    }

    /// Ends the namespace for good: removes its contents and dismisses its connections.
    pub(crate) fn end(&self) {
        run_blocking(|| {
            if let Some(store) = &self.store {
                for entity in self.entities() {
                    self.with_entities(|entities| delete(entities, &entity.path, entity.id));
                }
                store.remove_namespace();
            }
            self.index_of_entities().clear();
        });
        self.router.close_all();
        self.turns.notify_waiters();
    }

    /// Returns the subscriptions of a topic; empty for other entities.
    pub(crate) fn subscriptions(&self, topic: &SharedEntity) -> Vec<EntityPath> {
        self.read(topic, Entity::subscriptions)
    }

    /// Notifies links, and waits for the idle namespace: locks may have ended whose holders are gone.
    pub(super) fn entities_changed(&self) {
        self.router.entities_changed();
        self.turns.notify_waiters();
    }
}

/// The unsettled sends of one entity, over all connections.
#[derive(Debug, Default)]
pub(crate) struct Sends {
    now: AtomicU32,
    most: AtomicU32,
}

impl Sends {
    /// Counts a send.
    pub(crate) fn begin(&self) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        if now > self.most.load(Ordering::Relaxed) {
            self.most.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// Ends `number` sends, which were answered or whose link is gone.
    pub(crate) fn end(&self, number: u32) {
        self.now.fetch_sub(number, Ordering::Relaxed);
    }

    /// Resets the maximum.
    pub(super) fn forget(&self) {
        self.most.store(self.now(), Ordering::Relaxed);
    }

    /// Returns how many wait now.
    pub(crate) fn now(&self) -> u32 {
        self.now.load(Ordering::Relaxed)
    }

    /// Returns the maximum that ever waited at once.
    pub(crate) fn most(&self) -> u32 {
        self.most.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use servicebus_broker::{Entities as _, Message, SequenceNumber};

    use super::*;
    use crate::clock::tests::put_by_hand;
    use crate::config::NamespaceConfig;
    use crate::failures::Failures;
    use crate::namespace::{Ids, Namespace};

    thread_local! {
    /// How often this thread has locked an entity.
    pub(in crate::namespace) static VISITS: Cell<usize> = const { Cell::new(0) };
    }

    const MINUTE: Duration = Duration::from_secs(60);

    fn path(name: &str) -> EntityPath {
        EntityPath::of_address(name).expect("it is legal")
    }

    fn namespace(queues: usize) -> Namespace {
        let queues = (0..queues).map(|at| (path(&format!("q{at}")), EntityDescription::default()));
        let config = NamespaceConfig {
            queues: queues.collect(),
            ..NamespaceConfig::new("one")
        };
        let (_, real) = put_by_hand();
        Namespace::new(config, real, Some(1), false, Failures::default())
    }

    /// Sends a message with a time to live of so many seconds.
    fn send(namespace: &Namespace, queue: &str, seconds: u32) {
        let mut bytes = vec![0x00, 0x53, 0x70, 0xc0, 0x08, 0x03, 0x40, 0x40, 0x70];
        bytes.extend((seconds * 1000).to_be_bytes());
        bytes.extend([0x00, 0x53, 0x75, 0xa0, 0x01, b'x']);
        let message = Message::parse(bytes.into(), &mut Ids::new(Some(1), 1)).expect("it is legal");
        let entity = namespace.entity(&path(queue)).expect("it is there");
        let sent = namespace.operate_as_broker(&entity, |entity, cx| entity.send(cx, message));
        sent.expect("there is room");
    }

    fn due_in(namespace: &Namespace) -> Option<Duration> {
        let deadline = namespace.next_deadline()?;
        Some(deadline.since(namespace.clock.now()))
    }

    #[tokio::test(start_paused = true)]
    async fn an_advance_does_not_visit_ten_thousand_idle_queues() {
        let namespace = namespace(10_000);
        for seconds in [10, 20, 30] {
            send(&namespace, "q7", seconds);
        }
        let before = VISITS.get();
        namespace.advance(MINUTE, 10).await.expect("three steps");
        namespace.settled(MINUTE, None).await.expect("it rests");
        let visits = VISITS.get() - before;
        assert!(visits < 100, "{visits} visits");
        let entity = namespace.entity(&path("q7")).expect("it is there");
        let left = namespace.read(&entity, |entity| entity.size());
        assert_eq!(left, 0, "all have expired");
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_of_many_queues_at_one_instant_take_one_step() {
        let namespace = namespace(1000);
        namespace.freeze().await;
        for at in 0..1000 {
            send(&namespace, &format!("q{at}"), 10);
        }
        namespace.advance(MINUTE, 10).await.expect("a few steps");
        let sizes = namespace.entities().into_iter();
        let sizes = sizes.map(|entity| namespace.read(&entity, |entity| entity.size()));
        assert_eq!(sizes.sum::<u64>(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_removed_deadline_is_skipped() {
        let namespace = namespace(2);
        namespace.freeze().await;
        send(&namespace, "q0", 10);
        send(&namespace, "q1", 20);
        assert_eq!(due_in(&namespace), Some(Duration::from_secs(10)));
        let first = namespace.entity(&path("q0")).expect("it is there");
        namespace.operate_as_broker(&first, |entity, cx| entity.reset(cx));
        assert_eq!(due_in(&namespace), Some(Duration::from_secs(20)));
        namespace.delete(&path("q1")).expect("it is there");
        assert_eq!(due_in(&namespace), None);
        namespace
            .create(
                EntityKind::Queue,
                &path("q1"),
                EntityDescription::default(),
                vec![],
            )
            .expect("its name is free");
        send(&namespace, "q1", 30);
        assert_eq!(due_in(&namespace), Some(Duration::from_secs(30)));
    }

    #[test]
    fn an_entity_is_busy_until_its_messages_are_forwarded() {
        let namespace = namespace(2);
        let entity = namespace.entity(&path("q0")).expect("it is there");
        let forwards = EntityDescription {
            forward_to: Some(path("q1")),
            ..EntityDescription::default()
        };
        assert!(namespace.update(&entity, forwards));
        let names = |namespace: &Namespace| -> Vec<String> {
            let busy = namespace.with_entities(|entities| entities.busy());
            busy.iter().map(|entity| entity.path.to_string()).collect()
        };
        send(&namespace, "q0", 10);
        assert!(names(&namespace).is_empty(), "it has gone on at once");
        let second = namespace.entity(&path("q1")).expect("it is there");
        let seen = namespace.read(&second, |entity| {
            let seen = entity.snapshot(servicebus_broker::SubQueue::Active, SequenceNumber(1));
            seen.count()
        });
        assert_eq!(seen, 1);
    }

    /// Allocators use size classes, here of 256 bytes; in the next one a queue takes more than 2 KB (series F).
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_shared_entity_stays_in_its_size_class() {
        let counts = 2 * size_of::<usize>();
        let size = size_of::<SharedEntity>() + counts;
        assert!(size <= 1792, "{size} bytes");
    }

    #[test]
    fn the_maximum_of_unsettled_sends_counts_simultaneous_sends() {
        let sends = Sends::default();
        sends.begin();
        sends.begin();
        sends.end(1);
        sends.begin();
        assert_eq!((sends.now(), sends.most()), (2, 2));
        sends.end(2);
        assert_eq!((sends.now(), sends.most()), (0, 2));
        sends.forget();
        assert_eq!(sends.most(), 0);
    }
}
