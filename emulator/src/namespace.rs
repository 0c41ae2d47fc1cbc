//! One namespace while it is served: its entities behind their locks, its clock and its record.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use servicebus_broker::{
    ClientId, Effects, Entities as _, Entity, EntityId, EntityPath, Event, EventKind, Events,
    FollowUps, IdSource, ReceiverId, SequenceNumber, SubQueue, Text, Timeline, Timestamp,
};
use tokio::sync::Notify;

use crate::auth::Jwt;
use crate::blocking;
use crate::clock::{Alarm, NamespaceClock, RealClock};
use crate::config::NamespaceConfig;
use crate::durable::NamespaceStore;
use crate::failures::Failures;
use crate::faults::{Affected, Faults, MatchContext, MatchedFault, MatchedFaults, Waiter};
use crate::lock_order::{Ordered, Rank, take};
use crate::options::DataError;
use crate::router::{ConnectionId, Router};
use crate::traces::FollowedMessages;

mod administer;
mod auto;
mod clients;
mod declare;
mod durable;
mod entities;
mod idle;
mod jms;
mod metadata;
mod operate;
mod recorded_messages;
mod refusals;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use administer::{AdministerError, NoRights, check_claim};
use auto::AutoClock;
pub(crate) use auto::MAX_HOLDS;
use clients::Clients;
pub(crate) use clients::system_tracker;
pub(crate) use durable::Contents;
pub(crate) use entities::SharedEntity;
pub(crate) use idle::{Busy, NoNext};
pub(crate) use jms::{LinkScope, SubscriptionRequest};
pub(crate) use metadata::{AdminMetadata, AuthorizationRule, EntityMetadata};
pub(crate) use recorded_messages::{Location, RecordedMessages};
use refusals::Refusals;

#[derive(Debug)]
pub(crate) struct Namespace {
    /// As declared, also where the declaration leaves `Jwt` to the address at which the emulator listens.
    pub(crate) config: NamespaceConfig,
    /// The JSON web tokens that this process accepts. It is not stored: the next one may listen beyond loopback.
    pub(crate) jwt: Jwt,
    pub(crate) clock: NamespaceClock,
    pub(crate) started_at: Timestamp,
    pub(crate) alarm: Alarm,
    pub(crate) auto: AutoClock,
    pub(crate) router: Router,
    pub(crate) faults: Faults,
    pub(crate) failures: Failures,
    /// The namespace's rows in the data directory, if any.
    pub(crate) store: Option<NamespaceStore>,
    entities: Mutex<servicebus_broker::Namespace<SharedEntity>>,
    /// Stores whose messages the timers task forwards.
    forwarding: Mutex<VecDeque<(EntityPath, SubQueue)>>,
    timeline: Mutex<Timeline>,
    /// Counts the changes that the timeline does not show.
    revision: AtomicU64,
    pub(crate) refusals: Refusals,
    pub(crate) recorded_messages: RecordedMessages,
    pub(crate) followed_messages: FollowedMessages,
    clients: Mutex<Clients>,
    /// The parties that crashed, until they are taken.
    crashes: Mutex<Vec<Arc<str>>>,
    /// The caller for deadlines.
    broker: Mutex<Caller>,
    /// Notified after every turn of a connection.
    pub(crate) turns: Notify,
    advancing: tokio::sync::Mutex<()>,
    administering: Mutex<()>,
    jms_consumers: jms::JmsConsumers,
    /// Authorization rules that were added at run time to those of the configuration.
    pub(crate) added_rules: Mutex<Vec<AuthorizationRule>>,
}

/// A client's attempt, for the record of its refusal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempt {
    /// The operation as text; empty if unknown.
    pub(crate) operation: Cow<'static, str>,
    /// The message's sequence number, if the operation is about a message.
    pub(crate) number: Option<SequenceNumber>,
}

/// The client for whom operations run, with reusable buffers.
#[derive(Debug)]
pub(crate) struct Caller {
    connection: ConnectionId,
    pub(crate) client: ClientId,
    ids: Ids,
    effects: Effects,
    events: Events,
    /// The caller's receivers that have something to take.
    pub(crate) woken: Vec<ReceiverId>,
    /// The caller's receivers that have lost their sessions.
    pub(crate) lost: Vec<ReceiverId>,
    /// Whether receivers of other connections were notified since the flag was last taken.
    pub(crate) woke_others: bool,
    follow_ups: FollowUps,
}

/// A generator of random ids, or of predictable ones from a seed.
#[derive(Debug)]
pub(crate) struct Ids(SmallRng);

/// The client id of message changes by the control API.
pub(crate) const INSPECTOR: ClientId = ClientId(u32::MAX);
/// The client id of automatic steps of the clock.
const AUTOMATIC_CLOCK: ClientId = ClientId(u32::MAX - 1);

/// Crashes that are kept until they are taken.
const CRASHES: usize = 1024;

/// Entities whose deadlines run before other tasks get their turn.
const FIRED_AT_ONCE: usize = 256;

