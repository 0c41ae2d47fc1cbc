//! One fault that was set: which operations it is meant for, which of them it takes effect on, and how often it was met.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use servicebus_amqp::LinkId;
use servicebus_broker::{DeliveryView, Message, SequenceNumber, SubQueue, Timestamp};
use servicebus_codec::{Reader, Value as Plain};
use servicebus_control_api::{
    Effect, EntityState, Fault, Filter, Operation, Pick, Property, Random, ScriptedFault,
};
use tokio::sync::oneshot;

use super::random::SeededRng;
use crate::namespace::SharedEntity;
use crate::router::ConnectionId;

/// A fault, and how often it was met.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scripted {
    pub(crate) state: ScriptedFault,
    /// Operations that it is meant for, by entity: what chance goes by.
    counted: HashMap<String, u64>,
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
        }
    }

    /// Counts an operation, and returns what the fault does to it, if it takes effect on it.
    pub(crate) fn meet(&mut self, context: &MatchContext<'_>) -> Option<Effect> {
        let Self { state, counted } = self;
        let fault = &state.fault;
        if !context.operations.contains(&fault.operation) {
            return None;
        }
        if !concerns(&fault.filter, &context.entities) {
            state.elsewhere += 1;
            return None;
        }
        if !fits(fault, context) {
            state.different += 1;
            return None;
        }
        state.matched += 1;
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

    /// The seed, if it goes by chance.
    pub(crate) fn seed(&self) -> Option<u64> {
        match &self.state.fault.pick {
            Pick::Counted { .. } => None,
            Pick::Random { random, .. } => Some(random.seed),
        }
    }
}

fn concerns(filter: &Filter, entities: &[String]) -> bool {
    filter.entity.as_ref().is_none_or(|wanted| {
        let wanted = wanted.trim_start_matches('/');
        let mut entities = entities.iter();
        entities.any(|entity| entity.eq_ignore_ascii_case(wanted))
    })
}

fn fits(fault: &Fault, context: &MatchContext<'_>) -> bool {
    let filter = &fault.filter;
    let is = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
    };
    let feasible = |effect: &Effect| {
        let needs_lock = matches!(effect, Effect::LoseLock | Effect::LoseSessionLock);
        (!needs_lock || context.is_locked)
            && (*effect != Effect::Elsewhere || context.has_other_receiver)
            && (*effect != Effect::DeliverTwice || context.can_come_twice)
    };
    let mut messages = context.messages.iter();
    let name = filter.name.as_deref();
    let found = context.name.unwrap_or_default();
    name.is_none_or(|name| name.eq_ignore_ascii_case(found))
        && is(&filter.client, context.client.as_deref())
        && is(&filter.party, context.party.as_deref())
        && fault.pick.effects().iter().all(feasible)
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

/// Numbers of any kind are compared by their value.
fn is_same(found: &Value, wanted: &Value) -> bool {
    match (found.as_f64(), wanted.as_f64()) {
        (Some(found), Some(wanted)) => found == wanted,
        _ => found == wanted,
    }
}

/// What is seen of an operation, as far as a fault can ask for it.
#[derive(Debug, Default)]
pub(crate) struct MatchContext<'a> {
    /// What it is, from the particular to the general: a completion is a settlement.
    pub(crate) operations: Vec<Operation>,
    /// The operation of a management request, the method of an HTTP request.
    pub(crate) name: Option<&'a str>,
    /// The addresses of what it concerns.
    pub(crate) entities: Vec<String>,
    pub(crate) messages: Vec<Traits>,
    /// What the client calls itself.
    pub(crate) client: Option<Arc<str>>,
    /// The name of the key that it uses.
    pub(crate) party: Option<Arc<str>>,
    /// Of which connection it is, and of which link.
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) link: Option<LinkId>,
    /// How its entity was before it, where the operation log is kept.
    pub(crate) before: Option<EntityState>,
    /// Whether there is a lock that can be lost.
    pub(crate) is_locked: bool,
    /// Whether it is a settlement that can be confirmed in vain, or a delivery that can be settled.
    pub(crate) can_come_twice: bool,
    /// Whether it is a delivery that another receiver could have.
    pub(crate) has_other_receiver: bool,
}

/// What an operation is about on which a fault takes effect, as the record tells it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Affected {
    pub(crate) entities: Vec<Arc<SharedEntity>>,
    pub(crate) store: SubQueue,
    /// The number of its message in that store, or the id of one that is sent; neither where it is about several.
    pub(crate) number: Option<SequenceNumber>,
    pub(crate) message_id: Option<String>,
}

impl Affected {
    /// One entity, or its sub-queue.
    pub(crate) fn at(entity: Arc<SharedEntity>, store: SubQueue) -> Self {
        Self {
            entities: vec![entity],
            store,
            ..Self::default()
        }
    }
}

/// What is known of a message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Traits {
    pub(crate) id: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) sequence_number: Option<i64>,
    /// Which delivery of the message it is, counted from 1.
    pub(crate) delivery: Option<u32>,
    /// A hash of what its sender put into it.
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

    /// The same of a message that is delivered or locked.
    pub(crate) fn of_delivery(view: DeliveryView<'_>) -> Self {
        Self {
            sequence_number: i64::try_from(view.number.0).ok(),
            delivery: Some(view.delivery),
            ..Self::of(view.message)
        }
    }

    /// A message of which only its number is known.
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

/// The entries of an application-properties section.
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

/// Who waits for what instant.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    made: u64,
    sleepers: BTreeMap<(Timestamp, u64), Sleeper>,
}

/// Who waits.
#[derive(Debug)]
pub(crate) enum Sleeper {
    /// A connection, which looks at its own list when it is told.
    Connection(ConnectionId),
    /// A connection that lost a reply for which its client waits, and drops.
    Silent(ConnectionId),
    /// A request over HTTP.
    Task(oneshot::Sender<()>),
}

impl Waits {
    pub(crate) fn add(&self, until: Timestamp, sleeper: Sleeper) {
        let mut queue = self.queue();
        queue.made += 1;
        let number = queue.made;
        queue.sleepers.insert((until, number), sleeper);
    }

    /// The next instant that is waited for.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let queue = self.queue();
        queue.sleepers.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Takes out those who have waited for long enough.
    pub(crate) fn take_due(&self, now: Timestamp) -> Vec<Sleeper> {
        let mut queue = self.queue();
        let later = queue.sleepers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut queue.sleepers, later);
        due.into_values().collect()
    }

    /// A connection is gone, and waits no longer.
    pub(crate) fn forget(&self, connection: ConnectionId) {
        self.queue().sleepers.retain(|_, sleeper| {
            !matches!(sleeper, Sleeper::Connection(id) | Sleeper::Silent(id) if *id == connection)
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
    fn who_is_due_is_taken_out_and_nobody_else() {
        let waits = Waits::default();
        let at = Timestamp::from_millis;
        for (until, connection) in [(20, 1), (10, 2), (20, 3), (21, 4)] {
            waits.add(at(until), Sleeper::Connection(ConnectionId(connection)));
        }
        assert_eq!(waits.next(), Some(at(10)));
        let due = waits.take_due(at(20));
        let due = due.iter().map(|sleeper| match sleeper {
            Sleeper::Connection(id) => id.0,
            Sleeper::Silent(_) | Sleeper::Task(_) => 0,
        });
        assert_eq!(due.collect::<Vec<_>>(), [2, 1, 3]);
        assert_eq!(waits.next(), Some(at(21)));
    }
}
