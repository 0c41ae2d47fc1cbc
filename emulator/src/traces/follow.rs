//! Follows the messages of a namespace from event to event: when they arrive, are locked, settled, and leave.
//!
//! A message has a span for as long as it is in one store, `queued {place}` or `publish {topic}`, and below that one for
//! each delivery under a lock, `locked {place}`. A dead letter is in another store, with a span below that of the previous
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
type Place = (EntityId, SubQueue);

/// The state of the followed messages.
#[derive(Debug)]
pub(super) struct Followed {
    namespace: String,
    exporter: Arc<Exporter>,
    book: Mutex<Book>,
}

#[derive(Debug)]
struct Book {
    /// Ids of spans need not be the same in every run, unlike other ids with a seed.
    ids: SmallRng,
    places: HashMap<Place, HashMap<SequenceNumber, Open>>,
}

/// The spans of a message that have not ended.
#[derive(Debug)]
struct Open {
    trace: u128,
    parent: u64,
    span: Begun,
    message_id: String,
    locked: Option<(Begun, u32)>,
}

/// The beginning of a span.
#[derive(Debug, Clone, Copy)]
struct Begun {
    id: u64,
    at: Now,
}

/// Real time, and how far the namespace's clock was ahead of it.
#[derive(Debug, Clone, Copy)]
struct Now {
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
            book: Mutex::new(Book {
                ids: make_rng(),
                places: HashMap::new(),
            }),
        }
    }

    fn note(&self, entity: &Entity, events: &Events, clock: &NamespaceClock) {
        let now = Now {
            nanoseconds: clock.real_nanoseconds(),
            ahead: clock.read().ahead,
        };
        let mut book = take(Rank::Inner, || self.book.lock());
        for event in events.iter().filter(|event| event.entity == entity.id()) {
            if event.kind == EventKind::EntityDeleted {
                self.forget_entity(&mut book, entity.id());
            } else if let Some(number) = event.number() {
                self.note_event(&mut book, entity, events, (event, number), now);
            }
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what neither begins nor ends a span is of no interest"
    )]
    fn note_event(
        &self,
        book: &mut Book,
        entity: &Entity,
        events: &Events,
        (event, number): (&Event, SequenceNumber),
        now: Now,
    ) {
        let place = (event.entity, event.store);
        match event.kind {
            EventKind::Enqueued { message_id, .. } => {
                let message_id = events.read(message_id);
                self.begin(book, entity, (event.store, number), message_id, now);
            }
            EventKind::Delivered { delivery, .. } => {
                let begun = book.begin(now);
                if let Some(open) = book.open(place, number) {
                    open.locked = Some((begun, delivery));
                }
            }
            EventKind::Abandoned { .. }
            | EventKind::Released
            | EventKind::LockExpired { .. }
            | EventKind::Deferred => {
                if let Some(open) = book.open(place, number) {
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
                if let Some(dead) = self.end(book, entity, (event, number), texts, now) {
                    let store = match event.kind {
                        EventKind::TransferFailed { .. } => SubQueue::TransferDeadLetter,
                        _ => SubQueue::DeadLetter,
                    };
                    self.go_on(book, (event.entity, store), moved_to, dead, now);
                }
            }
            EventKind::ReceivedAndDeleted
            | EventKind::Completed
            | EventKind::Expired
            | EventKind::Removed
            | EventKind::Deleted
            | EventKind::Published
            | EventKind::Forwarded { .. } => {
                self.end(book, entity, (event, number), Default::default(), now);
            }
            _ => {}
        }
    }

    /// Begins to follow a message that has arrived.
    fn begin(
        &self,
        book: &mut Book,
        entity: &Entity,
        (store, number): (SubQueue, SequenceNumber),
        message_id: String,
        now: Now,
    ) {
        let found = entity.snapshot(store, number).next();
        let own =
            found.filter(|(broker_properties, _)| broker_properties.sequence_number == number);
        let Some((_, message)) = own else {
            // It is removed by the same operation.
            return;
        };
        let parent = parent::of_message(message);
        let made = || u128::from(book.ids.next_u64()) << 64 | u128::from(book.ids.next_u64());
        let trace = parent.map_or_else(made, |parent: Parent| parent.trace);
        if !self.exporter.sampler.takes(trace, parent.as_ref()) || !self.exporter.opens() {
            return;
        }
        let open = Open {
            trace,
            parent: parent.map_or(0, |parent| parent.span),
            span: book.begin(now),
            message_id,
            locked: None,
        };
        self.insert(book, (entity.id(), store), number, open);
    }

    /// Continues with a followed message in another location.
    fn go_on(&self, book: &mut Book, place: Place, number: SequenceNumber, open: Open, now: Now) {
        if self.exporter.opens() {
            let open = Open {
                parent: open.span.id,
                span: book.begin(now),
                locked: None,
                ..open
            };
            self.insert(book, place, number, open);
        }
    }

    fn insert(&self, book: &mut Book, place: Place, number: SequenceNumber, open: Open) {
        let before = book.places.entry(place).or_default().insert(number, open);
        // An entity that broke and was reset reuses its sequence numbers.
        self.exporter.close(usize::from(before.is_some()));
    }

    fn end_lock(&self, entity: &Entity, open: &mut Open, event: &Event, now: Now) {
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
        book: &mut Book,
        entity: &Entity,
        (event, number): (&Event, SequenceNumber),
        (reason, description): (String, String),
        now: Now,
    ) -> Option<Open> {
        let mut open = book.close((event.entity, event.store), number)?;
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
        open: &Open,
        begun: Begun,
        (event, verb): (&Event, &str),
        now: Now,
    ) -> Span {
        let text = |text: &str| Attribute::Text(text.to_owned());
        let place = format!("{}{}", entity.path(), event.store.suffix());
        let number = event.number().map_or(0, |number| number.0);
        Span {
            trace: open.trace,
            id: begun.id,
            parent: open.parent,
            name: format!("{verb} {place}"),
            begun: begun.at.nanoseconds,
            ended: now.nanoseconds,
            error: None,
            attributes: vec![
                ("messaging.system", text("servicebus")),
                ("messaging.destination.name", Attribute::Text(place)),
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

    fn forget_entity(&self, book: &mut Book, entity: EntityId) {
        for store in SubQueue::ALL {
            let forgotten = book.places.remove(&(entity, store));
            self.exporter.close(forgotten.map_or(0, |open| open.len()));
        }
    }

    fn clear(&self) {
        let places = std::mem::take(&mut take(Rank::Inner, || self.book.lock()).places);
        let count = places.values().map(HashMap::len).sum();
        self.exporter.close(count);
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Book {
    fn begin(&mut self, at: Now) -> Begun {
        // Zero means none.
        let id = self.ids.next_u64().max(1);
        Begun { id, at }
    }

    fn open(&mut self, place: Place, number: SequenceNumber) -> Option<&mut Open> {
        self.places.get_mut(&place)?.get_mut(&number)
    }

    fn close(&mut self, place: Place, number: SequenceNumber) -> Option<Open> {
        self.places.get_mut(&place)?.remove(&number)
    }
}
