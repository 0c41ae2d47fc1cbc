//! One scripted fault: which operations it counts, on which it takes effect, and how often it did.
//!
//! Also the contexts that faults match against, and the queue of waits in the namespace's time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use servicebus_amqp::LinkId;
use servicebus_broker::{DeliveryView, Entity, Message, SequenceNumber, SubQueue, Timestamp};
use servicebus_codec::{Reader, Value as Plain};
use servicebus_control_api::{
    Effect, EntityState, Fault, Filter, Operation, Pick, Property, Random, ScriptedFault,
};
use tokio::sync::oneshot;

use super::random::SeededRng;
use crate::namespace::SharedEntity;
use crate::router::ConnectionId;

/// A fault, and how often it took effect.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scripted {
    pub(crate) state: ScriptedFault,
    /// Counted operations by entity, which determine random effects.
    counted: HashMap<String, u64>,
    /// Whether it counts operations as the log shows them: by their most specific kind, first entity and first message, and
    /// without regard to what its effect needs. An exploration knows only the log.
    is_planned: bool,
}

impl Scripted {
    pub(crate) fn new(id: u64, fault: Fault) -> Self {
        Self {
            state: ScriptedFault {
                id,
                fault,
                matched: 0,
                elsewhere: 0,
                different: 0,
                hits: 0,
                written: None,
                written_at: None,
            },
            counted: HashMap::new(),
            is_planned: false,
        }
    }

    /// Creates a fault of an exploration, which counts the operations that have the same key in the log.
    pub(crate) fn planned(id: u64, fault: Fault) -> Self {
        Self {
            is_planned: true,
            ..Self::new(id, fault)
        }
    }

    /// Counts an operation; returns the fault's effect, if it has one on it.
    pub(crate) fn match_operation(&mut self, context: &MatchContext<'_>) -> Option<Effect> {
        let Self {
            state,
            counted,
            is_planned,
        } = self;
        let fault = &state.fault;
        let most = if *is_planned { 1 } else { usize::MAX };
        if !first(&context.operations, most).contains(&fault.operation) {
            return None;
        }
        if !concerns(&fault.filter, first(&context.entities, most)) {
            state.elsewhere += 1;
            return None;
        }
        let is_feasible = is_feasible(fault, context);
        let fits = fits(&fault.filter, context, first(&context.messages, most));
        if !fits || !is_feasible && !*is_planned {
            state.different += 1;
            return None;
        }
        state.matched += 1;
        if !is_feasible {
            return None;
        }
        match &fault.pick {
            Pick::Counted {
                nth,
                every,
                times,
                effect,
            } => {
                let since = state.matched.checked_sub(*nth)?;
                let is_picked =
                    since.is_multiple_of(*every) && times.is_none_or(|times| since / every < times);
                is_picked.then(|| effect.clone())
            }
            Pick::Random {
                random: Random { seed, probability },
                effects,
            } => {
                let entity = context.entities.first().map_or("", String::as_str);
                let number = counted.entry(entity.to_owned()).or_default();
                *number += 1;
                let operation = fault.operation.name();
                let mut rng = SeededRng::of(*seed, operation, entity, *number);
                let is_picked = rng.fraction() < *probability;
                is_picked.then(|| rng.choose(effects).cloned())?
            }
        }
    }

    /// Returns the seed of a random fault.
    pub(crate) fn seed(&self) -> Option<u64> {
        match &self.state.fault.pick {
            Pick::Counted { .. } => None,
            Pick::Random { random, .. } => Some(random.seed),
        }
    }
}

fn first<T>(all: &[T], most: usize) -> &[T] {
    &all[..all.len().min(most)]
}

fn concerns(filter: &Filter, entities: &[String]) -> bool {
    filter.entity.as_ref().is_none_or(|wanted| {
        let wanted = wanted.trim_start_matches('/');
        let mut entities = entities.iter();
        entities.any(|entity| entity.eq_ignore_ascii_case(wanted))
    })
}

/// Returns whether an operation has what the effects of a fault need.
fn is_feasible(fault: &Fault, context: &MatchContext<'_>) -> bool {
    let feasible = |effect: &Effect| {
        (*effect != Effect::LoseLock || context.lock == Some(Lock::Message))
            && (*effect != Effect::LoseSessionLock || context.lock == Some(Lock::Session))
            && (*effect != Effect::Elsewhere || context.has_other_receiver)
            && (*effect != Effect::DeliverTwice || context.can_come_twice)
    };
    fault.pick.effects().iter().all(feasible)
}

fn fits(filter: &Filter, context: &MatchContext<'_>, messages: &[Traits]) -> bool {
    let is = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
    };
    let mut messages = messages.iter();
    let name = filter.name.as_deref();
    let found = context.name.unwrap_or_default();
    name.is_none_or(|name| name.eq_ignore_ascii_case(found))
        && is(&filter.client, context.client.as_deref())
        && is(&filter.party, context.party.as_deref())
        && (!filter.is_about_messages() || messages.any(|message| fits_message(filter, message)))
}