impl Ids {
    pub(crate) fn new(seed: Option<u64>, salt: u32) -> Self {
        Self(match seed {
            Some(seed) => SmallRng::seed_from_u64(seed.wrapping_add(u64::from(salt) << 32)),
            None => rand::make_rng(),
        })
    }
}

impl IdSource for Ids {
    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }
}

impl Caller {
    pub(crate) fn new(connection: ConnectionId, seed: Option<u64>) -> Self {
        Self {
            connection,
            client: ClientId(connection.0),
            ids: Ids::new(seed, connection.0),
            effects: Effects::new(),
            events: Events::new(),
            woken: Vec::new(),
            lost: Vec::new(),
            woke_others: false,
            follow_ups: FollowUps::default(),
        }
    }

    /// Discards the buffers of an operation that did not finish.
    fn forget_operation(&mut self) {
        self.effects = Effects::new();
        self.events = Events::new();
    }

    pub(crate) fn ids(&mut self) -> &mut Ids {
        &mut self.ids
    }
}

impl Namespace {
    pub(crate) fn new(
        config: NamespaceConfig,
        real: RealClock,
        seed: Option<u64>,
        records_messages: bool,
        failures: Failures,
    ) -> Self {
        let namespace = Self::empty(config, real, seed, records_messages, failures, None);
        namespace.declare();
        namespace
    }

    /// Creates the namespace with its stored contents, if any.
    pub(crate) fn open_stored(
        config: NamespaceConfig,
        real: RealClock,
        seed: Option<u64>,
        records_messages: bool,
        failures: Failures,
        (store, contents): (NamespaceStore, Contents),
    ) -> Result<Self, DataError> {
        let store = Some(store);
        let mut namespace = Self::empty(config, real, seed, records_messages, failures, store);
        namespace.recover(contents)?;
        Ok(namespace)
    }

    fn empty(
        config: NamespaceConfig,
        real: RealClock,
        seed: Option<u64>,
        records_messages: bool,
        failures: Failures,
        store: Option<NamespaceStore>,
    ) -> Self {
        let clock = NamespaceClock::new(real);
        Self {
            entities: Mutex::default(),
            forwarding: Mutex::default(),
            started_at: clock.now(),
            clock,
            jwt: config.jwt.clone(),
            config,
            alarm: Alarm::default(),
            auto: AutoClock::default(),
            router: Router::default(),
            faults: Faults::default(),
            failures,
            store,
            timeline: Mutex::new(Timeline::new(Timeline::CAPACITY)),
            revision: AtomicU64::new(Ids::new(None, 0).next()),
            refusals: Refusals::default(),
            recorded_messages: RecordedMessages::new(records_messages),
            followed_messages: FollowedMessages::default(),
            clients: Mutex::default(),
            crashes: Mutex::default(),
            broker: Mutex::new(Caller::new(ConnectionId(0), seed)),
            turns: Notify::new(),
            advancing: tokio::sync::Mutex::default(),
            administering: Mutex::default(),
            jms_consumers: jms::JmsConsumers::default(),
            added_rules: Mutex::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn entity(&self, path: &EntityPath) -> Option<Arc<SharedEntity>> {
        self.index_of_entities().find(path).cloned()
    }

    /// Returns the paths and indexes of the entities.
    fn index_of_entities(
        &self,
    ) -> Ordered<MutexGuard<'_, servicebus_broker::Namespace<SharedEntity>>> {
        take(Rank::Inner, || self.entities.lock())
    }

    fn deadline_caller(&self) -> Ordered<MutexGuard<'_, Caller>> {
        take(Rank::Caller, || blocking::lock(&self.broker))
    }

    /// Returns all entities in the order of their paths.
    pub(crate) fn entities(&self) -> Vec<Arc<SharedEntity>> {
        self.index_of_entities().all().cloned().collect()
    }

    pub(crate) fn count_entities(&self) -> usize {
        self.index_of_entities().count()
    }

    /// Returns the existing entities, and the deleted ones that are remembered.
    pub(crate) fn known_entities(&self) -> Vec<EntityId> {
        self.index_of_entities().known().collect()
    }

    /// Returns the current or last name of an entity.
    pub(crate) fn entity_name(&self, id: EntityId) -> Option<EntityPath> {
        self.index_of_entities().name(id).cloned()
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.with_entities(|entities| entities.first_deadline())
            .into_iter()
            .chain(self.faults.waits.next())
            .min()
    }

    /// Returns up to `max` entities with deadlines, the earliest first.
    pub(crate) fn soonest(&self, max: usize) -> Vec<Arc<SharedEntity>> {
        self.with_entities(|entities| entities.soonest(max))
    }

