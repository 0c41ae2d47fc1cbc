//! Explorations: a client asks for one run after the other, executes it, and reports the result.
//!
//! Each run has a namespace of its own, with the run's faults, an operation log and an automatic clock. An exploration
//! without requests for a while is removed with the namespace of its run.

mod read;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use parking_lot::Mutex;
use servicebus_control_api::{
    ExplorationReport, ExplorationRequest, RunResult, StartedExploration,
};
use servicebus_explore::{Next, PlannedRun, Progress};
use tokio::time::sleep_until;

use super::Control;
use super::error::{ApiError, Body, Id, path_name};
use crate::shared::Shared;

/// Maximum number of concurrent explorations.
const MAX: usize = 16;

/// The explorations of a process.
#[derive(Debug, Default)]
pub(crate) struct Explorations(Mutex<ExplorationList>);

#[derive(Debug, Default)]
struct ExplorationList {
    started: u64,
    all: BTreeMap<u64, Arc<Exploration>>,
}

#[derive(Debug)]
struct Exploration {
    id: u64,
    /// The contents of each run's namespace, as the client sent them.
    topology: String,
    parties: Vec<String>,
    /// How long it is kept without requests.
    keep: Duration,
    requested: Mutex<Instant>,
    /// Held while a run is begun or ended.
    state: tokio::sync::Mutex<Runs>,
}

#[derive(Debug)]
struct Runs {
    progress: Progress,
    begun: u64,
    open: Option<OpenRun>,
}

/// The current run.
#[derive(Debug)]
struct OpenRun {
    number: u64,
    planned: PlannedRun,
    namespace: String,
    /// The names of the parties by the names of their keys.
    parties: BTreeMap<String, String>,
    /// The ids of the faults of its plan.
    fault_ids: Vec<u64>,
}

/// The numbers of an exploration and of one of its runs.
pub(crate) struct RunPath {
    id: String,
    number: String,
}

impl FromRequestParts<Control> for RunPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, control: &Control) -> Result<Self, ApiError> {
        let id = path_name(parts, control, "id").await.unwrap_or_default();
        let number = path_name(parts, control, "number").await;
        let number = number.unwrap_or_default();
        Ok(Self { id, number })
    }
}

/// 201 with a new exploration.
pub(crate) async fn begin(
    State(control): State<Control>,
    Body(request): Body<ExplorationRequest>,
) -> Result<(StatusCode, Json<StartedExploration>), ApiError> {
    let requested = read::request(&control, request).await?;
    let mut begun = control.explorations.0.lock();
    if begun.all.len() >= MAX {
        let message = format!(
            "there are {MAX} explorations already, as many as there may be; remove one that is not needed any more"
        );
        return Err(ApiError::new(StatusCode::CONFLICT, "too-many", message));
    }
    begun.started += 1;
    let id = begun.started;
    let exploration = Arc::new(Exploration {
        id,
        topology: requested.topology,
        parties: requested.parties,
        keep: requested.keep,
        requested: Mutex::new(Instant::now()),
        state: tokio::sync::Mutex::new(Runs {
            progress: Progress::new(requested.settings),
            begun: 0,
            open: None,
        }),
    });
    tokio::spawn(end_when_abandoned(&control, &exploration));
    begun.all.insert(id, exploration);
    let id = id.to_string();
    Ok((StatusCode::CREATED, Json(StartedExploration { id })))
}

/// 201 with the next run, 204 where there is none.
pub(crate) async fn next(State(control): State<Control>, Id(id): Id) -> Result<Response, ApiError> {
    let exploration = control.explorations.find(&id)?;
    let mut runs = exploration.state.lock().await;
    if let Some(OpenRun { number, .. }) = &runs.open {
        let message = format!(
            "the run {number} has no result yet: send it to …/runs/{number}/result, or remove the exploration"
        );
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", message));
    }
    let planned = match runs.progress.next(Instant::now()) {
        Next::Run(planned) => planned,
        Next::Done => return Ok(StatusCode::NO_CONTENT.into_response()),
        // Not 204: a client would take the exploration for complete.
        Next::Wait => {
            let message = "a run has not ended yet; remove the exploration, and begin another one";
            return Err(ApiError::new(StatusCode::CONFLICT, "conflict", message));
        }
    };
    let run = run::begin(&control, &exploration, &mut runs, planned).await?;
    Ok((StatusCode::CREATED, Json(run)).into_response())
}

