//! The changes of a namespace as a stream of server-sent events.
//!
//! An event describes the current state, not what happened: it is rendered when the reader's socket accepts more, and at
//! least a fifth of a second after the previous one. There is no queue, so that a slow reader gets fewer events, and clients
//! of the namespace never wait for readers.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use servicebus_broker::{EntityId, SubQueue};
use servicebus_control_api::{Change, ChangedEntity};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

use super::error::{ApiError, SelectedNamespace};
use super::process::StopSignal;
use super::{Control, clock, counts};
use crate::namespace::Namespace;

/// Maximum number of concurrent streams.
pub(crate) const STREAMS: usize = 16;
/// Interval of checks for changes.
const PAUSE: Duration = Duration::from_millis(200);
/// Interval of heartbeats without changes, by which a reader knows that the emulator is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Maximum number of entities in one event.
const ENTITIES: usize = 200;
/// Maximum bytes of an event; a larger one names no entities.
const FRAME: usize = 60 * 1024;
/// Events of the record that are visited while it is locked.
const LOOKED_AT: usize = 4096;

/// One reader of changes.
struct ChangeStream {
    namespace: Arc<Namespace>,
    /// The permit of this stream.
    _permit: OwnedSemaphorePermit,
    /// The last event that the reader knows, if any.
    since: Option<EventId>,
    sent: Option<LastState>,
}

/// The values that reveal a change.
type LastState = (EventId, usize, [bool; 2], i64, Option<i64>);

/// The id of an event. Positions of one revision of the namespace are comparable; another revision has changed more than the
/// entities of its events.
#[derive(Debug, Clone, Copy, PartialEq)]
struct EventId {
    position: u64,
    revision: u64,
}

/// Streams changes until the reader closes the stream.
pub(crate) async fn follow(
    State(control): State<Control>,
    SelectedNamespace(namespace): SelectedNamespace,
    Extension(stopping): Extension<StopSignal>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let permit = Arc::clone(&control.followers).try_acquire_owned();
    let permit = permit.map_err(|_| {
        let text = format!("{STREAMS} clients follow changes already, as many as may");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too-many", text)
    })?;
    let since = headers.get("last-event-id");
    let follower = ChangeStream {
        namespace,
        _permit: permit,
        since: since.and_then(|id| EventId::parse(id.to_str().ok()?)),
        sent: None,
    };
    let frames = stream::unfold(follower, |mut follower| async {
        let frame = follower.next().await?;
        Some((Ok::<_, Infallible>(frame), follower))
    });
    let body = Body::from_stream(frames.take_until(stopping.stopped()).boxed());
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, body).into_response())
}

impl ChangeStream {
    /// Returns the next event, or a heartbeat; `None` when the namespace is removed.
    async fn next(&mut self) -> Option<Bytes> {
        let heartbeat = Instant::now() + HEARTBEAT;
        if self.sent.is_some() {
            sleep(PAUSE).await;
        }
        while self.sent == Some(self.state()) {
            if self.namespace.router.is_namespace_removed() {
                return None;
            }
            if Instant::now() >= heartbeat {
                return Some(Bytes::from_static(b":\n\n"));
            }
            sleep(PAUSE).await;
        }
        self.sent = Some(self.state());
        let (id, mut change) = self.change();
        let mut json = serde_json::to_string(&change).ok()?;
        if json.len() > FRAME {
            change.counts.clear();
            change.many = true;
            json = serde_json::to_string(&change).ok()?;
        }
        Some(format!("id: {id}\ndata: {json}\n\n").into())
    }

    fn state(&self) -> LastState {
        let namespace = &self.namespace;
        let id = EventId::current(namespace);
        let reading = namespace.clock.read();
        let due = namespace.next_deadline().map(|at| at.as_millis());
        let frozen_at = reading.now.as_millis() * i64::from(reading.frozen);
        let ahead = reading.ahead * i64::from(!reading.frozen);
        let entities = namespace.count_entities();
        let modes = [reading.frozen, namespace.auto.is_on()];
        (id, entities, modes, frozen_at + ahead, due)
    }

    fn change(&mut self) -> (EventId, Change) {
        let namespace = &self.namespace;
        let (changed, id) = self.changed();
        let entities = changed.iter().flatten().filter_map(|&id| {
            let path = namespace.entity_name(id)?;
            namespace.entity(&path)
        });
        let counts = entities.map(|entity| ChangedEntity {
            path: entity.path.to_string(),
            counts: counts::of_entity(namespace, &entity, SubQueue::Active),
        });
        let change = Change {
            position: id.position,
            clock: clock::shown(namespace),
            due: clock::upcoming(namespace, 1).pop(),
            entities: namespace.count_entities() as u64,
            counts: counts.collect(),
            many: changed.is_none(),
        };
        self.since = Some(id);
        (id, change)
    }

    /// Returns the entities with changes since the last event, `None` if there are too many, and the id of this event.
    fn changed(&self) -> (Option<BTreeSet<EntityId>>, EventId) {
        let last = EventId::current(&self.namespace);
        let Some(since) = self.since.filter(|since| since.is_before(last)) else {
            return (None, last);
        };
        let (mut changed, mut from) = (BTreeSet::new(), since.position + 1);
        while from <= last.position {
            let timeline = self.namespace.timeline();
            if timeline.dropped() >= from {
                return (None, last);
            }
            from = timeline.entities(from, LOOKED_AT, &mut changed);
            if changed.len() > ENTITIES {
                return (None, last);
            }
        }
        (Some(changed), last)
    }
}

impl EventId {
    fn current(namespace: &Namespace) -> Self {
        // The revision first: a change after it is in the next event.
        let revision = namespace.revision();
        let position = namespace.timeline().last_position();
        Self { position, revision }
    }

    /// Reads the id of an event of any emulator.
    fn parse(text: &str) -> Option<Self> {
        let (position, revision) = text.split_once('-')?;
        Some(Self {
            position: position.parse().ok()?,
            revision: u64::from_str_radix(revision, 16).ok()?,
        })
    }

    /// Returns whether the events in between tell all that has changed.
    fn is_before(self, later: Self) -> bool {
        self.revision == later.revision && self.position <= later.position
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}-{:x}", self.position, self.revision)
    }
}
