//! One namespace while it is served: its entities behind their locks, its clock, its record.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use servicebus_broker::{
    ClientId, Effects, Entities as _, Entity, EntityId, EntityPath, Event, EventKind, Events,
    FollowUps, IdSource, ReceiverId, SequenceNumber, SubQueue, Text, Timeline, Timestamp,
};
use tokio::sync::Notify;

use crate::clock::Alarm;
use crate::clock::{NamespaceClock, RealClock};
use crate::config::NamespaceConfig;
use crate::durable::NamespaceStore;
use crate::failures::Failures;
use crate::faults::{Affected, Faults, MatchContext, MatchedFault, MatchedFaults, Sleeper};
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

pub(crate) use administer::{AdministerError, NoRights, check_claim};
use auto::AutoClock;
pub(crate) use auto::MAX_HOLDS;
use clients::Clients;
pub(crate) use clients::system_tracker;
pub(crate) use entities::SharedEntity;
pub(crate) use idle::Busy;
pub(crate) use jms::{LinkScope, SubscriptionRequest};
pub(crate) use metadata::{AdminMetadata, AuthorizationRule, EntityMetadata};
pub(crate) use operate::while_others_run;
pub(crate) use recorded_messages::{Place, RecordedMessages};
use refusals::Refusals;

/// Everything that belongs to one namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    pub(crate) config: NamespaceConfig,
    pub(crate) clock: NamespaceClock,
    pub(crate) started_at: Timestamp,
    pub(crate) alarm: Alarm,
    pub(crate) auto: AutoClock,
    pub(crate) router: Router,
    pub(crate) faults: Faults,
    pub(crate) failures: Failures,
    /// Where what it holds outlives the process.
    pub(crate) store: Option<NamespaceStore>,
    entities: Mutex<servicebus_broker::Namespace<SharedEntity>>,
    /// Stores whose messages the timers' task carries on.
    forwarding: Mutex<VecDeque<(EntityPath, SubQueue)>>,
    timeline: Mutex<Timeline>,
    pub(crate) refusals: Refusals,
    pub(crate) recorded_messages: RecordedMessages,
    pub(crate) followed_messages: FollowedMessages,
    clients: Mutex<Clients>,
    /// The parties that crashed, until they are taken.
    crashes: Mutex<Vec<Arc<str>>>,
    /// The caller that stands for time.
    broker: Mutex<Caller>,
    /// Notified after every turn of a connection.
    pub(crate) turns: Notify,
    advancing: tokio::sync::Mutex<()>,
    administering: Mutex<()>,
    jms_consumers: jms::JmsConsumers,
    /// Authorization rules of the whole namespace that were added while it is served, to the keys of its configuration.
    pub(crate) added_rules: Mutex<Vec<AuthorizationRule>>,
}

/// What a client asks for, for the record of a refusal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempt {
    /// In words; empty where that is not known.
    pub(crate) operation: Cow<'static, str>,
    /// Of which message; none where it is about none.
    pub(crate) number: Option<SequenceNumber>,
}

/// On whose behalf operations run, and the buffers that they use again and again.
#[derive(Debug)]
pub(crate) struct Caller {
    connection: ConnectionId,
    pub(crate) client: ClientId,
    ids: Ids,
    effects: Effects,
    events: Events,
    /// Own receivers that have something to take.
    pub(crate) woken: Vec<ReceiverId>,
    /// Own receivers whose sessions are not theirs any more.
    pub(crate) lost: Vec<ReceiverId>,
    /// Whether receivers of other connections were told since that was last asked.
    pub(crate) told_others: bool,
    follow_ups: FollowUps,
}

/// Unpredictable numbers, or predictable ones from a seed.
#[derive(Debug)]
pub(crate) struct Ids(SmallRng);

/// The client as which the control API does something to messages.
pub(crate) const INSPECTOR: ClientId = ClientId(u32::MAX);

/// Crashes that are remembered until they are taken.
const CRASHES: usize = 1024;

