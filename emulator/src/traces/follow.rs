//! Follows the messages of a namespace from event to event: when they arrive, are locked, settled, and leave.
//!
//! A message has a span for as long as it is in one store, `queued {location}` or `publish {topic}`, and below that one for
//! each delivery under a lock, `locked {location}`. A dead letter is in another store, with a span below that of the previous
//! one. Events are read under the entity's lock, when its timeline is recorded; nothing here waits.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rand::rngs::SmallRng;
use rand::{Rng as _, make_rng};
use servicebus_broker::{
    Counter, Entity, EntityId, EntityKind, Event, EventKind, Events, SequenceNumber, SubQueue,
};

use super::export::{Attribute, Exporter, Span};
use super::parent::{self, Parent};
use crate::clock::NamespaceClock;
use crate::lock_order::{Rank, take};

/// The followed messages of a namespace, if any are followed.
#[derive(Debug, Default)]
pub(crate) struct FollowedMessages(Option<Box<Followed>>);

/// The location of messages.
type Location = (EntityId, SubQueue);

/// The state of the followed messages.
#[derive(Debug)]
pub(super) struct Followed {
    namespace: String,
    exporter: Arc<Exporter>,
    spans: Mutex<SpanTable>,
}

#[derive(Debug)]
struct SpanTable {
    /// Ids of spans need not be the same in every run, unlike other ids with a seed.
    ids: SmallRng,
    locations: HashMap<Location, HashMap<SequenceNumber, MessageSpans>>,
}

/// The spans of a message that have not ended.
#[derive(Debug)]
struct MessageSpans {
    trace: u128,
    parent: u64,
    span: SpanStart,
    message_id: String,
    locked: Option<(SpanStart, u32)>,
}

/// The beginning of a span.
#[derive(Debug, Clone, Copy)]
struct SpanStart {
    id: u64,
    at: SpanTime,
}

/// Real time, and how far the namespace's clock was ahead of it.
#[derive(Debug, Clone, Copy)]
struct SpanTime {
    nanoseconds: u64,
    ahead: i64,
}

impl FollowedMessages {
    pub(super) fn new(followed: Followed) -> Self {
        Self(Some(Box::new(followed)))
    }

    /// Follows the events of a locked entity.
    pub(crate) fn note(&self, entity: &Entity, events: &Events, clock: &NamespaceClock) {
        if let Some(followed) = &self.0 {
            followed.note(entity, events, clock);
        }
    }

    /// Forgets all messages.
    pub(crate) fn clear(&self) {
        if let Some(followed) = &self.0 {
            followed.clear();
        }
    }
}

impl Followed {
    pub(super) fn new(namespace: &str, exporter: Arc<Exporter>) -> Self {
        Self {
            namespace: namespace.to_owned(),
            exporter,
            spans: Mutex::new(SpanTable {
                ids: make_rng(),
                locations: HashMap::new(),
            }),
        }
    }

    fn note(&self, entity: &Entity, events: &Events, clock: &NamespaceClock) {
        let now = SpanTime {
            nanoseconds: clock.real_nanoseconds(),
            ahead: clock.read().ahead,
        };
        let mut spans = take(Rank::Inner, || self.spans.lock());
        for event in events.iter().filter(|event| event.entity == entity.id()) {
            if event.kind == EventKind::EntityDeleted {
                self.forget_entity(&mut spans, entity.id());
            } else if let Some(number) = event.number() {
                self.record_event(&mut spans, entity, events, (event, number), now);
            }
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what neither begins nor ends a span is of no interest"
    )]
    fn record_event(
        &self,
        spans: &mut SpanTable,
        entity: &Entity,
        events: &Events,
        (event, number): (&Event, SequenceNumber),
        now: SpanTime,
    ) {
        let location = (event.entity, event.store);
        match event.kind {
            EventKind::Enqueued { message_id, .. } => {
                let message_id = events.read(message_id);
                self.begin(spans, entity, (event.store, number), message_id, now);
            }
            EventKind::Delivered { delivery, .. } => {
                let begun = spans.begin(now);
                if let Some(open) = spans.open(location, number) {
                    open.locked = Some((begun, delivery));
                }
            }
            EventKind::Abandoned { .. }
            | EventKind::Released
            | EventKind::LockExpired { .. }
            | EventKind::Deferred => {
                if let Some(open) = spans.open(location, number) {
                    self.end_lock(entity, open, event, now);
                }
            }
            EventKind::DeadLettered {
                moved_to,
                reason,
                description,
            }
            | EventKind::TransferFailed {
                moved_to,
                reason,
                description,
            } => {
                let texts = (events.read(reason), events.read(description));
                if let Some(dead) = self.end(spans, entity, (event, number), texts, now) {
                    let store = match event.kind {
                        EventKind::TransferFailed { .. } => SubQueue::TransferDeadLetter,
                        _ => SubQueue::DeadLetter,
                    };
                    self.continue_message(spans, (event.entity, store), moved_to, dead, now);
                }
            }
            EventKind::ReceivedAndDeleted
            | EventKind::Completed
            | EventKind::Expired
            | EventKind::Removed
            | EventKind::Deleted
            | EventKind::Published
            | EventKind::Forwarded { .. } => {
                self.end(spans, entity, (event, number), Default::default(), now);
            }
            _ => {}
        }
    }

