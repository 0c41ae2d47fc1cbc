//! A timeline as JSON, piece by piece.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most kinds of events neither name a message nor move one"
)]

use std::collections::{HashMap, VecDeque};
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

use super::Wanted;
use super::page::Page;
use crate::clock;
use crate::namespace::{Namespace, Place, RecordedMessages};

/// Bytes of a piece, beyond which no event or message is added to it.
const PIECE: usize = 64 * 1024;
/// Events that are passed over before other tasks have their turn.
const PASSED: usize = 4096;

/// An answer of which a part has been rendered.
pub(crate) struct Rendering {
    namespace: Arc<Namespace>,
    events: Events,
    positions: Vec<u64>,
    page: Option<Page>,
    /// Whether events are rendered as lines, too.
    lines: bool,
    wanted: Wanted,
    /// How many events were looked at.
    read: usize,
    known: HashMap<Place, Known>,
    shown: Option<Shown>,
    head: Timeline,
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

/// An event that is wanted, the id of its message, and what is known of that.
type Match = (Event, Option<String>, Option<Known>);

/// A message as it came in.
pub(crate) type Recorded = (BrokerProperties, Message);

/// The messages of some events, each once.
#[derive(Default)]
struct Shown {
    messages: Vec<Recorded>,
    /// Where they stand in that list; none for one that is kept no longer.
    by_place: HashMap<Place, Option<usize>>,
}

impl Shown {
    /// The place in the list of the message that came in at `place`.
    fn show(&mut self, recorded_messages: &RecordedMessages, place: Place) -> Option<usize> {
        let messages = &mut self.messages;
        *self.by_place.entry(place).or_insert_with(|| {
            messages.push(recorded_messages.kept_at(&place)?);
            Some(messages.len() - 1)
        })
    }
}

impl Rendering {
    /// Of these events, behind the rest of the answer.
    pub(crate) fn new(
        namespace: Arc<Namespace>,
        head: Timeline,
        (events, positions): (Events, Vec<u64>),
        wanted: Wanted,
        shows_messages: bool,
    ) -> Self {
        // Up to the end of its list of events, which is empty.
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

    /// All of it at once, and the messages as they are kept. Others have their turn in between.
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

    /// The same of a part of the events.
    pub(crate) async fn in_page(mut self, page: Option<Page>) -> Self {
        self.page = match page {
            Some(page) if page.is_newest => Some(self.newest(page).await),
            page => page,
        };
        self
    }

    /// The same with a line for each event, if lines are wanted.
    pub(crate) fn with_lines(self, lines: bool) -> Self {
        Self { lines, ..self }
    }

    /// The page of the newest events: a walk to the end finds where it begins.
    async fn newest(&mut self, mut page: Page) -> Page {
        let mut selected = VecDeque::new();
        while let Some(is_selected) = self.pass() {
            if self.read.is_multiple_of(PASSED) {
                yield_now().await;
            }
            let position = self.positions.get(self.read - 1).copied();
            let position = position.filter(|_| is_selected).unwrap_or_default();
            if position > page.after && position < page.before {
                selected.push_back(position);
                if selected.len() > page.left {
                    selected.pop_front();
                    page.next = selected.front().copied();
                }
            }
        }
        if let Some(first) = selected.front() {
            page.after = first - 1;
        }
        self.read = 0;
        self.known.clear();
        page
    }

    /// Passes over the next event, and says whether it is wanted; none after the last. Only where a message is asked for the
    /// ids of messages matter to that.
    fn pass(&mut self) -> Option<bool> {
        if self.wanted.message_id.is_some() {
            return self.next_match().map(|found| found.is_some());
        }
        let event = self.events.get(self.read)?;
        self.read += 1;
        Some(self.wanted.takes(event))
    }

    /// The next piece of the answer; none when it is whole.
    pub(crate) fn piece(&mut self) -> Option<Bytes> {
        let mut piece = Vec::with_capacity(2 * PIECE);
        // Events that are not asked for cost time, too.
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

    /// Whether the answer is whole.
    pub(crate) fn is_done(&self) -> bool {
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
            None => self.end(),
        }
    }

    fn end(&mut self) {
        let next = self.page.as_ref().and_then(|page| page.next);
        let end = next.map_or_else(|| "]}".to_owned(), |next| format!("],\"next\":{next}}}"));
        self.begin_after(end.as_bytes());
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
        let (broker_properties, message) = self.shown.as_ref()?.messages.get(index)?;
        let ahead = self.namespace.clock.ahead();
        let mut encoded = Vec::new();
        if let Ok(tail) = message.encode(broker_properties, ahead, &mut encoded) {
            encoded.extend_from_slice(&tail);
        }
        Some(BASE64_STANDARD.encode(encoded))
    }

    /// The next event as it is rendered, if it is wanted; none after the last.
    fn next_event(&mut self) -> Option<Option<api::Event>> {
        let Some(found) = self.next_match() else {
            // There are no more behind.
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
            && !page.take(position)?
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

    /// The next event with the id of its message and what is known of that, if it is wanted; none after the last.
    fn next_match(&mut self) -> Option<Option<Match>> {
        let event = *self.events.get(self.read)?;
        self.read += 1;
        let here = place(&event);
        let arrival = arrival_of(&event, self.events.get(self.read));
        let own = own_id(arrival.map_or(&event.kind, |arrival| &arrival.kind));
        // What was never held has no number of its own, and shares none with others that have none.
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
        let asked = self.wanted.message_id.as_ref();
        if asked.is_some() && id.is_some() && asked != id.as_ref() {
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

    /// What there is to say of an event besides.
    fn describe(&self, event: &Event, rendered: &mut api::Event) {
        let read = |text: Text| self.events.read(text);
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
                rendered.detail = Some(read(text))
            }
            EventKind::Fault { fault, applied, .. } => {
                rendered.detail = Some(read(fault));
                rendered.fault = serde_json::from_str(&read(applied)).ok();
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
                rendered.reason = Some(read(reason));
                rendered.detail = Some(read(description));
            }
            EventKind::Refused {
                operation,
                condition,
                description,
            } => {
                rendered.reason = Some(read(condition));
                rendered.detail = Some(read(description));
                rendered.operation = Some(read(operation)).filter(|named| !named.is_empty());
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

    /// The same of what happened to a session.
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

/// Where the message of an event is.
pub(super) fn place(event: &Event) -> Place {
    (event.entity, event.store, event.number())
}

/// The arrival that a match is about, which it stands before.
pub(super) fn arrival_of<'e>(event: &Event, next: Option<&'e Event>) -> Option<&'e Event> {
    let is_match = matches!(event.kind, EventKind::Matched { .. });
    next.filter(|next| is_match && place(next) == place(event))
}

/// The id of its message that an event has.
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

/// Where a message is found from now on, if it moved within its entity.
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
