//! The clock of a namespace (show, advance, freeze, resume), and the wait until the namespace is idle.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use serde::Deserialize;
use servicebus_assertions::not_idle;
use servicebus_broker::Timestamp;
use servicebus_control_api::{
    Advance, AdvanceTo, Clock, ClockHold, Due, DueEvent, HoldClock, Problem, Settle, Settled,
};

use super::counts::find;
use super::error::{ApiError, Body, Id, QueryParams, SelectedNamespace, check_limit};
use crate::clock;
use crate::namespace::{Busy, MAX_HOLDS, Namespace, NoNext};

/// Longest advance: no setting of Service Bus is longer.
const MAX_ADVANCE: f64 = 100.0 * 366.0 * 24.0 * 3600.0;
/// Maximum number of deadlines in one advance; clients repeat the request for more. A lock of 5 s that expires again and
/// again takes ten weeks to get this far.
const MAX_STEPS: u32 = 1_000_000;
/// Longest wait until a namespace is idle, in seconds of real time.
const MAX_WAIT: f64 = 600.0;
/// Maximum number of deadlines in one response.
const MAX_DUE: usize = 100;
const DEFAULT_WAIT: f64 = 5.0;

pub(crate) async fn show(SelectedNamespace(namespace): SelectedNamespace) -> Json<Clock> {
    Json(shown(&namespace))
}

/// Returns the reading of a namespace's clock.
pub(crate) fn shown(namespace: &Namespace) -> Clock {
    let reading = namespace.clock.read();
    Clock {
        now: clock::system_time(reading.now),
        offset_seconds: reading.ahead as f64 / 1000.0,
        frozen: reading.frozen,
        auto: namespace.auto.is_on(),
    }
}

pub(crate) async fn advance(
    selected: SelectedNamespace,
    Body(Advance { seconds, to, steps }): Body<Advance>,
) -> Result<Json<Clock>, ApiError> {
    let namespace = &selected.0;
    let left = clock::last().since(namespace.clock.now()).as_secs_f64();
    let max = MAX_ADVANCE.min(left);
    let steps = steps.unwrap_or(MAX_STEPS);
    if steps > MAX_STEPS {
        let allowed = format!("deadlines from 0 to {MAX_STEPS}");
        return Err(ApiError::not_allowed("steps", steps, allowed));
    }
    // Within the request: it ends with its client, with the namespace and with the emulator.
    let advanced = match (seconds, to) {
        (Some(seconds), None) => {
            let by = duration("seconds", seconds, max)?;
            namespace.advance(by, steps).await
        }
        (None, Some(AdvanceTo::Next)) => {
            let limit = Duration::from_secs_f64(max);
            let advanced = namespace.advance_to_next(limit, steps).await;
            advanced.map_err(|error| no_next(error, max))?
        }
        (Some(_), Some(_)) | (None, None) => {
            let text = "either `seconds`, or where to go as `to`";
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            return Err(ApiError::new(status, "invalid-body", text));
        }
    };
    let Err(passed) = advanced else {
        return Ok(show(selected).await);
    };
    let whole = seconds.map_or_else(String::new, |seconds| format!("of {seconds} "));
    let message = format!(
        "stopped after {} {whole}s, because {steps} deadlines were reached; the clock shows {}: advance it again for the \
         rest",
        passed.as_secs_f64(),
        clock::date(namespace.clock.now())
    );
    let status = StatusCode::REQUEST_TIMEOUT;
    Err(ApiError::new(status, "not-advanced", message))
}

