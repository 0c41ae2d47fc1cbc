//! What happened to the messages of an entity, oldest first.
//!
//! What is asked for is copied out of the record under its lock, and rendered in pieces while nothing is locked: a client
//! that reads a long answer slowly keeps no other from sending. A few are rendered at a time, because each is a copy.

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
use servicebus_broker::{EntityId, Event, SequenceNumber, SubQueue};
use servicebus_control_api::{Timeline, UnsettledSends};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use super::Control;
use super::counts::find;
use super::error::ApiError;
use super::request::{Asked, Chosen};
use crate::namespace::{Namespace, SharedEntity};
use render::Rendering;

/// How many are rendered at the same time; others wait.
pub(crate) const AT_ONCE: usize = 4;

#[derive(Debug, Deserialize)]
pub(crate) struct Which {
    entity: Option<String>,
    message_id: Option<String>,
    sequence_number: Option<u64>,
    /// Whether the messages themselves are wanted.
    #[serde(default)]
    messages: bool,
}

pub(crate) async fn show(
    State(control): State<Control>,
    Chosen(namespace): Chosen,
    Asked(which): Asked<Which>,
) -> Result<Response, ApiError> {
    let entity = which.entity.as_deref();
    let entity = entity.map(|entity| find(&namespace, entity)).transpose()?;
    let Ok(permit) = Arc::clone(&control.timelines).acquire_owned().await else {
        // They are not taken away while a client can ask for them.
        return Ok(Response::default());
    };
    let rendering = copied(&namespace, which, entity);
    let body = streamed(rendering, permit, control.shared.options.patience);
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

/// Which events are asked for; everything that is not said is any.
struct Wanted {
    entity: Option<EntityId>,
    message_id: Option<String>,
    number: Option<SequenceNumber>,
}

impl Wanted {
    /// Whether an event is of the entity. What happens to the namespace itself happens to every entity.
    fn is_here(&self, event: &Event) -> bool {
        let here = |entity| entity == event.entity || event.entity == EntityId::NAMESPACE;
        self.entity.is_none_or(here)
    }

    /// Whether an event may be among them, as far as can be told without the id of its message.
    fn takes(&self, event: &Event) -> bool {
        self.is_here(event)
            && self
                .number
                .is_none_or(|number| Some(number) == event.number())
    }
}

/// What is to be rendered, as it is in the record now.
fn copied(
    namespace: &Arc<Namespace>,
    which: Which,
    entity: Option<(Arc<SharedEntity>, SubQueue)>,
) -> Rendering {
    let mut head = Timeline {
        sends_unsettled: entity.as_ref().map(|(entity, _)| UnsettledSends {
            now: entity.sends.now().into(),
            most: entity.sends.most().into(),
        }),
        ..Timeline::default()
    };
    let entity = entity.map(|(entity, kind)| (entity.id, kind));
    let wanted = Wanted {
        entity: entity.map(|(entity, _)| entity),
        message_id: which.message_id,
        number: which.sequence_number.map(SequenceNumber),
    };
    let known: HashSet<EntityId> = match entity {
        Some(_) => HashSet::new(),
        None => namespace.known_entities().into_iter().collect(),
    };
    let counted = |id, store| match entity {
        Some(entity) => entity == (id, store),
        None => known.contains(&id),
    };
    let events = {
        let timeline = namespace.timeline();
        let counters = timeline.totals(counted);
        head.counters = counters
            .map(|(counter, count)| (counter.name().to_owned(), count))
            .collect();
        head.dropped = timeline.dropped();
        timeline.events().copied(|event| wanted.is_here(event))
    };
    let shows_messages = which.messages && namespace.recorded_messages.are_kept();
    Rendering::new(Arc::clone(namespace), &head, events, wanted, shows_messages)
}

/// A body that is rendered as it is read. One that is not read on within `patience` breaks off, so that others are
/// rendered.
fn streamed(mut rendering: Rendering, permit: OwnedSemaphorePermit, patience: Duration) -> Body {
    let first = rendering.piece();
    if rendering.is_done() {
        // With its length, as simple clients like it.
        return first.map_or_else(Body::empty, Body::from);
    }
    let (sender, receiver) = mpsc::channel::<Option<Bytes>>(1);
    tokio::spawn(async move {
        let _permit = permit;
        let mut piece = first;
        loop {
            let is_last = piece.is_none();
            let sent = timeout(patience, sender.send(piece)).await;
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
