//! The sessions of an entity: who holds which, with what state; and how a test takes one away.

use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use servicebus_broker::{SessionName, SessionView, SubQueue};

use super::body::Body;
use super::counts::find;
use super::error::{ApiError, Problem};
use super::namespaces::Chosen;
use super::timeline::rfc3339;
use crate::namespace::{Namespace, SharedEntity};

#[derive(Debug, Deserialize)]
pub(super) struct Which {
    entity: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lose {
    entity: String,
    session: String,
}

/// All sessions that hold something, in the order of their ids; `state` is base64, or null when there is none.
pub(super) async fn list(
    Chosen(namespace): Chosen,
    query: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let Query(Which { entity }) = query?;
    let (found, kind) = find(&namespace, &entity)?;
    check(&namespace, &found, kind, &entity)?;
    let sessions: Vec<Value> = namespace.read(&found, |entity| {
        let sessions = entity.snapshot_sessions();
        sessions
            .map(|session| shown(&namespace, &session))
            .collect()
    });
    Ok(Json(json!({ "sessions": sessions })))
}

/// Ends the lock of a session as if its time had run out; 404 when nobody holds it.
pub(super) async fn lose(
    Chosen(namespace): Chosen,
    Body(Lose { entity, session }): Body<Lose>,
) -> Result<StatusCode, ApiError> {
    let (found, kind) = find(&namespace, &entity)?;
    check(&namespace, &found, kind, &entity)?;
    let name = SessionName::new(&session).ok_or_else(|| {
        let allowed = format!("up to {} characters", SessionName::MAX_LENGTH);
        ApiError::invalid(Problem {
            path: "session".into(),
            value: session.clone().into(),
            allowed,
        })
    })?;
    let lost =
        namespace.operate_as_broker(&found, |entity, cx| entity.lose_session_lock(cx, &name));
    match lost {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(not_held(&namespace, &found, &session)),
    }
}

fn shown(namespace: &Namespace, session: &SessionView<'_>) -> Value {
    json!({
        "id": session.name.as_str(),
        "active": session.active,
        "locked": session.locked,
        "deferred": session.deferred,
        "holder": session.holder.map(|holder| namespace.receiver_name(holder)),
        "locked_until": session.locked_until.map(rfc3339),
        "state": session.state.map(|state| BASE64_STANDARD.encode(state)),
    })
}

fn check(
    namespace: &Namespace,
    entity: &SharedEntity,
    kind: SubQueue,
    address: &str,
) -> Result<(), ApiError> {
    let has_sessions = namespace.read(entity, |entity| entity.description().requires_session);
    match has_sessions && kind == SubQueue::Active {
        true => Ok(()),
        false => Err(ApiError::invalid(Problem {
            path: "entity".into(),
            value: address.into(),
            allowed: "a queue or subscription with RequiresSession".into(),
        })),
    }
}

fn not_held(namespace: &Namespace, entity: &SharedEntity, session: &str) -> ApiError {
    let held: Vec<String> = namespace.read(entity, |entity| {
        let sessions = entity.snapshot_sessions();
        let held = sessions.filter(|session| session.holder.is_some());
        held.map(|session| session.name.as_str().to_owned())
            .collect()
    });
    let message = format!(
        "nobody holds the session {session:?} of '{}'; held are: {}",
        entity.path,
        held.join(", ")
    );
    ApiError::new(StatusCode::NOT_FOUND, "not-found", message)
}
