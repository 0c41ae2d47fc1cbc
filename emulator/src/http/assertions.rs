//! Evaluates assertions for clients, so that their meaning, waiting and texts exist once for every language.
//!
//! No lock is held during waits or while texts are rendered. An assertion ends with its request, its client or its
//! namespace.

mod seen;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use bytes::Bytes;
use serde_json::{Map, Value};
use servicebus_assertions::{
    Assertion, AssertionFailed, BoxFuture, Catalog, EntityKind, EntitySettings, Message,
    TEST_CLIENT, Timeline, not_idle,
};
use servicebus_broker::{self as broker, Entity, SequenceNumber, SubQueue};
use servicebus_control_api::{AssertionResult, Counts, Event, Receiver, Session};
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::error::{ApiError, Body, SelectedNamespace};
use super::{Control, counts, entities, sessions, timeline};
use crate::namespace::{Namespace, SharedEntity};
use crate::shared::Shared;

/// Maximum number of concurrent assertions; more are refused.
pub(crate) const AT_ONCE: usize = 256;
/// Messages copied under one lock.
const LOOK: usize = 64;

/// 200 with the result; 400 for an invalid assertion.
pub(crate) async fn check(
    State(control): State<Control>,
    SelectedNamespace(namespace): SelectedNamespace,
    Body(request): Body<Map<String, Value>>,
) -> Result<Json<AssertionResult>, ApiError> {
    let Ok(_permit) = Arc::clone(&control.assertions).try_acquire_owned() else {
        let message = format!("{AT_ONCE} assertions wait already, as many as may at once");
        return Err(ApiError::new(StatusCode::CONFLICT, "too-many", message));
    };
    let looking = NamespaceView {
        namespace,
        timelines: Arc::clone(&control.timelines),
        started: Instant::now(),
    };
    let assertion = Assertion::of_request(&request, &looking.catalog()).map_err(|error| {
        ApiError::new(
            StatusCode::BAD_REQUEST,
            "invalid-argument",
            error.to_string(),
        )
    })?;
    let checked = tokio::select! {
        biased;
        () = ended(&control.shared, &looking.namespace) => None,
        checked = assertion.check(&looking) => Some(checked),
    };
    match checked.filter(|_| is_served(&control.shared, &looking.namespace)) {
        Some(checked) => Ok(Json(AssertionResult {
            holds: checked.is_ok(),
            failure: checked.err().map(|failure| failure.to_string()),
        })),
        None => {
            let name = looking.namespace.name();
            let message = format!("the namespace {name:?} was removed");
            Err(ApiError::new(StatusCode::NOT_FOUND, "not-found", message))
        }
    }
}

fn is_served(shared: &Shared, namespace: &Arc<Namespace>) -> bool {
    let served = shared.namespaces.named(namespace.name());
    served.is_some_and(|served| Arc::ptr_eq(&served, namespace))
}

/// Resolves when the namespace is removed.
async fn ended(shared: &Shared, namespace: &Arc<Namespace>) {
    let is_gone = || !is_served(shared, namespace);
    namespace.wait_in_turns(is_gone).await;
}

/// The view of a namespace for an assertion.
struct NamespaceView {
    namespace: Arc<Namespace>,
    /// Limits the concurrent copies of the record.
    timelines: Arc<Semaphore>,
    started: Instant,
}

impl NamespaceView {
    /// Returns the queues, then the topics, then the subscriptions, each by name.
    fn catalog(&self) -> Catalog {
        let all = self.namespace.entities();
        let kinds = [
            (EntityKind::Queue, broker::EntityKind::Queue),
            (EntityKind::Topic, broker::EntityKind::Topic),
            (EntityKind::Subscription, broker::EntityKind::Subscription),
        ];
        let declared = kinds.iter().flat_map(|&(shown, kind)| {
            let own = all.iter().filter(move |entity| entity.kind == kind);
            own.map(move |entity| {
                let properties = entities::properties(&self.namespace, entity);
                EntitySettings::of(shown, entity.path.to_string(), &properties)
            })
        });
        declared.collect()
    }

    fn find(
        &self,
        operation: &str,
        path: &str,
    ) -> Result<(Arc<SharedEntity>, SubQueue), AssertionFailed> {
        counts::find(&self.namespace, path).map_err(|error| unanswered(operation, path, error))
    }