    /// Runs deadlines that are due, in the order of instants and of the entities' paths, up to a limit that leaves other
    /// tasks their turn; returns whether more may be due.
    pub(crate) fn fire_due(&self) -> bool {
        let now = self.clock.now();
        let due = self.with_entities(|entities| entities.due(now, FIRED_AT_ONCE));
        let mut room = FIRED_AT_ONCE;
        for entity in &due {
            room = room.saturating_sub(1 + self.expire(entity));
            if room == 0 {
                break;
            }
        }
        for waiter in self.faults.waits.take_due(now) {
            match waiter {
                Waiter::Connection(id) => self.router.notify(id),
                Waiter::LostReply(id) => self.router.drop_connection(id),
                // The task is gone because its client has disconnected.
                Waiter::Task(wake) => drop(wake.send(())),
            }
        }
        self.turns.notify_waiters();
        room == 0
    }

    /// Matches a beginning operation against the faults, and records it where the operation log is kept.
    pub(crate) fn match_faults(&self, context: &MatchContext<'_>) -> MatchedFaults {
        let matched = self.faults.find_match(context);
        let instants = (self.clock.now(), self.started_at);
        self.faults.record(context, &matched, instants);
        matched
    }

    /// Aborts the connections of a party, and notifies the embedder that runs its process.
    pub(crate) fn crash(&self, party: &Arc<str>) {
        self.router.crash(party);
        let mut crashes = self.crashes.lock();
        if crashes.len() < CRASHES {
            crashes.push(Arc::clone(party));
        }
        self.turns.notify_waiters();
    }

    /// Returns the parties that crashed since the last call.
    pub(crate) fn take_crashes(&self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.crashes.lock())
    }

    /// Resumes the oldest postponed operation; returns whether there was one.
    pub(crate) fn release_postponed(&self) -> bool {
        let released = self.faults.postponed.release();
        if let Some(connection) = released {
            self.router.notify(connection);
        }
        released.is_some()
    }

    /// Drops all locks and detaches all links, as an update of the service does.
    pub(crate) fn update_service(&self) {
        for entity in self.entities() {
            self.operate_as_broker(&entity, Entity::lose_locks);
        }
        let mut events = Events::new();
        let kind = EventKind::Fault {
            fault: events.text("the service was updated"),
            applied: Text::default(),
            message_id: Text::default(),
        };
        self.record_about(events, ClientId::BROKER, None, None, kind);
        self.router.service_updated();
    }

    pub(crate) fn timeline(&self) -> Ordered<MutexGuard<'_, Timeline>> {
        take(Rank::Inner, || self.timeline.lock())
    }

    /// Returns a number that differs after a reset, and after each change of entities, rules and faults. It begins with a
    /// random one, so that a later namespace of the same name has another.
    pub(crate) fn revision(&self) -> u64 {
        let revision = self.revision.load(Ordering::Acquire);
        revision.wrapping_add(self.faults.changes())
    }

    /// Counts a change that has happened.
    fn revise(&self) {
        self.revision.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn record_refusal(
        &self,
        client: ClientId,
        entity: Option<(&SharedEntity, SubQueue)>,
        condition: &str,
        text: &str,
    ) {
        self.record_refused_attempt(client, entity, &Attempt::default(), (condition, text));
    }

    /// Records a refusal with the operation that the client attempted and its message.
    pub(crate) fn record_refused_attempt(
        &self,
        client: ClientId,
        entity: Option<(&SharedEntity, SubQueue)>,
        attempt: &Attempt,
        (condition, text): (&str, &str),
    ) {
        self.refusals.count(condition);
        let mut events = Events::new();
        let kind = EventKind::Refused {
            operation: events.text(&attempt.operation),
            condition: events.text(condition),
            description: events.text(text),
        };
        self.record_about(events, client, entity, attempt.number, kind);
    }

    /// Records that a scripted fault was applied, in each entity that its operation affects.
    pub(crate) fn record_fault(&self, client: ClientId, fault: &MatchedFault, affected: &Affected) {
        let note = |entity: Option<(&SharedEntity, SubQueue)>| {
            let mut events = Events::new();
            let id = affected.message_id.as_deref().unwrap_or_default();
            let kind = EventKind::Fault {
                fault: events.text(&fault.text()),
                applied: events.text(&fault.applied()),
                message_id: events.text(id),
            };
            self.record_about(events, client, entity, affected.number, kind);
        };
        if affected.entities.is_empty() {
            note(None);
        }
        for entity in &affected.entities {
            note(Some((entity, affected.store)));
        }
    }

    pub(crate) fn record_advance(&self, client: ClientId, milliseconds: u64) {
        let kind = EventKind::ClockAdvanced { milliseconds };
        self.record_about(Events::new(), client, None, None, kind);
    }

    fn record_about(
        &self,
        mut events: Events,
        client: ClientId,
        entity: Option<(&SharedEntity, SubQueue)>,
        number: Option<SequenceNumber>,
        kind: EventKind,
    ) {
        let place = entity.map_or(
            (EntityId::NAMESPACE, SubQueue::Active),
            |(entity, store)| (entity.id, store),
        );
        events.push(Event::new(self.clock.now(), place, client, number, kind));
        self.timeline().absorb(&mut events);
    }
}
