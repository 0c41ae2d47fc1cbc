//! What changes in a namespace, as a stream of server-sent events.
//!
//! An event says how things are, not what happened: it is made when the socket of its reader takes more, and not before a
//! fifth of a second after the last one. There is no queue, so that a reader that is slow gets fewer events, and clients of
//! the namespace wait for none.

use std::collections::BTreeSet;
use std::convert::Infallible;
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

use super::Control;
use super::clock;
use super::counts;
use super::error::{ApiError, Chosen};
use super::process::Stopping;
use crate::namespace::Namespace;

/// Streams at a time.
pub(crate) const STREAMS: usize = 16;
/// How often is looked whether something has changed.
const PAUSE: Duration = Duration::from_millis(200);
/// After how long without a change something is sent, so that a reader knows that the emulator is there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Entities in one event.
const ENTITIES: usize = 200;
/// Bytes of an event, beyond which it names no entities.
const FRAME: usize = 60 * 1024;
/// Events of the record that are looked at while it is locked.
const LOOKED_AT: usize = 4096;

/// One reader of changes.
struct Follower {
    namespace: Arc<Namespace>,
    /// Its place among the streams that there may be.
    _permit: OwnedSemaphorePermit,
    /// The position of the last event that it knows of, if it knows of any.
    since: Option<u64>,
    sent: Option<Seen>,
}

/// By what a change is noticed.
type Seen = (u64, usize, bool, i64, Option<i64>);

/// Tells of changes for as long as it is read.
pub(crate) async fn follow(
    State(control): State<Control>,
    Chosen(namespace): Chosen,
    Extension(stopping): Extension<Stopping>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let permit = Arc::clone(&control.followers).try_acquire_owned();
    let permit = permit.map_err(|_| {
        let text = format!("{STREAMS} clients follow changes already, as many as may");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too-many", text)
    })?;
    let since = headers.get("last-event-id");
    let follower = Follower {
        namespace,
        _permit: permit,
        since: since.and_then(|id| id.to_str().ok()?.parse().ok()),
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

impl Follower {
    /// The next event, or a heartbeat; none when the namespace is gone.
    async fn next(&mut self) -> Option<Bytes> {
        let heartbeat = Instant::now() + HEARTBEAT;
        if self.sent.is_some() {
            sleep(PAUSE).await;
        }
        while self.sent == Some(self.state()) {
            if self.namespace.router.is_dismissed() {
                return None;
            }
            if Instant::now() >= heartbeat {
                return Some(Bytes::from_static(b":\n\n"));
            }
            sleep(PAUSE).await;
        }
        self.sent = Some(self.state());
        let mut change = self.change();
        let mut json = serde_json::to_string(&change).ok()?;
        if json.len() > FRAME {
            change.counts.clear();
            change.many = true;
            json = serde_json::to_string(&change).ok()?;
        }
        Some(format!("id: {}\ndata: {json}\n\n", change.position).into())
    }

    fn state(&self) -> Seen {
        let namespace = &self.namespace;
        let position = namespace.timeline().last_position();
        let reading = namespace.clock.read();
        let due = namespace.next_deadline().map(|at| at.as_millis());
        let frozen_at = reading.now.as_millis() * i64::from(reading.frozen);
        let ahead = reading.ahead * i64::from(!reading.frozen);
        let entities = namespace.count_entities();
        (position, entities, reading.frozen, frozen_at + ahead, due)
    }

    fn change(&mut self) -> Change {
        let namespace = &self.namespace;
        let (changed, position) = self.changed();
        let entities = changed.iter().flatten().filter_map(|&id| {
            let path = namespace.entity_name(id)?;
            namespace.entity(&path)
        });
        let counts = entities.map(|entity| ChangedEntity {
            path: entity.path.to_string(),
            counts: counts::of_entity(namespace, &entity, SubQueue::Active),
        });
        let change = Change {
            position,
            clock: clock::shown(namespace),
            due: clock::upcoming(namespace, 1).pop(),
            entities: namespace.count_entities() as u64,
            counts: counts.collect(),
            many: changed.is_none(),
        };
        self.since = Some(position);
        change
    }

    /// The entities in which something has happened since the last event, none where there are too many; and the position of
    /// this event.
    fn changed(&self) -> (Option<BTreeSet<EntityId>>, u64) {
        let last = self.namespace.timeline().last_position();
        let Some(since) = self.since.filter(|&since| since <= last) else {
            return (None, last);
        };
        let (mut changed, mut from) = (BTreeSet::new(), since + 1);
        while from <= last {
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
