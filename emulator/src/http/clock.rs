//! A test owns time: show, advance, freeze, resume; and waits until everything has come to rest.

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
/// Deadlines that an advance may stop at: for more, a client asks again. A lock of 5 s that runs out again and again
/// takes ten weeks to come so far.
const MAX_STEPS: u32 = 1_000_000;
/// Longest wait for rest, in seconds of real time.
const MAX_WAIT: f64 = 600.0;
const DEFAULT_WAIT: f64 = 5.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Advance {
    seconds: f64,
    steps: Option<u32>,
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
    Body(Advance { seconds, steps }): Body<Advance>,
) -> Result<Json<Value>, ApiError> {
    let namespace = &chosen.0;
    let left = calendar::last().since(namespace.clock.now());
    let by = duration("seconds", seconds, MAX_ADVANCE.min(left.as_secs_f64()))?;
    let steps = steps.unwrap_or(MAX_STEPS);
    if steps > MAX_STEPS {
        return Err(ApiError::invalid(Problem {
            path: "steps".into(),
            value: steps.into(),
            allowed: format!("deadlines from 0 to {MAX_STEPS}"),
        }));
    }
    // Within the request: it ends with its client, with the namespace and with the emulator.
    match namespace.advance(by, steps).await {
        Ok(()) => Ok(show(chosen).await),
        Err(passed) => {
            let message = format!(
                "stopped after {} of {seconds} s, because {steps} deadlines were reached; the clock shows {}: advance \
                 it again for the rest",
                passed.as_secs_f64(),
                rfc3339(namespace.clock.now())
            );
            Err(ApiError::new(
                StatusCode::REQUEST_TIMEOUT,
                "not-advanced",
                message,
            ))
        }
    }
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
    let busy = match namespace.settled(within, entity.transpose()?).await {
        Ok(()) => return Ok(Json(json!({"settled": true}))),
        Err(busy) => busy,
    };
    let message = format!("not at rest within {} s", within.as_secs_f64());
    let problem = |busy: crate::namespace::Busy| Problem {
        path: busy.place,
        value: busy.reason.into(),
        allowed: "at rest".into(),
    };
    let problems = busy.into_iter().map(problem).collect();
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
