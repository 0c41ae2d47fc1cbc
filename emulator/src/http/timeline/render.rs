//! Renders a timeline as JSON in pieces.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most kinds of events neither name a message nor move one"
)]

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::Serialize;
use servicebus_broker::{
    BrokerProperties, ClientId, Counter, Event, EventKind, Events, Message, SequenceNumber,
    SubQueue, Text, Timestamp,
};
use servicebus_control_api::{self as api, Timeline};

use tokio::task::yield_now;

use super::EventFilter;
use super::page::{Newest, Page};
use crate::clock;
use crate::namespace::{Location, Namespace, RecordedMessages};

/// Bytes of a piece, after which no event or message is added to it.
const PIECE: usize = 64 * 1024;
/// Events that are skipped before other tasks get their turn.
const PASSED: usize = 4096;

/// A partly rendered response.
pub(crate) struct Rendering {
    namespace: Arc<Namespace>,
    events: Events,
    positions: Vec<u64>,
    page: Option<Page>,
    /// Whether events are rendered as lines, too.
    lines: bool,
    wanted: EventFilter,
    /// How many events were visited.
    read: usize,
    known: HashMap<Location, KnownMessage>,
    shown: Option<Shown>,
    head: Timeline,
    /// The text before the next event or message.
    lead: Vec<u8>,
    stage: Stage,
}

/// The next part of the response.
enum Stage {
    Events,
    /// The message at this index of the list.
    Messages(usize),
    Done,
}

/// The known data of the message at a location: its id, and where it arrived.
type KnownMessage = (Text, Location);

/// A requested event, the id of its message, and the known data of it.
type Match = (Event, Option<String>, Option<KnownMessage>);

/// A message as it arrived.
pub(crate) type Recorded = (BrokerProperties, Message);

/// The messages of some events, each once.
#[derive(Default)]
struct Shown {
    messages: Vec<Recorded>,
    /// Their indexes in the list; `None` for one that is no longer kept.
    by_location: HashMap<Location, Option<usize>>,
}

impl Shown {
    /// Returns the index of the message that arrived at `place`.
    fn show(&mut self, recorded_messages: &RecordedMessages, place: Location) -> Option<usize> {
        let messages = &mut self.messages;
        *self.by_location.entry(place).or_insert_with(|| {
            messages.push(recorded_messages.recorded_at(&place)?);
            Some(messages.len() - 1)
        })
    }
}

impl Rendering {
    /// Creates a rendering of these events after the head of the response.
    pub(crate) fn new(
        namespace: Arc<Namespace>,
        head: Timeline,
        (events, positions): (Events, Vec<u64>),
        wanted: EventFilter,
        shows_messages: bool,
    ) -> Self {
        // Up to the empty list of events.
        let mut lead = serde_json::to_vec(&head).unwrap_or_default();
        lead.truncate(lead.len().saturating_sub(b"]}".len()));
        Self {
            namespace,
            events,
            positions,
            page: None,
            lines: false,
            wanted,
            read: 0,
            known: HashMap::new(),
            shown: shows_messages.then(Shown::default),
            head,
            lead,
            stage: Stage::Events,
        }
    }

    /// Renders everything at once; returns the messages as they are kept. Yields to other tasks in between.
    pub(crate) async fn whole(mut self) -> (Timeline, Option<Vec<Recorded>>) {
        let mut events = Vec::new();
        while let Some(event) = self.next_event() {
            events.extend(event);
            if self.read.is_multiple_of(PIECE / size_of::<Event>()) {
                yield_now().await;
            }
        }
        let messages = self.shown.map(|shown| shown.messages);
        (
            Timeline {
                events,
                ..self.head
            },
            messages,
        )
    }

    /// Limits the events to a page.
    pub(crate) async fn in_page(mut self, page: Option<Page>) -> Self {
        self.page = match page {
            Some(page) if page.is_newest => Some(self.newest(page).await),
            page => page,
        };
        self
    }