/// Entities in which what is due happens before other tasks have their turn.
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
            told_others: false,
            follow_ups: FollowUps::default(),
        }
    }

    /// Forgets what an operation asked for that came to no end.
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

    /// The same with what is kept of it, if anything is; entities that are kept and not declared are removed where that was
    /// asked for.
    pub(crate) fn kept(
        config: NamespaceConfig,
        real: RealClock,
        seed: Option<u64>,
        records_messages: bool,
        failures: Failures,
        (store, prunes): (NamespaceStore, bool),
    ) -> Result<Self, DataError> {
        let store = Some(store);
        let namespace = Self::empty(config, real, seed, records_messages, failures, store);
        namespace.recover(prunes)?;
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
            config,
            alarm: Alarm::default(),
            auto: AutoClock::default(),
            router: Router::default(),
            faults: Faults::default(),
            failures,
            store,
            timeline: Mutex::new(Timeline::new(Timeline::CAPACITY)),
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

    /// The paths and indexes of the entities.
    fn index_of_entities(
        &self,
    ) -> Ordered<MutexGuard<'_, servicebus_broker::Namespace<SharedEntity>>> {
        take(Rank::Inner, || self.entities.lock())
    }

    /// The caller that stands for time.
    fn caller_of_time(&self) -> Ordered<MutexGuard<'_, Caller>> {
        take(Rank::Caller, || self.broker.lock())
    }

    /// All entities, in the order of their paths.
    pub(crate) fn entities(&self) -> Vec<Arc<SharedEntity>> {
        self.index_of_entities().all().cloned().collect()
    }

    pub(crate) fn count_entities(&self) -> usize {
        self.index_of_entities().count()
    }

    /// The entities that are there, and those deleted ones that are remembered.
    pub(crate) fn known_entities(&self) -> Vec<EntityId> {
        self.index_of_entities().known().collect()
    }

    /// What an entity is or was called.
    pub(crate) fn entity_name(&self, id: EntityId) -> Option<EntityPath> {
        self.index_of_entities().name(id).cloned()
    }

    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.carry(|carrier| carrier.first_deadline())
            .into_iter()
            .chain(self.faults.waits.next())
            .min()
    }

    /// At most `max` entities in which time brings something about, the earliest first.
    pub(crate) fn soonest(&self, max: usize) -> Vec<Arc<SharedEntity>> {
        self.carry(|carrier| carrier.soonest(max))
    }

    /// Lets happen what is due, in the order of instants and of the entities' paths, as much as one task should do before
    /// others have their turn; returns whether more may be due.
    pub(crate) fn fire_due(&self) -> bool {
        let now = self.clock.now();
        let due = self.carry(|carrier| carrier.due(now, FIRED_AT_ONCE));
        let mut room = FIRED_AT_ONCE;
        for entity in &due {
            room = room.saturating_sub(1 + self.expire(entity));
            if room == 0 {
                break;
            }
        }
        for sleeper in self.faults.waits.take_due(now) {
            match sleeper {
                Sleeper::Connection(id) => self.router.nudge(id),
                Sleeper::Silent(id) => self.router.drop_connection(id),
                // No task waits any longer: the client has hung up.
                Sleeper::Task(wake) => drop(wake.send(())),
            }
        }
        self.turns.notify_waiters();
        room == 0
    }

    /// An operation begins: returns what faults do to it, and records it where the operation log is kept.
    pub(crate) fn sight(&self, context: &MatchContext<'_>) -> MatchedFaults {
        let matched = self.faults.find_match(context);
        let instants = (self.clock.now(), self.started_at);
        self.faults.record(context, &matched, instants);
        matched
    }

    /// The connections of a party vanish, and the embedder that runs its process is told.
    pub(crate) fn crash(&self, party: &Arc<str>) {
        self.router.crash(party);
        let mut crashes = self.crashes.lock();
        if crashes.len() < CRASHES {
            crashes.push(Arc::clone(party));
        }
        self.turns.notify_waiters();
    }

    /// The parties that crashed since this was last asked.
    pub(crate) fn take_crashes(&self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.crashes.lock())
    }

    /// Lets the oldest operation go on that was postponed; says whether there was one.
    pub(crate) fn release_postponed(&self) -> bool {
        let released = self.faults.postponed.release();
        if let Some(connection) = released {
            self.router.nudge(connection);
        }
        released.is_some()
    }

    /// All locks are lost and all links detached, as when the service is updated.
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
        self.note(events, ClientId::BROKER, None, kind);
        self.router.service_updated();
    }

    pub(crate) fn timeline(&self) -> Ordered<MutexGuard<'_, Timeline>> {
        take(Rank::Inner, || self.timeline.lock())
    }

    /// Puts into the record that something was refused.
    pub(crate) fn note_refusal(
        &self,
        client: ClientId,
        entity: Option<(&SharedEntity, SubQueue)>,
        condition: &str,
        text: &str,
    ) {
        self.note_refused_attempt(client, entity, &Attempt::default(), (condition, text));
    }

    /// The same of what is known: what the client asked for, and of which message.
    pub(crate) fn note_refused_attempt(
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
        self.note_about(events, client, entity, attempt.number, kind);
    }

    /// Puts into the record that a scripted fault was applied: in each entity that its operation is about.
    pub(crate) fn note_fault(&self, client: ClientId, fault: &MatchedFault, affected: &Affected) {
        let note = |entity: Option<(&SharedEntity, SubQueue)>| {
            let mut events = Events::new();
            let id = affected.message_id.as_deref().unwrap_or_default();
            let kind = EventKind::Fault {
                fault: events.text(&fault.text()),
                applied: events.text(&fault.applied()),
                message_id: events.text(id),
            };
            self.note_about(events, client, entity, affected.number, kind);
        };
        if affected.entities.is_empty() {
            note(None);
        }
        for entity in &affected.entities {
            note(Some((entity, affected.store)));
        }
    }

    pub(crate) fn note_advance(&self, milliseconds: u64) {
        let kind = EventKind::ClockAdvanced { milliseconds };
        self.note(Events::new(), ClientId::BROKER, None, kind);
    }

    fn note(
        &self,
        events: Events,
        client: ClientId,
        entity: Option<(&SharedEntity, SubQueue)>,
        kind: EventKind,
    ) {
        self.note_about(events, client, entity, None, kind);
    }

    fn note_about(
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
