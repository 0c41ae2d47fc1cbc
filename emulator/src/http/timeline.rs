//! What happened to the messages of an entity, oldest first.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most kinds of facts neither name a message nor move one"
)]

use std::collections::HashMap;

use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use servicebus_broker::{
    ClientId, Counter, EntityId, Fact, FactKind, SequenceNumber, StoreKind, Text, Timeline,
    Timestamp,
};

use super::counts::find;
use super::error::ApiError;
use super::namespaces::Chosen;
use crate::namespace::{Namespace, Place};

#[derive(Debug, Deserialize)]
pub(super) struct Which {
    entity: Option<String>,
    message_id: Option<String>,
    sequence_number: Option<u64>,
    /// Whether the messages themselves are wanted.
    #[serde(default)]
    messages: bool,
}

/// One event (interfaces.md).
#[derive(Debug, Serialize)]
struct Event {
    at: String,
    /// Seconds since the namespace was started.
    offset: f64,
    kind: &'static str,
    entity: String,
    sequence_number: Option<u64>,
    message_id: Option<String>,
    client: Option<String>,
    delivery_count: Option<u32>,
    locked_until: Option<String>,
    reason: Option<String>,
    detail: Option<String>,
    /// The session that it happened to.
    session: Option<String>,
    /// Which of the messages it happened to, where these are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<usize>,
}

pub(super) async fn show(
    Chosen(namespace): Chosen,
    query: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let Query(Which {
        entity,
        message_id,
        sequence_number,
        messages,
    }) = query?;
    let entity = entity
        .as_deref()
        .map(|entity| find(&namespace, entity))
        .transpose()?;
    let sends = entity
        .as_ref()
        .map(|(entity, _)| json!({"now": entity.sends.now(), "most": entity.sends.most()}));
    let entity = entity.map(|(entity, kind)| (entity.id, kind));
    let wanted = Wanted {
        entity: entity.map(|(entity, _)| entity),
        message_id,
        number: sequence_number.map(SequenceNumber),
    };
    let reader = Reader {
        namespace: &namespace,
        timeline: &namespace.timeline(),
    };
    let told = messages && namespace.letters.are_kept();
    let mut shown = told.then(|| Shown::new(&namespace));
    let events = reader.events(&wanted, shown.as_mut());
    let mut answer = json!({
        "dropped": reader.timeline.dropped(),
        "events": events,
        "counters": reader.counters(entity),
    });
    if let Some(sends) = sends {
        answer["sends_unsettled"] = sends;
    }
    if let Some(shown) = shown {
        answer["messages"] = shown.messages.into();
    }
    Ok(Json(answer))
}

/// An instant in UTC.
pub(super) fn rfc3339(instant: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(instant.as_millis())
        .map_or_else(|_| instant.to_string(), |t| t.to_string())
}

/// Which events are asked for; everything that is not said is any.
struct Wanted {
    entity: Option<EntityId>,
    message_id: Option<String>,
    number: Option<SequenceNumber>,
}

impl Wanted {
    /// Whether an event may be among them, as far as can be told without the id of its message. What happens to the
    /// namespace itself happens to every entity.
    fn takes(&self, fact: &Fact) -> bool {
        let here = |entity| entity == fact.entity || fact.entity == EntityId::NAMESPACE;
        self.entity.is_none_or(here) && self.number.is_none_or(|number| number == fact.number)
    }
}

struct Reader<'a> {
    namespace: &'a Namespace,
    timeline: &'a Timeline,
}

/// What is known of the message at a place: its id, and where it came in.
type Known = (Text, Place);

/// The messages of some events, each once, in base64.
struct Shown<'a> {
    namespace: &'a Namespace,
    ahead: i64,
    messages: Vec<String>,
    /// Where they stand in that list; none for one that is kept no longer.
    by_place: HashMap<Place, Option<usize>>,
}

impl<'a> Shown<'a> {
    fn new(namespace: &'a Namespace) -> Self {
        Self {
            namespace,
            ahead: namespace.clock.read().ahead,
            messages: Vec::new(),
            by_place: HashMap::new(),
        }
    }

    /// The place in the list of the message that came in at `place`.
    fn show(&mut self, place: Place) -> Option<usize> {
        let messages = &mut self.messages;
        let (letters, ahead) = (&self.namespace.letters, self.ahead);
        *self.by_place.entry(place).or_insert_with(|| {
            messages.push(BASE64_STANDARD.encode(letters.encoded(&place, ahead)?));
            Some(messages.len() - 1)
        })
    }
}