/// 204; the namespace of the run is removed.
pub(crate) async fn end(
    State(control): State<Control>,
    RunPath { id, number }: RunPath,
    Body(result): Body<RunResult>,
) -> Result<StatusCode, ApiError> {
    let exploration = control.explorations.find(&id)?;
    let mut runs = exploration.state.lock().await;
    let requested = number.parse::<u64>().ok();
    let is_open = |open: &&OpenRun| Some(open.number) == requested;
    let Some(open) = runs.open.as_ref().filter(is_open) else {
        let was_begun = requested.is_some_and(|requested| (1..=runs.begun).contains(&requested));
        return Err(match was_begun {
            true => ApiError::new(
                StatusCode::CONFLICT,
                "conflict",
                format!("the run {number} has its result already"),
            ),
            false => {
                let open = runs.open.as_ref().map(|open| open.number.to_string());
                ApiError::unknown("run", &number, open.as_deref().into_iter())
            }
        });
    };
    // If the client disconnects at an await, either the run is still open with its namespace, or its outcome is recorded.
    let outcome = run::outcome(&control, open, result).await;
    if let Some(open) = runs.open.take() {
        runs.progress.record_outcome(open.planned, outcome);
        run::remove_namespace(&control.shared, &open.namespace).await;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Answers with the results so far.
pub(crate) async fn report(
    State(control): State<Control>,
    Id(id): Id,
) -> Result<Json<ExplorationReport>, ApiError> {
    let exploration = control.explorations.find(&id)?;
    let runs = exploration.state.lock().await;
    let report = runs.progress.report(Instant::now());
    Ok(Json(ExplorationReport {
        id,
        done: report.is_done,
        failed: report.is_failure,
        replay: "statistical".to_owned(),
        text: report.text,
        report: report.json,
    }))
}

/// 204; the namespace of a current run is removed, too.
pub(crate) async fn remove(
    State(control): State<Control>,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    let exploration = control.explorations.find(&id)?;
    let mut runs = exploration.state.lock().await;
    let Control {
        explorations,
        shared,
        ..
    } = &control;
    explorations.remove(&exploration, &mut runs, shared).await;
    Ok(StatusCode::NO_CONTENT)
}

impl Explorations {
    /// Returns the exploration of this id, which extends its lifetime.
    fn find(&self, id: &str) -> Result<Arc<Exploration>, ApiError> {
        let begun = self.0.lock();
        let number = id.parse::<u64>().ok();
        let Some(found) = number.and_then(|number| begun.all.get(&number)) else {
            let known: Vec<String> = begun.all.keys().map(u64::to_string).collect();
            let known = known.iter().map(String::as_str);
            return Err(ApiError::unknown("exploration", id, known));
        };
        *found.requested.lock() = Instant::now();
        Ok(Arc::clone(found))
    }

    /// Removes an exploration with the namespace of its run. A request that waits for `runs` meanwhile begins none.
    async fn remove(&self, exploration: &Exploration, runs: &mut Runs, shared: &Shared) {
        self.0.lock().all.remove(&exploration.id);
        runs.progress.stop("it was removed".to_owned());
        if let Some(open) = runs.open.take() {
            run::remove_namespace(shared, &open.namespace).await;
        }
    }
}

/// Removes an exploration after its time without requests. The task keeps nothing else alive.
fn end_when_abandoned(
    control: &Control,
    exploration: &Arc<Exploration>,
) -> impl Future<Output = ()> + use<> {
    let explorations = Arc::downgrade(&control.explorations);
    let shared = Arc::downgrade(&control.shared);
    let exploration = Arc::downgrade(exploration);
    async move {
        while let Some(kept) = exploration.upgrade() {
            let mut runs = kept.state.lock().await;
            // Read under the lock: a request that held it has begun a run meanwhile.
            let until = *kept.requested.lock() + kept.keep;
            if Instant::now() < until {
                drop(runs);
                drop(kept);
                sleep_until(until.into()).await;
                continue;
            }
            let (Some(explorations), Some(shared)) = (explorations.upgrade(), shared.upgrade())
            else {
                return;
            };
            explorations.remove(&kept, &mut runs, &shared).await;
            return;
        }
    }
}

#[cfg(test)]
mod tests;