    async fn peeked(&self, path: &str) -> Result<Vec<Message>, AssertionFailed> {
        let (entity, kind) = self.find("peek", path)?;
        let mut messages: Vec<Message> = Vec::new();
        let mut from = SequenceNumber(0);
        loop {
            let (mut page, missing) = self.namespace.read_messages(
                &entity,
                |entity| {
                    let snapshot = entity.snapshot(kind, from).take(LOOK);
                    let copied =
                        snapshot.map(|(properties, message)| (properties, message.clone()));
                    copied.collect()
                },
                |(_, message)| message,
            );
            missing.fill(page.iter_mut().map(|(_, message)| message));
            let Some((last, _)) = page.last() else {
                return Ok(messages);
            };
            from = SequenceNumber(last.sequence_number.0 + 1);
            let ahead = self.namespace.clock.ahead();
            messages.extend(page.iter().map(|message| seen::message(message, ahead)));
            yield_now().await;
        }
    }

    async fn recorded(&self, path: &str, messages: bool) -> Result<Timeline, AssertionFailed> {
        let found = self.find("get the timeline of", path)?;
        let limit = |entity: &Entity| entity.description().max_delivery_count;
        let limit = self.namespace.read(&found.0, limit);
        let is_topic = found.0.kind == broker::EntityKind::Topic;
        // The semaphore is never closed while a client can ask.
        let _permit = self.timelines.acquire().await;
        let (timeline, messages) = timeline::of_entity(&self.namespace, found, messages).await;
        let ahead = self.namespace.clock.ahead();
        let seen = |recorded: Vec<_>| {
            let seen = recorded.iter().map(|message| seen::message(message, ahead));
            seen.collect()
        };
        let timeline = Timeline::new(path, timeline, Some(limit).filter(|_| !is_topic));
        Ok(timeline.with_messages(messages.map(seen)))
    }

    fn listed_sessions(&self, path: &str) -> Result<Vec<Session>, AssertionFailed> {
        let operation = "list the sessions of";
        let (entity, kind) = self.find(operation, path)?;
        sessions::check(&self.namespace, &entity, kind, path)
            .map_err(|error| unanswered(operation, path, error))?;
        Ok(sessions::of_entity(&self.namespace, &entity))
    }
}

impl servicebus_assertions::Namespace for NamespaceView {
    fn catalog(&self) -> BoxFuture<'_, Catalog> {
        Box::pin(async { Ok(self.catalog()) })
    }

    fn messages<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Vec<Message>> {
        Box::pin(self.peeked(path))
    }

    fn counts<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Counts> {
        Box::pin(async move {
            let (entity, kind) = self.find("count the messages of", path)?;
            Ok(counts::of_entity(&self.namespace, &entity, kind))
        })
    }

    fn timeline<'a>(&'a self, path: &'a str, with_messages: bool) -> BoxFuture<'a, Timeline> {
        Box::pin(self.recorded(path, with_messages))
    }

    fn newest_events(&self) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(async {
            // The semaphore is never closed while a client can ask.
            let _permit = self.timelines.acquire().await;
            Ok(timeline::newest_events(&self.namespace, timeline::MAX_PAGE).await)
        })
    }

    fn receivers<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Vec<Receiver>> {
        Box::pin(async move {
            let (entity, kind) = self.find("list the receivers of", path)?;
            let mut receivers = counts::receivers_of(&self.namespace, &entity, kind);
            receivers.retain(|receiver| receiver.client != TEST_CLIENT);
            Ok(receivers)
        })
    }

    fn sessions<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Vec<Session>> {
        Box::pin(async move { self.listed_sessions(path) })
    }

    fn session_state<'a>(
        &'a self,
        path: &'a str,
        session: &'a str,
    ) -> BoxFuture<'a, Option<Bytes>> {
        Box::pin(async move {
            let mut sessions = self.listed_sessions(path)?.into_iter();
            let own = sessions.find(|found| found.session_id == session);
            Ok(own.and_then(|found| found.state))
        })
    }

    fn wait_idle(&self, within: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let settled = self.namespace.settled(within, None).await;
            settled.map_err(|busy| {
                let busy = busy.into_iter();
                let busy = busy.map(|busy| format!("{}: {}", busy.place, busy.reason));
                AssertionFailed::unchecked(not_idle(within, busy))
            })
        })
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Returns why a look found nothing, in the form for clients of the control API.
fn unanswered(operation: &str, path: &str, error: ApiError) -> AssertionFailed {
    AssertionFailed::unchecked(format!("cannot {operation} {path}: {}", error.to_text()))
}