    /// Adds a line for each event if `lines`.
    pub(crate) fn with_lines(self, lines: bool) -> Self {
        Self { lines, ..self }
    }

    /// Returns the page of the newest events, whose beginning a pass to the end finds.
    async fn newest(&mut self, page: Page) -> Page {
        let mut newest = Newest::of(page);
        while let Some(passed) = self.pass() {
            if self.read.is_multiple_of(PASSED) {
                yield_now().await;
            }
            if let (Some(counts), Some(position)) = (passed, self.positions.get(self.read - 1)) {
                newest.add(*position, counts);
            }
        }
        self.read = 0;
        self.known.clear();
        newest.page()
    }

    /// Skips the next event; returns whether it counts if it is requested, `None` after the last. Message ids only matter if a
    /// message is requested.
    fn pass(&mut self) -> Option<Option<bool>> {
        if self.wanted.message_id.is_some() {
            let found = self.next_match()?;
            return Some(found.map(|(_, id, _)| id.is_some()));
        }
        let event = self.events.get(self.read)?;
        self.read += 1;
        Some(self.wanted.takes(event).then_some(true))
    }

    /// Returns the next piece of the response; `None` at its end.
    pub(crate) fn piece(&mut self) -> Option<Bytes> {
        let mut piece = Vec::with_capacity(2 * PIECE);
        // Events that are not requested take time, too.
        let last = self.read + PIECE / size_of::<Event>();
        while piece.len() < PIECE && self.read <= last {
            match self.stage {
                Stage::Events => match self.next_event() {
                    Some(Some(rendered)) => self.append(&mut piece, &rendered),
                    Some(None) => {}
                    None => self.end_events(),
                },
                Stage::Messages(index) => match self.encoded(index) {
                    Some(message) => {
                        self.append(&mut piece, &message);
                        self.stage = Stage::Messages(index + 1);
                    }
                    None => self.end(),
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

    /// Returns whether the response is complete.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done)
    }

    /// Appends an element of a list.
    fn append(&mut self, piece: &mut Vec<u8>, element: &impl Serialize) {
        piece.append(&mut self.lead);
        self.lead.push(b',');
        // Writing to memory cannot fail, and these types always serialize.
        let _ = serde_json::to_writer(piece, element);
    }

    fn end_events(&mut self) {
        match self.shown {
            Some(_) => {
                self.begin_after(b"],\"messages\":[");
                self.stage = Stage::Messages(0);
            }
            None => self.end(),
        }
    }

    fn end(&mut self) {
        let next = self.page.as_ref().and_then(|page| page.next);
        let end = next.map_or_else(|| "]}".to_owned(), |next| format!("],\"next\":{next}}}"));
        self.begin_after(end.as_bytes());
        self.stage = Stage::Done;
    }

    /// Sets the text that replaces the comma after the last element.
    fn begin_after(&mut self, text: &[u8]) {
        if self.lead == b"," {
            self.lead.clear();
        }
        self.lead.extend_from_slice(text);
    }

    /// Returns a message in base64, as a receiver would get it now.
    fn encoded(&self, index: usize) -> Option<String> {
        let (broker_properties, message) = self.shown.as_ref()?.messages.get(index)?;
        let ahead = self.namespace.clock.ahead();
        let mut encoded = Vec::new();
        if let Ok(tail) = message.encode(broker_properties, ahead, &mut encoded) {
            encoded.extend_from_slice(&tail);
        }
        Some(BASE64_STANDARD.encode(encoded))
    }

    /// Returns the next rendered event if it is requested; `None` after the last.
    fn next_event(&mut self) -> Option<Option<api::Event>> {
        let Some(found) = self.next_match() else {
            // No more events follow.
            if let Some(page) = &mut self.page {
                page.next = page.next.filter(|_| page.is_newest);
            }
            return None;
        };
        let Some((event, id, whole)) = found else {
            return Some(None);
        };
        let position = self.positions.get(self.read - 1).copied();
        if let (Some(page), Some(position)) = (&mut self.page, position)
            && !page.take(position, id.is_some())?
        {
            return Some(None);
        }
        let recorded_messages = &self.namespace.recorded_messages;
        let shown = self
            .shown
            .as_mut()
            .zip(whole.filter(|_| event.number().is_some()));
        let message = shown.and_then(|(shown, (_, origin))| shown.show(recorded_messages, origin));
        let mut rendered = self.rendered(&event, id);
        rendered.message = message;
        rendered.position = position.filter(|_| self.page.is_some());
        rendered.line = self.lines.then(|| servicebus_assertions::line(&rendered));
        Some(Some(rendered))
    }

    /// Returns the next event with its message id and known data, if it is requested; `None` after the last.
    fn next_match(&mut self) -> Option<Option<Match>> {
        let event = *self.events.get(self.read)?;
        self.read += 1;
        let here = place(&event);
        let arrival = arrival_of(&event, self.events.get(self.read));
        let own = own_id(arrival.map_or(&event.kind, |arrival| &arrival.kind));
        // A message that was never stored has no sequence number, and shares none with others.
        if let Some(message_id) = own.filter(|_| event.number().is_some()) {
            self.known.insert(here, (message_id, here));
        }
        let whole = self.known.get(&here).copied();
        let id = own.or_else(|| whole.map(|(id, _)| id));
        if let (Some((store, moved_to)), Some(whole)) = (moved(&event.kind), whole) {
            self.known
                .insert((event.entity, store, Some(moved_to)), whole);
        }
        if !self.wanted.takes(&event) {
            return Some(None);
        }
        let id = id.map(|id| self.events.read(id));
        let wanted_id = self.wanted.message_id.as_ref();
        if wanted_id.is_some() && id.is_some() && wanted_id != id.as_ref() {
            return Some(None);
        }
        Some(Some((event, id, whole)))
    }

    fn rendered(&self, event: &Event, message_id: Option<String>) -> api::Event {
        let since = event.at.as_millis() - self.namespace.started_at.as_millis();
        let kind = api::EventKind::named(Counter::from(&event.kind).name());
        let at = clock::system_time(event.at);
        let mut rendered = api::Event::new(at, since as f64 / 1000.0, kind);
        rendered.entity = Some(self.address(event));
        rendered.sequence_number = event.number().map(|number| number.0.cast_signed());
        rendered.message_id = message_id;
        rendered.client = self.client(event.client);
        self.describe(event, &mut rendered);
        self.describe_session(event, &mut rendered);
        rendered
    }

    /// Adds the details of an event.
    fn describe(&self, event: &Event, rendered: &mut api::Event) {
        let read = |text: Text| Some(self.events.read(text)).filter(|text| !text.is_empty());
        match event.kind {
            EventKind::Enqueued {
                bytes, expires_at, ..
            } => rendered.detail = Some(arrival(event.at, bytes, expires_at)),
            EventKind::Delivered {
                delivery,
                locked_until,
            } => {
                rendered.delivery_count = Some(delivery);
                rendered.locked_until = Some(clock::system_time(locked_until));
            }
            EventKind::LockRenewed { locked_until } => {
                rendered.locked_until = Some(clock::system_time(locked_until));
            }
            EventKind::Abandoned { delivery_count } | EventKind::LockExpired { delivery_count } => {
                rendered.delivery_count = Some(delivery_count);
            }
            EventKind::Scheduled {
                bytes,
                activates_at,
                ..
            } => {
                rendered.detail = Some(format!("{bytes} bytes, for {}", clock::date(activates_at)));
            }
            EventKind::Activated { moved_to } => {
                rendered.detail = Some(format!("as number {moved_to}"));
            }
            EventKind::Forwarded { to: text } | EventKind::Matched { rule: text } => {
                rendered.detail = read(text);
            }
            EventKind::Fault { fault, applied, .. } => {
                rendered.detail = read(fault);
                rendered.fault = read(applied).and_then(|text| serde_json::from_str(&text).ok());
            }
            EventKind::DeadLettered {
                reason,
                description,
                ..
            }
            | EventKind::TransferFailed {
                reason,
                description,
                ..
            } => {
                rendered.reason = read(reason);
                rendered.detail = read(description);
            }
            EventKind::Refused {
                operation,
                condition,
                description,
            } => {
                rendered.reason = read(condition);
                rendered.detail = read(description);
                rendered.operation = read(operation);
            }
            EventKind::SendEnlisted { transaction, .. }
            | EventKind::SettlementEnlisted { transaction }
            | EventKind::TransactionCommitted { transaction }
            | EventKind::TransactionRolledBack { transaction } => {
                rendered.detail = Some(format!("transaction {transaction}"));
            }
            EventKind::ClockAdvanced { milliseconds } => {
                rendered.detail = Some(format!("{} s", milliseconds as f64 / 1000.0));
            }
            _ => {}
        }
    }

    /// Adds the details of a session's event.
    fn describe_session(&self, event: &Event, rendered: &mut api::Event) {
        let session = match event.kind {
            EventKind::SessionAccepted {
                session,
                locked_until,
            }
            | EventKind::SessionLockRenewed {
                session,
                locked_until,
            } => {
                rendered.locked_until = Some(clock::system_time(locked_until));
                session
            }
            EventKind::SessionLockExpired { session } | EventKind::SessionReleased { session } => {
                session
            }
            EventKind::SessionStateSet { session, size } => {
                rendered.detail = Some(match size {
                    Some(size) => format!("{size} bytes"),
                    None => "cleared".into(),
                });
                session
            }
            _ => return,
        };
        rendered.session = Some(self.events.read(session));
    }

    fn address(&self, event: &Event) -> String {
        let path = self.namespace.entity_name(event.entity);
        path.map_or_else(String::new, |path| {
            format!("{path}{}", event.store.suffix())
        })
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

/// Returns the location of an event's message.
pub(super) fn place(event: &Event) -> Location {
    (event.entity, event.store, event.number())
}

/// Returns the arrival that follows a match.
pub(super) fn arrival_of<'e>(event: &Event, next: Option<&'e Event>) -> Option<&'e Event> {
    let is_match = matches!(event.kind, EventKind::Matched { .. });
    next.filter(|next| is_match && place(next) == place(event))
}

/// Returns the message id in an event.
pub(super) fn own_id(kind: &EventKind) -> Option<Text> {
    match kind {
        EventKind::Enqueued { message_id, .. }
        | EventKind::Scheduled { message_id, .. }
        | EventKind::SendEnlisted { message_id, .. }
        | EventKind::DuplicateDropped { message_id } => Some(*message_id),
        EventKind::Fault { message_id, .. } => Some(*message_id).filter(|id| !id.is_empty()),
        _ => None,
    }
}

/// Returns the later location of a message that moved within its entity.
pub(super) fn moved(kind: &EventKind) -> Option<(SubQueue, SequenceNumber)> {
    match kind {
        EventKind::DeadLettered { moved_to, .. } => Some((SubQueue::DeadLetter, *moved_to)),
        EventKind::TransferFailed { moved_to, .. } => {
            Some((SubQueue::TransferDeadLetter, *moved_to))
        }
        EventKind::Activated { moved_to } => Some((SubQueue::Active, *moved_to)),
        _ => None,
    }
}

fn arrival(at: Timestamp, bytes: u32, expires_at: Option<Timestamp>) -> String {
    let Some(expires_at) = expires_at else {
        return format!("{bytes} bytes");
    };
    format!(
        "{bytes} bytes, time to live {} s",
        expires_at.since(at).as_secs_f64()
    )
}