fn fits_message(filter: &Filter, message: &Traits) -> bool {
    let has = |Property { name, value }: &Property| {
        let mut properties = message.properties.iter();
        properties.any(|(key, found)| key == name && is_same(found, value))
    };
    (filter.message_id.is_none() || filter.message_id == message.id)
        && (filter.session_id.is_none() || filter.session_id == message.session)
        && (filter.sequence_number.is_none() || filter.sequence_number == message.sequence_number)
        && (filter.delivery.is_none() || filter.delivery == message.delivery)
        && filter.property.as_ref().is_none_or(has)
}

/// Returns whether two values are equal; numbers of any kind are compared by value. Two integers are compared exactly,
/// because different ones beyond 2^53 are the same float.
fn is_same(found: &Value, wanted: &Value) -> bool {
    let has_float = found.is_f64() || wanted.is_f64();
    match (found.as_f64(), wanted.as_f64()) {
        (Some(found), Some(wanted)) if has_float => found == wanted,
        _ => found == wanted,
    }
}

/// The properties of an operation that faults can match on.
#[derive(Debug, Default)]
pub(crate) struct MatchContext<'a> {
    /// Its kinds, from the particular to the general: a completion is a settlement.
    pub(crate) operations: Vec<Operation>,
    /// The operation of a management request, or the method of an HTTP request.
    pub(crate) name: Option<&'a str>,
    /// The addresses of its entities.
    pub(crate) entities: Vec<String>,
    pub(crate) messages: Vec<Traits>,
    /// The client's name.
    pub(crate) client: Option<Arc<str>>,
    /// The name of the client's key.
    pub(crate) party: Option<Arc<str>>,
    /// Its connection and its link.
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) link: Option<LinkId>,
    /// The state of its entity before it, if the operation log is kept.
    pub(crate) before: Option<EntityState>,
    /// Its lock, which can be lost.
    pub(crate) lock: Option<Lock>,
    /// Whether it is a settlement that can be confirmed and redelivered, or a delivery that can be settled.
    pub(crate) can_come_twice: bool,
    /// Whether it is a delivery that another receiver could get.
    pub(crate) has_other_receiver: bool,
}

/// What a lock is on. Where sessions are required, messages have the lock of their session only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    Message,
    Session,
}

impl Lock {
    /// Returns what locks are on in a store.
    pub(crate) fn of(entity: &Entity, kind: SubQueue) -> Self {
        match kind == SubQueue::Active && entity.description().requires_session {
            true => Self::Session,
            false => Self::Message,
        }
    }
}

/// The subject of a matched operation, for the record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Affected {
    pub(crate) entities: Vec<Arc<SharedEntity>>,
    pub(crate) store: SubQueue,
    /// The sequence number of its message in that store, or the id of a sent one; neither for several messages.
    pub(crate) number: Option<SequenceNumber>,
    pub(crate) message_id: Option<String>,
}

impl Affected {
    /// Creates the subject of one entity, or its sub-queue.
    pub(crate) fn at(entity: Arc<SharedEntity>, store: SubQueue) -> Self {
        Self {
            entities: vec![entity],
            store,
            ..Self::default()
        }
    }
}

/// The known traits of a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Traits {
    pub(crate) id: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) sequence_number: Option<i64>,
    /// The number of the delivery, counted from 1.
    pub(crate) delivery: Option<u32>,
    /// A hash of the sender's content.
    pub(crate) body_hash: Option<u64>,
    /// Application properties that JSON can express.
    pub(crate) properties: Vec<(String, Value)>,
}

impl Traits {
    pub(crate) fn of(message: &Message) -> Self {
        Self {
            id: Some(message.id().into_owned()),
            session: message.session_id().map(std::borrow::Cow::into_owned),
            body_hash: Some(hash(&message.content())),
            properties: properties(message.application_properties()),
            ..Self::default()
        }
    }

    /// Returns the traits of a message that is delivered or locked.
    pub(crate) fn of_delivery(view: DeliveryView<'_>) -> Self {
        Self {
            sequence_number: i64::try_from(view.number.0).ok(),
            delivery: Some(view.delivery),
            ..Self::of(view.message)
        }
    }

    /// Returns the traits of a message of which only the sequence number is known.
    pub(crate) fn of_number(number: i64) -> Self {
        Self {
            sequence_number: Some(number),
            ..Self::default()
        }
    }

    pub(crate) fn of_session(session: &str) -> Self {
        Self {
            session: Some(session.to_owned()),
            ..Self::default()
        }
    }
}

/// FNV-1a, which is the same in every process and version.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Returns the entries of an application-properties section.
fn properties(section: &[u8]) -> Vec<(String, Value)> {
    let mut reader = Reader::new(section);
    let Some(map) = reader.descriptor().ok().and_then(|_| reader.map().ok()) else {
        return Vec::new();
    };
    let entries = map.entries().filter_map(Result::ok);
    let known = entries.filter_map(|(key, value)| Some((key.as_text()?.to_owned(), json(value)?)));
    known.collect()
}