impl Reader<'_> {
    /// What is wanted, of an entity with its dead letters.
    fn events(&self, wanted: &Wanted, mut shown: Option<&mut Shown<'_>>) -> Vec<Event> {
        let mut known = HashMap::<Place, Known>::new();
        let mut events = Vec::new();
        let mut facts = self.timeline.facts().iter().peekable();
        while let Some(fact) = facts.next() {
            let here = place(fact);
            // A match stands before the arrival that it is about.
            let arrival = facts
                .peek()
                .filter(|next| is_match(fact) && place(next) == here);
            let own = own_id(arrival.map_or(&fact.kind, |arrival| &arrival.kind));
            // What was never held has no number of its own, and shares none with others that have none.
            if let Some(message_id) = own.filter(|_| fact.number.0 > 0) {
                known.insert(here, (message_id, here));
            }
            let whole = known.get(&here).copied();
            let id = own.or_else(|| whole.map(|(id, _)| id));
            if let (Some((store, moved_to)), Some(whole)) = (moved(&fact.kind), whole) {
                known.insert((fact.entity, store, moved_to), whole);
            }
            if !wanted.takes(fact) {
                continue;
            }
            let id = id.map(|id| self.timeline.facts().read(id));
            let message_id = wanted.message_id.as_ref();
            if message_id.is_none() || id.is_none() || message_id == id.as_ref() {
                let shown = shown.as_mut().zip(whole.filter(|_| fact.number.0 > 0));
                events.push(Event {
                    message: shown.and_then(|(shown, (_, origin))| shown.show(origin)),
                    ..self.event(fact, id)
                });
            }
        }
        events
    }

    fn counters(&self, entity: Option<(EntityId, StoreKind)>) -> Map<String, Value> {
        let mut counters = Map::new();
        for counter in Counter::ALL {
            let count: u64 = match entity {
                Some((entity, store)) => self.timeline.count(entity, store, counter),
                None => self
                    .namespace
                    .known_entities()
                    .into_iter()
                    .flat_map(|entity| StoreKind::ALL.map(|kind| (entity, kind)))
                    .map(|(entity, store)| self.timeline.count(entity, store, counter))
                    .sum(),
            };
            counters.insert(counter.name().into(), count.into());
        }
        counters
    }

    fn event(&self, fact: &Fact, message_id: Option<String>) -> Event {
        let mut event = Event {
            at: rfc3339(fact.at),
            offset: (fact.at.as_millis() - self.namespace.started_at.as_millis()) as f64 / 1000.0,
            kind: Counter::from(&fact.kind).name(),
            entity: self.address(fact),
            sequence_number: Some(fact.number.0).filter(|&number| number > 0),
            message_id,
            client: self.client(fact.client),
            delivery_count: None,
            locked_until: None,
            reason: None,
            detail: None,
            session: None,
            message: None,
        };
        self.describe(fact, &mut event);
        event
    }

    /// What there is to say of a fact besides.
    fn describe(&self, fact: &Fact, event: &mut Event) {
        let read = |text: Text| self.timeline.facts().read(text);
        let texts = |reason: Text, detail: Text| (Some(read(reason)), Some(read(detail)));
        match fact.kind {
            FactKind::Enqueued {
                bytes, expires_at, ..
            } => event.detail = Some(arrival(fact.at, bytes, expires_at)),
            FactKind::Delivered {
                delivery,
                locked_until,
            } => {
                event.delivery_count = Some(delivery);
                event.locked_until = Some(rfc3339(locked_until));
            }
            FactKind::SessionAccepted { .. }
            | FactKind::SessionLockRenewed { .. }
            | FactKind::SessionLockExpired { .. }
            | FactKind::SessionReleased { .. }
            | FactKind::SessionStateSet { .. } => self.describe_session(fact, event),
            FactKind::LockRenewed { locked_until } => {
                event.locked_until = Some(rfc3339(locked_until));
            }
            FactKind::Abandoned { delivery_count } | FactKind::LockExpired { delivery_count } => {
                event.delivery_count = Some(delivery_count);
            }
            FactKind::Scheduled {
                bytes,
                activates_at,
                ..
            } => event.detail = Some(format!("{bytes} bytes, for {}", rfc3339(activates_at))),
            FactKind::Activated { moved_to } => {
                event.detail = Some(format!("as number {moved_to}"));
            }
            FactKind::Forwarded { to } => event.detail = Some(read(to)),
            FactKind::Matched { rule } => event.detail = Some(read(rule)),
            FactKind::Fault { fault } => event.detail = Some(read(fault)),
            FactKind::DeadLettered {
                reason,
                description,
                ..
            }
            | FactKind::TransferFailed {
                reason,
                description,
                ..
            } => (event.reason, event.detail) = texts(reason, description),
            FactKind::Refused {
                condition,
                description,
            } => (event.reason, event.detail) = texts(condition, description),
            FactKind::SendEnlisted { transaction, .. }
            | FactKind::SettlementEnlisted { transaction }
            | FactKind::TransactionCommitted { transaction }
            | FactKind::TransactionRolledBack { transaction } => {
                event.detail = Some(format!("transaction {transaction}"));
            }
            FactKind::ClockAdvanced { milliseconds } => {
                event.detail = Some(format!("{} s", milliseconds as f64 / 1000.0));
            }
            FactKind::ReceivedAndDeleted
            | FactKind::Completed
            | FactKind::Released
            | FactKind::Cancelled
            | FactKind::DuplicateDropped { .. }
            | FactKind::Deferred
            | FactKind::Deleted
            | FactKind::EntityDeleted
            | FactKind::Published
            | FactKind::Expired
            | FactKind::Removed => {}
        }
    }

    /// The same of what happened to a session.
    fn describe_session(&self, fact: &Fact, event: &mut Event) {
        match fact.kind {
            FactKind::SessionAccepted {
                session,
                locked_until,
            }
            | FactKind::SessionLockRenewed {
                session,
                locked_until,
            } => {
                event.session = Some(self.timeline.facts().read(session));
                event.locked_until = Some(rfc3339(locked_until));
            }
            FactKind::SessionLockExpired { session } | FactKind::SessionReleased { session } => {
                event.session = Some(self.timeline.facts().read(session));
            }
            FactKind::SessionStateSet { session, size } => {
                event.session = Some(self.timeline.facts().read(session));
                event.detail = Some(match size {
                    Some(size) => format!("{size} bytes"),
                    None => "cleared".into(),
                });
            }
            _ => {}
        }
    }

    fn address(&self, fact: &Fact) -> String {
        let path = self.namespace.entity_name(fact.entity);
        path.map_or_else(String::new, |path| format!("{path}{}", fact.store.suffix()))
    }

    fn client(&self, client: ClientId) -> Option<String> {
        if client == ClientId::BROKER {
            return None;
        }
        let name = self.namespace.client_name(client);
        Some(name.map_or_else(
            || format!("connection {}", client.0),
            |name| name.to_string(),
        ))
    }
}

