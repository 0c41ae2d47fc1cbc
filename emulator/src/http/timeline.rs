//! The events of an entity's messages, oldest first.
//!
//! The requested events are copied out of the record under its lock, and rendered in pieces afterwards: a client that reads
//! a long response slowly does not block senders. Only a few are rendered at a time, because each is a copy.

mod page;
mod render;

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use servicebus_broker::{EntityId, Event, Events, SequenceNumber, SubQueue};
use servicebus_control_api::{self as api, Timeline, UnsettledSends};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::Control;
use super::counts::find;
use super::error::{ApiError, QueryParams, SelectedNamespace, check_limit, is_newest_first};
use crate::namespace::{Namespace, SharedEntity};
use page::{Page, PageEvents};
pub(crate) use render::Recorded;
use render::{Rendering, place};

/// Events that are copied while the record is locked: a tenth of a millisecond. Then other tasks get their turn.
const COPIED: usize = 1024;
/// Maximum number of events in one page.
pub(crate) const MAX_PAGE: usize = 1000;
/// How many timelines are rendered at the same time; others wait.
pub(crate) const AT_ONCE: usize = 4;
/// Maximum number of events in the report of a test.
const REPORTED: usize = 200;
/// Maximum bytes of a message's timeline in the report of an exploration.
const MAX_TOLD: usize = 256 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimelineQuery {
    entity: Option<String>,
    message_id: Option<String>,
    sequence_number: Option<u64>,
    /// Whether the response includes the messages.
    #[serde(default)]
    messages: bool,
    /// Whether events are rendered as lines, too.
    #[serde(default)]
    lines: bool,
    /// The position after which events are wanted; positions count events from 1.
    after: Option<u64>,
    /// The position before which events are wanted.
    before: Option<u64>,
    /// Maximum number of events.
    limit: Option<usize>,
    /// `oldest` or `newest` of them.
    order: Option<String>,
}

impl TimelineQuery {
    /// Returns the requested part of the record, if it is a part.
    fn page(&self) -> Result<Option<Page>, ApiError> {
        let Self {
            after,
            before,
            limit,
            order,
            ..
        } = self;
        if after.is_none() && before.is_none() && limit.is_none() && order.is_none() {
            return Ok(None);
        }
        Ok(Some(Page {
            after: after.unwrap_or(0),
            before: before.unwrap_or(u64::MAX),
            is_newest: is_newest_first(order.as_deref())?,
            left: check_limit(*limit, MAX_PAGE)?,
            next: None,
            others: 0,
        }))
    }
}

pub(crate) async fn show(
    State(control): State<Control>,
    SelectedNamespace(namespace): SelectedNamespace,
    QueryParams(query): QueryParams<TimelineQuery>,
) -> Result<Response, ApiError> {
    let entity = query.entity.as_deref();
    let entity = entity.map(|entity| find(&namespace, entity)).transpose()?;
    let (page, lines) = (query.page()?, query.lines);
    // A page without messages is small: it is rendered at once, and does not wait for readers.
    let is_small = page.is_some() && !query.messages;
    let permits = match is_small {
        true => &control.timelines,
        false => &control.streamed_timelines,
    };
    let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
        // The semaphore is never closed while a client can ask.
        return Ok(Response::default());
    };
    let rendering = copied(&namespace, query, entity, page.as_ref()).await;
    let rendering = rendering.in_page(page).await.with_lines(lines);
    let body = match is_small {
        true => Body::from(rendered(rendering).await),
        false => streamed(rendering, permit, control.shared.options.step_timeout),
    };
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

/// The requested events; a field that is not set matches any.
struct EventFilter {
    entity: Option<EntityId>,
    message_id: Option<String>,
    number: Option<SequenceNumber>,
}

impl EventFilter {
    /// Returns whether an event belongs to the entity. Events of the namespace itself belong to every entity.
    fn is_here(&self, event: &Event) -> bool {
        let here = |entity| entity == event.entity || event.entity == EntityId::NAMESPACE;
        self.entity.is_none_or(here)
    }

    /// Returns whether an event may be requested, as far as that is known without the id of its message.
    fn takes(&self, event: &Event) -> bool {
        self.is_here(event)
            && self
                .number
                .is_none_or(|number| Some(number) == event.number())
    }
}

/// Returns a copy of the current record to render; for a page only its events, and earlier ones with the ids of their
/// messages.
async fn copied(
    namespace: &Arc<Namespace>,
    query: TimelineQuery,
    entity: Option<(Arc<SharedEntity>, SubQueue)>,
    page: Option<&Page>,
) -> Rendering {
    let mut head = Timeline {
        sends_unsettled: entity.as_ref().map(|(entity, _)| UnsettledSends {
            now: entity.sends.now().into(),
            most: entity.sends.most().into(),
        }),
        ..Timeline::default()
    };
    let entity = entity.map(|(entity, kind)| (entity.id, kind));
    let wanted = EventFilter {
        entity: entity.map(|(entity, _)| entity),
        message_id: query.message_id,
        number: query.sequence_number.map(SequenceNumber),
    };
    let known: HashSet<EntityId> = match entity {
        Some(_) => HashSet::new(),
        None => namespace.known_entities().into_iter().collect(),
    };
    let counted = |id, store| match entity {
        Some(entity) => entity == (id, store),
        None => known.contains(&id),
    };
    let last = {
        let timeline = namespace.timeline();
        let counters = timeline.totals(counted);
        head.counters = counters
            .map(|(counter, count)| (counter.name().to_owned(), count))
            .collect();
        head.dropped = timeline.dropped();
        // One more event shows which message the last one of a page is about.
        let before = page.map_or(u64::MAX, |page| page.before);
        timeline.last_position().min(before)
    };
    let needed = match page {
        Some(page) => PageEvents::find(namespace, &wanted, page, last).await,
        None => None,
    };
    let copy = copy_of(namespace, &wanted, needed.as_ref(), last).await;
    let shows_messages = query.messages && namespace.recorded_messages.is_enabled();
    Rendering::new(Arc::clone(namespace), head, copy, wanted, shows_messages)
}

