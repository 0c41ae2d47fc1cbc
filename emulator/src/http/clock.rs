//! A test owns time: show, advance, freeze, resume; and waits until everything has come to rest.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::Body;
use super::counts::find;
use super::error::{ApiError, Problem};
use super::namespaces::Chosen;
use super::timeline::rfc3339;
use crate::calendar;

/// Longest advance: no setting of Service Bus looks further ahead.
const MAX_ADVANCE: f64 = 100.0 * 366.0 * 24.0 * 3600.0;
/// Longest wait for rest, in seconds of real time.
const MAX_WAIT: f64 = 600.0;
const DEFAULT_WAIT: f64 = 5.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Advance {
    seconds: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settle {
    within: Option<f64>,
    entity: Option<String>,
}

pub(super) async fn show(Chosen(namespace): Chosen) -> Json<Value> {
    let reading = namespace.clock.read();
    Json(json!({
        "now": rfc3339(reading.now),
        "offset_seconds": reading.ahead as f64 / 1000.0,
        "frozen": reading.frozen,
    }))
}

pub(super) async fn advance(
    chosen: Chosen,
    Body(Advance { seconds }): Body<Advance>,
) -> Result<Json<Value>, ApiError> {
    let namespace = Arc::clone(&chosen.0);
    let left = calendar::last().since(namespace.clock.now());
    let by = duration("seconds", seconds, MAX_ADVANCE.min(left.as_secs_f64()))?;
    // On its own: whoever hangs up meanwhile must not leave the clock between two instants.
    let walk = tokio::spawn(async move { namespace.advance(by).await });
    walk.await.expect("an advance comes to its end");
    Ok(show(chosen).await)
}

pub(super) async fn freeze(chosen: Chosen) -> Json<Value> {
    chosen.0.freeze().await;
    show(chosen).await
}

pub(super) async fn resume(chosen: Chosen) -> Json<Value> {
    chosen.0.resume().await;
    show(chosen).await
}

/// 200 when at rest and nothing is locked, 408 with what is not.
pub(super) async fn settled(
    Chosen(namespace): Chosen,
    Body(Settle { within, entity }): Body<Settle>,
) -> Result<Json<Value>, ApiError> {
    let within = duration("within", within.unwrap_or(DEFAULT_WAIT), MAX_WAIT)?;
    let entity = entity.map(|entity| {
        let found = find(&namespace, &entity)?;
        Ok::<_, ApiError>((found.0.id, found.1))
    });
    let unrest = match namespace.settled(within, entity.transpose()?).await {
        Ok(()) => return Ok(Json(json!({"settled": true}))),
        Err(unrest) => unrest,
    };
    let message = format!("not at rest within {} s", within.as_secs_f64());
    let problem = |unrest: crate::namespace::Unrest| Problem {
        path: unrest.place,
        value: unrest.reason.into(),
        allowed: "at rest".into(),
    };
    let problems = unrest.into_iter().map(problem).collect();
    Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "not-settled", message).with_problems(problems))
}

fn duration(path: &str, seconds: f64, max: f64) -> Result<Duration, ApiError> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if seconds <= max => Ok(duration),
        _ => Err(ApiError::invalid(Problem {
            path: path.into(),
            value: seconds.into(),
            allowed: format!("seconds from 0 to {max}"),
        })),
    }
}
