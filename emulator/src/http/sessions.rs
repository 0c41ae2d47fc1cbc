//! The sessions of an entity with their holders and states; ends a session's lock for a test.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use servicebus_broker::{SessionName, SessionView, SubQueue};
use servicebus_control_api::{LoseSessionLock, Session, Sessions};

use super::counts::{EntityQuery, find};
use super::error::{ApiError, Body, QueryParams, SelectedNamespace};
use crate::blocking::run_blocking;
use crate::clock;
use crate::namespace::{Namespace, SharedEntity};

/// Answers with all known sessions in the order of their ids; `state` is base64, or null if there is none.
pub(crate) async fn list(
    SelectedNamespace(namespace): SelectedNamespace,
    QueryParams(EntityQuery { entity }): QueryParams<EntityQuery>,
) -> Result<Response, ApiError> {
    let (found, kind) = find(&namespace, &entity)?;
    check(&namespace, &found, kind, &entity)?;
    Ok(run_blocking(|| {
        let sessions = of_entity(&namespace, &found);
        Json(Sessions { sessions }).into_response()
    }))
}

/// Returns the sessions of an entity that has them.
pub(crate) fn of_entity(namespace: &Namespace, entity: &SharedEntity) -> Vec<Session> {
    namespace.read(entity, |entity| {
        let sessions = entity.snapshot_sessions();
        sessions.map(|session| shown(namespace, &session)).collect()
    })
}

/// Ends the lock of a session as if its time were over; 404 if no receiver holds it.
pub(crate) async fn lose(
    SelectedNamespace(namespace): SelectedNamespace,
    Body(LoseSessionLock { entity, session }): Body<LoseSessionLock>,
) -> Result<StatusCode, ApiError> {
    let (found, kind) = find(&namespace, &entity)?;
    check(&namespace, &found, kind, &entity)?;
    let name = SessionName::new(&session).ok_or_else(|| {
        let allowed = format!("up to {} characters", SessionName::MAX_LENGTH);
        ApiError::not_allowed("session", session.as_str(), allowed)
    })?;
    let lost =
        namespace.operate_as_broker(&found, |entity, cx| entity.lose_session_lock(cx, &name));
    match lost {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_held(&namespace, &found, &session)),
    }
}

fn shown(namespace: &Namespace, session: &SessionView<'_>) -> Session {
    let mut shown = Session::new(session.name.as_str());
    shown.active = session.active as u64;
    shown.locked = session.locked as u64;
    shown.deferred = session.deferred as u64;
    shown.holder = session.holder.map(|holder| namespace.receiver_name(holder));
    shown.locked_until = session.locked_until.map(clock::system_time);
    shown.state = session.state.cloned();
    shown
}

/// Refuses an entity without sessions.
pub(crate) fn check(
    namespace: &Namespace,
    entity: &SharedEntity,
    kind: SubQueue,
    address: &str,
) -> Result<(), ApiError> {
    let has_sessions = namespace.read(entity, |entity| entity.description().requires_session);
    match has_sessions && kind == SubQueue::Active {
        true => Ok(()),
        false => {
            let allowed = "a queue or subscription with RequiresSession";
            Err(ApiError::not_allowed("entity", address, allowed))
        }
    }
}

fn not_held(namespace: &Namespace, entity: &SharedEntity, session: &str) -> ApiError {
    let held: Vec<String> = namespace.read(entity, |entity| {
        let sessions = entity.snapshot_sessions();
        let held = sessions.filter(|session| session.holder.is_some());
        held.map(|session| session.name.as_str().to_owned())
            .collect()
    });
    let held = match held.is_empty() {
        true => "none is held".to_owned(),
        false => format!("held are: {}", held.join(", ")),
    };
    let message = format!(
        "no receiver holds the session {session:?} of '{}'; {held}",
        entity.path
    );
    ApiError::new(StatusCode::NOT_FOUND, "not-found", message)
}
