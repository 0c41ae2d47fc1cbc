//! A timeline as JSON, piece by piece.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most kinds of facts neither name a message nor move one"
)]

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};
use servicebus_broker::{
    ClientId, Counter, Fact, FactKind, Facts, Message, SequenceNumber, Stamp, StoreKind, Text,
    Timestamp,
};

use super::{Wanted, rfc3339};
use crate::namespace::{Letters, Namespace, Place};

/// Bytes of a piece, beyond which no event or message is added to it.
const PIECE: usize = 64 * 1024;

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

/// An answer of which a part has been rendered.
pub(super) struct Rendering {
    namespace: Arc<Namespace>,
    facts: Facts,
    wanted: Wanted,
    /// How many facts were looked at.
    read: usize,
    known: HashMap<Place, Known>,
    shown: Option<Shown>,
    /// What stands before the next event or message.
    lead: Vec<u8>,
    stage: Stage,
}

/// What comes next.
enum Stage {
    Events,
    /// The message at this place of the list.
    Messages(usize),
    Done,
}

/// What is known of the message at a place: its id, and where it came in.
type Known = (Text, Place);

/// The messages of some events, each once.
#[derive(Default)]
struct Shown {
    messages: Vec<(Stamp, Message)>,
    /// Where they stand in that list; none for one that is kept no longer.
    by_place: HashMap<Place, Option<usize>>,
}

impl Shown {
    /// The place in the list of the message that came in at `place`.
    fn show(&mut self, letters: &Letters, place: Place) -> Option<usize> {
        let messages = &mut self.messages;
        *self.by_place.entry(place).or_insert_with(|| {
            messages.push(letters.kept_at(&place)?);
            Some(messages.len() - 1)
        })
    }
}

impl Rendering {
    /// Of these facts, behind the members in `head`.
    pub(super) fn new(
        namespace: Arc<Namespace>,
        head: &Map<String, Value>,
        facts: Facts,
        wanted: Wanted,
        shows_messages: bool,
    ) -> Self {
        let mut lead = Vec::from(&b"{"[..]);
        for (name, value) in head {
            lead.extend_from_slice(format!("{}:{value},", Value::from(name.as_str())).as_bytes());
        }
        lead.extend_from_slice(b"\"events\":[");
        Self {
            namespace,
            facts,
            wanted,
            read: 0,
            known: HashMap::new(),
            shown: shows_messages.then(Shown::default),
            lead,
            stage: Stage::Events,
        }
    }

    /// The next piece of the answer; none when it is whole.
    pub(super) fn piece(&mut self) -> Option<Bytes> {
        let mut piece = Vec::with_capacity(2 * PIECE);
        // Facts that are not asked for cost time, too.
        let last = self.read + PIECE / size_of::<Fact>();
        while piece.len() < PIECE && self.read <= last {
            match self.stage {
                Stage::Events => match self.next_event() {
                    Some(Some(event)) => self.append(&mut piece, &event),
                    Some(None) => {}
                    None => self.end_events(),
                },
                Stage::Messages(index) => match self.encoded(index) {
                    Some(message) => {
                        self.append(&mut piece, &message);
                        self.stage = Stage::Messages(index + 1);
                    }
                    None => self.end(b"]}"),
                },
                Stage::Done => break,
            }
        }
        if let Stage::Done = self.stage {
            piece.append(&mut self.lead);
            return (!piece.is_empty()).then(|| piece.into());
        }
        Some(piece.into())
    }

    /// Whether the answer is whole.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Appends an element of a list.
    fn append(&mut self, piece: &mut Vec<u8>, element: &impl Serialize) {
        piece.append(&mut self.lead);
        self.lead.push(b',');
        // Writing to memory cannot fail, and texts and numbers have a form in JSON.
        let _ = serde_json::to_writer(piece, element);
    }

    fn end_events(&mut self) {
        match self.shown {
            Some(_) => {
                self.begin_after(b"],\"messages\":[");
                self.stage = Stage::Messages(0);
            }
            None => self.end(b"]}"),
        }
    }

    fn end(&mut self, end: &[u8]) {
        self.begin_after(end);
        self.stage = Stage::Done;
    }

    /// Has `text` stand in place of the comma after the last element.
    fn begin_after(&mut self, text: &[u8]) {
        if self.lead == b"," {
            self.lead.clear();
        }
        self.lead.extend_from_slice(text);
    }

    /// A message in base64, as a receiver would get it now.
    fn encoded(&self, index: usize) -> Option<String> {
        let (stamp, message) = self.shown.as_ref()?.messages.get(index)?;
        let ahead = self.namespace.clock.read().ahead;
        let mut encoded = Vec::new();
        if let Ok(tail) = message.encode(stamp, ahead, &mut encoded) {
            encoded.extend_from_slice(&tail);
        }
        Some(BASE64_STANDARD.encode(encoded))
    }

    /// The event of the next fact, if it is wanted; none after the last.
    fn next_event(&mut self) -> Option<Option<Event>> {
        let fact = *self.facts.get(self.read)?;
        self.read += 1;
        let here = place(&fact);
        // A match stands before the arrival that it is about.
        let next = self.facts.get(self.read);
        let arrival = next.filter(|next| is_match(&fact) && place(next) == here);
        let own = own_id(arrival.map_or(&fact.kind, |arrival| &arrival.kind));
        // What was never held has no number of its own, and shares none with others that have none.
        if let Some(message_id) = own.filter(|_| fact.number.0 > 0) {
            self.known.insert(here, (message_id, here));
        }
        let whole = self.known.get(&here).copied();
        let id = own.or_else(|| whole.map(|(id, _)| id));
        if let (Some((store, moved_to)), Some(whole)) = (moved(&fact.kind), whole) {
            self.known.insert((fact.entity, store, moved_to), whole);
        }
        if !self.wanted.takes(&fact) {
            return Some(None);
        }
        let id = id.map(|id| self.facts.read(id));
        let asked = self.wanted.message_id.as_ref();
        if asked.is_some() && id.is_some() && asked != id.as_ref() {
            return Some(None);
        }
        let letters = &self.namespace.letters;
        let shown = self.shown.as_mut().zip(whole.filter(|_| fact.number.0 > 0));
        let message = shown.and_then(|(shown, (_, origin))| shown.show(letters, origin));
        Some(Some(Event {
            message,
            ..self.event(&fact, id)
        }))
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
        let read = |text: Text| self.facts.read(text);
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
                event.session = Some(self.facts.read(session));
                event.locked_until = Some(rfc3339(locked_until));
            }
            FactKind::SessionLockExpired { session } | FactKind::SessionReleased { session } => {
                event.session = Some(self.facts.read(session));
            }
            FactKind::SessionStateSet { session, size } => {
                event.session = Some(self.facts.read(session));
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