fn place(fact: &Fact) -> Place {
    (fact.entity, fact.store, fact.number)
}

fn is_match(fact: &Fact) -> bool {
    matches!(fact.kind, FactKind::Matched { .. })
}

/// The id that a fact tells of its message.
fn own_id(kind: &FactKind) -> Option<Text> {
    match kind {
        FactKind::Enqueued { message_id, .. }
        | FactKind::Scheduled { message_id, .. }
        | FactKind::SendEnlisted { message_id, .. }
        | FactKind::DuplicateDropped { message_id } => Some(*message_id),
        _ => None,
    }
}

/// Where a message is found from now on, if it moved within its entity.
fn moved(kind: &FactKind) -> Option<(StoreKind, SequenceNumber)> {
    match kind {
        FactKind::DeadLettered { moved_to, .. } => Some((StoreKind::DeadLetters, *moved_to)),
        FactKind::TransferFailed { moved_to, .. } => {
            Some((StoreKind::TransferDeadLetters, *moved_to))
        }
        FactKind::Activated { moved_to } => Some((StoreKind::Active, *moved_to)),
        _ => None,
    }
}

fn arrival(at: Timestamp, bytes: u32, expires_at: Timestamp) -> String {
    if expires_at == Timestamp::NEVER {
        return format!("{bytes} bytes");
    }
    format!(
        "{bytes} bytes, time to live {} s",
        expires_at.since(at).as_secs_f64()
    )
}