fn no_next(error: NoNext, max: f64) -> ApiError {
    let message = match error {
        NoNext::NothingDue => "nothing is due at any time".to_owned(),
        NoNext::TooFar(next, by) => format!(
            "what is due next is so at {}, {} s from now, and a clock is advanced by {max} s at most",
            clock::date(next),
            by.as_secs_f64()
        ),
    };
    ApiError::new(StatusCode::CONFLICT, "refused", message)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DueQuery {
    limit: Option<usize>,
}

/// Answers with the next deadlines in order.
pub(crate) async fn due(
    SelectedNamespace(namespace): SelectedNamespace,
    QueryParams(DueQuery { limit }): QueryParams<DueQuery>,
) -> Result<Json<Due>, ApiError> {
    let limit = check_limit(limit, MAX_DUE)?;
    let due = upcoming(&namespace, limit);
    Ok(Json(Due { due }))
}

/// Returns the next deadlines in order, at most `limit`.
pub(crate) fn upcoming(namespace: &Namespace, limit: usize) -> Vec<DueEvent> {
    let now = namespace.clock.now();
    let event = |at: Timestamp, kind: &str| DueEvent {
        at: clock::system_time(at),
        in_seconds: at.since(now).as_secs_f64(),
        kind: kind.to_owned(),
        entity: None,
        sequence_number: None,
        session: None,
    };
    let delays = namespace.faults.waits.upcoming(limit).into_iter();
    let mut due = Vec::from_iter(delays.map(|at| event(at, "fault-delay")));
    for entity in namespace.soonest(limit) {
        let upcoming = namespace.read(&entity, |entity| entity.upcoming(limit));
        due.extend(upcoming.into_iter().map(|upcoming| DueEvent {
            entity: Some(entity.store_path(upcoming.kind)),
            sequence_number: upcoming.number.map(|number| number.0),
            session: upcoming.session.map(|session| session.to_string()),
            ..event(upcoming.at, upcoming.what)
        }));
    }
    due.sort_by_key(|event| event.at);
    due.truncate(limit);
    due
}

pub(crate) async fn freeze(selected: SelectedNamespace) -> Json<Clock> {
    selected.0.freeze().await;
    show(selected).await
}

pub(crate) async fn resume(selected: SelectedNamespace) -> Json<Clock> {
    selected.0.resume().await;
    show(selected).await
}

/// Freezes the clock, which then steps to the next deadline when the namespace is quiet.
pub(crate) async fn automate(selected: SelectedNamespace) -> Json<Clock> {
    selected.0.automate_clock().await;
    show(selected).await
}

/// Keeps an automatic clock from stepping.
pub(crate) async fn hold(
    SelectedNamespace(namespace): SelectedNamespace,
    Body(HoldClock { seconds }): Body<HoldClock>,
) -> Result<(StatusCode, Json<ClockHold>), ApiError> {
    let length = duration("seconds", seconds, MAX_WAIT)?;
    let id = namespace.auto.hold(length).ok_or_else(|| {
        let message = format!("there are {MAX_HOLDS} holds already, as many as there may be");
        ApiError::new(StatusCode::CONFLICT, "too-many", message)
    })?;
    Ok((StatusCode::CREATED, Json(ClockHold { id })))
}

pub(crate) async fn release(
    SelectedNamespace(namespace): SelectedNamespace,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    let is_released = id.parse().is_ok_and(|id| namespace.auto.release(id));
    match is_released {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ApiError::unknown("hold", &id, std::iter::empty())),
    }
}

/// 200 if the namespace is idle and nothing is locked; otherwise 408 with the reasons, or 200 with them if the client asks
/// for that.
pub(crate) async fn settled(
    SelectedNamespace(namespace): SelectedNamespace,
    Body(Settle {
        within,
        entity,
        refuse,
    }): Body<Settle>,
) -> Result<Json<Settled>, ApiError> {
    let within = duration("within", within.unwrap_or(DEFAULT_WAIT), MAX_WAIT)?;
    let entity = entity.map(|entity| {
        let found = find(&namespace, &entity)?;
        Ok::<_, ApiError>((found.0.id, found.1))
    });
    let busy = match namespace.settled(within, entity.transpose()?).await {
        Ok(()) => Vec::new(),
        Err(busy) => busy,
    };
    if busy.is_empty() || refuse == Some(false) {
        let places = Vec::from_iter(
            busy.iter()
                .map(|busy| format!("{}: {}", busy.place, busy.reason)),
        );
        return Ok(Json(Settled {
            settled: busy.is_empty(),
            failure: (!busy.is_empty()).then(|| not_idle(within, places)),
        }));
    }
    let message = format!("not idle within {} s", within.as_secs_f64());
    let problem = |busy: Busy| Problem::new(busy.place, busy.reason, "idle");
    let problems = busy.into_iter().map(problem).collect();
    Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "not-settled", message).with_problems(problems))
}

fn duration(path: &str, seconds: f64, max: f64) -> Result<Duration, ApiError> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if seconds <= max => Ok(duration),
        _ => {
            let allowed = format!("seconds from 0 to {max}");
            Err(ApiError::not_allowed(path, seconds, allowed))
        }
    }
}
