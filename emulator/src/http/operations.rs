//! The operation log of a namespace: switched on and off, and read in pages.

use axum::Json;
use serde::Deserialize;
use servicebus_control_api::{Operations, RecordOperations, Released};

use super::error::{ApiError, Asked, Body, Chosen, check_limit};

/// Operations in one answer, unless fewer are asked for.
const LIMIT: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// Those that came after this one.
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
}

/// Records operations from now on, or no more.
pub(crate) async fn record(
    Chosen(namespace): Chosen,
    Body(RecordOperations { recording }): Body<RecordOperations>,
) -> Json<Operations> {
    namespace.faults.record_operations(recording);
    Json(namespace.faults.operations(0, 0))
}

/// Lets the oldest operation go on that was postponed.
pub(crate) async fn release(Chosen(namespace): Chosen) -> Json<Released> {
    Json(Released {
        released: namespace.release_postponed(),
        waiting: namespace.faults.postponed.count(),
    })
}

pub(crate) async fn show(
    Chosen(namespace): Chosen,
    Asked(Which { after, limit }): Asked<Which>,
) -> Result<Json<Operations>, ApiError> {
    let limit = check_limit(limit, LIMIT)?;
    Ok(Json(namespace.faults.operations(after, limit)))
}