/// Copies events and their positions up to `last` in pieces: all, or those that a page needs.
async fn copy_of(
    namespace: &Namespace,
    wanted: &EventFilter,
    needed: Option<&PageEvents>,
    last: u64,
) -> (Events, Vec<u64>) {
    let last = needed.map_or(last, |needed| needed.end);
    let mut from = needed.map_or(1, |needed| needed.start);
    let (mut events, mut positions) = (Events::new(), Vec::new());
    // The collected copy grows while nothing is locked.
    let mut copy = Events::new();
    while from <= last {
        positions.reserve(COPIED);
        let earlier = needed.filter(|needed| from < needed.begin);
        let end = earlier.map_or(last + 1, |needed| needed.begin);
        let takes = |event: &Event| {
            let is_told_of = |needed: &PageEvents| needed.places.contains(&place(event));
            wanted.is_here(event) && earlier.is_none_or(is_told_of)
        };
        let range = from..end.min(from + COPIED as u64);
        from = namespace
            .timeline()
            .copy(range, takes, &mut copy, &mut positions);
        events.absorb(&mut copy);
        yield_now().await;
    }
    (events, positions)
}

/// Answers with the events at an address, with their messages if requested and recorded.
pub(crate) async fn of_entity(
    namespace: &Arc<Namespace>,
    found: (Arc<SharedEntity>, SubQueue),
    messages: bool,
) -> (Timeline, Option<Vec<Recorded>>) {
    let query = TimelineQuery {
        messages,
        ..TimelineQuery::default()
    };
    copied(namespace, query, Some(found), None)
        .await
        .whole()
        .await
}

/// Returns up to `most` of the newest events of a namespace with a line for each, the oldest first.
pub(crate) async fn newest_events(namespace: &Arc<Namespace>, most: usize) -> Vec<api::Event> {
    let page = Page {
        after: 0,
        before: u64::MAX,
        left: most,
        is_newest: true,
        next: None,
        others: 0,
    };
    let rendering = copied(namespace, TimelineQuery::default(), None, Some(&page)).await;
    let rendering = rendering.in_page(Some(page)).await.with_lines(true);
    rendering.whole().await.0.events
}

/// Returns the newest events of a namespace as text, one per line.
pub(crate) async fn newest(namespace: &Arc<Namespace>) -> String {
    let events = newest_events(namespace, REPORTED).await;
    let first = events.first().and_then(|event| event.position);
    let older = first.filter(|first| *first > 1);
    let older = older.map(|first| format!("  … {} older events", first - 1));
    let lines = events.into_iter().filter_map(|event| event.line);
    let lines = Vec::from_iter(older.into_iter().chain(lines));
    match lines.is_empty() {
        true => "  nothing happened".to_owned(),
        false => lines.join("\n"),
    }
}

/// Returns the events of one message; `None` if the entity does not exist, or the timeline is too long.
pub(crate) async fn of_message(
    namespace: &Arc<Namespace>,
    entity: &str,
    message_id: &str,
) -> Option<Timeline> {
    let found = find(namespace, entity).ok()?;
    let query = TimelineQuery {
        message_id: Some(message_id.to_owned()),
        ..TimelineQuery::default()
    };
    let mut rendering = copied(namespace, query, Some(found), None).await;
    let mut whole = Vec::new();
    while let Some(piece) = rendering.piece() {
        whole.extend_from_slice(&piece);
        yield_now().await;
        if whole.len() > MAX_TOLD {
            return None;
        }
    }
    serde_json::from_slice(&whole).ok()
}

async fn rendered(mut rendering: Rendering) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(piece) = rendering.piece() {
        whole.extend_from_slice(&piece);
        yield_now().await;
    }
    whole
}

/// Returns a body that is rendered while it is read. If the reader pauses longer than `step_timeout`, the body is aborted, so
/// that others are rendered.
fn streamed(
    mut rendering: Rendering,
    permit: OwnedSemaphorePermit,
    step_timeout: Duration,
) -> Body {
    let first = rendering.piece();
    if rendering.is_done() {
        // With its length, which simple clients prefer.
        return first.map_or_else(Body::empty, Body::from);
    }
    let (sender, receiver) = mpsc::channel::<Option<Bytes>>(1);
    tokio::spawn(async move {
        let _permit = permit;
        let mut piece = first;
        loop {
            let is_last = piece.is_none();
            let sent = timeout(step_timeout, sender.send(piece)).await;
            if is_last || !matches!(sent, Ok(Ok(()))) {
                return;
            }
            piece = rendering.piece();
        }
    });
    let pieces = stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Some(piece)) => Some((Ok(piece), Some(receiver))),
            Some(None) => None,
            None => Some((
                Err(io::Error::other("the answer was read too slowly")),
                None,
            )),
        }
    });
    Body::from_stream(pieces)
}

#[cfg(test)]
mod tests;