fn json(value: Plain<'_>) -> Option<Value> {
    match value {
        Plain::Bool(value) => Some(value.into()),
        Plain::Unsigned(value) => Some(value.into()),
        Plain::Signed(value) => Some(value.into()),
        Plain::Float(value) => Some(value.into()),
        Plain::String(value) | Plain::Symbol(value) => Some(value.into()),
        Plain::Null | Plain::Timestamp(_) | Plain::Uuid(_) | Plain::Binary(_) | Plain::Other(_) => {
            None
        }
    }
}

/// The waits for instants of the namespace's time.
#[derive(Debug, Default)]
pub(crate) struct ClockWaits(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    made: u64,
    waiters: BTreeMap<WaitKey, Waiter>,
    /// Whether the namespace has ended, and with it all waits.
    has_ended: bool,
}

/// The end of a wait, and its number.
pub(crate) type WaitKey = (Timestamp, u64);

/// A waiting party.
#[derive(Debug)]
pub(crate) enum Waiter {
    /// A connection, which checks its own list when it is woken.
    Connection(ConnectionId),
    /// A connection that lost a reply for which its client waits, and drops.
    LostReply(ConnectionId),
    /// An HTTP request.
    Task(oneshot::Sender<()>),
}

impl Waiter {
    /// Returns whether it is a request whose client is gone.
    fn is_gone(&self) -> bool {
        matches!(self, Self::Task(wake) if wake.is_closed())
    }
}

impl ClockWaits {
    /// Adds a wait, unless the namespace has ended: no clock would end it any more.
    pub(crate) fn add(&self, until: Timestamp, waiter: Waiter) -> WaitKey {
        let mut queue = self.queue();
        queue.made += 1;
        let key = (until, queue.made);
        if !queue.has_ended {
            queue.waiters.insert(key, waiter);
        }
        key
    }

    /// Returns the next instant of a wait, and removes earlier ones of requests whose clients are gone.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let mut queue = self.queue();
        while let Some(first) = queue.waiters.first_entry() {
            if !first.get().is_gone() {
                return Some(first.key().0);
            }
            first.remove();
        }
        None
    }

    /// Returns the instants of the next waits, at most `limit`.
    pub(crate) fn upcoming(&self, limit: usize) -> Vec<Timestamp> {
        let queue = self.queue();
        let waiters = queue.waiters.iter();
        let waiters = waiters.filter(|(_, waiter)| !waiter.is_gone());
        waiters.take(limit).map(|(&(at, _), _)| at).collect()
    }

    /// Removes the waits that are over.
    pub(crate) fn take_due(&self, now: Timestamp) -> Vec<Waiter> {
        let mut queue = self.queue();
        let later = queue.waiters.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut queue.waiters, later);
        due.into_values().collect()
    }

    /// Removes the wait of an operation that is gone.
    pub(crate) fn remove(&self, key: WaitKey) {
        self.queue().waiters.remove(&key);
    }

    /// Ends all waits with the namespace: requests go on, and find it gone.
    pub(crate) fn end(&self) {
        let mut queue = self.queue();
        queue.has_ended = true;
        queue.waiters.clear();
    }

    /// Removes the waits of a connection that is gone.
    pub(crate) fn forget(&self, connection: ConnectionId) {
        self.queue().waiters.retain(|_, waiter| {
            !matches!(waiter, Waiter::Connection(id) | Waiter::LostReply(id) if *id == connection)
        });
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_due_waits_are_taken_from_the_list() {
        let waits = ClockWaits::default();
        let at = Timestamp::from_millis;
        for (until, connection) in [(20, 1), (10, 2), (20, 3), (21, 4)] {
            waits.add(at(until), Waiter::Connection(ConnectionId(connection)));
        }
        assert_eq!(waits.next(), Some(at(10)));
        let due = waits.take_due(at(20));
        let due = due.iter().map(|waiter| match waiter {
            Waiter::Connection(id) => id.0,
            Waiter::LostReply(_) | Waiter::Task(_) => 0,
        });
        assert_eq!(due.collect::<Vec<_>>(), [2, 1, 3]);
        assert_eq!(waits.next(), Some(at(21)));
    }

    #[test]
    fn a_wait_ends_with_its_request() {
        let waits = ClockWaits::default();
        let (wake, woken) = oneshot::channel();
        waits.add(Timestamp::from_millis(1), Waiter::Task(wake));
        waits.add(
            Timestamp::from_millis(2),
            Waiter::Connection(ConnectionId(1)),
        );
        assert_eq!(waits.next(), Some(Timestamp::from_millis(1)));
        drop(woken);
        assert_eq!(waits.next(), Some(Timestamp::from_millis(2)));
    }
}