    /// Begins to follow a message that has arrived.
    fn begin(
        &self,
        spans: &mut SpanTable,
        entity: &Entity,
        (store, number): (SubQueue, SequenceNumber),
        message_id: String,
        now: SpanTime,
    ) {
        let found = entity.snapshot(store, number).next();
        let own =
            found.filter(|(broker_properties, _)| broker_properties.sequence_number == number);
        let Some((_, message)) = own else {
            // It is removed by the same operation.
            return;
        };
        let parent = parent::of_message(message);
        let made = || u128::from(spans.ids.next_u64()) << 64 | u128::from(spans.ids.next_u64());
        let trace = parent.map_or_else(made, |parent: Parent| parent.trace);
        if !self.exporter.sampler.takes(trace, parent.as_ref()) || !self.exporter.opens() {
            return;
        }
        let open = MessageSpans {
            trace,
            parent: parent.map_or(0, |parent| parent.span),
            span: spans.begin(now),
            message_id,
            locked: None,
        };
        self.insert(spans, (entity.id(), store), number, open);
    }

    /// Continues with a followed message in another location.
    fn continue_message(
        &self,
        spans: &mut SpanTable,
        location: Location,
        number: SequenceNumber,
        open: MessageSpans,
        now: SpanTime,
    ) {
        if self.exporter.opens() {
            let open = MessageSpans {
                parent: open.span.id,
                span: spans.begin(now),
                locked: None,
                ..open
            };
            self.insert(spans, location, number, open);
        }
    }

    fn insert(
        &self,
        spans: &mut SpanTable,
        location: Location,
        number: SequenceNumber,
        open: MessageSpans,
    ) {
        let before = spans
            .locations
            .entry(location)
            .or_default()
            .insert(number, open);
        // An entity that broke and was reset reuses its sequence numbers.
        self.exporter.close(usize::from(before.is_some()));
    }

    fn end_lock(&self, entity: &Entity, open: &mut MessageSpans, event: &Event, now: SpanTime) {
        let Some((begun, delivery)) = open.locked.take() else {
            return;
        };
        let mut span = self.span(entity, open, begun, (event, "locked"), now);
        span.parent = open.span.id;
        let count = Attribute::Number(i64::from(delivery));
        let name = "messaging.servicebus.message.delivery_count";
        span.attributes.push((name, count));
        self.exporter.add(span);
    }

    /// Ends the span of a message that has left its location, with a reason for dead letters; returns the message if it was
    /// followed.
    fn end(
        &self,
        spans: &mut SpanTable,
        entity: &Entity,
        (event, number): (&Event, SequenceNumber),
        (reason, description): (String, String),
        now: SpanTime,
    ) -> Option<MessageSpans> {
        let mut open = spans.close((event.entity, event.store), number)?;
        self.exporter.close(1);
        self.end_lock(entity, &mut open, event, now);
        let verb = match (entity.kind(), event.store) {
            (EntityKind::Topic, SubQueue::Active) => "publish",
            _ => "queued",
        };
        let mut span = self.span(entity, &open, open.span, (event, verb), now);
        let is_dead = matches!(
            event.kind,
            EventKind::DeadLettered { .. } | EventKind::TransferFailed { .. }
        );
        span.error = is_dead.then(|| match description.is_empty() {
            true => reason,
            false => format!("{reason}: {description}"),
        });
        self.exporter.add(span);
        Some(open)
    }

    /// Returns a span that ends now; the name of the event that ends it is its outcome.
    fn span(
        &self,
        entity: &Entity,
        open: &MessageSpans,
        begun: SpanStart,
        (event, verb): (&Event, &str),
        now: SpanTime,
    ) -> Span {
        let text = |text: &str| Attribute::Text(text.to_owned());
        let location = format!("{}{}", entity.path(), event.store.suffix());
        let number = event.number().map_or(0, |number| number.0);
        Span {
            trace: open.trace,
            id: begun.id,
            parent: open.parent,
            name: format!("{verb} {location}"),
            begun: begun.at.nanoseconds,
            ended: now.nanoseconds,
            error: None,
            attributes: vec![
                ("messaging.system", text("servicebus")),
                ("messaging.destination.name", Attribute::Text(location)),
                ("messaging.message.id", text(&open.message_id)),
                ("servicebus.namespace", text(&self.namespace)),
                (
                    "servicebus.sequence_number",
                    Attribute::Number(number as i64),
                ),
                (
                    "servicebus.outcome",
                    text(Counter::from(&event.kind).name()),
                ),
                ("servicebus.clock_offset_ms", Attribute::Number(now.ahead)),
                (
                    "servicebus.clock_advanced_ms",
                    Attribute::Number(now.ahead.saturating_sub(begun.at.ahead)),
                ),
            ],
        }
    }

    fn forget_entity(&self, spans: &mut SpanTable, entity: EntityId) {
        for store in SubQueue::ALL {
            let forgotten = spans.locations.remove(&(entity, store));
            self.exporter.close(forgotten.map_or(0, |open| open.len()));
        }
    }

    fn clear(&self) {
        let locations = std::mem::take(&mut take(Rank::Inner, || self.spans.lock()).locations);
        let count = locations.values().map(HashMap::len).sum();
        self.exporter.close(count);
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.clear();
    }
}

impl SpanTable {
    fn begin(&mut self, at: SpanTime) -> SpanStart {
        // Zero means none.
        let id = self.ids.next_u64().max(1);
        SpanStart { id, at }
    }

    fn open(&mut self, location: Location, number: SequenceNumber) -> Option<&mut MessageSpans> {
        self.locations.get_mut(&location)?.get_mut(&number)
    }

    fn close(&mut self, location: Location, number: SequenceNumber) -> Option<MessageSpans> {
        self.locations.get_mut(&location)?.remove(&number)
    }
}
